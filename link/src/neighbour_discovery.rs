//! Router solicitations and advertisements (RFC 4861 §4.1, §4.2) on one interface, over an ICMPv6 socket.
//!
//! The kernel makes and checks IPv6 headers and ICMPv6 checksums; a message begins here with the ICMPv6 type. Whether
//! a message is valid (RFC 4861 §6.1) is for the receiver to judge: it gets the source and the hop limit.

use crate::interface;
use crate::syscall::{annotate, failed, raw_socket, set_number, set_option};
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// RFC 4861 §4.1.
const ROUTER_SOLICITATION: u32 = 133;
/// RFC 4861 §4.2.
const ROUTER_ADVERTISEMENT: u32 = 134;
/// RFC 4861 §4.1: the hop limit of every message; a sender beyond the link cannot produce it.
pub const HOP_LIMIT: u8 = 255;
/// RFC 4291 §2.7.1: every router on the link.
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// RFC 4291 §2.7.1: every node on the link.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The kernel's ICMPV6_FILTER: RFC 3542 §3.2's ICMP6_FILTER.
const ICMPV6_FILTER: libc::c_int = 1;
/// RFC 3542 §6: room for a hop limit and an address with an interface, each behind its header.
type Control = [u64; 16];

/// A socket for router solicitations and advertisements on one interface.
#[derive(Debug)]
pub struct NeighbourDiscovery {
    fd: OwnedFd,
    interface: String,
    index: u32,
}

/// The addresses, hop limit and length of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// Octets of the message, from the ICMPv6 type on; more than the buffer has when it was too small.
    pub length: usize,
    /// Who sent it.
    pub source: Ipv6Addr,
    /// To which address.
    pub destination: Ipv6Addr,
    /// The hop limit it arrived with; [`HOP_LIMIT`] if it is from this link.
    pub hop_limit: u8,
    /// Index of the interface it arrived at: the socket's own.
    pub interface: u32,
}

