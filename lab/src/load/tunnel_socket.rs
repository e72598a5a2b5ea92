//! A host's own end of a tunnel of IPv6 in IPv4, without any help of its kernel.

use crate::failure::{Asking as _, Result};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{FromRawFd as _, OwnedFd};

/// A raw IPv4 socket of protocol 41 to one other end. What is sent becomes the payload of IPv4 packets; what is received begins with an
/// IPv4 header. As long as it is open the kernel does not answer that nobody knows the protocol. Only its methods are those of UDP.
pub fn tunnel_socket(other_end: Ipv4Addr) -> Result<UdpSocket> {
    // SAFETY: no memory is passed; the result is a new descriptor that nobody else owns, or negative.
    let descriptor =
        unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::IPPROTO_IPV6) };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error()).asking(|| "opening a raw socket".to_owned());
    }
    // SAFETY: the descriptor was just made, and is owned by nobody else.
    let socket = UdpSocket::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
    socket.connect((other_end, 0)).asking(|| format!("connecting to {other_end}"))?;
    Ok(socket)
}
