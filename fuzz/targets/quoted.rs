//! Any octets behind an ICMP error's header are a quoted packet or none, and what is read of it lies within them.

use sixway_dataplane::parse::{self, QuotedPacket};

pub fn run(octets: &[u8]) {
    for (v4, packet) in [(true, QuotedPacket::v4(octets)), (false, QuotedPacket::v6(octets))] {
        let (tuple, addresses) = (parse::quoted(octets, v4), parse::quoted_stateless(octets, v4));
        let Ok(packet) = packet else {
            assert!(tuple.is_err() && addresses.is_err(), "a tuple of what is no packet");
            continue;
        };
        assert!(packet.transport_end <= octets.len(), "the transport header lies behind the quote's end");
        assert!(packet.transport_at <= packet.length as usize, "the headers are longer than the packet");
        assert!(
            packet.transport(octets).len() <= packet.upper_length() as usize,
            "more is quoted than there was"
        );
        // A caller that goes by ports asks for more than one that goes by addresses.
        if let Ok(tuple) = tuple {
            assert_eq!(addresses, Ok(tuple), "two readings of one quote");
        }
    }
}