impl NeighbourDiscovery {
    /// Opens the socket on an interface and joins all routers there.
    ///
    /// # Errors
    /// The kernel's error, with the call that failed. `PermissionDenied`: CAP_NET_RAW is missing. `NotFound` and others: no
    /// such interface, or it has no IPv6.
    pub fn open(interface: &str) -> io::Result<Self> {
        let index = interface::index(interface)?;
        let fd = raw_socket(libc::AF_INET6, libc::IPPROTO_ICMPV6)?;
        let socket = fd.as_fd();
        let mut name = [0_u8; libc::IFNAMSIZ];
        name.iter_mut().zip(interface.bytes()).for_each(|(to, from)| *to = from);
        // A set bit keeps the type of that number away.
        let mut types = [u32::MAX; 8];
        for kind in [ROUTER_SOLICITATION, ROUTER_ADVERTISEMENT] {
            types[kind as usize / 32] &= !(1 << (kind % 32));
        }
        // SAFETY: the options take struct icmp6_filter, eight 32-bit numbers, and a device's name.
        unsafe {
            set_option(socket, libc::IPPROTO_ICMPV6, ICMPV6_FILTER, &types, "ICMP6_FILTER")?;
            set_option(socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, &name, "SO_BINDTODEVICE")?;
        }
        let limit = libc::c_int::from(HOP_LIMIT);
        let number = |option, value, call| set_number(socket, libc::IPPROTO_IPV6, option, value, call);
        number(libc::IPV6_RECVHOPLIMIT, 1, "IPV6_RECVHOPLIMIT")?;
        number(libc::IPV6_RECVPKTINFO, 1, "IPV6_RECVPKTINFO")?;
        number(libc::IPV6_UNICAST_HOPS, limit, "IPV6_UNICAST_HOPS")?;
        number(libc::IPV6_MULTICAST_HOPS, limit, "IPV6_MULTICAST_HOPS")?;
        number(libc::IPV6_MULTICAST_LOOP, 0, "IPV6_MULTICAST_LOOP")?;
        number(libc::IPV6_MULTICAST_IF, index as libc::c_int, "IPV6_MULTICAST_IF")?;
        let group = libc::ipv6_mreq {
            ipv6mr_multiaddr: libc::in6_addr { s6_addr: ALL_ROUTERS.octets() },
            ipv6mr_interface: index,
        };
        let call = format!("join {ALL_ROUTERS} on {interface}");
        // SAFETY: IPV6_ADD_MEMBERSHIP takes an ipv6_mreq.
        unsafe { set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_ADD_MEMBERSHIP, &group, &call) }?;
        let discovery = Self { fd, interface: interface.to_owned(), index };
        discovery.discard_early();
        Ok(discovery)
    }

    /// The interface's name.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// The interface's index.
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// What becomes readable when a message waits.
    pub fn poll_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Receives a message into the buffer. `None`: nothing waits.
    ///
    /// # Errors
    /// The kernel's error: the interface was removed or is down.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<ReceivedMessage>> {
        let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut control = Control::default();
        let mut from = no_address();
        let mut header = header(&mut from, &mut piece, &mut control);
        // SAFETY: the header points to values that outlive the call, with their true lengths.
        let length =
            unsafe { libc::recvmsg(self.fd.as_raw_fd(), &mut header, libc::MSG_DONTWAIT | libc::MSG_TRUNC) };
        let Ok(length) = usize::try_from(length) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(annotate(error, &format!("receive on {}", self.interface))),
            };
        };
        let mut message = ReceivedMessage {
            length,
            source: Ipv6Addr::from(from.sin6_addr.s6_addr),
            destination: Ipv6Addr::UNSPECIFIED,
            hop_limit: 0,
            interface: self.index,
        };
        read_control(&header, &mut message);
        Ok(Some(message))
    }

    /// Sends a message to an address on the link, from the interface's link-local address and with hop limit 255. The kernel
    /// fills in the checksum.
    ///
    /// # Errors
    /// `AddrNotAvailable` when the interface has no link-local address that may be used (it is down, or duplicate
    /// address detection has not ended); else what the kernel said.
    pub fn send(&self, octets: &[u8], destination: Ipv6Addr) -> io::Result<()> {
        let source = interface::link_local(&self.interface)?;
        let mut piece = libc::iovec { iov_base: octets.as_ptr().cast_mut().cast(), iov_len: octets.len() };
        let mut control = Control::default();
        let mut to = no_address();
        to.sin6_addr.s6_addr = destination.octets();
        to.sin6_scope_id = self.index;
        let mut header = header(&mut to, &mut piece, &mut control);
        let info = libc::in6_pktinfo {
            ipi6_addr: libc::in6_addr { s6_addr: source.octets() },
            ipi6_ifindex: self.index,
        };
        // SAFETY: the control buffer has room for one message of this size, and CMSG_FIRSTHDR gives its beginning; sendmsg
        // reads the header, and what it points to outlives the call.
        let sent = unsafe {
            header.msg_controllen = libc::CMSG_SPACE(size_of::<libc::in6_pktinfo>() as u32) as _;
            let first = libc::CMSG_FIRSTHDR(&header);
            (*first).cmsg_level = libc::IPPROTO_IPV6;
            (*first).cmsg_type = libc::IPV6_PKTINFO;
            (*first).cmsg_len = libc::CMSG_LEN(size_of::<libc::in6_pktinfo>() as u32) as _;
            libc::CMSG_DATA(first).cast::<libc::in6_pktinfo>().write_unaligned(info);
            libc::sendmsg(self.fd.as_raw_fd(), &header, libc::MSG_DONTWAIT)
        };
        if sent < 0 { Err(failed(&format!("send to {destination} on {}", self.interface))) } else { Ok(()) }
    }

    /// Throws away what came before the socket was bound to its interface.
    fn discard_early(&self) {
        for _ in 0..10_000 {
            if !matches!(self.receive(&mut []), Ok(Some(_))) {
                return;
            }
        }
    }
}

fn no_address() -> libc::sockaddr_in6 {
    libc::sockaddr_in6 {
        sin6_family: libc::AF_INET6 as libc::sa_family_t,
        sin6_port: 0,
        sin6_flowinfo: 0,
        sin6_addr: libc::in6_addr { s6_addr: [0; 16] },
        sin6_scope_id: 0,
    }
}

/// A message header for one peer, one piece of octets and a control buffer, which must outlive its use.
fn header(peer: &mut libc::sockaddr_in6, piece: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: msghdr is plain data for which all zeroes is a valid value.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_name = std::ptr::from_mut(peer).cast();
    header.msg_namelen = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
    header.msg_iov = piece;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of::<Control>() as _;
    header.msg_flags = 0;
    header
}

/// Reads hop limit, destination and interface.
fn read_control(header: &libc::msghdr, message: &mut ReceivedMessage) {
    // SAFETY: the kernel filled in the control buffer and its length; the messages lie in it whole, and those of these kinds
    // hold an int and an in6_pktinfo.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(header);
        while !next.is_null() {
            match ((*next).cmsg_level, (*next).cmsg_type) {
                (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                    let limit = libc::CMSG_DATA(next).cast::<libc::c_int>().read_unaligned();
                    message.hop_limit = u8::try_from(limit).unwrap_or(0);
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let info = libc::CMSG_DATA(next).cast::<libc::in6_pktinfo>().read_unaligned();
                    message.destination = Ipv6Addr::from(info.ipi6_addr.s6_addr);
                    message.interface = info.ipi6_ifindex as u32;
                }
                _ => {}
            }
            next = libc::CMSG_NXTHDR(header, next);
        }
    }
}
