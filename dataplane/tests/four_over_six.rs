//! Public 4over6 (RFC 7040): a concentrator with bindings, and a host's end with one leased address.

use crate::support;
use crate::support::{Build, Gateway, checksum_is_right, hex, icmp6, v4, v6};
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::four_over_six::{
    Binding, BindingFault, ConcentratorConfig, FourOverSixConfig, HostEndConfig, Role,
};
use sixway_dataplane::mechanism::ip_in_ip::IpInIpConfig;
use sixway_dataplane::tunnel::{TunnelMtu, TunnelPolicy};
use sixway_dataplane::{DropReason, Verdict};
use std::time::Duration;

/// Two addresses of the concentrator.
const HUB: &str = "2001:db8:c::1";
const HUB2: &str = "2001:db8:c::2";
/// Two hosts with a lease, and one without.
const A6: &str = "2001:db8:a::1";
const B6: &str = "2001:db8:b::1";
const STRANGER6: &str = "2001:db8:d::1";
const A4: &str = "192.0.2.17";
const B4: &str = "192.0.2.18";
/// A server in the IPv4 internet.
const SERVER: &str = "198.51.100.7";

fn policy() -> TunnelPolicy {
    TunnelPolicy { mtu: TunnelMtu::Dynamic, clamp_mss: false, ..TunnelPolicy::default() }
}

fn binding(ipv4: &str, host: &str, local: u8) -> Binding {
    Binding { ipv4: ipv4.parse().unwrap(), host: host.parse().unwrap(), local }
}

fn concentrator(max_bindings: u32) -> FourOverSixConfig {
    let role = Role::Concentrator(ConcentratorConfig {
        addresses: vec![HUB.parse().unwrap(), HUB2.parse().unwrap()],
        lent: vec!["192.0.2.16/28".parse().unwrap()],
        max_bindings,
        client_bits: 56,
        bindings: vec![binding("192.0.2.17/32", A6, 0), binding("192.0.2.18/32", B6, 1)],
    });
    FourOverSixConfig { role, policy: policy() }
}

fn hub() -> Gateway {
    support::gateway(|config| config.others.push(concentrator(100).into()))
}

fn host_end(lease: Option<&str>) -> FourOverSixConfig {
    let role = Role::Host(HostEndConfig {
        local: A6.parse().unwrap(),
        concentrator: HUB.parse().unwrap(),
        prefixes: vec!["0.0.0.0/0".parse().unwrap()],
        lease: lease.map(|lease| lease.parse().unwrap()),
    });
    FourOverSixConfig { role, policy: policy() }
}

fn host(lease: Option<&str>) -> Gateway {
    support::tunnelling(TunnelConfig::FourOverSix(host_end(lease)))
}

/// IPv4 in an outer IPv6 header as our tunnels write it.
fn in_ipv6(source: &str, destination: &str, inner: impl Into<Vec<u8>>) -> Build {
    v6(source, destination).extension(60, &[0, 0, 4, 1, 4, 1, 1, 0]).protocol(4, &inner.into(), None)
}

fn datagram(source: &str, destination: &str) -> Build {
    v4(source, destination).udp(53, 4_000, b"data")
}

#[test]
fn packets_to_a_leased_address_go_to_the_host_that_has_it_and_its_packets_come_out() {
    let mut gateway = hub();
    gateway.receives(datagram(SERVER, A4).hops(1));
    gateway.sends(in_ipv6(HUB, A6, datagram(SERVER, A4).hops(1)));
    gateway.counted([("four_over_six.encap", 1)]);
    // As ours write it, and without the option, as others do.
    for outer in [
        in_ipv6(A6, HUB, datagram(A4, SERVER)),
        v6(A6, HUB).protocol(4, &datagram(A4, SERVER).octets(), None),
    ] {
        gateway.receives(outer);
        gateway.sends(datagram(A4, SERVER));
    }
    gateway.counted([("four_over_six.decap", 2)]);
}

#[test]
fn an_inner_source_that_is_not_the_lease_of_the_outer_source_is_dropped_silently() {
    // RFC 7040 §6.
    let mut gateway = hub();
    for inner in [B4, "192.0.2.19", "10.0.0.1", SERVER] {
        gateway.refuses(in_ipv6(A6, HUB, datagram(inner, SERVER)), DropReason::SourceNotLeased);
    }
    gateway.refuses(in_ipv6(STRANGER6, HUB, datagram(A4, SERVER)), DropReason::SourceNotLeased);
    let quote = datagram(SERVER, A4).octets();
    let error = |source| v4(source, SERVER).icmp(support::icmp4(3, 1, [0; 4], &quote));
    gateway.refuses(in_ipv6(A6, HUB, error("10.0.0.1")), DropReason::SourceNotLeased);
    gateway.refuses(in_ipv6(A6, HUB, error("127.0.0.1")), DropReason::MartianSource);
    gateway.receives(in_ipv6(A6, HUB, error(A4)));
    gateway.sends(error(A4));
}

