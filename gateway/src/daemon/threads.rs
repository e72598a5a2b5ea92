//! The workers' threads.

use super::error::RunError;
use super::handover_file::Handed;
use crate::worker::{
    Clock, Command, ControlSender, Post, Unreachable, Wake, Worker, exchanges, mailbox, rings,
};
use sixway_dataplane::engine::Engine;
use sixway_link::{BlockMap, Duty, TunQueue, give_up};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// The threads of a gateway.
#[derive(Debug)]
pub(super) struct Threads {
    /// How to reach each.
    pub posts: Vec<Post>,
    handles: Vec<JoinHandle<()>>,
    ends: UnboundedReceiver<String>,
}

impl Threads {
    /// Starts a thread for each engine and deals the queues out.
    ///
    /// # Errors
    /// The kernel has no thread or descriptor left.
    pub(super) fn start(
        mut engines: Vec<Engine>,
        (queues, blocks): (Vec<TunQueue>, Option<BlockMap>),
        (clock, busy_poll): (Clock, Duration),
        control: &ControlSender,
    ) -> Result<Self, RunError> {
        let failed = |error| RunError::Io("worker".into(), error);
        let ends = engines.iter().map(|_| mailbox()).collect::<io::Result<Vec<_>>>().map_err(failed)?;
        let wakes: Vec<Wake> = ends.iter().map(|(_, mailbox)| mailbox.wake().clone()).collect();
        let (said, heard) = unbounded_channel();
        let mut threads = Self { posts: Vec::new(), handles: Vec::new(), ends: heard };
        let posts: Vec<Post> = ends.iter().map(|(post, _)| post.clone()).collect();
        let stateful = engines.first_mut().map_or(0, |engine| engine.stateful().count());
        let exchanges = exchanges(&posts, stateful, blocks.as_ref());
        let parts = engines.into_iter().zip(dealt(queues, wakes.len())).zip(ends).zip(rings(&wakes));
        for (number, ((((engine, queues), (post, mailbox)), handover), blocks)) in
            parts.zip(exchanges).enumerate()
        {
            let worker = Worker::new(queues, engine, clock, mailbox, handover)
                .with_control(control.clone())
                .exchanging(blocks)
                .busy_polling(busy_poll)
                .with_peers(all_but(&posts, number));
            let worker = if number == 0 { worker.answering_path_errors() } else { worker };
            let reports = said.clone();
            let worker = move || {
                confine(Duty::Packets);
                worker.run_to_the_end(|error| {
                    // Nothing listens at the end.
                    let _ = reports.send(format!("worker {number}: {error}"));
                });
            };
            let said = said.clone();
            let handle =
                Builder::new().name(format!("worker-{number}")).spawn(move || guard(number, worker, &said));
            match handle {
                Ok(handle) => threads.handles.push(handle),
                Err(error) => {
                    threads.stop();
                    return Err(failed(error));
                }
            }
            threads.posts.push(post);
        }
        Ok(threads)
    }

    /// Waits until a worker fails, and returns why; without workers, forever.
    pub(super) async fn first_end(&mut self) -> String {
        if self.handles.is_empty() {
            return std::future::pending().await;
        }
        self.ends.recv().await.unwrap_or_else(|| "all workers have ended".into())
    }

    /// Stops all workers and waits for them; returns the sessions for the next process.
    pub(super) async fn leave(&mut self) -> Vec<Handed> {
        let mut exports = Vec::new();
        for post in self.posts.drain(..) {
            exports.push(loop {
                let (answer, exported) = oneshot::channel();
                if post.send(Command::Leave(answer)) != Err(Unreachable::Busy) {
                    break exported;
                }
                std::thread::sleep(Duration::from_millis(1));
            });
        }
        let mut sessions = Vec::new();
        for exported in exports {
            // A worker that failed has none.
            sessions.extend(exported.await.unwrap_or_default());
        }
        for handle in self.handles.drain(..) {
            // A panic was caught and reported by the thread.
            let _ = handle.join();
        }
        sessions
    }

    /// Stops all workers and waits for them; their queues are closed then.
    pub(super) fn stop(&mut self) {
        for post in self.posts.drain(..) {
            while post.send(Command::Stop) == Err(Unreachable::Busy) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        for handle in self.handles.drain(..) {
            // A panic was caught and reported by the thread.
            let _ = handle.join();
        }
    }
}

/// Deals queues out to workers in turn.
fn dealt(queues: Vec<TunQueue>, workers: usize) -> Vec<Vec<TunQueue>> {
    let mut hands: Vec<Vec<TunQueue>> = (0..workers).map(|_| Vec::new()).collect();
    for (number, queue) in queues.into_iter().enumerate() {
        hands[number % workers].push(queue);
    }
    hands
}

/// Drops privileges that the calling thread does not need. The gateway runs even if the kernel refuses this.
pub(super) fn confine(duty: Duty) {
    if let Err(error) = give_up(duty) {
        tracing::warn!("a thread keeps its privileges: {error}");
    }
}

/// Reports a worker that ends unexpectedly: after a panic the gateway must not continue without it.
fn guard(number: usize, worker: impl FnOnce(), said: &UnboundedSender<String>) {
    if catch_unwind(AssertUnwindSafe(worker)).is_err() {
        let what = format!("worker {number} panicked; this is a defect of sixway, please report it");
        // Nothing listens at the end.
        let _ = said.send(what);
    }
}

/// The rings of the other workers.
fn all_but(posts: &[Post], number: usize) -> Vec<Post> {
    let others = posts.iter().enumerate().filter(|(other, _)| *other != number);
    others.map(|(_, post)| post.clone()).collect()
}
