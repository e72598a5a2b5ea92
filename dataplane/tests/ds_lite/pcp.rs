//! RFC 6887 §2.1, §18.1.1: the AFTR has no PCP server. What hosts behind a B4 ask for changes nothing.

use super::*;
use sixway_dataplane::nat::Selection;
use sixway_dataplane::{DropReason, Verdict};

/// A MAP request for TCP port 80, as a host behind a B4 sends it.
fn map() -> Vec<u8> {
    let mut request = vec![2, 1, 0, 0, 0, 0, 1, 44];
    request.extend(HOST.parse::<Ipv4Addr>().unwrap().to_ipv6_mapped().octets());
    request.extend([7; 12]);
    request.extend([6, 0, 0, 0, 0, 80, 0, 0]);
    request.extend(Ipv4Addr::UNSPECIFIED.to_ipv6_mapped().octets());
    request
}

#[test]
fn a_request_by_pcp_in_a_softwire_is_refused_in_the_softwire_and_makes_no_binding() {
    let mut gateway = gateway(|_| {});
    for payload in [map(), vec![0, 0], vec![0, 2, 0, 0, 0, 80, 0, 0, 0, 0, 1, 44]] {
        gateway.receives(up(B4, v4(HOST, "192.0.0.1").udp(40_000, 5_351, &payload)));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::ToGateway));
        let error = gateway.sent();
        assert_eq!(error[24..40], B4.parse::<core::net::Ipv6Addr>().unwrap().octets());
        assert_eq!(error[60..62], [3, 3], "port unreachable: {}", support::hex(&error));
        gateway.sends_nothing();
    }
    let mut rows = Vec::new();
    gateway.engine.stateful_at(0).unwrap().0.bindings(0, u32::MAX, &Selection::default(), &mut rows);
    assert!(rows.is_empty());
}