#[test]
fn ipv6_in_a_tunnel_of_4over6_is_refused() {
    let mut gateway = hub();
    let inner = v6("2001:db8:1::1", "2001:db8:2::1").udp(1, 2, b"data");
    gateway.refuses(v6(A6, HUB).protocol(41, &inner.octets(), None), DropReason::NoTunnel);
}

#[test]
fn the_sender_of_a_packet_to_an_address_that_nobody_has_is_told() {
    let mut gateway = hub();
    gateway.receives(datagram(SERVER, "192.0.2.19"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoLease));
    assert_eq!(gateway.sent()[20..22], [3, 1]);
}

#[test]
fn bindings_come_and_go_at_run_time_and_the_table_is_bounded() {
    let mut gateway = support::gateway(|config| config.others.push(concentrator(3).into()));
    let [it] = gateway.engine.four_over_six() else { panic!("one") };
    assert_eq!(
        it.bind(binding("192.0.2.17/32", STRANGER6, 0)),
        Err(BindingFault::Taken(A6.parse().unwrap()))
    );
    it.bind(binding("192.0.2.19/32", STRANGER6, 0)).unwrap();
    assert_eq!(it.bind(binding("192.0.2.20/32", STRANGER6, 0)), Err(BindingFault::Full));
    gateway.receives(datagram(SERVER, "192.0.2.19"));
    gateway.sends(in_ipv6(HUB, STRANGER6, datagram(SERVER, "192.0.2.19")));
    let [it] = gateway.engine.four_over_six() else { panic!("one") };
    assert!(it.unbind("192.0.2.19/32".parse().unwrap()) && !it.unbind("192.0.2.19/32".parse().unwrap()));
    // The address goes to another host: the former one cannot send with it any more.
    it.bind(binding("192.0.2.19/32", B6, 0)).unwrap();
    gateway.counted_before();
    gateway.refuses(in_ipv6(STRANGER6, HUB, datagram("192.0.2.19", SERVER)), DropReason::SourceNotLeased);
    gateway.receives(in_ipv6(B6, HUB, datagram("192.0.2.19", SERVER)));
    gateway.sends(datagram("192.0.2.19", SERVER));
}

#[test]
fn a_change_of_other_tunnels_keeps_the_bindings() {
    let mut gateway = hub();
    gateway.engine.four_over_six()[0].bind(binding("192.0.2.19/32", STRANGER6, 0)).unwrap();
    gateway.engine.set_tunnels(&[TunnelConfig::Configured(support::configured())], &[], &[]);
    gateway.receives(datagram(SERVER, "192.0.2.19"));
    gateway.sends(in_ipv6(HUB, STRANGER6, datagram(SERVER, "192.0.2.19")));
}

#[test]
fn each_host_is_answered_from_the_concentrator_address_of_its_binding_and_may_send_to_any() {
    let mut gateway = hub();
    gateway.receives(datagram(SERVER, B4));
    gateway.sends(in_ipv6(HUB2, B6, datagram(SERVER, B4)));
    for address in [HUB, HUB2] {
        gateway.receives(in_ipv6(B6, address, datagram(B4, SERVER)));
        gateway.sends(datagram(B4, SERVER));
        gateway.receives(v6(A6, address).echo(1, 2, b"ping"));
        gateway.sends(v6(address, A6).echo_reply(1, 2, b"ping"));
    }
}

#[test]
fn packets_between_two_hosts_come_out_and_go_in_again() {
    // The kernel routes what comes out back into the device, and decrements the TTL.
    let mut gateway = hub();
    gateway.receives(in_ipv6(A6, HUB, datagram(A4, B4)));
    let out = gateway.sent();
    assert_eq!(hex(&out), hex(&datagram(A4, B4).octets()));
    gateway.receives(out);
    gateway.sends(in_ipv6(HUB2, B6, datagram(A4, B4)));
}

