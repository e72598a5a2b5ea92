//! Stateful NAT64, clause by clause: everything but TCP's states (RFC 6146 §3.4 to §3.8, §5).

use crate::support;
use crate::support::{Build, Gateway, icmp4, icmp6, v4, v6};
use sixway_dataplane::mechanism::nat64::Nat64Config;
use sixway_dataplane::nat::StateLimits;
use sixway_dataplane::nat::{
    Filtering, ICMP_DEFAULT, Inside, NatProtocol, Outside, PoolConfig, StaticBinding, UDP_DEFAULT,
};
use sixway_dataplane::translate::Policy;
use sixway_dataplane::translate::address::Rfc6052;
use sixway_dataplane::{DropReason, Verdict};
use sixway_wire::{Endpoint4, Endpoint6};
use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::time::Duration;

const HOST: &str = "2001:db8:1::1";
const OTHER: &str = "2001:db8:1::2";
const SERVER: &str = "203.0.113.2";
const SERVER6: &str = "64:ff9b::203.0.113.2";
const STRANGER: &str = "203.0.113.99";
const SECOND: Duration = Duration::from_secs(1);

/// A gateway with one NAT64 that has 192.0.2.0/30 and what `edit` makes of it.
fn nat64(edit: impl FnOnce(&mut Nat64Config)) -> Gateway {
    support::gateway(|config| {
        let mut nat64 = Nat64Config {
            limits: StateLimits { sessions: 1_000, bindings: 1_000, ..StateLimits::default() },
            policy: Policy { clamp_mss: false, ..Policy::default() },
            ..Nat64Config::new(
                Rfc6052::new("64:ff9b::/96".parse().unwrap(), true).unwrap(),
                PoolConfig { addresses: vec!["192.0.2.0/30".parse().unwrap()], ports: vec![1..=65_535] },
            )
        };
        edit(&mut nat64);
        config.nat64.push(nat64);
    })
}

/// Address and source port (or echo identifier) of an IPv4 packet that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OutsideEndpoint {
    address: String,
    port: u16,
}

fn seen(packet: &[u8]) -> OutsideEndpoint {
    let port_at = if packet[9] == 1 { 24 } else { 20 };
    OutsideEndpoint {
        address: Ipv4Addr::new(packet[12], packet[13], packet[14], packet[15]).to_string(),
        port: u16::from_be_bytes([packet[port_at], packet[port_at + 1]]),
    }
}

/// A UDP packet from inside; how the outside sees its source.
fn outbound(gateway: &mut Gateway, host: &str, port: u16, server: &str) -> OutsideEndpoint {
    gateway.receives(v6(host, server).udp(port, 53, b"question"));
    seen(&gateway.sent())
}

/// Lets time pass as a gateway would, tick by tick.
fn wait(gateway: &mut Gateway, time: Duration) {
    for _ in 0..time.as_secs() {
        gateway.waits(SECOND);
    }
}

