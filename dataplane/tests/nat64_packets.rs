//! What a stateful NAT64 does with packets apart from their addresses and ports: sizes, fragments of every protocol, GSO packets,
//! headers, hop limits; and several NAT64s side by side.

use crate::support;
use crate::support::{Build, Gateway, checksum_is_right, icmp4, v4, v6};
use sixway_dataplane::engine::EngineConfig;
use sixway_dataplane::mechanism::nat64::Nat64Config;
use sixway_dataplane::nat::{PoolConfig, UDP_DEFAULT};
use sixway_dataplane::translate::address::Rfc6052;
use sixway_dataplane::translate::{HeaderByte, UdpZeroChecksum};
use sixway_dataplane::{DropReason, Limits, Offload, SegmentKind, Segments, Verdict};
use std::net::Ipv4Addr;
use std::time::Duration;

const HOST: &str = "2001:db8:1::1";
const SERVER: &str = "203.0.113.2";
const SERVER6: &str = "64:ff9b::203.0.113.2";
const SYN: u8 = 2;
const ACK: u8 = 16;

fn gateway() -> Gateway {
    gateway_with(|_, _| {})
}

fn gateway_with(edit: impl FnOnce(&mut Nat64Config, &mut EngineConfig)) -> Gateway {
    support::gateway(|config| {
        let mut nat64 = support::nat64();
        edit(&mut nat64, config);
        config.nat64.push(nat64);
    })
}

/// Source address and port (or identifier) of an IPv4 packet.
fn outside(packet: &[u8]) -> (String, u16) {
    let port_at = if packet[9] == 1 { 24 } else { 20 };
    let address = Ipv4Addr::new(packet[12], packet[13], packet[14], packet[15]);
    (address.to_string(), u16::from_be_bytes([packet[port_at], packet[port_at + 1]]))
}

/// A host's UDP port, bound; its outside endpoint.
fn bound(gateway: &mut Gateway) -> (String, u16) {
    gateway.receives(v6(HOST, SERVER6).udp(4_001, 53, b"question"));
    outside(&gateway.sent())
}

/// The fragments of a packet, in order.
fn fragments(whole: &Build, size: usize, end: usize) -> Vec<Build> {
    let part = |at: usize| {
        let to = (at + size).min(end);
        whole.clone().fragment(0x77, at as u16, to < end).part(at, to)
    };
    (0..end).step_by(size).map(part).collect()
}

/// What the packets sent carry behind their IP headers, put together.
fn carried(gateway: &mut Gateway) -> Vec<u8> {
    let mut octets = Vec::new();
    while gateway.waiting() > 0 {
        let sent = gateway.sent();
        assert!(sent.len() <= 1_500);
        let front = match (sent[0] >> 4, sent[6]) {
            (4, _) => 20,
            (_, 44) => 48,
            _ => 40,
        };
        octets.extend(&sent[front..]);
    }
    octets
}

#[test]
fn a_fragmented_echo_crosses_both_ways() {
    let data: Vec<u8> = (0..3_000u32).map(|n| n as u8).collect();
    let mut gateway = gateway();
    gateway.receives(v6(HOST, SERVER6).echo(7, 1, b"ping"));
    let (address, identifier) = outside(&gateway.sent());
    for part in fragments(&v6(HOST, SERVER6).echo(7, 2, &data), 1_232, 3_008).into_iter().rev() {
        gateway.receives(part);
    }
    let expected = v4(&address, SERVER).echo(identifier, 2, &data).octets();
    assert_eq!(carried(&mut gateway), expected[20..]);
    for part in fragments(&v4(SERVER, &address).echo_reply(identifier, 2, &data), 1_480, 3_008) {
        gateway.receives(part);
    }
    let expected = v6(SERVER6, HOST).echo_reply(7, 2, &data).octets();
    assert_eq!(carried(&mut gateway), expected[40..]);
}

#[test]
fn fragmented_segments_of_a_connection_cross_both_ways() {
    let data: Vec<u8> = (0..2_000u32).map(|n| n as u8).collect();
    let mut gateway = gateway();
    gateway.receives(v6(HOST, SERVER6).tcp(4_001, 80, SYN, b""));
    let (address, port) = outside(&gateway.sent());
    for part in fragments(&v4(SERVER, &address).tcp(80, port, SYN | ACK, &data), 1_000, 2_020) {
        gateway.receives(part);
    }
    assert_eq!(carried(&mut gateway), v6(SERVER6, HOST).tcp(80, 4_001, SYN | ACK, &data).octets()[40..]);
    for part in fragments(&v6(HOST, SERVER6).tcp(4_001, 80, ACK, &data), 1_000, 2_020) {
        gateway.receives(part);
    }
    assert_eq!(carried(&mut gateway), v4(&address, SERVER).tcp(port, 80, ACK, &data).octets()[20..]);
    assert_eq!(gateway.engine.counters().reassembled, 2);
}

