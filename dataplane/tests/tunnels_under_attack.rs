//! What others can do to a gateway with tunnels, and to what else it does, by sending it packets.

use crate::support;
use crate::support::super_frame::on_the_wire;
use crate::support::{Build, configured, gateway, icmp4, icmp6, in_ipv4, tunnelling, v4, v6};
use sixway_dataplane::engine::{Engine, EngineConfig, TunnelConfig};
use sixway_dataplane::frame::MAX_PACKET;
use sixway_dataplane::mechanism::configured::ConfiguredConfig;
use sixway_dataplane::mechanism::{isatap, siit::SiitConfig, six_rd, six_to_four};
use sixway_dataplane::tunnel::{OuterFragments, TunnelMtu, TunnelPolicy};
use sixway_dataplane::{DropReason, Frame, Instant, Outbox, Verdict};
use std::time::Duration;

const LOCAL: &str = "192.0.2.9";
const REMOTE: &str = "198.51.100.7";
const HOST: &str = "2001:db8:1::1";
const PEER: &str = "2001:db8:7::1";

/// The fragments of a packet, with this number of octets of data each.
fn cut(whole: &Build, identification: u32, size: usize) -> Vec<Vec<u8>> {
    let length = whole.octets().len() - 20;
    let starts = (0..length).step_by(size);
    let part = |from: usize| {
        let to = (from + size).min(length);
        whole.clone().fragment(identification, from as u16, to < length).part(from, to).octets()
    };
    starts.map(part).collect()
}

#[test]
fn neighbour_discovery_in_outer_fragments_reaches_control_whole() {
    let solicitation = v6("fe80::5efe:10.1.2.3", "ff02::2").hops(255).icmp(icmp6(133, 0, [0; 4], &[]));
    let outer = in_ipv4("10.1.2.3", "10.0.0.1", solicitation.octets());
    let mut gateway = tunnelling(TunnelConfig::Isatap(support::isatap(isatap::Role::Router, "10.0.0.1")));
    let fragments = cut(&outer, 7, 40);
    let mut frame = Frame::holding(&fragments[0]);
    let mut out = Outbox::new(8);
    gateway.engine.process(std::slice::from_mut(&mut frame), gateway.now, &mut out);
    assert_eq!(frame.verdict, Verdict::Held);
    let mut frame = Frame::holding(&fragments[1]);
    gateway.engine.process(std::slice::from_mut(&mut frame), gateway.now, &mut out);
    assert_eq!((frame.verdict, out.len()), (Verdict::Control, 0));
    assert_eq!(frame.bytes()[20..], solicitation.octets());
    assert!(gateway.engine.counters().frames_are_conserved());
    assert_eq!(gateway.engine.counters().to_control, 1);
}

#[test]
fn a_fragment_of_an_icmp_error_is_not_held() {
    let quote = in_ipv4(LOCAL, REMOTE, v6(HOST, PEER).udp(1, 2, &[0; 600]).octets()).octets();
    let error = v4("203.0.113.1", LOCAL).icmp(icmp4(3, 1, [0; 4], &quote));
    let mut gateway =
        tunnelling(TunnelConfig::SixToFour(support::six_to_four(six_to_four::Role::Relay, LOCAL)));
    gateway.receives(cut(&error, 7, 504).swap_remove(0));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoMechanism));
    gateway.sends_nothing();
}

#[test]
fn a_default_route_into_a_tunnel_leaves_explicit_mappings_to_their_translator() {
    let mut siit = SiitConfig { prefix: Some(support::prefix("2001:db8:64::/96")), ..SiitConfig::default() };
    siit.eam = support::eam(&[("198.51.100.8/32", "2001:db8:9::8/128")]);
    let everything = ConfiguredConfig { prefixes: vec!["::/0".parse().unwrap()], ..configured() };
    let mut gateway = gateway(|config| {
        config.siit.push(siit);
        config.tunnels.push(TunnelConfig::Configured(everything));
    });
    gateway.receives(v6("2001:db8:64::c000:0221", "2001:db8:9::8").udp(1, 2, b"data"));
    let sent = gateway.sent();
    assert_eq!((sent[0] >> 4, sent[9], &sent[16..20]), (4, 17, &[198, 51, 100, 8][..]));
    gateway.receives(v6(HOST, "2001:db8:9::9").udp(1, 2, b"data"));
    gateway.sends_in_ipv4(LOCAL, REMOTE, v6(HOST, "2001:db8:9::9").udp(1, 2, b"data"));
}

