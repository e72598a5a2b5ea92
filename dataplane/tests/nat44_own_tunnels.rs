//! Tunnels of this gateway behind its own NAT44: their packets leave with the outside address, and what comes to it goes into them.

use crate::support;
use crate::support::super_frame::{described, on_the_wire, unfinished};
use crate::support::{Build, Gateway, checksum_is_right, configured, icmp4, icmp6, in_ipv4, v4, v6};
use sixway_dataplane::engine::{EngineConfig, TunnelConfig};
use sixway_dataplane::mechanism::configured::ConfiguredConfig;
use sixway_dataplane::mechanism::ip_in_ip::IpInIpConfig;
use sixway_dataplane::mechanism::nat44::{Nat44Config, PortlessBinding, PortlessProtocol};
use sixway_dataplane::mechanism::six_to_four::{Role, SixToFourConfig};
use sixway_dataplane::nat::{Inside, Outside};
use sixway_dataplane::stateful::PortlessRow;
use sixway_dataplane::tunnel::{OuterFragments, TunnelMtu, TunnelPolicy};
use sixway_dataplane::{DropReason, SegmentKind, Verdict};
use std::time::Duration;

/// The tunnel's ends, the address that the remote end sees, and hosts.
const LOCAL: &str = "10.0.0.5";
const REMOTE: &str = "198.51.100.7";
const DOOR: &str = "192.0.2.1";
const HERE: &str = "2001:db8:1::1";
const THERE: &str = "2001:db8:7::1";
const ROUTER: &str = "198.51.100.9";

fn tunnel() -> ConfiguredConfig {
    ConfiguredConfig { local: LOCAL.parse().unwrap(), ..configured() }
}

/// A NAT44 with one outside address that translates tunnel packets.
fn nat44() -> Nat44Config {
    let mut nat44 = support::nat44();
    nat44.pool.addresses = vec!["192.0.2.1/32".parse().unwrap()];
    nat44.translate_own_tunnels = true;
    nat44
}

fn gateway(edit: impl FnOnce(&mut EngineConfig)) -> Gateway {
    support::gateway(|config| {
        config.nat44.push(nat44());
        config.tunnels.push(TunnelConfig::Configured(tunnel()));
        config.host4 = vec![LOCAL.parse().unwrap()];
        edit(config);
    })
}

fn bound(protocol: PortlessProtocol) -> PortlessBinding {
    PortlessBinding {
        protocol,
        inside: Inside(LOCAL.parse().unwrap()),
        outside: Outside(DOOR.parse().unwrap()),
    }
}

fn out(data: &[u8]) -> Build {
    v6(HERE, THERE).udp(53, 4_000, data)
}

fn back(data: &[u8]) -> Build {
    v6(THERE, HERE).udp(4_000, 53, data)
}

fn rows(gateway: &mut Gateway) -> Vec<PortlessRow> {
    let (now, mut rows) = (gateway.now, Vec::new());
    let nat44 = gateway.engine.stateful().next().unwrap();
    assert_eq!(nat44.without_ports().sessions(0, 1_000, now, &mut rows), None);
    rows
}

/// A packet is not let in; its ICMP error is of no interest.
#[track_caller]
fn filtered(gateway: &mut Gateway, packet: Build) {
    assert!(!gateway.passes(packet));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::Filtered));
}

/// A packet is renumbered, and then its tunnel refuses it.
#[track_caller]
fn refused_by_tunnel(gateway: &mut Gateway, packet: impl Into<Vec<u8>>, reason: DropReason) {
    gateway.counted_before();
    gateway.receives(packet);
    assert_eq!(gateway.last, Verdict::Dropped(reason));
    gateway.sends_nothing();
    gateway.counted([("nat44.to_inside", 1), (reason.name(), 1)]);
}

#[test]
fn a_tunnel_packet_leaves_with_the_outside_address_and_its_answer_comes_back_through_the_tunnel() {
    let mut gateway = gateway(|_| {});
    gateway.receives(out(b"query"));
    gateway.sends_in_ipv4(DOOR, REMOTE, out(b"query"));
    gateway.counted([("configured.encap", 1), ("nat44.to_outside", 1), ("nat.portless.made", 1)]);
    gateway.receives(in_ipv4(REMOTE, DOOR, back(b"answer")));
    gateway.sends(back(b"answer"));
    gateway.counted([("nat44.to_inside", 1), ("configured.decap", 1)]);
    let [row] = rows(&mut gateway)[..] else { panic!() };
    assert_eq!((row.inside, row.outside), (LOCAL.parse().unwrap(), DOOR.parse().unwrap()));
    assert_eq!((row.remote, row.protocol), (REMOTE.parse().unwrap(), 41));
    let octets = (out(b"query").octets().len() + 20, back(b"answer").octets().len() + 20);
    assert_eq!((row.packets, row.octets), ([1, 1], [octets.0 as u64, octets.1 as u64]));
}