#[test]
fn a_packet_of_many_small_fragments_leaves_as_few_as_its_link_carries() {
    let mut gateway = gateway();
    let (address, port) = bound(&mut gateway);
    let whole = v4(SERVER, &address).udp(53, port, &[7; 1_200]);
    for part in fragments(&whole, 64, 1_208) {
        gateway.receives(part);
    }
    // It fits 1,280 octets, so no Fragment header is needed.
    gateway.sends(v6(SERVER6, HOST).hops(63).udp(53, 4_001, &[7; 1_200]));
}

#[test]
fn fragments_of_two_packets_do_not_mix() {
    let mut gateway = gateway();
    let (address, port) = bound(&mut gateway);
    let one = v4(SERVER, &address).udp(53, port, &[1; 100]);
    let other = v4(SERVER, &address).udp(53, port, &[2; 100]);
    gateway.receives(one.clone().fragment(1, 0, true).part(0, 64));
    gateway.receives(other.clone().fragment(2, 64, false).part(64, 108));
    gateway.sends_nothing();
    gateway.receives(other.fragment(2, 0, true).part(0, 64));
    gateway.sends(v6(SERVER6, HOST).hops(63).udp(53, 4_001, &[2; 100]));
    gateway.receives(one.fragment(1, 64, false).part(64, 108));
    gateway.sends(v6(SERVER6, HOST).hops(63).udp(53, 4_001, &[1; 100]));
}

#[test]
fn a_fragmented_packet_that_is_refused_takes_all_its_fragments_along() {
    let mut gateway = gateway();
    let (address, port) = bound(&mut gateway);
    gateway.counted_before();
    for part in fragments(&v4(SERVER, &address).udp(53, port ^ 1, &[7; 200]), 64, 208) {
        gateway.receives(part);
    }
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21]), (3, 1));
    gateway.counted([("NoBinding", 4), ("fragments.reassembled", 1), ("icmp_errors.made", 1)]);
}

#[test]
fn packets_too_big_are_answered_in_both_directions() {
    let mut gateway = gateway_with(|_, engine| engine.limits = Limits { mtu4: 1_400, mtu6: 1_500 });
    let (address, port) = bound(&mut gateway);
    gateway.receives(v6(HOST, SERVER6).udp(4_001, 53, &[0; 1_372]));
    assert_eq!(gateway.sent().len(), 1_400);
    let packet = v6(HOST, SERVER6).udp(4_001, 53, &[0; 1_373]).octets();
    gateway.receives(packet.clone());
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41], &sent[44..48]), (2, 0, &1_420u32.to_be_bytes()[..]));
    assert_eq!(sent[48..], packet[..1_232], "with the ports that the host knows");
    let packet = v4(SERVER, &address).udp(53, port, &[0; 1_453]).octets();
    gateway.receives(packet.clone());
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21], &sent[26..28]), (3, 4, &1_480u16.to_be_bytes()[..]));
    assert_eq!(sent[28..], packet[..548], "with the ports that the server knows");
}

#[test]
fn a_packet_without_df_is_cut_for_ipv6() {
    let mut gateway = gateway();
    let (address, port) = bound(&mut gateway);
    gateway.receives(v4(SERVER, &address).may_fragment().identification(9).udp(53, port, &[7; 1_400]));
    assert_eq!(gateway.waiting(), 2);
    assert_eq!(carried(&mut gateway), v6(SERVER6, HOST).udp(53, 4_001, &[7; 1_400]).octets()[40..]);
}

#[test]
fn gso_packets_pass_whole_and_count_their_segments() {
    let segments = Some(Segments { size: 1_220, kind: SegmentKind::Udp });
    let offload = Offload { segments, ..Offload::default() };
    let mut gateway = gateway();
    gateway.receives_with(v6(HOST, SERVER6).udp(4_001, 53, &[7; 12_200]), offload);
    let (sent, described) = gateway.sent_with();
    let (address, port) = outside(&sent);
    assert_eq!(sent[20..], v4(&address, SERVER).udp(port, 53, &[7; 12_200]).octets()[20..]);
    assert_eq!(described.segments, segments);
    assert_eq!(gateway.engine.counters().packets, 10);
    gateway.receives_with(v4(SERVER, &address).udp(53, port, &[7; 12_200]), offload);
    gateway.sends(v6(SERVER6, HOST).hops(63).udp(53, 4_001, &[7; 12_200]));
    assert_eq!(gateway.engine.counters().packets, 20);
}

