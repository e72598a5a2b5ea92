//! Sockets of the crate `link`, for the async runtime.

use sixway_link::{Link, NeighbourDiscovery, PathErrors};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyMutGuard};

/// A type whose file descriptor does not change.
pub(super) trait Descriptor {
    /// Its number.
    fn descriptor(&self) -> RawFd;
}

impl Descriptor for PathErrors {
    fn descriptor(&self) -> RawFd {
        self.poll_fd().map_or(-1, |fd| fd.as_raw_fd())
    }
}

impl Descriptor for NeighbourDiscovery {
    fn descriptor(&self) -> RawFd {
        self.poll_fd().as_raw_fd()
    }
}

/// One that the runtime knows.
pub(super) struct Held<T>(pub T);

impl<T: Descriptor> AsRawFd for Held<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.0.descriptor()
    }
}

/// A socket that can be waited for.
pub(super) struct Readable<T: Descriptor>(AsyncFd<Held<T>>);

impl<T: Descriptor> Readable<T> {
    /// Makes the runtime wait for it.
    ///
    /// # Errors
    /// The runtime cannot.
    #[expect(
        deprecated,
        reason = "what replaces it is unsafe; our sockets own their descriptors as long as they live"
    )]
    pub(super) fn new(socket: T) -> io::Result<Self> {
        AsyncFd::with_interest(Held(socket), Interest::READABLE).map(Self)
    }

    /// The socket.
    pub(super) fn get_mut(&mut self) -> &mut T {
        &mut self.0.get_mut().0
    }

    /// Waits until it is readable. If a read finds nothing, call `clear_ready`.
    ///
    /// # Errors
    /// The runtime ends.
    pub(super) async fn ready(&mut self) -> io::Result<AsyncFdReadyMutGuard<'_, Held<T>>> {
        self.0.readable_mut().await
    }
}
