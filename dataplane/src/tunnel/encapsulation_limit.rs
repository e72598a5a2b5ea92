//! The Tunnel Encapsulation Limit that a packet has (RFC 2473 §4.1.1): how many more tunnels it may enter before it leaves the one that it is in.

use crate::parse::IPV6_HEADER;
use sixway_wire::EncapsulationLimit;
use sixway_wire::protocol::{DESTINATION_OPTIONS, FRAGMENT, HOP_BY_HOP, ROUTING};

/// Extension headers that are examined, at most.
const MOST_HEADERS: usize = 16;

/// A limit that a packet has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Borne {
    /// The limit.
    pub limit: u8,
    /// Where it is, in octets from the start of the packet.
    pub at: usize,
}

/// The limit of an IPv6 packet, if it has one: its headers are examined from left to right, up to the first that is not an extension header.
pub fn borne(octets: &[u8]) -> Option<Borne> {
    let (mut next, mut at) = (*octets.get(6)?, IPV6_HEADER);
    for _ in 0..MOST_HEADERS {
        let header = octets.get(at..)?;
        let head = header.first_chunk::<8>()?;
        let length = match next {
            FRAGMENT if u16::from_be_bytes([head[2], head[3]]) & 0xfff8 == 0 => 8,
            DESTINATION_OPTIONS | HOP_BY_HOP | ROUTING => 8 + 8 * usize::from(head[1]),
            _ => return None,
        };
        if next == DESTINATION_OPTIONS
            && let Some(within) = EncapsulationLimit::limit_at(header).ok().flatten()
        {
            return Some(Borne { limit: *header.get(within)?, at: at + within });
        }
        next = head[0];
        at += length;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(next: u8, headers: &[&[u8]]) -> Vec<u8> {
        let mut octets = vec![0; IPV6_HEADER];
        (octets[0], octets[6]) = (0x60, next);
        octets.extend(headers.concat());
        octets
    }

    #[test]
    fn the_limit_is_found_behind_other_headers_and_options() {
        let own = EncapsulationLimit { next_header: 41, limit: 3 }.octets();
        assert_eq!(borne(&packet(60, &[&own])), Some(Borne { limit: 3, at: 44 }));
        let hop_by_hop = [60, 0, 1, 4, 0, 0, 0, 0];
        assert_eq!(borne(&packet(0, &[&hop_by_hop, &own])), Some(Borne { limit: 3, at: 52 }));
        let fragment = [60, 0, 0, 1, 0, 0, 0, 7];
        assert_eq!(borne(&packet(44, &[&fragment, &own])), Some(Borne { limit: 3, at: 52 }));
        let late = [41, 0, 0, 5, 0, 4, 1, 9];
        assert_eq!(borne(&packet(60, &[&late])), Some(Borne { limit: 9, at: 47 }));
    }

    #[test]
    fn none_is_found_in_the_packet_inside_in_a_later_fragment_or_beyond_the_end() {
        let own = EncapsulationLimit { next_header: 41, limit: 3 }.octets();
        for octets in [
            packet(41, &[&own]),
            packet(6, &[&own]),
            packet(44, &[&[60, 0, 0, 9, 0, 0, 0, 7], &own]),
            packet(60, &[&[41, 0, 1, 4, 0, 0, 0, 0]]),
            packet(60, &[&[41, 0, 0, 0, 0, 0, 4, 1]]),
            packet(60, &[&[41, 0, 0, 0, 0, 0, 0, 4]]),
            packet(60, &[&[41, 9, 4, 1, 0, 0, 0, 0]]),
            packet(60, &[]),
            Vec::new(),
        ] {
            assert_eq!(borne(&octets), None, "{octets:?}");
        }
    }
}
