//! Sends whole IPv6 packets, which the kernel routes as if a program of this host had sent them.

use crate::syscall::{failed, raw_socket};
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsRawFd, OwnedFd};

/// A socket that sends whole IPv6 packets (ipv6(7), IPPROTO_RAW). It receives nothing.
#[derive(Debug)]
pub struct PacketSender6 {
    fd: OwnedFd,
}

impl PacketSender6 {
    /// Opens the socket.
    ///
    /// # Errors
    /// The kernel's error, with the call that failed. `PermissionDenied`: CAP_NET_RAW is missing.
    pub fn open() -> io::Result<Self> {
        Ok(Self { fd: raw_socket(libc::AF_INET6, libc::IPPROTO_RAW)? })
    }

    /// Sends a packet, header included, to its destination. The source need not be an address of this host.
    ///
    /// # Errors
    /// The kernel's error, with the destination: no route, no room, too long for the interface.
    pub fn send(&self, packet: &[u8], destination: Ipv6Addr) -> io::Result<()> {
        let to = libc::sockaddr_in6 {
            sin6_family: libc::AF_INET6 as libc::sa_family_t,
            sin6_port: 0,
            sin6_flowinfo: 0,
            sin6_addr: libc::in6_addr { s6_addr: destination.octets() },
            sin6_scope_id: 0,
        };
        let length = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
        // SAFETY: the packet and the sockaddr_in6 outlive the call, with their lengths.
        let sent = unsafe {
            libc::sendto(
                self.fd.as_raw_fd(),
                packet.as_ptr().cast(),
                packet.len(),
                libc::MSG_DONTWAIT,
                std::ptr::from_ref(&to).cast(),
                length,
            )
        };
        if sent < 0 { Err(failed(&format!("send to {destination}"))) } else { Ok(()) }
    }
}