#[test]
fn the_mss_of_a_syn_is_lowered_both_ways() {
    let mut gateway = gateway_with(|nat64, _| nat64.policy.clamp_mss = true);
    gateway.receives(v6(HOST, SERVER6).tcp_with(4_001, 80, SYN, &[2, 4, 0x05, 0xb4], b""));
    let sent = gateway.sent();
    let (address, port) = outside(&sent);
    assert_eq!(sent[40..44], [2, 4, 0x05, 0xa0], "1,440");
    assert!(checksum_is_right(&sent));
    gateway.receives(v4(SERVER, &address).tcp_with(80, port, SYN | ACK, &[2, 4, 0x05, 0xb4], b""));
    gateway.sends(v6(SERVER6, HOST).hops(63).tcp_with(80, 4_001, SYN | ACK, &[2, 4, 0x05, 0xa0], b""));
}

#[test]
fn a_packet_without_udp_checksum_is_dropped_if_the_policy_says_so() {
    let mut gateway = gateway_with(|nat64, _| nat64.policy.udp_zero_checksum = UdpZeroChecksum::Drop);
    let (address, port) = bound(&mut gateway);
    gateway.receives(v4(SERVER, &address).udp(53, port, b"answer").without_checksum());
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::UdpChecksumZero));
    gateway.receives(v4(SERVER, &address).udp(53, port, b"answer"));
    assert_eq!(gateway.last, Verdict::Forward);
}

#[test]
fn the_octets_of_service_follow_the_policy() {
    let mut gateway = gateway_with(|nat64, _| {
        nat64.policy.traffic_class = HeaderByte::Set(0);
        nat64.policy.tos = HeaderByte::Set(0x2e);
    });
    gateway.receives(v6(HOST, SERVER6).tos(0xff).udp(4_001, 53, b"question"));
    let sent = gateway.sent();
    let (address, port) = outside(&sent);
    assert_eq!(sent[1], 0x2e);
    gateway.receives(v4(SERVER, &address).tos(0xff).udp(53, port, b"answer"));
    gateway.sends(v6(SERVER6, HOST).hops(63).udp(53, 4_001, b"answer"));
}

#[test]
fn options_and_extension_headers_are_left_behind_and_routes_refused() {
    let mut gateway = gateway();
    let (address, port) = bound(&mut gateway);
    let padding = [0, 0, 1, 4, 0, 0, 0, 0];
    gateway
        .receives(v6(HOST, SERVER6).extension(0, &padding).extension(60, &padding).udp(4_001, 53, b"more"));
    let sent = gateway.sent();
    assert_eq!(sent[20..], v4(&address, SERVER).udp(port, 53, b"more").octets()[20..]);
    gateway.receives(v4(SERVER, &address).options(&[148, 4, 0, 0]).udp(53, port, b"answer"));
    gateway.sends(v6(SERVER6, HOST).hops(63).udp(53, 4_001, b"answer"));
    let route = [0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    gateway.receives(v6(HOST, SERVER6).extension(43, &route).udp(4_001, 53, b"more"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::RoutingHeader));
    gateway.receives(v4(SERVER, &address).options(&[131, 7, 4, 192, 0, 2, 9, 0]).udp(53, port, b"answer"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::SourceRoute));
}

#[test]
fn a_hop_limit_that_runs_out_makes_no_binding() {
    let mut gateway = gateway();
    let packet = v6(HOST, SERVER6).hops(1).udp(4_001, 53, b"question").octets();
    gateway.receives(packet.clone());
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41], &sent[48..]), (3, 0, &packet[..]));
    gateway.counted([("HopLimitExceeded", 1), ("icmp_errors.made", 1)]);
}

#[test]
fn a_padded_packet_is_sent_without_its_padding() {
    let mut gateway = gateway();
    let (address, port) = bound(&mut gateway);
    gateway.receives([v4(SERVER, &address).udp(53, port, b"answer").octets(), vec![0; 10]].concat());
    gateway.sends(v6(SERVER6, HOST).hops(63).udp(53, 4_001, b"answer"));
}