fn refusal(gateway: &Gateway) -> DropReason {
    match gateway.last {
        Verdict::Dropped(reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn udp_crosses_and_its_answer_comes_back() {
    let mut gateway = nat64(|_| {});
    gateway.receives(v6(HOST, SERVER6).tos(0x2e).udp(4_001, 53, b"question"));
    let sent = gateway.sent();
    let outside = seen(&sent);
    let identification = u32::from(u16::from_be_bytes([sent[4], sent[5]]));
    let expected =
        v4(&outside.address, SERVER).hops(63).tos(0x2e).may_fragment().identification(identification);
    assert_eq!(sent, expected.udp(outside.port, 53, b"question").octets());
    gateway.receives(v4(SERVER, &outside.address).udp(53, outside.port, b"answer"));
    gateway.sends(v6(SERVER6, HOST).hops(63).udp(53, 4_001, b"answer"));
    gateway.counted([
        ("nat64.v6_to_v4", 1),
        ("nat64.v4_to_v6", 1),
        ("nat.bindings.made", 1),
        ("nat.sessions.made", 1),
    ]);
}

#[test]
fn an_endpoint_keeps_its_mapping_whoever_it_talks_to() {
    let mut gateway = nat64(|_| {});
    let first = outbound(&mut gateway, HOST, 4_001, SERVER6);
    for last in 3..60 {
        assert_eq!(outbound(&mut gateway, HOST, 4_001, &format!("64:ff9b::203.0.113.{last}")), first);
    }
}

#[test]
fn a_host_has_one_outside_address_for_all_its_endpoints_and_protocols() {
    let mut gateway = nat64(|_| {});
    let address = outbound(&mut gateway, HOST, 4_001, SERVER6).address;
    for port in 5_000..5_050 {
        assert_eq!(outbound(&mut gateway, HOST, port, SERVER6).address, address);
    }
    gateway.receives(v6(HOST, SERVER6).tcp(4_001, 80, 2, b""));
    assert_eq!(seen(&gateway.sent()).address, address);
    gateway.receives(v6(HOST, SERVER6).echo(7, 1, b"ping"));
    assert_eq!(seen(&gateway.sent()).address, address);
}

#[test]
fn port_range_and_parity_are_kept_and_no_two_endpoints_share_a_port() {
    let mut gateway = nat64(|_| {});
    let mut all = HashSet::from([]);
    for port in (100..300).chain(4_000..4_200) {
        let outside = outbound(&mut gateway, HOST, port, SERVER6);
        assert_eq!(outside.port % 2, port % 2);
        assert_eq!(outside.port < 1_024, port < 1_024);
        assert!(all.insert(outside));
    }
}

#[test]
fn an_exhausted_pool_is_reported_as_address_unreachable() {
    let mut gateway = nat64(|config| {
        config.pool =
            PoolConfig { addresses: vec!["192.0.2.1/32".parse().unwrap()], ports: vec![2_000..=2_003] };
    });
    for port in 4_000..4_004 {
        outbound(&mut gateway, HOST, port, SERVER6);
    }
    gateway.receives(v6(HOST, SERVER6).udp(4_004, 53, b"question"));
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41]), (1, 3));
    assert_eq!(refusal(&gateway), DropReason::PortPoolEmpty);
}

#[test]
fn full_tables_refuse_the_new_and_keep_the_old() {
    let mut gateway = nat64(|config| config.limits.bindings = 2);
    outbound(&mut gateway, HOST, 1, SERVER6);
    let kept = outbound(&mut gateway, HOST, 2, SERVER6);
    gateway.receives(v6(HOST, SERVER6).udp(3, 53, b"question"));
    assert_eq!(refusal(&gateway), DropReason::BindingTableFull);
    gateway.sent();
    assert_eq!(outbound(&mut gateway, HOST, 2, SERVER6), kept);
    let mut gateway = nat64(|config| config.limits.sessions = 2);
    outbound(&mut gateway, HOST, 1, SERVER6);
    outbound(&mut gateway, HOST, 2, SERVER6);
    gateway.receives(v6(HOST, "64:ff9b::203.0.113.3").udp(2, 53, b"question"));
    assert_eq!(refusal(&gateway), DropReason::SessionTableFull);
}

#[test]
fn a_packet_from_outside_without_binding_is_dropped() {
    let mut gateway = nat64(|_| {});
    gateway.receives(v4(SERVER, "192.0.2.1").udp(53, 4_000, b"hello"));
    assert_eq!(refusal(&gateway), DropReason::NoBinding);
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21]), (3, 1));
}

#[test]
fn endpoint_independent_filtering_lets_anyone_use_a_binding() {
    let mut gateway = nat64(|_| {});
    let outside = outbound(&mut gateway, HOST, 4_001, SERVER6);
    gateway.receives(v4(STRANGER, &outside.address).udp(9, outside.port, b"hello"));
    gateway.sends(v6("64:ff9b::203.0.113.99", HOST).hops(63).udp(9, 4_001, b"hello"));
}

#[test]
fn address_dependent_filtering_lets_in_who_was_spoken_to_on_any_port() {
    let mut gateway = nat64(|config| config.filtering = Filtering::AddressDependent);
    let outside = outbound(&mut gateway, HOST, 4_001, SERVER6);
    gateway.receives(v4(STRANGER, &outside.address).udp(53, outside.port, b"hello"));
    assert_eq!(refusal(&gateway), DropReason::Filtered);
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21]), (3, 13));
    gateway.receives(v4(SERVER, &outside.address).udp(999, outside.port, b"hello"));
    gateway.sends(v6(SERVER6, HOST).hops(63).udp(999, 4_001, b"hello"));
}

