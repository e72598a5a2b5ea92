//! A TCP stream that lives through a day: an echo server outside, a client inside, each octet verified, and how long the stream stood still.

use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::topology::Network;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Octets that go there and back in one turn.
const BLOCK: usize = 600;
/// Between two turns.
const PAUSE: Duration = Duration::from_millis(10);
/// A socket is looked at this often.
const STEP: Duration = Duration::from_millis(200);
/// TCP retransmits later and later while the line is down.
const PATIENCE: Duration = Duration::from_secs(45);

/// Sends everything back, until the network goes.
pub struct Echo {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    /// Begins to listen at these addresses of a host.
    pub fn start(network: &Network, host: &str, at: &[SocketAddr]) -> Result<Self> {
        let ends = Arc::new(AtomicBool::new(false));
        let bind = |at: &SocketAddr| {
            let listener = network.host(host)?.enter(|| TcpListener::bind(at))?;
            let listener = listener.asking(|| format!("listening at {at}"))?;
            listener.set_nonblocking(true).asking(|| "a listener".to_owned())?;
            Ok(listener)
        };
        let listeners: Vec<TcpListener> = at.iter().map(bind).collect::<Result<_>>()?;
        let told = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                for (stream, _) in listeners.iter().filter_map(|listener| listener.accept().ok()) {
                    let told = Arc::clone(&told);
                    std::thread::spawn(move || send_back(stream, &told));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Ok(Self { ends, thread: Some(thread) })
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn send_back(mut stream: TcpStream, ends: &AtomicBool) {
    let mut octets = [0; 4_096];
    let _ = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(STEP)));
    while !ends.load(Ordering::Relaxed) {
        match stream.read(&mut octets) {
            Ok(0) => return,
            Ok(length) if stream.write_all(&octets[..length]).is_err() => return,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
    }
}

#[derive(Debug)]
struct Progress {
    verified: u64,
    last: Instant,
    longest: Duration,
    failure: Option<String>,
}

/// A stream that is open.
pub struct Stream {
    name: &'static str,
    progress: Arc<Mutex<Progress>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Stream {
    /// Connects from a host to an [`Echo`].
    pub fn open(network: &Network, host: &str, name: &'static str, to: SocketAddr) -> Result<Self> {
        let connected =
            network.host(host)?.enter(|| TcpStream::connect_timeout(&to, Duration::from_secs(5)))?;
        let stream = connected.asking(|| format!("{name}: connecting to {to}"))?;
        stream.set_nodelay(true).asking(|| name.to_owned())?;
        stream.set_read_timeout(Some(STEP)).asking(|| name.to_owned())?;
        let progress = Progress { verified: 0, last: Instant::now(), longest: Duration::ZERO, failure: None };
        let (progress, ends) = (Arc::new(Mutex::new(progress)), Arc::new(AtomicBool::new(false)));
        let (shared, told) = (Arc::clone(&progress), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            if let Err(why) = exchange(stream, &shared, &told) {
                locked(&shared).failure = Some(why);
            }
        });
        Ok(Self { name, progress, ends, thread: Some(thread) })
    }

    /// What carries it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Begins to measure.
    pub fn mark(&self) {
        let mut progress = locked(&self.progress);
        (progress.last, progress.longest) = (Instant::now(), Duration::ZERO);
    }

    /// Waits until it has moved on, and says how long it stood still at most since the mark.
    pub fn goes_on(&self) -> Result<Duration> {
        let before = locked(&self.progress).verified;
        interrupt::wait_until(PATIENCE, &format!("progress of the stream by {}", self.name), || {
            let progress = locked(&self.progress);
            match &progress.failure {
                Some(why) => Err(Failure::Unexpected(format!("the stream by {} ended: {why}", self.name))),
                None => Ok(progress.verified >= before + 4 * BLOCK as u64),
            }
        })?;
        Ok(locked(&self.progress).longest)
    }

    /// Whether nothing has come for this time, or it has ended.
    pub fn stands(&self, time: Duration) -> bool {
        let progress = locked(&self.progress);
        progress.failure.is_some() || progress.last.elapsed() > time
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn locked(progress: &Mutex<Progress>) -> std::sync::MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the stream has at a position.
fn octet(position: u64) -> u8 {
    (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8
}

fn exchange(
    mut stream: TcpStream,
    progress: &Mutex<Progress>,
    ends: &AtomicBool,
) -> std::result::Result<(), String> {
    let mut position = 0;
    let mut came = [0; BLOCK];
    while !ends.load(Ordering::Relaxed) {
        let sent: Vec<u8> = (position..position + BLOCK as u64).map(octet).collect();
        stream.write_all(&sent).map_err(|error| error.to_string())?;
        let mut length = 0;
        while length < BLOCK {
            match stream.read(&mut came[length..]) {
                Ok(0) => return Err("closed".to_owned()),
                Ok(more) => length += more,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if ends.load(Ordering::Relaxed) {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        if came[..] != sent[..] {
            return Err(format!("other octets at {position}"));
        }
        position += BLOCK as u64;
        let mut now = locked(progress);
        now.longest = now.longest.max(now.last.elapsed());
        (now.last, now.verified) = (Instant::now(), position);
        drop(now);
        std::thread::sleep(PAUSE);
    }
    Ok(())
}