#[test]
fn a_prefix_of_any_length_reaches_the_ipv4_internet() {
    for (prefix, server) in [
        ("2001:db8::/32", "2001:db8:cb00:7102::"),
        ("2001:db8:100::/40", "2001:db8:1cb:71:2::"),
        ("2001:db8:122::/48", "2001:db8:122:cb00:71:200::"),
        ("2001:db8:122:300::/56", "2001:db8:122:3cb:0:7102::"),
        ("2001:db8:122:344::/64", "2001:db8:122:344:cb:71:200::"),
    ] {
        let host = "2001:db9::1";
        let mut gateway = gateway_with(|nat64, _| {
            nat64.prefix = Rfc6052::new(prefix.parse().unwrap(), false).unwrap();
        });
        gateway.receives(v6(host, server).udp(4_001, 53, b"question"));
        let (address, port) = outside(&gateway.sent());
        gateway.receives(v4(SERVER, &address).udp(53, port, b"answer"));
        gateway.sends(v6(server, host).hops(63).udp(53, 4_001, b"answer"));
        let quote = v4(&address, SERVER).udp(port, 53, b"question").octets();
        gateway.receives(v4(SERVER, &address).icmp(icmp4(3, 3, [0; 4], &quote)));
        assert_eq!(gateway.sent()[8..24], v6(server, host).octets()[8..24]);
    }
}

#[test]
fn two_nat64s_have_their_own_prefixes_pools_and_state() {
    let mut gateway = support::gateway(|config| {
        for (prefix, pool) in [("64:ff9b::/96", "192.0.2.0/30"), ("2001:db8:64::/96", "198.51.100.0/30")] {
            let mut nat64 = support::nat64();
            nat64.prefix = Rfc6052::new(prefix.parse().unwrap(), true).unwrap();
            nat64.pool = PoolConfig { addresses: vec![pool.parse().unwrap()], ports: vec![1_024..=65_535] };
            config.nat64.push(nat64);
        }
    });
    for (server, pool) in [(SERVER6, "192.0.2."), ("2001:db8:64::203.0.113.2", "198.51.100.")] {
        gateway.receives(v6(HOST, server).udp(4_001, 53, b"question"));
        let (address, port) = outside(&gateway.sent());
        assert!(address.starts_with(pool));
        gateway.receives(v4(SERVER, &address).udp(53, port, b"answer"));
        gateway.sends(v6(server, HOST).hops(63).udp(53, 4_001, b"answer"));
    }
    assert!(gateway.engine.nat64().iter().all(|nat64| nat64.occupancy().sessions == 1));
}

#[test]
fn a_pool_of_many_prefixes_and_ranges_is_used_up_to_its_last_port() {
    let ports = [2_000..=2_001, 3_000..=3_001];
    let mut gateway = gateway_with(|nat64, _| {
        let addresses = ["192.0.2.1/32", "198.51.100.4/31"].map(|prefix| prefix.parse().unwrap()).to_vec();
        nat64.pool = PoolConfig { addresses, ports: ports.to_vec() };
    });
    let mut seen = std::collections::HashSet::from([]);
    for host in 1..=12 {
        gateway.receives(v6(&format!("2001:db8:1::{host:x}"), SERVER6).udp(4_001, 53, b"question"));
        assert!(seen.insert(outside(&gateway.sent())));
    }
    assert!(seen.iter().all(|(_, port)| ports.iter().any(|range| range.contains(port))));
    gateway.receives(v6("2001:db8:1::ff", SERVER6).udp(4_001, 53, b"question"));
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41]), (1, 3));
    // UDP's ports are not TCP's.
    gateway.receives(v6("2001:db8:1::ff", SERVER6).tcp(4_001, 80, SYN, b""));
    assert_eq!(gateway.last, Verdict::Forward);
}

#[test]
fn sessions_and_bindings_that_end_are_counted_and_their_ports_are_free_again() {
    let mut gateway = gateway_with(|nat64, _| {
        nat64.pool =
            PoolConfig { addresses: vec!["192.0.2.1/32".parse().unwrap()], ports: vec![2_001..=2_001] };
    });
    for host in ["2001:db8:1::1", "2001:db8:1::2"] {
        gateway.receives(v6(host, SERVER6).udp(4_001, 53, b"question"));
        assert_eq!(outside(&gateway.sent()), ("192.0.2.1".to_owned(), 2_001));
        for _ in 0..UDP_DEFAULT.as_secs() + 3 {
            gateway.waits(Duration::from_secs(1));
        }
        gateway.counted([
            ("nat64.v6_to_v4", 1),
            ("nat.bindings.made", 1),
            ("nat.sessions.made", 1),
            ("nat.bindings.ended", 1),
            ("nat.sessions.ended", 1),
        ]);
    }
}

