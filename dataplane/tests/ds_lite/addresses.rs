//! Which packets may leave and enter softwires.

use super::*;
use crate::support::{checksum_is_right, icmp4};
use sixway_dataplane::{DropReason, Verdict};

#[test]
fn packets_of_no_client_and_packets_that_are_not_ipv4_are_silently_dropped() {
    // RFC 6333 §11: the AFTR knows its B4s.
    let inner = || v4(HOST, SERVER).udp(4_001, 53, b"");
    let mut gateway = gateway(|_| {});
    gateway.refuses(up("2001:db8:b5::1", inner()), DropReason::NoTunnel);
    gateway.refuses(up(B4, Vec::new()), DropReason::InnerNotIpv6);
    let six = v6("2001:db8:b4:100::5", "2001:db8:9::1").udp(1, 2, b"");
    gateway.refuses(v6(B4, AFTR).protocol(41, &six.octets(), None), DropReason::NoTunnel);
    gateway.refuses(up(OTHER_AFTR, inner()), DropReason::TunnelLoop);
}

#[test]
fn inner_sources_that_are_not_private_are_dropped() {
    // RFC 6333 §11.
    let mut gateway = gateway(|_| {});
    for source in ["198.51.100.1", "100.64.0.1", "192.0.2.1", "192.0.0.9", "0.0.0.0", "127.0.0.1"] {
        gateway.counted_before();
        gateway.receives(up(B4, v4(source, SERVER).udp(4_001, 53, b"")));
        let reason = match source {
            "0.0.0.0" | "127.0.0.1" => DropReason::MartianSource,
            _ => DropReason::SourceNotInTunnel,
        };
        assert_eq!(gateway.last, Verdict::Dropped(reason), "{source}");
        gateway.sends_nothing();
    }
    for source in ["10.1.2.3", "172.31.0.1", "192.168.255.1", "192.0.0.2"] {
        assert!(gateway.passes(up(B4, v4(source, SERVER).udp(4_001, 53, b""))), "{source}");
    }
}

#[test]
fn inner_sources_are_those_that_are_configured() {
    // RFC 6333 §11: or addresses that were authorised.
    let inside = ["198.51.100.0/24", "10.7.0.0/16"];
    let mut gateway = gateway(|aftr| aftr.inside = inside.map(|prefix| prefix.parse().unwrap()).to_vec());
    for source in ["198.51.100.0", "198.51.100.255", "10.7.0.1"] {
        assert!(gateway.passes(up(B4, v4(source, SERVER).udp(4_001, 53, b""))), "{source}");
    }
    // The first prefix is compared apart from the others.
    for source in ["10.0.0.1", "172.16.0.1", "192.168.0.1", "198.51.101.1", "192.0.0.2"] {
        gateway.counted_before();
        gateway.receives(up(B4, v4(source, SERVER).udp(4_001, 53, b"")));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::SourceNotInTunnel), "{source}");
        gateway.sends_nothing();
    }
}

#[test]
fn no_source_outside_has_an_address_of_aftrs_and_b4s() {
    // RFC 6333 §5.7. The binding lets everybody in: endpoint-independent filtering.
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway, B4);
    let from = |source: &str| v4(source, &outside).udp(53, port, b"hello");
    for source in ["192.0.0.0", "192.0.0.1", "192.0.0.2", "192.0.0.7"] {
        gateway.refuses(from(source), DropReason::MartianSource);
    }
    for source in ["192.0.0.8", "191.255.255.255", STRANGER] {
        gateway.receives(from(source));
        gateway.sends(down(B4, v4(source, HOST).hops(63).udp(53, 4_001, b"hello")));
    }
}

#[test]
fn the_aftr_answers_echo_requests_to_192_0_0_1_inside_the_softwire() {
    // RFC 6333 §5.7.
    let mut gateway = gateway(|_| {});
    gateway.receives(up(B4, v4("192.0.0.2", "192.0.0.1").hops(1).echo(9, 1, b"are you there?")));
    gateway.sends(down(B4, v4("192.0.0.1", "192.0.0.2").echo_reply(9, 1, b"are you there?")));
    assert_eq!(gateway.last, Verdict::Answered);
    gateway.counted([("answered", 1)]);
}

#[test]
fn errors_about_what_came_out_of_a_softwire_go_back_into_it_from_192_0_0_1() {
    // RFC 6333 §6.5.
    let mut gateway = gateway(|_| {});
    let cases = [
        (v4(HOST, SERVER).hops(1).udp(4_001, 53, b"late"), DropReason::HopLimitExceeded, (11, 0)),
        (v4(HOST, "192.0.0.1").tcp(4_001, 80, SYN, b""), DropReason::ToGateway, (3, 3)),
        (v4(HOST, "192.0.0.1").protocol(47, &[0; 8], None), DropReason::ProtocolUnknown, (3, 2)),
        (v4(HOST, "192.0.0.3").udp(4_001, 53, b"who?"), DropReason::NoMechanism, (3, 0)),
        (v4(HOST, SERVER).protocol(47, &[0; 8], None), DropReason::ProtocolUnsupported, (3, 2)),
    ];
    for (inner, reason, (kind, code)) in cases {
        gateway.receives(up(B4, inner.clone()));
        assert_eq!(gateway.last, Verdict::Dropped(reason));
        let sent = gateway.sent();
        let error = v4("192.0.0.1", HOST).tos(0xc0).may_fragment();
        let error = error.identification(u32::from(u16::from_be_bytes([sent[62], sent[63]])));
        let error = error.icmp(icmp4(kind, code, [0; 4], &inner.octets()));
        assert_eq!(support::hex(&sent), support::hex(&down(B4, error).tos(0xc0).octets()), "{reason:?}");
        assert!(checksum_is_right(&sent[40..]));
        gateway.sends_nothing();
    }
}
