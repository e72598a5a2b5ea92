//! Sockets below the transports. Only their methods are those of UDP.

use crate::failure::{Asking as _, Result};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// A host's own end of a tunnel of IPv6 in IPv4, without any help of its kernel: a raw IPv4 socket of protocol 41 to one other end. What
/// is sent becomes the payload of IPv4 packets; what is received begins with an IPv4 header. As long as it is open the kernel does not answer
/// that the protocol is unknown.
pub fn tunnel_socket(other_end: Ipv4Addr) -> Result<UdpSocket> {
    let socket = raw(libc::AF_INET, libc::IPPROTO_IPV6)?;
    socket.connect((other_end, 0)).asking(|| format!("connecting to {other_end}"))?;
    Ok(socket)
}

/// Lets a socket take everything and keep nothing. What finds a full socket counts as not taken: then the kernel answers for it.
pub fn discard_all(socket: &UdpSocket) -> Result<()> {
    let mut keep_nothing =
        libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };
    let program = libc::sock_fprog { len: 1, filter: &raw mut keep_nothing };
    let size = size_of::<libc::sock_fprog>() as libc::socklen_t;
    // SAFETY: the kernel reads a program of one instruction from where one lies, and copies it.
    let done = unsafe {
        let program = (&raw const program).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program, size)
    };
    if done == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error()).asking(|| "SO_ATTACH_FILTER".to_owned())
    }
}

/// Every ICMPv6 message that a host receives, from its ICMPv6 header on.
pub fn icmpv6_socket() -> Result<UdpSocket> {
    raw(libc::AF_INET6, libc::IPPROTO_ICMPV6)
}

/// Every ICMP message that a host receives, from its IPv4 header on; what is sent begins with the ICMP header.
pub fn icmpv4_socket() -> Result<UdpSocket> {
    raw(libc::AF_INET, libc::IPPROTO_ICMP)
}

fn raw(family: libc::c_int, protocol: libc::c_int) -> Result<UdpSocket> {
    // SAFETY: no memory is passed; the result is a new descriptor that nothing else owns, or negative.
    let descriptor = unsafe { libc::socket(family, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error())
            .asking(|| format!("opening a raw socket for protocol {protocol}"));
    }
    // SAFETY: the descriptor was just created, and nothing else owns it.
    Ok(UdpSocket::from(unsafe { OwnedFd::from_raw_fd(descriptor) }))
}
