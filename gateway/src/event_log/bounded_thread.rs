//! A thread that is joined with a timeout, so that it does not delay the end of the gateway.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

/// The thread.
pub(super) struct BoundedThread {
    handle: JoinHandle<()>,
    /// Closed when it ends.
    ended: Receiver<()>,
}

impl BoundedThread {
    /// Starts it.
    ///
    /// # Errors
    /// The kernel has no thread left.
    pub(super) fn start(run: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let (end, ended) = channel();
        let handle = Builder::new().name("event-log".into()).spawn(move || {
            // Dropped after the last step, or by a panic.
            let _end = end;
            run();
        })?;
        Ok(Self { handle, ended })
    }

    /// Waits for its end until then; whether it has ended.
    pub(super) fn wait(self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        if self.ended.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
            return false;
        }
        // A panic was reported by the thread.
        let _ = self.handle.join();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_thread_that_does_not_end_is_left_after_the_time() {
        let (_open, never) = channel::<()>();
        let stuck = BoundedThread::start(move || assert!(never.recv().is_err())).unwrap();
        let before = Instant::now();
        assert!(!stuck.wait(before + Duration::from_millis(50)));
        assert!(before.elapsed() >= Duration::from_millis(50));
        let quick = BoundedThread::start(|| {}).unwrap();
        assert!(quick.wait(Instant::now() + Duration::from_secs(60)));
        let failing = BoundedThread::start(|| panic!("as expected")).unwrap();
        assert!(failing.wait(Instant::now() + Duration::from_secs(60)));
    }
}
