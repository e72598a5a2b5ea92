//! What stays out: packets and errors that no session is for.

use super::*;
use crate::support::icmp4;
use sixway_dataplane::DropReason;

#[test]
fn a_packet_with_a_source_route_or_to_no_host_leaves_no_softwire() {
    let mut gateway = gateway(|_| {});
    let route = [131, 7, 4, 203, 0, 113, 9, 0];
    let routed = v4(HOST, SERVER).options(&route).udp(4_001, 53, b"");
    gateway.receives(up(B4, routed));
    assert_eq!(gateway.last, sixway_dataplane::Verdict::Dropped(DropReason::SourceRoute));
    for destination in ["127.0.0.1", "0.0.0.1", "224.0.0.1", "255.255.255.255"] {
        gateway.counted_before();
        gateway.receives(up(B4, v4(HOST, destination).udp(4_001, 53, b"")));
        let expected = sixway_dataplane::Verdict::Dropped(DropReason::MartianDestination);
        assert_eq!(gateway.last, expected, "{destination}");
    }
    assert_eq!(gateway.engine.ds_lite()[0].softwires().len(), 0);
}

#[test]
fn redirects_source_quenches_and_errors_with_a_wrong_checksum_enter_no_softwire() {
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway, B4);
    let quoted = v4(&outside, SERVER).hops(60).udp(port, 53, b"question").octets();
    let error = |kind, code| v4(SERVER, &outside).icmp(icmp4(kind, code, [0; 4], &quoted));
    for (kind, code) in [(5, 1), (4, 0)] {
        gateway.refuses(error(kind, code), DropReason::IcmpUntranslatable);
    }
    let mut wrong = error(3, 3).octets();
    *wrong.last_mut().unwrap() ^= 1;
    gateway.refuses(wrong, DropReason::BadIcmpChecksum);
    assert!(gateway.passes(error(3, 3)));
}
