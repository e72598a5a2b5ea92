//! A TCP server: a pool of threads, each of which serves one connection at a time.

use crate::failure::{Asking as _, Result};
use crate::load::clock;
use crate::load::ends::on;
use crate::load::flood::thread_cpu;
use crate::namespace::Namespace;
use nix::sys::socket::{setsockopt, sockopt::ReceiveTimeout};
use nix::sys::time::{TimeVal, TimeValLike as _};
use std::io::{self, ErrorKind, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a thread that waits looks whether the server ends, in milliseconds.
const LOOK: i64 = 50;
/// How often an address is tried that is in use, and the time in between.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// Serves one connection to its end.
pub(super) type Service = dyn Fn(&mut Peer<'_>) -> io::Result<()> + Send + Sync;

/// A running server. It ends when it is dropped.
pub(super) struct TcpServer {
    state: Arc<State>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    ended: AtomicBool,
    /// CPU time of its threads, up to the last connection of each.
    cpu: AtomicU64,
}

impl TcpServer {
    /// Listens in a namespace, and serves this many connections at the same time.
    pub(super) fn start(
        host: &Namespace,
        listens: SocketAddr,
        (workers, core): (u16, Option<usize>),
        service: impl Fn(&mut Peer<'_>) -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = host.enter(|| bind(listens))?.asking(|| format!("listening on {listens}"))?;
        Self::on(listener, (workers, core), service)
    }

    /// The same with a socket that listens.
    pub(super) fn on(
        listener: TcpListener,
        (workers, core): (u16, Option<usize>),
        service: impl Fn(&mut Peer<'_>) -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        setsockopt(&listener, ReceiveTimeout, &TimeVal::milliseconds(LOOK))
            .asking(|| "SO_RCVTIMEO".to_owned())?;
        let (listener, state) = (Arc::new(listener), Arc::new(State::default()));
        let service: Arc<Service> = Arc::new(service);
        let threads = (0..workers.max(1))
            .map(|_| {
                let (listener, state, service) =
                    (Arc::clone(&listener), Arc::clone(&state), Arc::clone(&service));
                std::thread::spawn(move || {
                    on(core, || {
                        work(&listener, &state, &*service);
                        Ok(())
                    })
                    .ok();
                })
            })
            .collect();
        Ok(Self { state, threads })
    }

    /// CPU time of its threads, for the connections that have ended.
    pub(super) fn cpu(&self) -> Duration {
        Duration::from_nanos(self.state.cpu.load(Ordering::Relaxed))
    }

    /// Ends it; the CPU time of its threads.
    pub(super) fn end(mut self) -> Duration {
        self.join();
        self.cpu()
    }

    fn join(&mut self) {
        self.state.ended.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
    }
}

impl Drop for TcpServer {
    fn drop(&mut self) {
        self.join();
    }
}

/// Binds a listener. A child process that another thread has forked holds the sockets of this process until it executes its program, also one
/// that has been closed here: the address is then in use for a moment.
fn bind(listens: SocketAddr) -> io::Result<TcpListener> {
    for _ in 0..TRIES {
        match TcpListener::bind(listens) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => std::thread::sleep(PAUSE),
            bound => return bound,
        }
    }
    TcpListener::bind(listens)
}

/// A listener's time limit holds for `accept`, too, and wakes only one of the threads that wait.
fn work(listener: &TcpListener, state: &State, service: &Service) {
    let mut counted = Duration::ZERO;
    while !state.ended.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else { continue };
        let limit = Duration::from_millis(LOOK.unsigned_abs());
        let is_ready = stream.set_read_timeout(Some(limit)).and_then(|()| stream.set_nodelay(true)).is_ok();
        if is_ready {
            // What goes wrong with one connection is the client's loss.
            service(&mut Peer { stream, ended: &state.ended }).ok();
        }
        let cpu = thread_cpu();
        state.cpu.fetch_add(clock::nanoseconds(cpu.saturating_sub(counted)), Ordering::Relaxed);
        counted = cpu;
    }
}

/// A server's connection.
pub(super) struct Peer<'a> {
    pub(super) stream: TcpStream,
    ended: &'a AtomicBool,
}

impl Peer<'_> {
    /// Reads what has come, at least one octet; 0 if the client has closed, or the server ends.
    pub(super) fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(octets) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    if self.ended.load(Ordering::Relaxed) {
                        return Ok(0);
                    }
                }
                other => return other,
            }
        }
    }

    /// Reads that much; false if the client has closed, or the server ends.
    pub(super) fn read_whole(&mut self, octets: &mut [u8]) -> io::Result<bool> {
        let mut filled = 0;
        while let Some(rest) = octets.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.read(rest)? {
                0 => return Ok(false),
                count => filled += count,
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_bound_when_another_process_releases_it_and_refused_if_it_does_not() {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = other.local_addr().unwrap();
        assert_eq!(bind(address).unwrap_err().kind(), ErrorKind::AddrInUse);
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            drop(other);
        });
        assert!(bind(address).is_ok());
        thread.join().unwrap();
    }
}