#[test]
fn full_tables_tell_either_side() {
    let mut gateway = gateway_with(|nat64, _| nat64.limits.sessions = 1);
    let (address, port) = bound(&mut gateway);
    gateway.receives(v6(HOST, "64:ff9b::203.0.113.3").udp(4_001, 53, b"question"));
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41]), (1, 3));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::SessionTableFull));
    gateway.receives(v4("203.0.113.3", &address).udp(53, port, b"hello"));
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21]), (3, 1));
    gateway.receives(v4(SERVER, &address).udp(53, port, b"answer"));
    assert_eq!(gateway.last, Verdict::Forward, "who has a session is served");
}

#[test]
fn embedded_addresses_that_are_not_hosts_are_refused() {
    for server in ["64:ff9b::127.0.0.1", "64:ff9b::224.0.0.1", "64:ff9b::255.255.255.255", "64:ff9b::0.0.0.1"]
    {
        let mut gateway = gateway();
        gateway.receives(v6(HOST, server).udp(4_001, 53, b"question"));
        gateway.sends_nothing();
        gateway.counted([("MartianDestination", 1)]);
    }
}

#[test]
fn only_hosts_inside_create_sessions() {
    let inside = ["2001:db8:1::/48", "2001:db8:ffff::/48"].map(|prefix| prefix.parse().unwrap());
    let mut gateway = gateway_with(|nat64, _| nat64.inside = inside.into());
    let (address, port) = bound(&mut gateway);
    // From beyond, by UDP, TCP and ICMP: no session, and no answer, which a forged source would get.
    for packet in [
        v6("2001:db8:2::1", "64:ff9b::203.0.113.2").udp(4_001, 53, b"question"),
        v6("2002:c000:204::1", "64:ff9b::203.0.113.2").udp(4_001, 53, b"question"),
    ] {
        gateway.receives(packet);
        gateway.sends_nothing();
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::SourceNotInside));
    }
    // Hosts inside are not affected.
    gateway.receives(v4(SERVER, &address).udp(53, port, b"answer"));
    assert_eq!(gateway.last, Verdict::Forward);
    gateway.receives(v6("2001:db8:ffff::1", "64:ff9b::203.0.113.2").udp(4_001, 53, b"question"));
    assert_eq!(gateway.last, Verdict::Forward);
    assert_eq!(gateway.engine.nat64()[0].occupancy().sessions, 2);
}

/// Services of this host that listen at its private addresses are not reachable through the prefix.
#[test]
fn this_hosts_own_addresses_are_no_destinations_unless_they_are_allowed() {
    let (own, allowed, other) = ("10.0.0.1", "10.0.0.2", "10.0.0.3");
    let prefix = Rfc6052::new("64:ff9b:1::/96".parse().unwrap(), false).unwrap();
    let image = |address: &str| prefix.embed_any(address.parse().unwrap()).to_string();
    let mut gateway = gateway_with(|nat64, engine| {
        nat64.prefix = prefix;
        nat64.allow_own = vec!["10.0.0.2/32".parse().unwrap()];
        // The pool has one address, which is this host's own: a shared one.
        nat64.pool =
            PoolConfig { addresses: vec!["192.0.2.1/32".parse().unwrap()], ports: vec![2_000..=2_999] };
        engine.host4 = [allowed, own, "192.0.2.1"].map(|address| address.parse().unwrap()).into();
    });
    let opens = |gateway: &mut Gateway, address: &str, port| {
        gateway.receives(v6(HOST, &image(address)).udp(port, 53, b"question"));
        gateway.last == Verdict::Forward
    };
    assert!(!opens(&mut gateway, own, 4_001));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::DestinationIsHost));
    gateway.receives(v6(HOST, &image(own)).tcp(4_001, 22, SYN, &[]));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::DestinationIsHost));
    assert!(opens(&mut gateway, allowed, 4_002) && opens(&mut gateway, other, 4_003));
    // A hairpin through the shared address reaches the binding of another host.
    let _ = carried(&mut gateway);
    gateway.receives(v6("2001:db8:1::2", &image(other)).udp(5_000, 53, b"question"));
    let (address, port) = outside(&gateway.sent());
    gateway.receives(v6(HOST, &image(&address)).udp(4_004, port, b"hello"));
    assert_eq!(gateway.last, Verdict::Forward);
    let _ = gateway.sent();
    // The host's addresses change while the engine runs.
    gateway.engine.set_tunnels(&[], &[other.parse().unwrap()], &[]);
    assert!(opens(&mut gateway, own, 4_005) && !opens(&mut gateway, other, 4_006));
}