#[test]
fn a_tunnel_of_ip_in_ip_with_exactly_these_ends_has_precedence() {
    let exact = IpInIpConfig {
        local: HUB.parse().unwrap(),
        remote: STRANGER6.parse().ok(),
        prefixes4: vec!["10.7.0.0/16".parse().unwrap()],
        prefixes6: Vec::new(),
        strict_sources: true,
        policy: policy(),
    };
    let mut gateway = support::gateway(|config| {
        config.others.push(concentrator(100).into());
        config.others.push(exact.into());
    });
    gateway.receives(in_ipv6(STRANGER6, HUB, datagram("10.7.0.1", SERVER)));
    gateway.sends(datagram("10.7.0.1", SERVER));
    gateway.receives(in_ipv6(A6, HUB, datagram(A4, SERVER)));
    gateway.sends(datagram(A4, SERVER));
    gateway.counted([("ip_in_ip.decap", 1), ("four_over_six.decap", 1)]);
}

#[test]
fn a_binding_of_a_prefix_lends_every_address_of_it() {
    let mut gateway = hub();
    gateway.engine.four_over_six()[0].bind(binding("192.0.2.24/29", STRANGER6, 0)).unwrap();
    for address in ["192.0.2.24", "192.0.2.31"] {
        gateway.receives(datagram(SERVER, address));
        gateway.sends(in_ipv6(HUB, STRANGER6, datagram(SERVER, address)));
        gateway.receives(in_ipv6(STRANGER6, HUB, datagram(address, SERVER)));
        gateway.sends(datagram(address, SERVER));
    }
}

/// An ICMPv6 error from a router between the ends.
fn error6(kind: u8, code: u8, rest: u32, outer: &Build) -> Build {
    let octets = outer.octets();
    let quote = &octets[..octets.len().min(1_232)];
    v6("2001:db8:ff::1", HUB).icmp(icmp6(kind, code, rest.to_be_bytes(), quote))
}

fn large(source: &str, destination: &str, octets: usize) -> Build {
    v4(source, destination).udp(53, 4_000, &vec![7; octets - 28])
}

#[test]
fn the_path_mtu_to_a_host_is_learnt_and_its_senders_are_told() {
    let mut gateway = hub();
    let inner = large(SERVER, A4, 1_400);
    gateway.receives(error6(2, 0, 1_380, &in_ipv6(HUB, A6, inner.clone())));
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21], u16::from_be_bytes([sent[26], sent[27]])), (3, 4, 1_332));
    assert_eq!(hex(&sent[28..]), hex(&inner.octets()[..sent.len() - 28]));
    assert!(checksum_is_right(&sent));
    gateway.counted([("tunnels.path_mtus.learned", 1), ("tunnels.errors_relayed", 1), ("answered", 1)]);
    gateway.receives(large(SERVER, A4, 1_333));
    assert_eq!((gateway.last, gateway.sent()[20]), (Verdict::Dropped(DropReason::PacketTooBig), 3));
    // Without DF the outer packet is cut (RFC 6333 §6.3), and the other host's path is as it was.
    gateway.receives(large(SERVER, A4, 1_400).may_fragment());
    let (first, second) = (gateway.sent(), gateway.sent());
    assert_eq!((first[6], second[6]), (44, 44));
    assert!(first.len() <= 1_380 && second.len() <= 1_380);
    gateway.receives(large(SERVER, B4, 1_400));
    assert_eq!(gateway.sent().len(), 1_448);
}

#[test]
fn other_errors_about_the_tunnel_are_relayed_to_the_sender() {
    let mut gateway = hub();
    for (kind, code, rest) in [(1, 0, 0), (3, 0, 0), (4, 0, 44)] {
        gateway.receives(error6(kind, code, rest, &in_ipv6(HUB, A6, datagram(SERVER, A4))));
        let sent = gateway.sent();
        assert_eq!((sent[20], sent[21], &sent[16..20]), (3, 1, &[198, 51, 100, 7][..]));
    }
}

#[test]
fn errors_about_packets_that_were_not_sent_to_a_host_teach_nothing() {
    let mut gateway = hub();
    let stranger = in_ipv6(HUB, STRANGER6, large(SERVER, A4, 1_400));
    let anothers = in_ipv6(HUB, A6, large(SERVER, B4, 1_400));
    let nobodys = in_ipv6(HUB, A6, large(SERVER, "203.0.113.1", 1_400));
    let not_ours = in_ipv6("2001:db8:e::1", A6, large(SERVER, A4, 1_400));
    for forged in [stranger, anothers, nobodys, not_ours] {
        gateway.refuses(error6(2, 0, 1_280, &forged), DropReason::ErrorNotForTunnel);
        gateway.counted_before();
    }
    // So little is quoted that nothing shows whose packet it was.
    let outer = in_ipv6(HUB, A6, large(SERVER, A4, 1_400)).octets();
    let short = v6("2001:db8:ff::1", HUB).icmp(icmp6(2, 0, 1_280_u32.to_be_bytes(), &outer[..52]));
    gateway.refuses(short, DropReason::ErrorNotForTunnel);
    gateway.receives(large(SERVER, A4, 1_400));
    assert_eq!(gateway.sent().len(), 1_448);
}

