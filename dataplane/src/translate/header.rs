//! The IP headers that translation writes (RFC 7915 §4.1, §5.1).

use crate::parse::{FRAGMENT_HEADER, Fragment, IPV4_HEADER, IPV6_HEADER};
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::checksum::Sum;
use sixway_wire::protocol;

/// An IPv4 header without options, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Header {
    /// TOS octet.
    pub tos: u8,
    /// Total Length in octets, this header included.
    pub length: u16,
    /// Identification.
    pub identification: u16,
    /// DF.
    pub dont_fragment: bool,
    /// MF.
    pub more_fragments: bool,
    /// Fragment offset in octets, a multiple of 8.
    pub offset: u16,
    /// TTL.
    pub ttl: u8,
    /// Protocol.
    pub protocol: u8,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
}

impl Ipv4Header {
    /// Writes the header, its checksum computed.
    #[inline(always)]
    pub fn write(&self, octets: &mut [u8; IPV4_HEADER]) {
        let flags =
            u16::from(self.dont_fragment) << 14 | u16::from(self.more_fragments) << 13 | self.offset >> 3;
        let first = 0x4500 | u16::from(self.tos);
        let hops = u16::from(self.ttl) << 8 | u16::from(self.protocol);
        let checksum = Sum::ZERO
            .word(first)
            .word(self.length)
            .word(self.identification)
            .word(flags)
            .word(hops)
            .ipv4(self.source)
            .ipv4(self.destination)
            .checksum();
        // Whole words, so that the copy into the packet does not wait for many small stores.
        let front = u64::from(first) << 48
            | u64::from(self.length) << 32
            | u64::from(self.identification) << 16
            | u64::from(flags);
        let middle = u64::from(hops) << 48 | u64::from(checksum) << 32 | u64::from(self.source.to_bits());
        octets[0..8].copy_from_slice(&front.to_be_bytes());
        octets[8..16].copy_from_slice(&middle.to_be_bytes());
        octets[16..20].copy_from_slice(&self.destination.octets());
    }

    /// The header's octets.
    pub fn octets(&self) -> [u8; IPV4_HEADER] {
        let mut octets = [0; IPV4_HEADER];
        self.write(&mut octets);
        octets
    }
}

/// An IPv6 header as a value; the Flow Label is zero (RFC 7915 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Header {
    /// Traffic Class.
    pub traffic_class: u8,
    /// Payload Length in octets.
    pub payload_length: u16,
    /// Next Header.
    pub next_header: u8,
    /// Hop Limit.
    pub hop_limit: u8,
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
}

impl Ipv6Header {
    /// Writes the header.
    #[inline(always)]
    pub fn write(&self, octets: &mut [u8; IPV6_HEADER]) {
        let front = (0x6000_0000 | u64::from(self.traffic_class) << 20) << 32
            | u64::from(self.payload_length) << 16
            | u64::from(self.next_header) << 8
            | u64::from(self.hop_limit);
        octets[0..8].copy_from_slice(&front.to_be_bytes());
        octets[8..24].copy_from_slice(&self.source.octets());
        octets[24..40].copy_from_slice(&self.destination.octets());
    }

    /// The header's octets.
    pub fn octets(&self) -> [u8; IPV6_HEADER] {
        let mut octets = [0; IPV6_HEADER];
        self.write(&mut octets);
        octets
    }
}

/// A Fragment header's octets (RFC 8200 §4.5).
pub fn fragment_header(next_header: u8, fragment: Fragment) -> [u8; FRAGMENT_HEADER] {
    let mut octets = [0; FRAGMENT_HEADER];
    octets[0] = next_header;
    octets[2..4].copy_from_slice(&((fragment.offset & 0xfff8) | u16::from(fragment.more)).to_be_bytes());
    octets[4..8].copy_from_slice(&fragment.identification.to_be_bytes());
    octets
}

/// IPv6's number for an IPv4 protocol: only ICMP differs (RFC 7915 §4.1).
#[inline]
pub const fn next_header_of(ipv4_protocol: u8) -> u8 {
    match ipv4_protocol {
        protocol::ICMPV4 => protocol::ICMPV6,
        other => other,
    }
}

/// IPv4's number for an IPv6 upper-layer protocol: only ICMP differs (RFC 7915 §5.1).
#[inline]
pub const fn protocol_of(next_header: u8) -> u8 {
    match next_header {
        protocol::ICMPV6 => protocol::ICMPV4,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_header_sums_to_all_ones() {
        let header = Ipv4Header {
            tos: 0xb8,
            length: 1_260,
            identification: 0xbeef,
            dont_fragment: false,
            more_fragments: true,
            offset: 1_480,
            ttl: 63,
            protocol: protocol::UDP,
            source: Ipv4Addr::new(192, 0, 2, 1),
            destination: Ipv4Addr::new(203, 0, 113, 255),
        };
        let octets = header.octets();
        assert_eq!(Sum::ZERO.bytes(&octets).fold(), 0xffff);
        assert_eq!(octets[..2], [0x45, 0xb8]);
        assert_eq!(octets[6..8], [0x20, 185]);
    }

    #[test]
    fn an_ipv6_header_has_its_fields_where_rfc_8200_draws_them() {
        let octets = Ipv6Header {
            traffic_class: 0xb8,
            payload_length: 8,
            next_header: protocol::FRAGMENT,
            hop_limit: 63,
            source: Ipv6Addr::LOCALHOST,
            destination: Ipv6Addr::UNSPECIFIED,
        }
        .octets();
        assert_eq!(octets[..8], [0x6b, 0x80, 0, 0, 0, 8, 44, 63]);
        assert_eq!(octets[23], 1);
    }

    #[test]
    fn a_fragment_header_keeps_offset_flag_and_identification() {
        let fragment = Fragment { offset: 1_232, more: true, identification: 0x1234_5678 };
        assert_eq!(fragment_header(17, fragment), [17, 0, 0x04, 0xd1, 0x12, 0x34, 0x56, 0x78]);
    }
}