#[test]
fn a_udp_session_lives_for_udp_default_after_its_last_packet_and_its_binding_ends_with_it() {
    let mut gateway = nat64(|_| {});
    let outside = outbound(&mut gateway, HOST, 4_001, SERVER6);
    wait(&mut gateway, UDP_DEFAULT - SECOND);
    gateway.receives(v4(SERVER, &outside.address).udp(53, outside.port, b"answer"));
    gateway.sent();
    wait(&mut gateway, UDP_DEFAULT - SECOND);
    gateway.receives(v4(SERVER, &outside.address).udp(53, outside.port, b"answer"));
    gateway.sent();
    wait(&mut gateway, UDP_DEFAULT + 3 * SECOND);
    gateway.receives(v4(SERVER, &outside.address).udp(53, outside.port, b"answer"));
    assert_eq!(refusal(&gateway), DropReason::NoBinding);
}

#[test]
fn a_static_binding_lets_in_from_the_start_and_outlives_its_sessions() {
    let mut gateway = nat64(|config| {
        config.filtering = Filtering::AddressDependent;
        config.static_bindings = vec![StaticBinding {
            softwire: None,
            protocol: NatProtocol::Udp,
            inside: Inside(Endpoint6::new(HOST.parse().unwrap(), 53)),
            outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 5_353)),
        }];
    });
    for _ in 0..2 {
        gateway.receives(v4(STRANGER, "192.0.2.1").udp(9, 5_353, b"question"));
        gateway.sends(v6("64:ff9b::203.0.113.99", HOST).hops(63).udp(9, 53, b"question"));
        wait(&mut gateway, UDP_DEFAULT + 3 * SECOND);
    }
    assert_eq!(
        outbound(&mut gateway, HOST, 53, SERVER6),
        OutsideEndpoint { address: "192.0.2.1".to_owned(), port: 5_353 }
    );
}

#[test]
fn an_echo_crosses_with_another_identifier_and_comes_back_with_its_own() {
    let mut gateway = nat64(|_| {});
    gateway.receives(v6(HOST, SERVER6).echo(77, 3, b"ping"));
    let sent = gateway.sent();
    let outside = seen(&sent);
    let identification = u32::from(u16::from_be_bytes([sent[4], sent[5]]));
    let expected = v4(&outside.address, SERVER).hops(63).may_fragment().identification(identification);
    assert_eq!(sent, expected.echo(outside.port, 3, b"ping").octets());
    gateway.receives(v4(SERVER, &outside.address).echo_reply(outside.port, 3, b"ping"));
    gateway.sends(v6(SERVER6, HOST).hops(63).echo_reply(77, 3, b"ping"));
    wait(&mut gateway, ICMP_DEFAULT + 3 * SECOND);
    gateway.receives(v4(SERVER, &outside.address).echo_reply(outside.port, 3, b"ping"));
    assert_eq!(refusal(&gateway), DropReason::NoBinding);
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21]), (3, 1));
}

#[test]
fn address_dependent_filtering_holds_for_echo_too() {
    let mut gateway = nat64(|config| config.filtering = Filtering::AddressDependent);
    gateway.receives(v6(HOST, SERVER6).echo(77, 3, b"ping"));
    let outside = seen(&gateway.sent());
    gateway.receives(v4(STRANGER, &outside.address).echo(outside.port, 3, b"ping"));
    assert_eq!(refusal(&gateway), DropReason::Filtered);
    let mut gateway = nat64(|_| {});
    gateway.receives(v6(HOST, SERVER6).echo(77, 3, b"ping"));
    let outside = seen(&gateway.sent());
    gateway.receives(v4(STRANGER, &outside.address).echo(outside.port, 3, b"ping"));
    gateway.sends(v6("64:ff9b::203.0.113.99", HOST).hops(63).echo(77, 3, b"ping"));
}

