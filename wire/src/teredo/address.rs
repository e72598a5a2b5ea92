//! Teredo addresses (RFC 4380 §4, RFC 5991 §2):
//!
//! ```text
//! |      32      |     32      |   16  |  16  |     32      |
//! | 2001:0::/32  | Server IPv4 | Flags | Port | Client IPv4 |     the bits of port and client are inverted
//!
//!          0       0 0       1
//! Flags:  |0       7 8       5|
//!         |C0AA AAUG AAAA AAAA|     C: cone; A: random; U, G: 0
//! ```

use crate::{Endpoint4, Prefix6};
use core::net::{Ipv4Addr, Ipv6Addr};

/// The Teredo service prefix.
pub const TEREDO_PREFIX: Prefix6 = Prefix6::holding(Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32);

/// `fe80::/64`.
const LINK_LOCAL: u64 = 0xfe80 << 48;
/// The cone bit.
const CONE: u16 = 0x8000;

/// The interface identifier of a Teredo node, global or of its link alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TeredoInterface {
    /// The flags: the cone bit, and random bits (RFC 5991 §2).
    pub flags: u16,
    /// The mapped address and port; in a link-local address, any that tell nodes apart.
    pub mapped: Endpoint4,
}

impl TeredoInterface {
    /// Bits of the flags that may be random (RFC 5991 §2).
    pub const RANDOM: u16 = 0x3cff;

    /// Whether the node assumes that it is behind a cone NAT.
    #[inline]
    pub const fn is_cone(self) -> bool {
        self.flags & CONE != 0
    }

    /// The same with another cone bit.
    #[must_use]
    pub const fn with_cone(self, is_cone: bool) -> Self {
        let flags = if is_cone { self.flags | CONE } else { self.flags & !CONE };
        Self { flags, ..self }
    }

    const fn bits(self) -> u64 {
        let address = !self.mapped.address.to_bits() as u64;
        (self.flags as u64) << 48 | (!self.mapped.port as u64) << 32 | address
    }

    const fn of(bits: u64) -> Self {
        let mapped = Endpoint4 { address: Ipv4Addr::from_bits(!(bits as u32)), port: !((bits >> 32) as u16) };
        Self { flags: (bits >> 48) as u16, mapped }
    }

    /// The link-local address of this node (RFC 4380 §4).
    pub const fn link_local(self) -> Ipv6Addr {
        Ipv6Addr::from_bits((LINK_LOCAL as u128) << 64 | self.bits() as u128)
    }

    /// Reads a link-local address; `None`: it is not under fe80::/64.
    pub const fn of_link_local(address: Ipv6Addr) -> Option<Self> {
        let bits = address.to_bits();
        if (bits >> 64) as u64 == LINK_LOCAL { Some(Self::of(bits as u64)) } else { None }
    }
}

/// A Teredo address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TeredoAddress {
    /// The client's server.
    pub server: Ipv4Addr,
    /// The rest.
    pub interface: TeredoInterface,
}

impl TeredoAddress {
    /// The address as it is written.
    pub const fn address(self) -> Ipv6Addr {
        let high = 0x2001_0000_u64 << 32 | self.server.to_bits() as u64;
        Ipv6Addr::from_bits((high as u128) << 64 | self.interface.bits() as u128)
    }

    /// Reads an address; `None`: it is not under 2001::/32.
    #[inline]
    pub const fn of(address: Ipv6Addr) -> Option<Self> {
        let bits = address.to_bits();
        if bits >> 96 != 0x2001_0000 {
            return None;
        }
        let server = Ipv4Addr::from_bits((bits >> 64) as u32);
        Some(Self { server, interface: TeredoInterface::of(bits as u64) })
    }

    /// The mapped address and port of the client.
    #[inline]
    pub const fn mapped(self) -> Endpoint4 {
        self.interface.mapped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_address_is_read_and_written_as_rfc_4380_draws_it() {
        let address: Ipv6Addr = "2001:0:53aa:64c:8000:fbb0:a0bd:6c39".parse().unwrap();
        let read = TeredoAddress::of(address).unwrap();
        assert_eq!(read.server, Ipv4Addr::new(83, 170, 6, 76));
        assert_eq!(read.mapped(), Endpoint4::new(Ipv4Addr::new(95, 66, 147, 198), 1103));
        assert!(read.interface.is_cone());
        assert_eq!(read.address(), address);
        assert_eq!(TeredoAddress::of("2001:1::".parse().unwrap()), None);
    }

    #[test]
    fn a_link_local_address_has_the_same_identifier() {
        let address: Ipv6Addr = "fe80::8000:f227:d993:9bfe".parse().unwrap();
        let read = TeredoInterface::of_link_local(address).unwrap();
        assert_eq!(read.mapped, Endpoint4::new(Ipv4Addr::new(38, 108, 100, 1), 3544));
        assert_eq!(read.with_cone(false).link_local(), "fe80::f227:d993:9bfe".parse::<Ipv6Addr>().unwrap());
        assert_eq!(TeredoInterface::of_link_local("fe80:0:0:1::".parse().unwrap()), None);
    }

    proptest! {
        #[test]
        fn any_teredo_address_is_written_as_it_was_read(low in any::<u64>(), server in any::<u32>()) {
            let address = Ipv6Addr::from_bits(0x2001_0000_u128 << 96 | u128::from(server) << 64 | u128::from(low));
            let read = TeredoAddress::of(address).unwrap();
            prop_assert_eq!(read.address(), address);
            prop_assert_eq!(u32::from(read.server), server);
            prop_assert!(TEREDO_PREFIX.contains(address));
            let link_local = read.interface.link_local();
            prop_assert_eq!(TeredoInterface::of_link_local(link_local), Some(read.interface));
        }
    }
}