#[test]
fn there_are_no_sessions_with_excluded_addresses() {
    let mut gateway = gateway_with(|nat64, _| nat64.excluded = vec!["203.0.113.128/25".parse().unwrap()]);
    gateway.receives(v6(HOST, "64:ff9b::203.0.113.129").udp(4_001, 53, b"question"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::ExcludedIpv4));
    let _ = gateway.sent();
    let (address, port) = bound(&mut gateway);
    gateway.receives(v4("203.0.113.129", &address).udp(53, port, b"unasked"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::ExcludedIpv4));
    let _ = gateway.sent();
    gateway.receives(v4("203.0.113.127", &address).udp(53, port, b"asked"));
    assert_eq!(gateway.last, Verdict::Forward);
}

#[test]
fn no_prefix_represents_link_local_addresses() {
    for prefix in ["64:ff9b::/96", "2001:db8:64::/96"] {
        let prefix = Rfc6052::new(prefix.parse().unwrap(), true).unwrap();
        let mut gateway = gateway_with(|nat64, _| nat64.prefix = prefix);
        let metadata = prefix.embed_any("169.254.169.254".parse().unwrap()).to_string();
        gateway.receives(v6(HOST, &metadata).tcp(4_001, 80, SYN, &[]));
        gateway.sends_nothing();
        gateway.counted([("LinkLocalIpv4", 1)]);
    }
}

#[test]
fn the_well_known_prefix_does_not_lead_into_private_networks() {
    let mut gateway = gateway_with(|nat64, _| {
        nat64.prefix = Rfc6052::new("64:ff9b::/96".parse().unwrap(), false).unwrap();
    });
    gateway.receives(v6(HOST, "64:ff9b::10.0.0.1").udp(4_001, 53, b"question"));
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41]), (1, 1));
    gateway.counted([("NonGlobalWithWellKnownPrefix", 1), ("icmp_errors.made", 1)]);
    gateway.receives(v6(HOST, "64:ff9b::8.8.8.8").udp(4_001, 53, b"question"));
    let (address, port) = outside(&gateway.sent());
    gateway.receives(v4("10.0.0.1", &address).udp(53, port, b"hello"));
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21]), (3, 13));
}

/// RFC 3168 §5.3: a mark on a fragment is the packet's if the packet's transport takes marks, and no mark is made of it otherwise.
#[test]
fn a_mark_on_a_fragment_does_not_make_a_packet_ecn_capable() {
    for (first, second, whole) in [(0, 3, 0), (0, 1, 0), (2, 3, 3), (1, 3, 3), (3, 2, 3), (2, 2, 2)] {
        let mut gateway = gateway();
        let (address, port) = bound(&mut gateway);
        let answer = v4(SERVER, &address).udp(53, port, &[7; 100]);
        gateway.receives(answer.clone().tos(first).fragment(9, 0, true).part(0, 48));
        gateway.receives(answer.tos(second).fragment(9, 48, false).part(48, 108));
        let sent = gateway.sent();
        assert_eq!(sent[0] << 4 | sent[1] >> 4, whole, "from outside {first} {second}");
        let question = v6(HOST, SERVER6).udp(4_001, 53, &[7; 100]);
        gateway.receives(question.clone().tos(first).fragment(9, 0, true).part(0, 48));
        gateway.receives(question.tos(second).fragment(9, 48, false).part(48, 108));
        assert_eq!(gateway.sent()[1], whole, "from inside {first} {second}");
    }
}

#[test]
fn a_pool_without_an_address_yet_has_no_port_for_anybody() {
    let mut gateway = crate::support::gateway(|config| {
        let mut one = crate::support::nat64();
        one.pool.addresses = Vec::new();
        config.nat64.push(one);
    });
    for port in 4_000..4_010 {
        gateway.receives(v6("2001:db8:1::1", "64:ff9b::203.0.113.1").udp(port, 53, b"question"));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::PortPoolEmpty));
        let error = gateway.sent();
        assert_eq!((error[40], error[41]), (1, 3));
    }
    gateway.waits(Duration::from_secs(5));
    gateway.receives(v4("203.0.113.1", "192.0.2.1").udp(53, 4_000, b"answer"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoMechanism));
}
