//! The IP headers that translation writes (RFC 7915 §4.1, §5.1).

use crate::parse::Fragment;
use sixway_wire::protocol;

pub use sixway_wire::{FRAGMENT_HEADER, FragmentHeader, Ipv4Header, Ipv6Header};

/// A Fragment header's octets (RFC 8200 §4.5).
#[inline]
pub fn fragment_header(next_header: u8, fragment: Fragment) -> [u8; FRAGMENT_HEADER] {
    let Fragment { offset, more, identification } = fragment;
    FragmentHeader { next_header, offset, more_fragments: more, identification }.octets()
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
    fn a_fragment_header_keeps_offset_flag_and_identification() {
        let fragment = Fragment { offset: 1_232, more: true, identification: 0x1234_5678 };
        assert_eq!(fragment_header(17, fragment), [17, 0, 0x04, 0xd1, 0x12, 0x34, 0x56, 0x78]);
    }
}