#[test]
fn without_the_key_a_tunnel_packet_keeps_its_source() {
    let mut gateway = gateway(|config| config.nat44[0].translate_own_tunnels = false);
    gateway.receives(out(b"query"));
    gateway.sends_in_ipv4(LOCAL, REMOTE, out(b"query"));
    gateway.counted([("configured.encap", 1)]);
    filtered(&mut gateway, in_ipv4(REMOTE, DOOR, back(b"answer")));
}

#[test]
fn a_tunnel_with_its_end_elsewhere_is_not_translated() {
    let mut gateway = gateway(|config| config.tunnels = vec![TunnelConfig::Configured(configured())]);
    gateway.receives(out(b"query"));
    gateway.sends_in_ipv4("192.0.2.9", REMOTE, out(b"query"));
    gateway.counted([("configured.encap", 1)]);
}

#[test]
fn to_an_inside_host_or_an_exception_nothing_is_translated() {
    for remote in ["10.0.0.7", "203.0.113.7"] {
        let mut gateway = gateway(|config| {
            config.nat44[0].except = vec!["203.0.113.0/24".parse().unwrap()];
            let tunnel = ConfiguredConfig { remote: remote.parse().ok(), ..tunnel() };
            config.tunnels = vec![TunnelConfig::Configured(tunnel)];
        });
        gateway.receives(out(b"query"));
        gateway.sends_in_ipv4(LOCAL, remote, out(b"query"));
        gateway.receives(in_ipv4(remote, LOCAL, back(b"answer")));
        gateway.sends(back(b"answer"));
        assert!(rows(&mut gateway).is_empty());
    }
}

#[test]
fn only_the_remote_end_may_answer_unless_a_static_binding_says_so() {
    let mut plain = gateway(|_| {});
    filtered(&mut plain, in_ipv4(REMOTE, DOOR, back(b"first")));
    plain.receives(out(b"query"));
    plain.sent();
    filtered(&mut plain, in_ipv4("198.51.100.8", DOOR, back(b"forged")));
    let mut gateway =
        gateway(|config| config.nat44[0].portless.bindings = vec![bound(PortlessProtocol::Ipv6)]);
    gateway.receives(in_ipv4(REMOTE, DOOR, back(b"first")));
    gateway.sends(back(b"first"));
    gateway.counted([("nat44.to_inside", 1), ("configured.decap", 1)]);
    refused_by_tunnel(&mut gateway, in_ipv4("198.51.100.8", DOOR, back(b"forged")), DropReason::NoTunnel);
    gateway.receives(out(b"query"));
    gateway.sends_in_ipv4(DOOR, REMOTE, out(b"query"));
    assert!(rows(&mut gateway).is_empty());
}

#[test]
fn the_inner_source_is_checked_as_in_any_tunnel() {
    let mut gateway = gateway(|_| {});
    gateway.receives(out(b"query"));
    gateway.sent();
    let forged = v6("2001:db8:8::1", HERE).udp(1, 2, b"forged");
    refused_by_tunnel(&mut gateway, in_ipv4(REMOTE, DOOR, forged), DropReason::SourceNotInTunnel);
    refused_by_tunnel(
        &mut gateway,
        in_ipv4(REMOTE, DOOR, v4(LOCAL, LOCAL).udp(1, 2, b"")),
        DropReason::InnerNotIpv6,
    );
}

#[test]
fn a_session_that_is_over_begins_again_from_inside_alone() {
    let mut gateway = gateway(|_| {});
    gateway.receives(out(b"query"));
    gateway.sent();
    gateway.waits(Duration::from_secs(301));
    filtered(&mut gateway, in_ipv4(REMOTE, DOOR, back(b"late")));
    gateway.receives(out(b"again"));
    gateway.sends_in_ipv4(DOOR, REMOTE, out(b"again"));
}

