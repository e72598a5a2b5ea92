//! A thread with its own runtime.

use sixway_link::{Duty, give_up};
use std::io;
use std::thread::{Builder, JoinHandle};
use tokio::runtime::{self, Handle};
use tokio::sync::oneshot;

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct RuntimeThread {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RuntimeThread {
    /// Starts it.
    ///
    /// # Errors
    /// The kernel has no thread or descriptor left.
    pub(super) fn start(name: &str) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        // Its tasks run after the caller has made all of them, since it may refuse to continue in between.
        let thread = Builder::new().name(name.to_owned()).spawn(move || {
            if let Err(error) = give_up(Duty::Listening) {
                tracing::warn!("a DNS thread keeps its privileges: {error}");
            }
            // It stops in either case.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Where its tasks are made.
    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for RuntimeThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}
