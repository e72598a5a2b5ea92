//! The outer header (RFC 2473 §3, §5, §6; RFC 6333 §7.1; RFC 6040).

use super::*;
use sixway_dataplane::translate::HeaderByte;
use sixway_dataplane::{DropReason, Verdict};

#[test]
fn the_traffic_class_is_carried_from_ipv4_to_ipv6_and_back() {
    // RFC 6333 §7.1, RFC 6908 §2.10: the uniform model.
    let mut gateway = gateway(|_| {});
    gateway.receives(up(B4, v4(HOST, SERVER).tos(0x20).udp(4_001, 53, b"")).tos(0xb8));
    let sent = gateway.sent();
    assert_eq!(sent[1], 0xb8);
    let (outside, port) = source(&sent);
    assert_eq!(sent, v4(&outside, SERVER).hops(63).tos(0xb8).udp(port, 53, b"").octets(), "checksums");
    gateway.receives(v4(SERVER, &outside).tos(0x48).udp(53, port, b""));
    gateway.sends(down(B4, v4(SERVER, HOST).hops(63).tos(0x48).udp(53, 4_001, b"")).tos(0x48));
}

#[test]
fn congestion_marks_leave_a_softwire_as_rfc_6040_says() {
    // RFC 6040 §4.2, inner (row) and outer (column) mark: Not-ECT, ECT(1), ECT(0), CE.
    let table =
        [(0, 0, Some(0)), (0, 3, None), (2, 0, Some(2)), (2, 3, Some(3)), (1, 3, Some(3)), (3, 0, Some(3))];
    for (inner, outer, expected) in table {
        let mut gateway = gateway(|_| {});
        gateway.receives(up(B4, v4(HOST, SERVER).tos(inner).udp(4_001, 53, b"")).tos(outer));
        match expected {
            Some(mark) => assert_eq!(gateway.sent()[1] & 3, mark, "{inner} in {outer}"),
            None => assert_eq!(gateway.last, Verdict::Dropped(DropReason::InnerNotEct)),
        }
    }
}

#[test]
fn the_outer_header_follows_the_policy() {
    let mut gateway = gateway(|aftr| {
        aftr.tunnel.ttl = HeaderByte::Set(99);
        aftr.tunnel.traffic_class = HeaderByte::Set(0x28);
    });
    let (outside, port) = opened(&mut gateway, B4);
    gateway.receives(v4(SERVER, &outside).udp(53, port, b""));
    gateway.sends(down(B4, v4(SERVER, HOST).hops(63).udp(53, 4_001, b"")).hops(99).tos(0x28));
}

#[test]
fn destination_options_of_a_b4_are_removed_with_the_outer_header() {
    // RFC 2473 §3.3, §4.1.1: some B4s limit the encapsulation.
    let mut gateway = gateway(|_| {});
    let limit = [0, 0, 4, 1, 4, 1, 0, 0];
    let inner = v4(HOST, SERVER).udp(4_001, 53, b"data");
    gateway.receives(v6(B4, AFTR).extension(60, &limit).protocol(4, &inner.octets(), None));
    let sent = gateway.sent();
    let (outside, port) = source(&sent);
    assert_eq!(sent, v4(&outside, SERVER).hops(63).udp(port, 53, b"data").octets());
    // One that was to go elsewhere first is not taken (RFC 8200 §4.4).
    let route = [&[0, 2, 4, 1, 0, 0, 0, 0][..], &[0x20; 16]].concat();
    let routed = v6(B4, AFTR).extension(43, &route).protocol(4, &inner.octets(), None);
    gateway.counted_before();
    gateway.receives(routed);
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::RoutingHeader));
}

#[test]
fn a_tunnel_in_a_softwire_is_one_packet_too_many() {
    // IPv6 in IPv4 in a softwire: a protocol without ports.
    let mut gateway = gateway(|_| {});
    let nested = v4(HOST, SERVER).protocol(41, &v6("2001:db8::1", "2001:db8::2").octets(), None);
    gateway.receives(up(B4, nested));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::ProtocolUnsupported));
    assert_eq!(gateway.sent()[60..62], [3, 2], "its sender hears of it");
    // A softwire in a softwire.
    let nested = v6(B4, AFTR).protocol(4, &v4(HOST, SERVER).protocol(4, &[0x45; 20], None).octets(), None);
    gateway.receives(nested);
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::ProtocolUnsupported));
}

#[test]
fn the_aftrs_address_answers_echo_requests_over_ipv6() {
    let mut gateway = gateway(|_| {});
    gateway.receives(v6(B4, AFTR).echo(1, 2, b"ping"));
    gateway.sends(v6(AFTR, B4).echo_reply(1, 2, b"ping"));
}

#[test]
fn the_mss_of_connections_fits_the_softwire_both_ways() {
    let mut gateway = gateway(|aftr| aftr.policy.clamp_mss = true);
    let mss = |octets: &[u8]| u16::from_be_bytes([octets[42], octets[43]]);
    let option = [2, 4, 0x05, 0xb4];
    gateway.receives(up(B4, v4(HOST, SERVER).tcp_with(4_001, 443, SYN, &option, b"")));
    let sent = gateway.sent();
    let (outside, port) = source(&sent);
    assert_eq!(mss(&sent), 1_420, "1,500 - 40 - 40");
    assert!(support::checksum_is_right(&sent));
    gateway.receives(v4(SERVER, &outside).tcp_with(443, port, SYN | ACK, &option, b""));
    let sent = gateway.sent();
    assert_eq!(mss(&sent[40..]), 1_420);
    assert!(support::checksum_is_right(&sent[40..]));
}
