//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).
//!
//! Sums are kept in the machine's byte order, as RFC 1071 §2 (B) allows, and are swapped once at the end.

use core::net::{Ipv4Addr, Ipv6Addr};

/// An unfolded one's complement sum of 16-bit words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// The empty sum.
    pub const ZERO: Self = Self(0);

    /// Adds octets; an odd last octet is padded with zero (RFC 1071 §1).
    #[inline]
    pub fn bytes(mut self, data: &[u8]) -> Self {
        let (quads, rest) = data.as_chunks::<4>();
        for quad in quads {
            self.0 += u64::from(u32::from_ne_bytes(*quad));
        }
        let (pairs, last) = rest.as_chunks::<2>();
        for pair in pairs {
            self.0 += u64::from(u16::from_ne_bytes(*pair));
        }
        if let [octet] = last {
            self.0 += u64::from(u16::from_ne_bytes([*octet, 0]));
        }
        self
    }

    /// Adds one 16-bit word, given as the number it represents.
    #[inline]
    pub const fn word(self, value: u16) -> Self {
        Self(self.0 + value.to_be() as u64)
    }

    /// Adds a 32-bit number, such as a length of a pseudo-header.
    #[inline]
    pub const fn long(self, value: u32) -> Self {
        Self(self.0 + value.to_be() as u64)
    }

    /// Adds an IPv4 address.
    #[inline]
    pub const fn ipv4(self, address: Ipv4Addr) -> Self {
        Self(self.0 + u32::from_ne_bytes(address.octets()) as u64)
    }

    /// Adds an IPv6 address.
    #[inline]
    pub const fn ipv6(self, address: Ipv6Addr) -> Self {
        let bits = u128::from_ne_bytes(address.octets());
        let (low, high) = (bits as u64, (bits >> 64) as u64);
        Self(self.0 + (low & 0xffff_ffff) + (low >> 32) + (high & 0xffff_ffff) + (high >> 32))
    }

    /// Adds another sum.
    #[inline]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// Takes another sum away: adds its one's complement. A sum of one packet is far below 2^48, and 2^48 − 2^32 is a
    /// multiple of 0xffff, which is a zero of one's complement.
    #[inline]
    pub const fn less(self, other: Self) -> Self {
        Self(self.0 + (0xffff_0000_0000 - other.0))
    }

    #[inline]
    const fn fold_native(self) -> u16 {
        // Adding a number to itself with its halves exchanged leaves, in the upper half, their sum with the carry brought around.
        let long = (self.0.wrapping_add(self.0.rotate_left(32)) >> 32) as u32;
        (long.wrapping_add(long.rotate_left(16)) >> 16) as u16
    }

    /// The sum folded to 16 bits, not complemented: what a partial checksum field holds.
    #[inline]
    pub const fn fold(self) -> u16 {
        u16::from_be(self.fold_native())
    }

    /// The checksum: the complement of the folded sum.
    #[inline]
    pub const fn checksum(self) -> u16 {
        !self.fold()
    }

    /// As [`Sum::checksum`], never zero: in UDP, zero says "no checksum" (RFC 768).
    #[inline]
    pub const fn checksum_nonzero(self) -> u16 {
        match self.checksum() {
            0 => 0xffff,
            other => other,
        }
    }
}

/// The sum of an IPv4 pseudo-header (RFC 9293 §3.1); `length` is that of the transport header and data in octets.
#[inline]
pub const fn pseudo4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, length: u32) -> Sum {
    Sum::ZERO.ipv4(source).ipv4(destination).word(protocol as u16).long(length)
}

/// The sum of an IPv6 pseudo-header (RFC 8200 §8.1); `length` is that of the upper-layer header and data in octets.
#[inline]
pub const fn pseudo6(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, length: u32) -> Sum {
    Sum::ZERO.ipv6(source).ipv6(destination).word(protocol as u16).long(length)
}

/// RFC 1624 eqn. 3: the checksum after the words summed in `old` were replaced by those summed in `new`.
#[inline]
pub const fn update(checksum: u16, old: Sum, new: Sum) -> u16 {
    Sum::ZERO.word(!checksum).less(old).and(new).checksum()
}

/// The same for a partial checksum, the folded sum of a pseudo-header as the kernel left it (CHECKSUM_PARTIAL).
#[inline]
pub const fn update_partial(field: u16, old: Sum, new: Sum) -> u16 {
    Sum::ZERO.word(field).less(old).and(new).fold()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071_section_3_sums_to_ddf2() {
        let sum = Sum::ZERO.bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.fold(), 0xddf2);
    }

    #[test]
    fn the_example_of_rfc_1624_section_4_keeps_the_zero_right() {
        let old = Sum::ZERO.word(0x5555);
        let new = Sum::ZERO.word(0x3285);
        assert_eq!(update(0xdd2f, old, new), 0x0000);
    }

    #[test]
    fn an_odd_last_octet_counts_as_the_high_one() {
        assert_eq!(Sum::ZERO.bytes(&[0x12]).fold(), 0x1200);
        assert_eq!(Sum::ZERO.bytes(&[1, 2, 3, 4, 5]).fold(), 0x0102 + 0x0304 + 0x0500);
    }

    #[test]
    fn addresses_sum_as_their_octets() {
        let a: Ipv6Addr = "2001:db8:ffff::fffe".parse().unwrap();
        assert_eq!(Sum::ZERO.ipv6(a).fold(), Sum::ZERO.bytes(&a.octets()).fold());
        let b: Ipv4Addr = "203.0.113.255".parse().unwrap();
        assert_eq!(Sum::ZERO.ipv4(b).fold(), Sum::ZERO.bytes(&b.octets()).fold());
    }
}
