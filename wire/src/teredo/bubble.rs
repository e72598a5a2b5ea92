//! Bubbles (RFC 4380 §2.8): IPv6 packets without a payload, which open mappings in NATs.

use crate::protocol::NO_NEXT_HEADER;
use crate::{IPV6_HEADER, Ipv6Header};
use core::net::Ipv6Addr;

/// Octets of a bubble.
pub const BUBBLE: usize = IPV6_HEADER;

/// The octets of a bubble.
pub fn bubble(source: Ipv6Addr, destination: Ipv6Addr, hop_limit: u8) -> [u8; BUBBLE] {
    Ipv6Header { hop_limit, ..Ipv6Header::new(source, destination, NO_NEXT_HEADER, 0) }.octets()
}

/// Whether an IPv6 packet is a bubble: its payload is empty, or begins with No Next Header.
#[inline]
pub const fn is_bubble(packet: &[u8]) -> bool {
    matches!(packet, [first, _, _, _, high, low, next, ..]
        if *first >> 4 == 6 && *next == NO_NEXT_HEADER && *high == 0 && *low == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bubble_is_known_by_its_header() {
        let [a, b] = ["2001:0:1::1", "2001:0:2::2"].map(|text| text.parse().unwrap());
        let octets = bubble(a, b, 21);
        assert!(is_bubble(&octets));
        assert_eq!(octets.len(), 40);
        let header = Ipv6Header::read(&octets).unwrap();
        assert_eq!((header.source, header.destination, header.hop_limit), (a, b, 21));
        let mut other = octets;
        other[6] = 58;
        assert!(!is_bubble(&other));
        other = octets;
        other[5] = 1;
        assert!(!is_bubble(&other));
        assert!(!is_bubble(&octets[..6]));
    }
}
