//! Control messages of datagrams: to which address one came, from which its answer is to leave (RFC 3542 §6), and what there was no room for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Room for an address with its interface and a number, each behind its header, aligned as both want.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Control([u64; 10]);

impl Control {
    /// Room.
    pub(super) const EMPTY: Self = Self([0; 10]);
    /// Octets of room.
    pub(super) const SIZE: usize = size_of::<Self>();
}

/// Control data of a received datagram.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DatagramInfo {
    /// The address it came to, if an answer may leave from there.
    pub local: Option<IpAddr>,
    /// The interface it came by.
    pub interface: u32,
    /// Datagrams that there was no room for, since the socket was opened.
    pub overflow: Option<u32>,
}

/// Reads the control messages.
pub(super) fn read(header: &libc::msghdr) -> DatagramInfo {
    let mut said = DatagramInfo::default();
    // SAFETY: the kernel filled in the control buffer and its length; the messages lie in it whole, and those of these kinds hold an in6_pktinfo,
    // an in_pktinfo and a 32-bit number.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(header);
        while !next.is_null() {
            let data = libc::CMSG_DATA(next);
            match ((*next).cmsg_level, (*next).cmsg_type) {
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let info = data.cast::<libc::in6_pktinfo>().read_unaligned();
                    let address = Ipv6Addr::from(info.ipi6_addr.s6_addr);
                    said.local = (!address.is_multicast()).then_some(IpAddr::V6(address));
                    said.interface = info.ipi6_ifindex as u32;
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                    // For a broadcast, this is the host's own address.
                    let address = Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes());
                    said.local = Some(IpAddr::V4(address));
                    said.interface = info.ipi_ifindex as u32;
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    said.overflow = Some(data.cast::<u32>().read_unaligned());
                }
                _ => {}
            }
            next = libc::CMSG_NXTHDR(header, next);
        }
    }
    said
}

/// Writes from which address a datagram is to leave. The header's control buffer must be a whole [`Control`].
pub(super) fn write(header: &mut libc::msghdr, control: &mut Control, local: IpAddr, interface: u32) {
    header.msg_control = std::ptr::from_mut(control).cast();
    header.msg_controllen = Control::SIZE as _;
    match local {
        IpAddr::V6(address) => {
            // A route is to be chosen as for any other packet; only a link-local address needs its link.
            let index = if address.is_unicast_link_local() { interface } else { 0 };
            let info = libc::in6_pktinfo {
                ipi6_addr: libc::in6_addr { s6_addr: address.octets() },
                ipi6_ifindex: index as _,
            };
            // SAFETY: an in6_pktinfo is what this kind of message holds.
            unsafe { put(header, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info) };
        }
        IpAddr::V4(address) => {
            let info = libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) },
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            // SAFETY: an in_pktinfo is what this kind of message holds.
            unsafe { put(header, libc::IPPROTO_IP, libc::IP_PKTINFO, info) };
        }
    }
}

/// Puts one message into the control buffer, and makes that its length.
///
/// # Safety
/// The buffer is a whole [`Control`], `T` is plain data of at most 20 octets and what messages of this kind hold.
unsafe fn put<T>(header: &mut libc::msghdr, level: libc::c_int, kind: libc::c_int, info: T) {
    let size = size_of::<T>() as libc::c_uint;
    // SAFETY: the buffer has room for a message of this size, and CMSG_FIRSTHDR gives its beginning.
    unsafe {
        let first = libc::CMSG_FIRSTHDR(header);
        (*first).cmsg_level = level;
        (*first).cmsg_type = kind;
        (*first).cmsg_len = libc::CMSG_LEN(size) as _;
        libc::CMSG_DATA(first).cast::<T>().write_unaligned(info);
        header.msg_controllen = libc::CMSG_SPACE(size) as _;
    }
}
