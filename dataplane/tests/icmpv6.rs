//! ICMPv6 as the gateway itself speaks it (RFC 4443), where no other file has it.

use crate::support;
use crate::support::{Gateway, icmp6, v6};
use sixway_dataplane::Verdict;

const OWN: &str = "2001:db8::fe";
const HOST: &str = "2001:db8:1::1";

fn gateway() -> Gateway {
    support::siit(|_| {})
}

/// RFC 4443 §2.4 b.
#[test]
fn an_informational_message_of_unknown_type_to_the_gateway_is_dropped_silently() {
    for kind in [130, 144, 160, 200, 255] {
        let mut gateway = gateway();
        gateway.receives(v6(HOST, OWN).icmp(icmp6(kind, 0, [0; 4], b"data")));
        assert!(matches!(gateway.last, Verdict::Dropped(_)), "{kind}: {:?}", gateway.last);
        gateway.sends_nothing();
    }
}

/// RFC 4443 §3.1, §3.3: what follows the checksum in Destination Unreachable and Time Exceeded.
#[test]
fn what_is_unused_in_an_error_is_zero() {
    for (packet, kind) in [
        (v6(HOST, OWN).udp(1, 2, b"data"), 1),
        (v6(HOST, "2001:4860::8").udp(1, 2, b"data"), 1),
        (v6(HOST, "2001:db8:64::8.8.8.8").hops(1).udp(1, 2, b"data"), 3),
    ] {
        let mut gateway = gateway();
        gateway.receives(packet.clone());
        let sent = gateway.sent();
        assert_eq!((sent[40], &sent[44..48]), (kind, &[0; 4][..]));
        assert_eq!(sent[48..], packet.octets());
        assert!(support::checksum_is_right(&sent));
    }
}
