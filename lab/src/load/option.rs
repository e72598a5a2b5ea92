//! Socket options.

use crate::failure::{Asking as _, Result};
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;

/// Whether the kernel sets DF on a socket's packets. IPv6 has no such bit: what is too big is never fragmented on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pmtu {
    /// DF is clear; the kernel fragments what is too big for its own link, and with IPv6 what is too big for the path's MTU.
    Clear,
    /// DF is set, and ICMP errors lower the path's MTU.
    Set,
}

/// IPv4: sends UDP packets with a checksum of zero (RFC 768: none was computed).
pub fn without_checksum(socket: &UdpSocket) -> Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).asking(|| "SO_NO_CHECK".to_owned())
}

/// Chooses what becomes of DF, or of packets that are too big.
pub fn path_mtu_discovery(socket: &UdpSocket, pmtu: Pmtu) -> Result<()> {
    if socket.local_addr().is_ok_and(|address| address.is_ipv6()) {
        let value = match pmtu {
            Pmtu::Clear => libc::IPV6_PMTUDISC_WANT,
            Pmtu::Set => libc::IPV6_PMTUDISC_DO,
        };
        return set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, value)
            .asking(|| "IPV6_MTU_DISCOVER".to_owned());
    }
    let value = match pmtu {
        Pmtu::Clear => libc::IP_PMTUDISC_DONT,
        Pmtu::Set => libc::IP_PMTUDISC_DO,
    };
    set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, value).asking(|| "IP_MTU_DISCOVER".to_owned())
}

/// What is sent by one call leaves as datagrams of `size` octets: as one GSO packet as far as the kernel and its devices carry it.
pub fn segment_size(socket: &UdpSocket, size: u16) -> Result<()> {
    set(socket, libc::SOL_UDP, libc::UDP_SEGMENT, size.into()).asking(|| "UDP_SEGMENT".to_owned())
}

fn set(socket: &UdpSocket, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> std::io::Result<()> {
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel reads one c_int from where one lies, and its length is given.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), size) };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
