//! ICMPv4 errors about tunnel packets, from their socket to the workers.

use super::gateway::Gateway;
use super::readable::Readable;
use crate::worker::Command;
use sixway_dataplane::Frame;
use sixway_link::{Link, PathErrors};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Errors taken with one call.
const AT_ONCE: usize = 16;
/// Maximum octets of an error that are read: RFC 1812 §4.3.2.3, with a margin.
const ROOM: usize = 2_048;

/// The way of path errors to the workers.
pub(super) struct PathErrorRelay {
    socket: Readable<PathErrors>,
    frames: Vec<Frame>,
}

impl PathErrorRelay {
    /// For errors about packets from these addresses.
    ///
    /// # Errors
    /// The kernel refused.
    pub(super) fn open(addresses: &[Ipv4Addr]) -> io::Result<Self> {
        let socket = Readable::new(PathErrors::open(addresses)?)?;
        Ok(Self { socket, frames: (0..AT_ONCE).map(|_| Frame::with_capacity(ROOM)).collect() })
    }

    /// Sets other addresses.
    ///
    /// # Errors
    /// The kernel refused; the former ones stay.
    pub(super) fn set_addresses(&mut self, addresses: &[Ipv4Addr]) -> io::Result<()> {
        self.socket.get_mut().set_addresses(addresses)
    }

    /// Waits for errors.
    ///
    /// # Errors
    /// The socket failed and must be closed.
    pub(super) async fn next(&mut self) -> io::Result<Vec<Arc<[u8]>>> {
        loop {
            let mut ready = self.socket.ready().await?;
            let count = ready.get_inner_mut().0.receive(&mut self.frames)?;
            if count > 0 {
                return Ok(self.frames[..count].iter().map(|frame| frame.bytes().into()).collect());
            }
            ready.clear_ready();
        }
    }
}

/// Every worker learns from an error; the first one answers it. A slow worker misses some: more will come.
pub(super) fn tell(errors: &[Arc<[u8]>], gateway: &Gateway) {
    for error in errors {
        for post in gateway.posts() {
            let _ = post.send(Command::PathError(Arc::clone(error)));
        }
    }
}