fn relay_and_nat64() -> support::Gateway {
    gateway(|config| {
        config.nat64.push(support::nat64());
        let relay = support::six_to_four(six_to_four::Role::Relay, LOCAL);
        config.tunnels.push(TunnelConfig::SixToFour(relay));
    })
}

#[test]
fn fragments_of_tunnel_packets_that_never_come_to_an_end_take_no_room_from_those_of_nat64() {
    let mut gateway = relay_and_nat64();
    for source in 0..8_192_u32 {
        let source = std::net::Ipv4Addr::from_bits(0xcb00_0000 + source).to_string();
        let whole = in_ipv4(&source, LOCAL, v6(HOST, PEER).udp(1, 2, &[0; 600]));
        gateway.receives(cut(&whole, 7, 504).swap_remove(0));
    }
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::FragmentMemory));
    let host = v6(HOST, "64:ff9b::203.0.113.7").fragment(9, 0, true).udp(1, 2, &[0; 600]);
    gateway.receives(host.part(0, 504));
    assert_eq!(gateway.last, Verdict::Held);
}

#[test]
fn nobody_is_told_of_fragments_of_a_tunnel_packet_that_do_not_come() {
    let mut gateway = relay_and_nat64();
    let whole = in_ipv4("203.0.113.9", LOCAL, v6(HOST, PEER).udp(1, 2, &[0; 600]));
    gateway.receives(cut(&whole, 7, 504).swap_remove(0));
    assert_eq!(gateway.last, Verdict::Held);
    gateway.waits(Duration::from_secs(5));
    gateway.sends_nothing();
    assert_eq!(gateway.engine.counters().held, 0);
    assert_eq!(gateway.engine.counters().dropped[DropReason::FragmentTimeout as usize], 1);
}

#[test]
fn a_tunnel_whose_fragments_get_lost_keeps_going() {
    let mut gateway = tunnelling(TunnelConfig::Configured(configured()));
    let whole = |number: u32| {
        let inner = v6(PEER, HOST).udp(1, 2, &number.to_be_bytes().repeat(300));
        cut(&in_ipv4(REMOTE, LOCAL, inner), number, 1_000)
    };
    for number in 0..1_000 {
        gateway.receives(whole(number).swap_remove(0));
    }
    whole(1_000).into_iter().for_each(|fragment| gateway.receives(fragment));
    gateway.sends(v6(PEER, HOST).udp(1, 2, &1_000_u32.to_be_bytes().repeat(300)));
}

#[test]
fn a_datagram_that_came_in_fragments_is_not_overtaken_by_one_that_is_joined() {
    let datagram = |size: usize, mark: u8| v6(PEER, HOST).udp(1, 2, &vec![mark; size]);
    let one = |size, mark| vec![in_ipv4(REMOTE, LOCAL, datagram(size, mark)).octets()];
    let second = cut(&in_ipv4(REMOTE, LOCAL, datagram(1_232, 2)), 7, 1_000);
    let packets = [one(500, 1), second, one(500, 3)].concat();
    let tunnels = vec![TunnelConfig::Configured(configured())];
    let mut engine = Engine::new(&EngineConfig { tunnels, ..EngineConfig::default() }).unwrap();
    let mut frames: Vec<Frame> = packets
        .iter()
        .map(|packet| {
            let mut frame = Frame::with_capacity(MAX_PACKET);
            frame.fill(packet, Default::default());
            frame
        })
        .collect();
    let mut out = Outbox::new(8);
    engine.process(&mut frames, Instant::from_secs(1), &mut out);
    let mut left: Vec<Vec<u8>> = Vec::new();
    for frame in &frames {
        if frame.verdict.leaves() {
            left.extend(on_the_wire(frame.bytes(), frame.offload));
        }
        for piece in &out.frames()[usize::from(frame.pieces.start)..usize::from(frame.pieces.end)] {
            left.push(piece.bytes().to_vec());
        }
    }
    assert_eq!(left.iter().map(|packet| packet[48]).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn nobody_is_told_to_send_packets_as_large_as_the_one_that_was_too_big() {
    let mut config = configured();
    config.policy =
        TunnelPolicy { outer_fragments: OuterFragments::Never, mtu: TunnelMtu::Dynamic, ..config.policy };
    let mut gateway = gateway(|engine| {
        engine.limits.mtu4 = 1_200;
        engine.tunnels.push(TunnelConfig::Configured(config));
    });
    // More than the link takes, but no IPv6 host can be told to send less.
    gateway.receives(v6(HOST, PEER).udp(1, 2, &[0; 1_232]));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::OuterTooBig));
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41]), (1, 3));
    gateway.receives(v6(HOST, PEER).udp(1, 2, &[0; 1_233]));
    let sent = gateway.sent();
    assert_eq!((sent[40], &sent[44..48]), (2, &1_280_u32.to_be_bytes()[..]));
}

