//! The signals that stop or reload a gateway: read from a signalfd, not caught. A signal that is not read stays pending, also for the process
//! after re-execution.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io;
use tokio::io::unix::AsyncFd;

/// Those that are waited for.
pub(super) struct Signals {
    file: AsyncFd<SignalFd>,
    /// SIGHUP arrived while nothing waited for it.
    hung_up: bool,
}

/// What a signal requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Stop the gateway; the name of the signal.
    End(&'static str),
    /// SIGHUP.
    HungUp,
}

fn all() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect()
}

impl Signals {
    /// Blocks them from here on; to be called before other threads start, which inherit this.
    pub(super) fn hold() -> io::Result<()> {
        Ok(all().thread_block()?)
    }

    /// Opens the file, in a runtime.
    pub(super) fn open() -> io::Result<Self> {
        let file = SignalFd::with_flags(&all(), SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        #[expect(
            deprecated,
            reason = "a signal file keeps its descriptor, so it is sound; the other way is unsafe"
        )]
        let file = AsyncFd::new(file)?;
        Ok(Self { file, hung_up: false })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) -> Request {
        if std::mem::take(&mut self.hung_up) {
            return Request::HungUp;
        }
        self.read().await
    }

    /// Waits for one that ends the gateway; SIGHUP stays pending.
    pub(super) async fn end(&mut self) -> &'static str {
        loop {
            match self.read().await {
                Request::End(name) => return name,
                Request::HungUp => self.hung_up = true,
            }
        }
    }

    /// Leaves a SIGHUP that was not read to the process after re-execution.
    pub(super) fn put_back(&mut self) {
        if std::mem::take(&mut self.hung_up) {
            // It stays pending, since it is blocked.
            let _ = nix::sys::signal::raise(Signal::SIGHUP);
        }
    }

    async fn read(&mut self) -> Request {
        loop {
            let Ok(mut ready) = self.file.readable_mut().await else {
                // The runtime ends.
                return std::future::pending().await;
            };
            match ready.get_inner_mut().read_signal() {
                Ok(Some(read)) => return told(read.ssi_signo),
                _ => ready.clear_ready(),
            }
        }
    }
}

fn told(number: u32) -> Request {
    const HANGUP: u32 = Signal::SIGHUP as u32;
    const INTERRUPT: u32 = Signal::SIGINT as u32;
    match number {
        HANGUP => Request::HungUp,
        INTERRUPT => Request::End("SIGINT"),
        _ => Request::End("SIGTERM"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::raise;
    use std::time::Duration;

    #[tokio::test]
    async fn a_hangup_that_nothing_waited_for_is_left_to_the_next_process() {
        Signals::hold().unwrap();
        let mut signals = Signals::open().unwrap();
        raise(Signal::SIGHUP).unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(50), signals.end()).await.is_err());
        signals.put_back();
        drop(signals);
        let mut next = Signals::open().unwrap();
        assert_eq!(tokio::time::timeout(Duration::from_secs(5), next.next()).await, Ok(Request::HungUp));
        next.put_back();
        assert!(tokio::time::timeout(Duration::from_millis(50), next.next()).await.is_err(), "only once");
    }
}
