//! The tunnel packet that an ICMPv4 error quotes.

use sixway_wire::{IcmpHeader, Ipv4Header, icmpv4};
use std::net::Ipv4Addr;

/// From where and to where a tunnel packet was sent that did not arrive, if the error says so: for another reason than its size, which does
/// not cast doubt on the other end (RFC 792).
pub(super) fn undelivered(error: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let (_, message) = Ipv4Header::split_quoted(error).ok()?;
    let (header, quote) = IcmpHeader::split(message).ok()?;
    match (header.kind, header.code) {
        (icmpv4::DESTINATION_UNREACHABLE, icmpv4::FRAGMENTATION_NEEDED) => return None,
        (icmpv4::DESTINATION_UNREACHABLE, _) => {}
        (icmpv4::TIME_EXCEEDED, icmpv4::EXCEEDED_IN_TRANSIT) => {}
        (_, _) => return None,
    }
    let quoted = Ipv4Header::read(quote).ok()?;
    Some((quoted.source, quoted.destination))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ICMPv4 error with a header of `words` words about a packet from 192.0.2.1 to 10.0.0.1.
    fn error(words: u8, kind: u8, code: u8) -> Vec<u8> {
        let mut octets = vec![0; usize::from(words) * 4];
        octets[0] = 0x40 | words;
        octets.extend([kind, code, 0, 0, 0, 0, 0, 0]);
        octets.extend([0x45, 0, 0, 60, 0, 0, 0, 0, 64, 41, 0, 0, 192, 0, 2, 1, 10, 0, 0, 1]);
        octets
    }

    #[test]
    fn an_error_tells_which_end_was_not_reached_unless_it_is_about_the_size() {
        let ends = Some((Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(10, 0, 0, 1)));
        for (kind, code) in [(3, 0), (3, 1), (3, 2), (3, 13), (11, 0)] {
            assert_eq!(undelivered(&error(5, kind, code)), ends, "{kind}, {code}");
            assert_eq!(undelivered(&error(7, kind, code)), ends, "with options");
        }
        for (kind, code) in [(3, 4), (11, 1), (12, 0), (5, 1), (4, 0)] {
            assert_eq!(undelivered(&error(5, kind, code)), None, "{kind}, {code}");
        }
    }

    #[test]
    fn an_error_that_is_cut_short_tells_nothing() {
        let whole = error(5, 3, 1);
        assert!((0..whole.len()).all(|length| undelivered(&whole[..length]).is_none()));
    }
}