#[test]
fn a_gso_packet_leaves_as_tunnel_packets_that_are_all_translated() {
    let mut gateway = gateway(|_| {});
    let data: Vec<u8> = (0..3_000).map(|at| at as u8).collect();
    let whole = unfinished(v6(HERE, THERE).tcp(80, 4_000, 0x10, &data));
    let offload = described(SegmentKind::Tcp, 1_220);
    gateway.receives_with(whole.clone(), offload);
    let segments = on_the_wire(&whole, offload);
    for segment in &segments {
        let sent = gateway.sent();
        assert_eq!((&sent[12..16], &sent[20..]), (&[192, 0, 2, 1][..], &segment[..]));
        assert!(checksum_is_right(&sent) && checksum_is_right(&sent[20..]));
    }
    gateway.sends_nothing();
    assert_eq!(rows(&mut gateway)[0].packets, [segments.len() as u64, 0]);
}

#[test]
fn a_packet_that_is_too_big_is_answered_with_the_tunnels_mtu() {
    let mut gateway = gateway(|_| {});
    let packet = v6(HERE, THERE).udp(53, 4_000, &[7; 1_280 - 48 + 1]);
    gateway.receives(packet.clone());
    let error = icmp6(2, 0, 1_280_u32.to_be_bytes(), &packet.octets()[..1_280 - 48]);
    gateway.sends(v6("2001:db8::fe", HERE).icmp(error));
}

#[test]
fn outer_fragments_are_made_after_and_put_together_before_the_translation() {
    let mut gateway = gateway(|config| {
        let mtu = TunnelMtu::Static(4_000);
        let policy =
            TunnelPolicy { mtu, outer_fragments: OuterFragments::Allowed, ..TunnelPolicy::default() };
        config.tunnels = vec![TunnelConfig::Configured(ConfiguredConfig { policy, ..tunnel() })];
    });
    gateway.receives(out(&[7; 3_000]));
    let mut length = 0;
    while gateway.waiting() > 0 {
        let piece = gateway.sent();
        assert!(piece.len() <= 1_500 && piece[12..16] == [192, 0, 2, 1] && checksum_is_right(&piece));
        length += piece.len() - 20;
    }
    assert_eq!(length, out(&[7; 3_000]).octets().len());
    let whole = in_ipv4(REMOTE, DOOR, back(&[7; 1_000]));
    gateway.receives(whole.clone().fragment(7, 512, false).part(512, 1_048));
    gateway.sends_nothing();
    gateway.receives(whole.fragment(7, 0, true).part(0, 512));
    gateway.sends(back(&[7; 1_000]));
}

/// RFC 5508 REQ-4, RFC 4213 §3.4.
#[test]
fn an_error_about_a_tunnel_packet_reaches_the_sender_inside_the_tunnel() {
    let mut gateway = gateway(|_| {});
    gateway.receives(out(b"query"));
    let quote = gateway.sent();
    gateway.counted_before();
    gateway.receives(v4(ROUTER, DOOR).icmp(icmp4(3, 1, [0; 4], &quote)));
    let sent = gateway.sent();
    assert_eq!((sent[6], sent[40], sent[41]), (58, 1, 3));
    assert_eq!(sent[24..40], out(b"query").octets()[8..24], "to the sender");
    assert_eq!(sent[48..], out(b"query").octets(), "about its packet");
    gateway.counted([("answered", 1), ("nat44.to_inside", 1), ("tunnels.errors_relayed", 1)]);
}

#[test]
fn the_path_mtu_of_a_tunnel_is_learnt_through_the_translation() {
    let dynamic = TunnelPolicy { mtu: TunnelMtu::Dynamic, ..TunnelPolicy::default() };
    let mut gateway = gateway(|config| {
        let tunnel = ConfiguredConfig { policy: dynamic, ..tunnel() };
        config.tunnels = vec![TunnelConfig::Configured(tunnel)];
    });
    gateway.receives(out(&[7; 1_400]));
    let quote = gateway.sent();
    assert_eq!((&quote[12..16], quote[6] & 0x40), (&[192, 0, 2, 1][..], 0x40));
    gateway.receives(v4(ROUTER, DOOR).icmp(icmp4(3, 4, [0, 0, 5, 120], &quote[..548])));
    let told = gateway.sent();
    assert_eq!((told[40], &told[44..48]), (2, &1_380_u32.to_be_bytes()[..]));
    gateway.receives(out(&[7; 1_400]));
    let told = gateway.sent();
    assert_eq!((told[40], &told[44..48]), (2, &1_380_u32.to_be_bytes()[..]), "also for the next packet");
}