#[test]
fn fragments_of_tunnel_packets_are_held_only_from_hosts_with_a_binding() {
    let mut gateway = hub();
    let whole = v6(A6, HUB).protocol(4, &large(A4, SERVER, 1_480).octets(), None).octets();
    let payload = &whole[40..];
    let part = |source: &str, from: usize, to: usize| {
        v6(source, HUB).fragment(9, from as u16, to < payload.len()).protocol(4, &payload[from..to], None)
    };
    let (first, second) = (part(A6, 0, 800), part(A6, 800, payload.len()));
    gateway.receives(first);
    assert_eq!(gateway.last, Verdict::Held);
    gateway.receives(second);
    gateway.sends(large(A4, SERVER, 1_480));
    gateway.counted_before();
    gateway.refuses(part(STRANGER6, 0, 800), DropReason::NoTunnel);
}

#[test]
fn inner_fragments_pass_both_ways_as_they_are() {
    let mut gateway = hub();
    for (offset, more) in [(0, true), (8, false)] {
        let piece = |source: &str, destination: &str| {
            v4(source, destination).fragment(7, offset, more).protocol(17, &[1; 8], None)
        };
        gateway.receives(piece(SERVER, A4));
        gateway.sends(in_ipv6(HUB, A6, piece(SERVER, A4)));
        gateway.receives(in_ipv6(A6, HUB, piece(A4, SERVER)));
        gateway.sends(piece(A4, SERVER));
    }
}

/// Sends `count` packets of host B, each in two fragments. Number of packets that were lost.
fn lost_of_fragmented(gateway: &mut Gateway, count: u32) -> usize {
    let whole = v6(B6, HUB).protocol(4, &large(B4, SERVER, 1_480).octets(), None).octets();
    let payload = &whole[40..];
    let mut lost = 0;
    for identification in 0..count {
        for (from, to) in [(0, 800), (800, payload.len())] {
            let part = v6(B6, HUB).fragment(identification, from as u16, to < payload.len());
            gateway.receives(part.protocol(4, &payload[from..to], None));
        }
        lost += usize::from(gateway.waiting() == 0);
        while gateway.waiting() > 0 {
            gateway.sent();
        }
    }
    lost
}

#[test]
fn a_host_that_floods_with_fragments_takes_nothing_from_another_host() {
    let mut gateway = hub();
    for identification in 0..20_000_u32 {
        let part = v6(A6, HUB).fragment(identification, 0, true).protocol(4, &[7; 1_200], None);
        gateway.receives(part);
    }
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::FragmentShare));
    assert_eq!(lost_of_fragmented(&mut gateway, 200), 0);
}

#[test]
fn while_one_client_fills_the_reassembly_table_another_clients_fragments_lose_nothing() {
    let mut gateway = hub();
    // Four leases of one client, each in a /64 of its own.
    let hosts: Vec<String> = (0..4).map(|n| format!("2001:db8:a:{n:x}::9")).collect();
    for (n, host) in hosts.iter().enumerate() {
        let leased = binding(&format!("192.0.2.{}/32", 20 + n), host, 0);
        gateway.engine.four_over_six()[0].bind(leased).unwrap();
    }
    // Packets that never become complete: large ones, and then ones of a single fragment for what the last large one left.
    let sizes = [1_400, 704, 200, 8].into_iter().flat_map(|size| [(1, size); 28]);
    let packets = std::iter::repeat_n((43, 1_400), 144).chain(sizes);
    let mut refused = 0;
    for (n, (pieces, size)) in packets.enumerate() {
        for piece in 0..pieces {
            let part = v6(&hosts[n % 4], HUB).fragment(n as u32, piece * 1_400, true);
            gateway.receives(part.protocol(4, &vec![7; size], None));
            refused += u32::from(gateway.last == Verdict::Dropped(DropReason::FragmentShare));
        }
    }
    assert!(refused > 0, "the client sends more than it has room for");
    assert_eq!(lost_of_fragmented(&mut gateway, 200), 0);
}

#[test]
fn a_host_without_a_lease_gives_packets_of_both_directions_to_control() {
    let mut gateway = host(None);
    gateway.receives(datagram(A4, SERVER));
    assert_eq!(gateway.last, Verdict::Control);
    gateway.sends_nothing();
    gateway.receives(in_ipv6(HUB, A6, datagram(SERVER, A4)));
    assert_eq!(gateway.last, Verdict::Control);
    gateway.sends_nothing();
    gateway.counted_before();
    gateway.refuses(in_ipv6(STRANGER6, A6, datagram(SERVER, A4)), DropReason::NoTunnel);
}

