//! Wakes a worker that waits for packets.

use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// An eventfd (eventfd(2)) that a worker polls in addition to its queues. Clones wake the same worker.
#[derive(Clone, Debug)]
pub struct Wake {
    event: Arc<EventFd>,
}

impl Wake {
    /// A new one.
    ///
    /// # Errors
    /// The kernel has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let event = EventFd::from_flags(flags)
            .map_err(|error| io::Error::new(io::Error::from(error).kind(), format!("eventfd: {error}")))?;
        Ok(Self { event: Arc::new(event) })
    }

    /// Wakes the worker.
    pub fn wake(&self) {
        // It fails only when the count is full, and then the worker is about to wake.
        let _ = self.event.write(1);
    }

    /// Waits for the next wake from here on.
    pub fn clear(&self) {
        // It fails only when nothing woke us.
        let _ = self.event.read();
    }

    /// What becomes readable.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