#[test]
fn an_error_about_what_was_never_sent_changes_nothing() {
    let mut gateway = gateway(|_| {});
    let quote = in_ipv4(DOOR, REMOTE, out(b"query")).octets();
    let error = |quote: &[u8]| v4(ROUTER, DOOR).icmp(icmp4(3, 1, [0; 4], quote));
    gateway.refuses(error(&quote), DropReason::NoSessionForError);
    gateway.receives(out(b"query"));
    gateway.sent();
    let elsewhere = in_ipv4(DOOR, REMOTE, v6(HERE, "2001:db8:8::1").udp(1, 2, b"")).octets();
    refused_by_tunnel(&mut gateway, error(&elsewhere), DropReason::ErrorNotForTunnel);
}

/// What other hosts inside send is theirs: the tunnel has the remote host for itself only if it was first.
#[test]
fn a_host_with_the_same_remote_end_is_told_that_it_is_in_use_and_so_is_the_tunnel() {
    let host = |to: &str| v4("10.0.0.1", to).protocol(41, &[0x60; 60], None);
    let mut first = gateway(|_| {});
    first.receives(out(b"query"));
    first.sends_in_ipv4(DOOR, REMOTE, out(b"query"));
    first.receives(host(REMOTE));
    assert_eq!(first.last, Verdict::Dropped(DropReason::RemoteInUse));
    let mut second = gateway(|_| {});
    second.receives(host(REMOTE));
    second.sent();
    second.receives(out(b"query"));
    assert_eq!(second.last, Verdict::Dropped(DropReason::RemoteInUse));
    let told = second.sent();
    assert_eq!((told[6], told[40], told[41]), (58, 1, 3), "the sender of the packet inside the tunnel");
    // With a static binding the address is the tunnel's.
    let mut kept = gateway(|config| config.nat44[0].portless.bindings = vec![bound(PortlessProtocol::Ipv6)]);
    kept.receives(host(REMOTE));
    assert_eq!(kept.last, Verdict::Dropped(DropReason::RemoteInUse));
    kept.sent();
    kept.receives(out(b"query"));
    kept.sends_in_ipv4(DOOR, REMOTE, out(b"query"));
}

/// An IPv6 host that sends to all sites there are uses up the sessions of 6to4: not with a static binding.
#[test]
fn a_6to4_site_with_a_static_binding_reaches_any_number_of_sites_and_is_reached() {
    let site =
        SixToFourConfig { nat_address: DOOR.parse().ok(), ..support::six_to_four(Role::Router, LOCAL) };
    let with = |bindings: Vec<PortlessBinding>| {
        gateway(|config| {
            config.tunnels = vec![TunnelConfig::SixToFour(site.clone())];
            config.nat44[0].portless.bindings = bindings;
        })
    };
    let sites = 1..=100_u8;
    let mut bound = with(vec![bound(PortlessProtocol::Ipv6)]);
    for n in sites.clone() {
        let (here, there) = ("2002:c000:201::1", format!("2002:cb00:71{n:02x}::1"));
        bound.receives(in_ipv4(&format!("203.0.113.{n}"), DOOR, v6(&there, here).udp(1, 2, b"first")));
        bound.sends(v6(&there, here).udp(1, 2, b"first"));
        let packet = v6(here, &there).udp(2, 1, b"answer");
        bound.receives(packet.clone());
        bound.sends_in_ipv4(DOOR, &format!("203.0.113.{n}"), packet);
    }
    assert!(rows(&mut bound).is_empty());
    let mut unbound = with(Vec::new());
    let sent = sites.filter(|n| {
        unbound.passes(v6("2002:c000:201::1", &format!("2002:cb00:71{n:02x}::1")).udp(1, 2, b""))
    });
    assert_eq!(sent.count(), 64, "one subscriber's sessions");
}