/// Names are resolved by others, who may answer with anything.
#[test]
fn a_name_that_leads_to_no_hosts_address_leads_nowhere() {
    for address in ["224.0.0.1", "255.255.255.255", "127.0.0.1", "0.0.0.0", "240.0.0.1"] {
        let remote = address.parse().ok();
        let tunnel = ConfiguredConfig { remote, ..configured() };
        let mut gateway = tunnelling(TunnelConfig::Configured(tunnel));
        gateway.receives(v6(HOST, PEER).udp(1, 2, b"data"));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoRemote), "{address}");
        let routers = vec![address.parse().unwrap()];
        let host = isatap::IsatapConfig { routers, ..support::isatap(isatap::Role::Host, "10.1.2.3") };
        let mut gateway = tunnelling(TunnelConfig::Isatap(host));
        gateway.receives(v6("2001:db8:1:2:0:5efe:10.1.2.3", PEER).udp(1, 2, b"data"));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoRelay), "{address}");
    }
}

#[test]
fn the_gateways_own_address_comes_through_no_tunnel() {
    let own = "2001:4860::fe";
    let site = "2002:c000:209::1";
    for (tunnel, outer, local, to) in [
        (
            TunnelConfig::SixToFour(support::six_to_four(six_to_four::Role::Router, LOCAL)),
            "192.88.99.1",
            LOCAL,
            site,
        ),
        (
            TunnelConfig::SixRd(support::six_rd(six_rd::Role::CustomerEdge, "10.1.1.1")),
            "10.0.0.1",
            "10.1.1.1",
            "2001:db8:101:100::1",
        ),
        (
            TunnelConfig::Isatap(support::isatap(isatap::Role::Host, "10.1.2.3")),
            "10.0.0.1",
            "10.1.2.3",
            "2001:db8:1:2:0:5efe:10.1.2.3",
        ),
        (
            TunnelConfig::Configured(ConfiguredConfig { strict_sources: false, ..configured() }),
            REMOTE,
            LOCAL,
            HOST,
        ),
    ] {
        let mut gateway = gateway(|config| {
            config.own6 = own.parse().ok();
            config.tunnels.push(tunnel);
        });
        let inner = v6(own, to).udp(1, 2, b"data");
        gateway.refuses(in_ipv4(outer, local, inner), DropReason::SourceNotInTunnel);
    }
}

/// RFC 6052 §5.1: inside hosts, and a packet filter that lets a translator's packets pass, would take it for translated.
#[test]
fn the_prefix_of_the_gateways_nat64_comes_through_no_tunnel() {
    let forged = "64:ff9b::203.0.113.7";
    for (tunnel, outer, local, to) in [
        (
            TunnelConfig::SixToFour(support::six_to_four(six_to_four::Role::Router, LOCAL)),
            "192.88.99.1",
            LOCAL,
            "2002:c000:209::1",
        ),
        (
            TunnelConfig::SixRd(support::six_rd(six_rd::Role::CustomerEdge, "10.1.1.1")),
            "10.0.0.1",
            "10.1.1.1",
            "2001:db8:101:100::1",
        ),
        (
            TunnelConfig::Configured(ConfiguredConfig { strict_sources: false, ..configured() }),
            REMOTE,
            LOCAL,
            HOST,
        ),
    ] {
        let came = |nat64| {
            let mut gateway = gateway(|config| {
                config.nat64.extend(nat64);
                config.tunnels.push(tunnel.clone());
            });
            gateway.receives(in_ipv4(outer, local, v6(forged, to).udp(1, 2, b"data")));
            gateway.last
        };
        assert_eq!(came(Some(support::nat64())), Verdict::Dropped(DropReason::SourceNotInTunnel));
        // Another network's translator may have it.
        assert!(!matches!(came(None), Verdict::Dropped(_)), "{to}");
    }
}