#[test]
fn an_icmpv4_error_finds_the_host_by_the_packet_that_it_quotes() {
    let mut gateway = nat64(|_| {});
    gateway.receives(v6(HOST, SERVER6).hops(9).udp(4_001, 53, b"question"));
    let sent = gateway.sent();
    let outside = seen(&sent);
    gateway.receives(v4("198.51.100.1", &outside.address).icmp(icmp4(3, 1, [0; 4], &sent)));
    let as_sent = v6(HOST, SERVER6).hops(8).udp(4_001, 53, b"question").octets();
    gateway.sends(v6("64:ff9b::198.51.100.1", HOST).hops(63).icmp(icmp6(1, 0, [0; 4], &as_sent)));
}

#[test]
fn an_icmpv6_error_goes_out_from_the_binding_that_its_quote_went_to() {
    let mut gateway = nat64(|_| {});
    let outside = outbound(&mut gateway, HOST, 4_001, SERVER6);
    gateway.receives(v4(SERVER, &outside.address).may_fragment().udp(53, outside.port, b"answer"));
    let arrived = gateway.sent();
    gateway.receives(v6(HOST, SERVER6).icmp(icmp6(1, 4, [0; 4], &arrived)));
    let sent = gateway.sent();
    assert_eq!(seen(&sent).address, outside.address);
    assert_eq!((sent[9], sent[20], sent[21]), (1, 3, 3));
    let quoted = &sent[28..];
    assert_eq!(
        quoted[12..20],
        [[203, 0, 113, 2], outside.address.parse::<Ipv4Addr>().unwrap().octets()].concat()
    );
    assert_eq!(quoted[20..24], [0, 53, (outside.port >> 8) as u8, outside.port as u8]);
}

#[test]
fn an_icmp_error_about_an_echo_finds_its_host() {
    let mut gateway = nat64(|_| {});
    gateway.receives(v6(HOST, SERVER6).hops(9).echo(77, 3, b"ping"));
    let sent = gateway.sent();
    let outside = seen(&sent);
    gateway.receives(v4("198.51.100.1", &outside.address).icmp(icmp4(11, 0, [0; 4], &sent)));
    let as_sent = v6(HOST, SERVER6).hops(8).echo(77, 3, b"ping").octets();
    gateway.sends(v6("64:ff9b::198.51.100.1", HOST).hops(63).icmp(icmp6(3, 0, [0; 4], &as_sent)));
}

#[test]
fn icmp_errors_that_belong_to_nothing_are_dropped_silently_and_change_nothing() {
    let mut gateway = nat64(|_| {});
    let outside = outbound(&mut gateway, HOST, 4_001, SERVER6);
    gateway.counted([("nat64.v6_to_v4", 1), ("nat.bindings.made", 1), ("nat.sessions.made", 1)]);
    let never_sent = v4(&outside.address, SERVER).udp(outside.port ^ 2, 53, b"question").octets();
    gateway.receives(v4("198.51.100.1", &outside.address).icmp(icmp4(3, 1, [0; 4], &never_sent)));
    gateway.counted([("NoSessionForError", 1)]);
    let cut = v4(&outside.address, SERVER).udp(outside.port, 53, b"question").octets();
    gateway.receives(v4("198.51.100.1", &outside.address).icmp(icmp4(3, 1, [0; 4], &cut[..22])));
    assert!(matches!(refusal(&gateway), DropReason::NoSessionForError | DropReason::QuoteUnusable));
    let error = v4(&outside.address, SERVER).icmp(icmp4(3, 1, [0; 4], &cut)).octets();
    gateway.receives(v4("198.51.100.1", &outside.address).icmp(icmp4(3, 1, [0; 4], &error)));
    assert_eq!(refusal(&gateway), DropReason::QuoteIsIcmpError);
    gateway.sends_nothing();
}

#[test]
fn other_protocols_are_refused_with_their_icmp_error() {
    let mut gateway = nat64(|_| {});
    gateway.receives(v6(HOST, SERVER6).protocol(132, &[0; 20], None));
    assert_eq!(refusal(&gateway), DropReason::ProtocolUnsupported);
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41]), (1, 4));
    gateway.receives(v4(SERVER, "192.0.2.1").protocol(132, &[0; 20], None));
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21]), (3, 2));
}

