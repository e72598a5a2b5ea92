//! Configured tunnels (RFC 4213).

use crate::support;
use crate::support::super_frame::{described, on_the_wire, unfinished};
use crate::support::{Gateway, checksum_is_right, configured, icmp6, in_ipv4, v6};
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::{Checksum, SegmentKind};

const LOCAL: &str = "192.0.2.9";
const REMOTE: &str = "198.51.100.7";

fn tunnel() -> Gateway {
    support::gateway(|config| config.tunnels.push(TunnelConfig::Configured(configured())))
}

#[test]
fn a_packet_into_the_tunnel_gets_an_outer_header_and_keeps_its_hop_limit() {
    let mut gateway = tunnel();
    gateway.receives(v6("2001:db8:1::1", "2001:db8:7::1").hops(1).udp(53, 4_000, &[7; 100]));
    let sent = gateway.sent();
    let expected = v6("2001:db8:1::1", "2001:db8:7::1").hops(1).udp(53, 4_000, &[7; 100]);
    let outer =
        in_ipv4(LOCAL, REMOTE, expected).identification(u32::from(u16::from_be_bytes([sent[4], sent[5]])));
    assert_eq!(sent, outer.octets());
    gateway.counted([("configured.encap", 1)]);
}

#[test]
fn a_packet_out_of_the_tunnel_is_what_was_put_in() {
    let mut gateway = tunnel();
    let inner = v6("2001:db8:7::1", "2001:db8:1::1").hops(1).udp(53, 4_000, &[7; 100]);
    gateway.receives(in_ipv4(REMOTE, LOCAL, inner.clone()).hops(1));
    gateway.sends(inner);
    gateway.counted([("configured.decap", 1)]);
}

#[test]
fn an_ipv6_packet_that_is_too_big_is_answered_with_the_tunnels_mtu() {
    let mut gateway = tunnel();
    let packet = v6("2001:db8:1::1", "2001:db8:7::1").udp(53, 4_000, &[7; 1_280 - 48 + 1]);
    gateway.receives(packet.clone());
    let quote = packet.octets();
    let error = icmp6(2, 0, 1_280_u32.to_be_bytes(), &quote[..1_280 - 48]);
    gateway.sends(v6("2001:db8::fe", "2001:db8:1::1").icmp(error));
}

#[test]
fn a_gso_packet_into_the_tunnel_leaves_as_a_tunnel_packet_for_each_segment() {
    let mut gateway = tunnel();
    let data: Vec<u8> = (0..3_000).map(|at| at as u8).collect();
    let whole = unfinished(v6("2001:db8:1::1", "2001:db8:7::1").tcp(80, 4_000, 0x10, &data));
    let offload = described(SegmentKind::Tcp, 1_220);
    gateway.receives_with(whole.clone(), offload);
    for segment in on_the_wire(&whole, offload) {
        let sent = gateway.sent();
        assert_eq!(sent[20..], segment);
        assert!(checksum_is_right(&sent) && checksum_is_right(&sent[20..]));
    }
    gateway.sends_nothing();
}

#[test]
fn an_unfinished_checksum_is_finished_before_the_packet_goes_into_the_tunnel() {
    let mut gateway = tunnel();
    let packet = v6("2001:db8:1::1", "2001:db8:7::1").udp(53, 4_000, b"data");
    let offload = sixway_dataplane::Offload { checksum: Checksum::Partial, segments: None, transport: 40 };
    gateway.receives_with(unfinished(packet), offload);
    let (sent, offload) = gateway.sent_with();
    assert!(checksum_is_right(&sent[20..]));
    assert_eq!(offload.checksum, Checksum::Complete);
}

#[test]
fn outer_fragments_are_put_together_first() {
    let mut gateway = tunnel();
    let inner = v6("2001:db8:7::1", "2001:db8:1::1").udp(53, 4_000, &[7; 1_000]);
    let whole = in_ipv4(REMOTE, LOCAL, inner.clone());
    gateway.receives(whole.clone().fragment(7, 512, false).part(512, 1_048));
    gateway.sends_nothing();
    gateway.receives(whole.fragment(7, 0, true).part(0, 512));
    gateway.sends(inner);
}

#[test]
fn tunnels_are_replaced_while_packets_flow() {
    let mut gateway = tunnel();
    let moved = sixway_dataplane::mechanism::configured::ConfiguredConfig {
        local: "192.0.2.10".parse().unwrap(),
        ..configured()
    };
    gateway.engine.set_tunnels(&[TunnelConfig::Configured(moved)], &[], &[]);
    gateway.receives(v6("2001:db8:1::1", "2001:db8:7::1").udp(53, 4_000, b"data"));
    assert_eq!(gateway.sent()[12..16], [192, 0, 2, 10]);
    gateway.receives(in_ipv4(REMOTE, "192.0.2.10", v6("2001:db8:7::1", "2001:db8:1::1").udp(1, 2, b"data")));
    gateway.sends(v6("2001:db8:7::1", "2001:db8:1::1").udp(1, 2, b"data"));
}