#[test]
fn ipv4_in_ipv4_is_translated_as_well() {
    let tunnel = IpInIpConfig {
        local: LOCAL.parse().unwrap(),
        remote: REMOTE.parse().ok(),
        prefixes4: vec!["172.16.0.0/12".parse().unwrap()],
        prefixes6: Vec::new(),
        strict_sources: true,
        policy: TunnelPolicy::default(),
    };
    let mut gateway = gateway(|config| config.tunnels = vec![TunnelConfig::IpInIp(tunnel)]);
    let packet = v4("100.64.0.1", "172.16.0.1").udp(1, 2, b"query");
    gateway.receives(packet.clone());
    let sent = gateway.sent();
    assert_eq!((sent[9], &sent[12..20]), (4, &[192, 0, 2, 1, 198, 51, 100, 7][..]));
    assert!(checksum_is_right(&sent));
    assert_eq!(sent[20..], packet.octets());
    gateway.counted([("ip_in_ip.encap", 1), ("nat44.to_outside", 1), ("nat.portless.made", 1)]);
    let answer = v4("172.16.0.1", "100.64.0.1").udp(2, 1, b"answer");
    gateway.receives(v4(REMOTE, DOOR).protocol(4, &answer.octets(), None));
    gateway.sends(answer);
    gateway.counted([("nat44.to_inside", 1), ("ip_in_ip.decap", 1)]);
    // An error about it.
    gateway.receives(v4(ROUTER, DOOR).icmp(icmp4(3, 1, [0; 4], &sent)));
    let told = gateway.sent();
    assert_eq!((told[20], told[21], &told[16..20]), (3, 1, &[100, 64, 0, 1][..]));
    // The kernel routes what left with the outside address back into the tunnel: RFC 2003 §3.2.
    gateway.counted_before();
    let turned = v4(DOOR, "172.16.0.9").protocol(4, &packet.octets(), None);
    gateway.refuses(turned, DropReason::TunnelLoop);
}

#[test]
fn a_tunnel_that_moves_or_goes_takes_its_packets_with_it() {
    let mut gateway = gateway(|_| {});
    gateway.receives(out(b"query"));
    gateway.sent();
    gateway.engine.set_tunnels(&[], &[], &[]);
    gateway.receives(in_ipv4(REMOTE, DOOR, back(b"answer")));
    gateway.sends(in_ipv4(REMOTE, LOCAL, back(b"answer")).hops(63));
    let moved = ConfiguredConfig { local: "10.0.0.6".parse().unwrap(), ..tunnel() };
    gateway.engine.set_tunnels(&[TunnelConfig::Configured(moved)], &[], &[]);
    gateway.receives(in_ipv4(REMOTE, DOOR, back(b"answer")));
    assert_eq!(gateway.sent()[16..20], [10, 0, 0, 5], "the session is of the address that it had");
    gateway.engine.set_tunnels(&[TunnelConfig::Configured(tunnel())], &[], &[]);
    gateway.receives(in_ipv4(REMOTE, DOOR, back(b"answer")));
    gateway.sends(back(b"answer"));
}

#[test]
fn a_batch_is_translated_packet_by_packet_in_its_order() {
    use sixway_dataplane::{Frame, Outbox};
    let mut gateway = gateway(|_| {});
    let mut frames: Vec<Frame> = (0..40_u8).map(|n| Frame::holding(&out(&[n]).octets())).collect();
    gateway.engine.process(&mut frames, gateway.now, &mut Outbox::new(64));
    for (n, frame) in (0..40_u8).zip(&frames) {
        assert_eq!((frame.verdict, frame.bytes().last()), (Verdict::Forward, Some(&n)));
        assert_eq!(frame.bytes()[12..16], [192, 0, 2, 1]);
    }
    let mut frames: Vec<Frame> =
        (0..40_u8).map(|n| Frame::holding(&in_ipv4(REMOTE, DOOR, back(&[n; 9])).octets())).collect();
    gateway.engine.process(&mut frames, gateway.now, &mut Outbox::new(64));
    let all: Vec<Vec<u8>> =
        frames.iter().filter(|frame| frame.verdict.leaves()).map(|frame| frame.bytes().to_vec()).collect();
    assert_eq!(all, (0..40_u8).map(|n| back(&[n; 9]).octets()).collect::<Vec<_>>());
}

#[test]
fn what_may_not_have_sessions_is_refused_to_tunnels_too() {
    let mut gateway = gateway(|config| config.nat44[0].excluded = vec!["198.51.100.0/24".parse().unwrap()]);
    gateway.receives(out(b"query"));
    assert!(matches!(gateway.last, Verdict::Dropped(_)), "{:?}", gateway.last);
    assert!(rows(&mut gateway).is_empty());
}