#[test]
fn forged_packets_of_the_concentrator_occupy_control_four_times_a_second_at_most() {
    let mut gateway = host(None);
    let mut calls = 0;
    for _packet in 0..1_000 {
        gateway.receives(in_ipv6(HUB, A6, datagram(SERVER, A4)));
        calls += u32::from(gateway.last == Verdict::Control);
        gateway.sends_nothing();
    }
    assert_eq!(calls, 4);
    // The host's own packets, which wait for the lease, are not among them.
    gateway.receives(datagram(A4, SERVER));
    assert_eq!(gateway.last, Verdict::Control);
    gateway.waits(Duration::from_secs(1));
    gateway.receives(in_ipv6(HUB, A6, datagram(SERVER, A4)));
    assert_eq!(gateway.last, Verdict::Control);
}

/// Control has other work, such as the answers to a Teredo client.
#[test]
fn a_flood_of_a_local_program_without_a_lease_occupies_control_64_times_a_second_at_most() {
    let mut gateway = host(None);
    let flood = |gateway: &mut Gateway| {
        let mut calls = 0;
        for _packet in 0..1_000 {
            gateway.receives(datagram(A4, SERVER));
            calls += u32::from(gateway.last == Verdict::Control);
            gateway.sends_nothing();
        }
        calls
    };
    assert_eq!(flood(&mut gateway), 64);
    // What comes through the tunnel still calls for a lease.
    gateway.receives(in_ipv6(HUB, A6, datagram(SERVER, A4)));
    assert_eq!(gateway.last, Verdict::Control);
    gateway.waits(Duration::from_secs(1));
    assert_eq!(flood(&mut gateway), 64);
}

#[test]
fn a_host_with_a_lease_sends_and_receives_with_it_alone() {
    let mut gateway = host(Some("192.0.2.17/32"));
    gateway.receives(datagram(A4, SERVER));
    gateway.sends(in_ipv6(A6, HUB, datagram(A4, SERVER)));
    gateway.refuses(datagram("192.0.2.18", SERVER), DropReason::SourceNotLeased);
    gateway.receives(in_ipv6(HUB, A6, datagram(SERVER, A4)));
    gateway.sends(datagram(SERVER, A4));
    gateway.counted_before();
    gateway.refuses(in_ipv6(HUB, A6, datagram(SERVER, B4)), DropReason::DestinationNotInSite);
    gateway.counted_before();
    gateway.refuses(in_ipv6(HUB, A6, datagram(A4, A4)), DropReason::SourceNotInTunnel);
    gateway.counted_before();
    gateway.refuses(in_ipv6(STRANGER6, A6, datagram(SERVER, A4)), DropReason::NoTunnel);
}

#[test]
fn a_lease_comes_and_goes_with_a_change_of_the_tunnels() {
    let mut gateway = host(None);
    let set = |gateway: &mut Gateway, lease: Option<&str>| {
        gateway.engine.set_tunnels(&[TunnelConfig::FourOverSix(host_end(lease))], &[], &[]);
    };
    set(&mut gateway, Some("192.0.2.17/32"));
    gateway.receives(datagram(A4, SERVER));
    gateway.sends(in_ipv6(A6, HUB, datagram(A4, SERVER)));
    set(&mut gateway, None);
    gateway.receives(datagram(A4, SERVER));
    assert_eq!(gateway.last, Verdict::Control);
}

#[test]
fn a_tunnel_that_would_lead_to_the_concentrator_itself_is_a_loop() {
    let mut gateway = hub();
    gateway.engine.four_over_six()[0].bind(binding("192.0.2.19/32", HUB2, 0)).unwrap();
    gateway.refuses(datagram(SERVER, "192.0.2.19"), DropReason::TunnelLoop);
    gateway.counted_before();
    gateway.refuses(in_ipv6(HUB2, HUB, datagram("192.0.2.19", SERVER)), DropReason::TunnelLoop);
}

#[test]
fn tunnel_packets_cut_at_every_length_are_refused() {
    let mut gateway = hub();
    let whole = in_ipv6(A6, HUB, datagram(A4, SERVER)).octets();
    for length in 0..whole.len() {
        let mut cut = whole[..length].to_vec();
        if length >= 40 {
            cut[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
        }
        gateway.receives(cut);
        assert!(matches!(gateway.last, Verdict::Dropped(_)), "{length}: {:?}", gateway.last);
        while gateway.waiting() > 0 {
            gateway.sent();
        }
    }
}