#[test]
fn a_source_under_the_prefix_is_dropped_silently() {
    let mut gateway = nat64(|_| {});
    for packet in
        [v6("64:ff9b::192.0.2.1", SERVER6).udp(500, 53, b"loop"), v6(SERVER6, SERVER6).echo(1, 1, b"loop")]
    {
        gateway.receives(packet);
        assert_eq!(refusal(&gateway), DropReason::SourceInTranslationPrefix);
        gateway.sends_nothing();
    }
}

#[test]
fn destinations_outside_prefix_and_pool_are_not_translated() {
    let mut gateway = nat64(|_| {});
    gateway.receives(v6(HOST, "2001:db8:ffff::1").udp(1, 2, b"data"));
    assert_eq!(refusal(&gateway), DropReason::NoMechanism);
    gateway.receives(v4(SERVER, "192.0.2.77").udp(1, 2, b"data"));
    assert_eq!(refusal(&gateway), DropReason::NoMechanism);
}

#[test]
fn two_hosts_talk_to_one_another_by_their_outside_endpoints() {
    let mut gateway = nat64(|_| {});
    let called = outbound(&mut gateway, OTHER, 7_000, SERVER6);
    let caller = outbound(&mut gateway, HOST, 4_001, SERVER6);
    gateway.receives(v6(HOST, &format!("64:ff9b::{}", called.address)).udp(4_001, called.port, b"hello"));
    let caller6 = format!("64:ff9b::{}", caller.address);
    gateway.sends(v6(&caller6, OTHER).hops(63).udp(caller.port, 7_000, b"hello"));
    gateway.receives(v6(OTHER, &caller6).udp(7_000, caller.port, b"hello yourself"));
    let called6 = format!("64:ff9b::{}", called.address);
    gateway.sends(v6(&called6, HOST).hops(63).udp(called.port, 4_001, b"hello yourself"));
}

#[test]
fn a_packet_without_udp_checksum_gets_one() {
    let mut gateway = nat64(|_| {});
    let outside = outbound(&mut gateway, HOST, 4_001, SERVER6);
    gateway.receives(v4(SERVER, &outside.address).udp(53, outside.port, b"answer").without_checksum());
    gateway.sends(v6(SERVER6, HOST).hops(63).udp(53, 4_001, b"answer"));
}

/// The parts of a packet from outside in three fragments.
fn fragments_from_outside(whole: &Build) -> [Build; 3] {
    let part =
        |offset: u16, to: usize, more| whole.clone().fragment(99, offset, more).part(usize::from(offset), to);
    [part(0, 600, true), part(600, 1_200, true), part(1_200, 1_508, false)]
}

#[test]
fn fragments_from_outside_cross_in_any_order() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]] {
        let mut gateway = nat64(|_| {});
        let outside = outbound(&mut gateway, HOST, 4_001, SERVER6);
        let data: Vec<u8> = (0..1_500u32).map(|n| n as u8).collect();
        let whole = v4(SERVER, &outside.address).udp(53, outside.port, &data);
        let parts = fragments_from_outside(&whole);
        for index in order {
            gateway.receives(parts[index].clone());
        }
        assert_eq!(reassembled6(&mut gateway), v6(SERVER6, HOST).udp(53, 4_001, &data).octets()[40..]);
    }
}

#[test]
fn fragments_without_udp_checksum_are_put_together_and_get_one() {
    let mut gateway = nat64(|_| {});
    let outside = outbound(&mut gateway, HOST, 4_001, SERVER6);
    let data = [7; 1_500];
    let whole = v4(SERVER, &outside.address).udp(53, outside.port, &data).without_checksum();
    for part in fragments_from_outside(&whole) {
        gateway.receives(part);
    }
    assert_eq!(reassembled6(&mut gateway), v6(SERVER6, HOST).udp(53, 4_001, &data).octets()[40..]);
}

#[test]
fn fragments_from_inside_cross_in_any_order() {
    for order in [[0, 1], [1, 0]] {
        let mut gateway = nat64(|_| {});
        let outside = outbound(&mut gateway, HOST, 4_001, SERVER6);
        let data: Vec<u8> = (0..1_800u32).map(|n| n as u8).collect();
        let whole = v6(HOST, SERVER6).udp(4_001, 53, &data);
        let parts = [
            whole.clone().fragment(0xabcd, 0, true).part(0, 1_232),
            whole.fragment(0xabcd, 1_232, false).part(1_232, 1_808),
        ];
        for index in order {
            gateway.receives(parts[index].clone());
        }
        let expected = v4(&outside.address, SERVER).udp(outside.port, 53, &data).octets();
        assert_eq!(reassembled4(&mut gateway), expected[20..]);
    }
}

