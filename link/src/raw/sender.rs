//! Sends whole IPv4 packets, which the kernel routes as if a program of this host had sent them.

use super::tunnel::send_to;
use crate::syscall::raw_socket;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};

/// A socket that sends whole IPv4 packets (raw(7), IPPROTO_RAW). It receives nothing.
#[derive(Debug)]
pub struct PacketSender {
    fd: OwnedFd,
}

impl PacketSender {
    /// Opens the socket.
    ///
    /// # Errors
    /// The kernel's error, with the call that failed. `PermissionDenied`: CAP_NET_RAW is missing.
    pub fn open() -> io::Result<Self> {
        Ok(Self { fd: raw_socket(libc::AF_INET, libc::IPPROTO_RAW)? })
    }

    /// Sends a packet, header included, to its destination. The kernel computes the checksum of the IPv4 header.
    ///
    /// # Errors
    /// The kernel's error, with the destination: no route, no room, too long for the interface.
    pub fn send(&self, packet: &[u8], destination: Ipv4Addr) -> io::Result<()> {
        send_to(self.fd.as_fd(), packet, destination)
    }
}
