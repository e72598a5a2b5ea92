//! Socket addresses as the kernel reads and writes them.

use crate::syscall::failed;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

/// An address of either family; the family's number, at the same place in both, tells which.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) union Address {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl Address {
    /// Room for an address.
    pub(super) const NONE: Self = Self {
        v6: libc::sockaddr_in6 {
            sin6_family: libc::AF_UNSPEC as libc::sa_family_t,
            sin6_port: 0,
            sin6_flowinfo: 0,
            sin6_addr: libc::in6_addr { s6_addr: [0; 16] },
            sin6_scope_id: 0,
        },
    };

    /// Octets of room.
    pub(super) const SIZE: libc::socklen_t = size_of::<Self>() as libc::socklen_t;

    /// An address for the kernel to read, and its length.
    pub(super) fn of(address: SocketAddr) -> (Self, libc::socklen_t) {
        match address {
            SocketAddr::V4(address) => {
                let v4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
                    sin_zero: [0; 8],
                };
                let mut whole = Self::NONE;
                whole.v4 = v4;
                (whole, size_of::<libc::sockaddr_in>() as libc::socklen_t)
            }
            SocketAddr::V6(address) => {
                let v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: address.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                    sin6_scope_id: address.scope_id(),
                };
                (Self { v6 }, size_of::<libc::sockaddr_in6>() as libc::socklen_t)
            }
        }
    }

    /// What the kernel wrote; `None`: neither family.
    pub(super) fn read(&self) -> Option<SocketAddr> {
        // SAFETY: both members are plain data, begin with the family, and every octet of the union is always initialised.
        unsafe {
            match libc::c_int::from(self.v6.sin6_family) {
                libc::AF_INET => {
                    let address = Ipv4Addr::from(self.v4.sin_addr.s_addr.to_ne_bytes());
                    Some(SocketAddrV4::new(address, u16::from_be(self.v4.sin_port)).into())
                }
                libc::AF_INET6 => {
                    let address = Ipv6Addr::from(self.v6.sin6_addr.s6_addr);
                    let port = u16::from_be(self.v6.sin6_port);
                    Some(SocketAddrV6::new(address, port, 0, self.v6.sin6_scope_id).into())
                }
                _ => None,
            }
        }
    }
}

/// Where a socket is bound; `None`: at an address of another family.
pub(super) fn bound_to(fd: BorrowedFd<'_>) -> io::Result<Option<SocketAddr>> {
    let mut name = Address::NONE;
    let mut length = Address::SIZE;
    // SAFETY: the kernel writes at most `length` octets of an address to where there is room for as many.
    match unsafe { libc::getsockname(fd.as_raw_fd(), std::ptr::from_mut(&mut name).cast(), &mut length) } {
        0 => Ok(name.read()),
        _ => Err(failed("getsockname")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["192.0.2.1:53", "[2001:db8::1]:5353"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(Address::of(address).0.read(), Some(address));
        }
        let link_local = SocketAddrV6::new("fe80::1".parse().unwrap(), 53, 0, 7).into();
        assert_eq!(Address::of(link_local).0.read(), Some(link_local));
        assert_eq!(Address::NONE.read(), None);
    }
}