#[test]
fn fragments_wait_for_two_seconds_at_least_and_not_for_ever() {
    let mut gateway = nat64(|_| {});
    let outside = outbound(&mut gateway, HOST, 4_001, SERVER6);
    let parts = fragments_from_outside(&v4(SERVER, &outside.address).udp(53, outside.port, &[1; 1_500]));
    gateway.receives(parts[1].clone());
    gateway.receives(parts[2].clone());
    gateway.waits(Duration::from_millis(1_900));
    gateway.receives(parts[0].clone());
    assert!(!reassembled6(&mut gateway).is_empty());
    gateway.receives(parts[1].clone());
    wait(&mut gateway, 10 * SECOND);
    gateway.receives(parts[0].clone());
    gateway.receives(parts[2].clone());
    gateway.sends_nothing();
}

/// The transport header and data of the packet whose fragments (or which, whole) were sent to the inside.
fn reassembled6(gateway: &mut Gateway) -> Vec<u8> {
    let mut octets = Vec::new();
    while gateway.waiting() > 0 {
        let sent = gateway.sent();
        assert!(sent.len() <= 1_500);
        if sent[6] != 44 {
            return sent[40..].to_vec();
        }
        let offset = usize::from(u16::from_be_bytes([sent[42], sent[43]]) & 0xfff8);
        assert_eq!(offset, octets.len());
        octets.extend(&sent[48..]);
    }
    octets
}

/// The same of packets that were sent to the outside.
fn reassembled4(gateway: &mut Gateway) -> Vec<u8> {
    let mut octets = Vec::new();
    while gateway.waiting() > 0 {
        let sent = gateway.sent();
        assert!(sent.len() <= 1_500);
        let offset = usize::from(u16::from_be_bytes([sent[6], sent[7]]) & 0x1fff) * 8;
        assert_eq!(offset, octets.len());
        octets.extend(&sent[20..]);
    }
    octets
}

/// RFC 6146 §3.5: an error is not a packet of the session that it is about. It starts no lifetime again, ends nothing and makes nothing.
#[test]
fn an_error_about_a_session_leaves_the_session_as_it_was() {
    let mut gateway = nat64(|_| {});
    let outside = outbound(&mut gateway, HOST, 4_001, SERVER6);
    gateway.receives(v4(SERVER, &outside.address).udp(53, outside.port, b"answer"));
    let arrived = gateway.sent();
    gateway.receives(v6(HOST, SERVER6).udp(4_001, 53, b"question"));
    let left = gateway.sent();
    gateway.counted_before();
    for _ in 0..UDP_DEFAULT.as_secs() - 1 {
        gateway.waits(SECOND);
        for kind in [(3, 1), (3, 3), (11, 0)] {
            gateway.receives(v4("198.51.100.1", &outside.address).icmp(icmp4(kind.0, kind.1, [0; 4], &left)));
            assert_eq!(gateway.last, Verdict::Forward);
            gateway.sent();
        }
        gateway.receives(v6(HOST, SERVER6).icmp(icmp6(1, 4, [0; 4], &arrived)));
        assert_eq!(gateway.last, Verdict::Forward);
        gateway.sent();
    }
    let errors = UDP_DEFAULT.as_secs() - 1;
    gateway.counted([("nat64.v4_to_v6", 3 * errors), ("nat64.v6_to_v4", errors)]);
    wait(&mut gateway, 4 * SECOND);
    gateway.receives(v4(SERVER, &outside.address).udp(53, outside.port, b"answer"));
    assert_eq!(refusal(&gateway), DropReason::NoBinding, "its lifetime began with its last packet");
    gateway.sent();
    gateway.receives(v4("198.51.100.1", &outside.address).icmp(icmp4(3, 3, [0; 4], &left)));
    assert_eq!(refusal(&gateway), DropReason::NoSessionForError, "and an error does not bring it back");
    gateway.sends_nothing();
}
