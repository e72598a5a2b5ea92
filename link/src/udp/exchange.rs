//! A socket for one question.

use super::address::Address;
use crate::syscall::datagram_socket;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A socket connected to one peer, from a port that the kernel chose at random (RFC 5452 §9.2, RFC 6056 §3.3.1) in the range that the host leaves to
/// it. It is for one question: the next has another port.
#[derive(Debug)]
pub struct UdpExchange {
    fd: OwnedFd,
}

impl UdpExchange {
    /// Opens it.
    ///
    /// # Errors
    /// The kernel's error unchanged: `NetworkUnreachable` and `HostUnreachable` when no route leads there.
    pub fn open(peer: SocketAddr) -> io::Result<Self> {
        let fd = datagram_socket(if peer.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 })?;
        let (name, length) = Address::of(peer);
        // SAFETY: the address is valid for the call, which reads it alone, and of this length.
        match unsafe { libc::connect(fd.as_raw_fd(), std::ptr::from_ref(&name).cast(), length) } {
            0 => Ok(Self { fd }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The descriptor that becomes readable when the answer waits, or when the peer's host reports a closed port.
    #[must_use]
    pub fn poll_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Sends the question.
    ///
    /// # Errors
    /// The kernel's error unchanged.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        // SAFETY: the slice outlives the call, which reads it alone.
        let sent = unsafe {
            libc::send(
                self.fd.as_raw_fd(),
                message.as_ptr().cast(),
                message.len(),
                libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Receives an answer; one that is longer than the room is cut. `None`: nothing waits.
    ///
    /// # Errors
    /// The kernel's error unchanged: `ConnectionRefused` when no process listens at the peer.
    pub fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        // SAFETY: the slice is exclusive and outlives the call.
        let received = unsafe {
            libc::recv(self.fd.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), libc::MSG_DONTWAIT)
        };
        match usize::try_from(received) {
            Ok(received) => Ok(Some(received)),
            Err(_) => {
                let error = io::Error::last_os_error();
                match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                    _ => Err(error),
                }
            }
        }
    }
}
