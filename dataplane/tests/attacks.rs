//! What a hostile neighbour sends: forged sources, forged quotes, floods.

use crate::support;
use crate::support::{Build, Gateway, gateway, icmp4, icmp6, nat64, siit, v4, v6};
use sixway_dataplane::mechanism::nat64::Nat64Config;
use sixway_dataplane::mechanism::siit::dynamic_pool::DynamicPoolConfig;
use sixway_dataplane::nat::{Filtering, Inside, NatProtocol, Outside, StaticBinding};
use sixway_dataplane::{DropReason, Verdict};
use sixway_wire::checksum::{Sum, update};
use sixway_wire::{Endpoint4, Endpoint6};
use std::time::Duration;

const HOST: &str = "2001:db8:1::1";
const OTHER: &str = "2001:db8:1::2";
const SERVER4: &str = "203.0.113.1";
const SERVER6: &str = "64:ff9b::203.0.113.1";
const SYN: u8 = 0x02;
const SYN_ACK: u8 = 0x12;

fn stateful(edit: impl FnOnce(&mut Nat64Config)) -> Gateway {
    gateway(|config| {
        let mut one = nat64();
        one.pool.addresses = vec!["192.0.2.1/32".parse().unwrap()];
        edit(&mut one);
        config.nat64.push(one);
    })
}

/// The port that the host's packet leaves from.
fn outside_port(gateway: &mut Gateway, packet: Build) -> u16 {
    gateway.receives(packet);
    let sent = gateway.sent();
    u16::from_be_bytes([sent[20], sent[21]])
}

#[test]
fn an_outside_packet_with_a_source_of_the_pool_is_dropped_though_the_hosts_behind_it_may_talk() {
    let mut gateway = stateful(|config| config.filtering = Filtering::AddressDependent);
    let port = outside_port(&mut gateway, v6(HOST, SERVER6).udp(4_000, 53, b"question"));
    let others = outside_port(&mut gateway, v6(OTHER, SERVER6).udp(4_000, 53, b"question"));
    // The two know one another, so that address-dependent filtering lets the pool's address in.
    gateway.receives(v6(HOST, "64:ff9b::192.0.2.1").udp(4_000, others, b"hello"));
    assert_eq!(gateway.sent()[40..42], [1, 1], "the other host does not know it yet");
    gateway.receives(v6(OTHER, "64:ff9b::192.0.2.1").udp(4_000, port, b"hello"));
    gateway.sends(v6("64:ff9b::192.0.2.1", HOST).hops(63).udp(others, 4_000, b"hello"));
    gateway.counted_before();
    gateway.receives(v4("192.0.2.1", "192.0.2.1").udp(others, port, b"forged"));
    gateway.receives(v4("192.0.2.1", "192.0.2.1").udp(9, port, b"forged"));
    gateway.sends_nothing();
    gateway.counted([("SourceInPool", 2)]);
}

#[test]
fn an_error_with_a_source_of_the_pool_is_translated_if_it_quotes_a_session() {
    // The pool is this host's own address: its kernel makes the errors.
    let mut gateway = stateful(|_| {});
    gateway.receives(v6(HOST, SERVER6).udp(4_000, 53, b"question"));
    let question = gateway.sent();
    gateway.receives(v4("192.0.2.1", "192.0.2.1").icmp(icmp4(11, 0, [0; 4], &question)));
    let error = gateway.sent();
    assert_eq!((error[6], error[40], error[41]), (58, 3, 0), "ICMPv6 Time Exceeded");
    // About what nobody sent.
    let never = v4("192.0.2.1", SERVER4).udp(9, 53, b"never sent").octets();
    gateway.receives(v4("192.0.2.1", "192.0.2.1").icmp(icmp4(11, 0, [0; 4], &never)));
    gateway.sends_nothing();
}

#[test]
fn an_error_from_inside_goes_to_no_multicast_loopback_or_broadcast_address() {
    for (embedded, remote) in
        [("e000:1", "224.0.0.1"), ("7f00:1", "127.0.0.1"), ("ffff:ffff", "255.255.255.255")]
    {
        let mut gateway = stateful(|_| {});
        gateway.receives(v6(HOST, SERVER6).udp(4_000, 53, b"question"));
        let _ = gateway.sent();
        let forged = format!("64:ff9b::{embedded}");
        let quote = v6(&forged, HOST).udp(53, 4_000, b"never sent").octets();
        gateway.receives(v6(HOST, &forged).icmp(icmp6(1, 4, [0; 4], &quote)));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::MartianDestination), "{remote}");
        gateway.sends_nothing();
    }
}

/// A host knows its neighbour's address and may guess a port; the remote end of a flow is what it has to know too.
#[test]
fn an_error_from_inside_needs_the_session_that_it_is_about_not_only_a_binding() {
    let mut gateway = stateful(|_| {});
    let port = outside_port(&mut gateway, v6(HOST, SERVER6).udp(4_000, 53, b"question"));
    let about = |remote: &str, remote_port| {
        let quote = v6(remote, HOST).udp(remote_port, 4_000, b"answer").octets();
        v6("2001:db8:2::66", remote).icmp(icmp6(1, 4, [0; 4], &quote))
    };
    for forged in [about("64:ff9b::203.0.113.9", 53), about(SERVER6, 54)] {
        gateway.receives(forged);
        gateway.sends_nothing();
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoSessionForError));
    }
    gateway.receives(about(SERVER6, 53));
    let sent = gateway.sent();
    assert_eq!(sent[48..52], [0, 53, (port >> 8) as u8, port as u8]);
}

#[test]
fn a_stored_syn_longer_than_what_is_kept_of_it_is_answered_too() {
    let mut gateway = stateful(|_| {});
    let syn = v4(SERVER4, "192.0.2.1").tcp(4_000, 80, SYN, &[7; 1_200]);
    gateway.receives(syn.clone());
    assert_eq!(gateway.last, Verdict::Held);
    gateway.waits(Duration::from_secs(8));
    let error = gateway.sent();
    assert_eq!((error.len(), error[9], error[20], error[21]), (576, 1, 3, 3));
    assert_eq!(error[28..], syn.octets()[..548]);
}

#[test]
fn the_mtu_told_about_a_fragment_leaves_room_for_its_fragment_header() {
    let mut gateway = siit(|_| {});
    let whole = v4(SERVER4, "198.51.100.1").udp(1, 2, &[7; 2_900]);
    let fragment = |data: usize| {
        let mut octets = whole.clone().fragment(5, 0, true).part(0, data).octets();
        let checksum = u16::from_be_bytes([octets[10], octets[11]]);
        let with_df = update(checksum, Sum::ZERO, Sum::ZERO.word(0x4000));
        octets[6] |= 0x40;
        octets[10..12].copy_from_slice(&with_df.to_be_bytes());
        octets
    };
    gateway.receives(fragment(1_480));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::PacketTooBig));
    let error = gateway.sent();
    let mtu = usize::from(u16::from_be_bytes([error[26], error[27]]));
    assert_eq!((error[20], error[21], mtu), (3, 4, 1_472));
    gateway.receives(fragment((mtu - 20) / 8 * 8));
    assert_eq!(gateway.last, Verdict::Forward);
}

#[test]
fn one_ipv6_network_cannot_take_all_room_for_fragments_by_changing_its_address() {
    let mut gateway = stateful(|_| {});
    let first = |host: &str| v6(host, SERVER6).udp(1, 2, &[7; 40]).fragment(5, 0, true).part(0, 24);
    for host in 0..100 {
        gateway.receives(first(&format!("2001:db8:1::{host:x}")));
    }
    gateway.counted([("held", 64), ("FragmentShare", 36)]);
    gateway.receives(first("2001:db8:1:1::1"));
    gateway.counted([("held", 1)]);
}

#[test]
fn a_packet_that_goes_nowhere_costs_the_dynamic_pool_no_address() {
    let mut gateway = siit(|config| {
        config.dynamic_pool = Some(DynamicPoolConfig::new("172.16.0.1/32".parse().unwrap()));
    });
    gateway.receives(v6(OTHER, "2001:db8:64::127.0.0.1").udp(1, 2, b"data"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::MartianDestination));
    gateway.receives(v6(HOST, "2001:db8:64::203.0.113.1").udp(1, 2, b"data"));
    assert_eq!(gateway.last, Verdict::Forward);
}

#[test]
fn one_outside_host_cannot_take_all_sessions_of_a_nat64_through_one_inside_port() {
    let mut gateway = stateful(|config| config.limits.sessions = 80);
    let port = outside_port(&mut gateway, v6(HOST, SERVER6).udp(4_000, 53, b"question"));
    gateway.counted_before();
    for remote_port in 1..=180 {
        gateway.receives(v4(SERVER4, "192.0.2.1").udp(1_000 + remote_port, port, b"flood"));
    }
    gateway.counted([
        ("nat.sessions.made", 60),
        ("nat64.v4_to_v6", 60),
        ("OutsideSessionsFull", 120),
        ("icmp_errors.made", 120),
    ]);
    for inside_port in 0..19 {
        gateway.receives(v6(OTHER, SERVER6).udp(inside_port, 53, b"question"));
        assert_eq!(gateway.last, Verdict::Forward);
    }
    gateway.receives(v6(OTHER, SERVER6).udp(19, 53, b"question"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::SessionTableFull));
    gateway.now = gateway.now + Duration::from_secs(301);
    gateway.receives(v4(SERVER4, "192.0.2.1").udp(9, port, b"hello"));
    assert_eq!(gateway.last, Verdict::Forward, "what the flood made has ended");
}

#[test]
fn inbound_syns_to_one_inside_port_leave_a_quarter_of_the_sessions_to_those_inside() {
    let mut gateway = stateful(|config| config.limits.sessions = 80);
    let port = outside_port(&mut gateway, v6(HOST, SERVER6).tcp(4_000, 80, SYN, b""));
    for remote_port in 1_000..1_200 {
        gateway.receives(v4(SERVER4, "192.0.2.1").tcp(remote_port, port, SYN, b""));
    }
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::OutsideSessionsFull));
    gateway.receives(v4(SERVER4, "192.0.2.1").tcp(9, 9, SYN, b""));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::StoredSynsFull), "nor is one stored");
    gateway.receives(v6(OTHER, SERVER6).tcp(4_000, 80, SYN, b""));
    assert_eq!(gateway.last, Verdict::Forward);
}

#[test]
fn a_table_full_of_sessions_that_are_overdue_is_not_full() {
    let mut gateway = stateful(|config| config.limits.sessions = 60);
    for n in 0..60 {
        gateway.receives(v6(HOST, SERVER6).udp(4_000 + n, 53, b"question"));
    }
    gateway.receives(v6(OTHER, SERVER6).udp(4_000, 53, b"question"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::SessionTableFull));
    gateway.counted_before();
    // No tick has come yet.
    gateway.now = gateway.now + Duration::from_secs(301);
    gateway.receives(v6(OTHER, SERVER6).udp(4_000, 53, b"question"));
    assert_eq!(gateway.last, Verdict::Forward);
    gateway.counted([
        ("nat.sessions.made", 1),
        ("nat.sessions.ended", 32),
        ("nat.bindings.made", 1),
        ("nat.bindings.ended", 32),
        ("nat64.v6_to_v4", 1),
    ]);
}

#[test]
fn a_port_whose_sessions_are_overdue_is_free() {
    let mut gateway = stateful(|config| config.pool.ports = vec![2_000..=2_000]);
    gateway.receives(v6(HOST, SERVER6).udp(4_000, 53, b"question"));
    gateway.receives(v6(OTHER, SERVER6).udp(4_000, 53, b"question"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::PortPoolEmpty));
    gateway.now = gateway.now + Duration::from_secs(301);
    gateway.receives(v6(OTHER, SERVER6).udp(4_000, 53, b"question"));
    assert_eq!(gateway.last, Verdict::Forward);
}

#[test]
fn silent_connections_that_were_found_for_want_of_room_are_probed_all_the_same() {
    let mut gateway = stateful(|config| config.limits.sessions = 40);
    for n in 0..40 {
        let port = outside_port(&mut gateway, v6(HOST, SERVER6).tcp(4_000 + n, 80, SYN, b""));
        gateway.receives(v4(SERVER4, "192.0.2.1").tcp(80, port, SYN_ACK, b""));
        let _ = gateway.sent();
    }
    gateway.now = gateway.now + Duration::from_secs(7_201);
    for n in 0..3 {
        gateway.receives(v6(OTHER, SERVER6).udp(4_000 + n, 53, b"question"));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::SessionTableFull), "they may yet answer");
        let _ = gateway.sent();
    }
    gateway.sends_nothing();
    gateway.counted_before();
    gateway.waits(Duration::ZERO);
    gateway.counted([("tcp_probes.made", 40)]);
}

#[test]
fn a_source_under_another_nat64s_prefix_is_dropped_too() {
    let mut gateway = gateway(|config| {
        for (prefix, address) in [("64:ff9b::/96", "192.0.2.1/32"), ("2001:db8:64::/96", "192.0.2.2/32")] {
            let mut one = nat64();
            one.prefix = support::prefix(prefix);
            one.pool.addresses = vec![address.parse().unwrap()];
            config.nat64.push(one);
        }
    });
    for (source, destination) in [
        ("2001:db8:64::8.8.8.8", "64:ff9b::8.8.4.4"),
        ("64:ff9b::8.8.8.8", "2001:db8:64::8.8.4.4"),
        ("2001:db8:64::8.8.8.8", "2001:db8:64::8.8.4.4"),
    ] {
        gateway.receives(v6(source, destination).udp(1, 2, b"forged"));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::SourceInTranslationPrefix), "{source}");
        gateway.receives(v6(source, destination).tcp(1, 2, SYN, b""));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::SourceInTranslationPrefix), "{source}");
    }
    gateway.receives(v6(HOST, "64:ff9b::8.8.4.4").udp(1, 2, b"question"));
    assert_eq!(gateway.last, Verdict::Forward);
}

#[test]
fn one_ipv6_network_cannot_take_all_bindings_by_changing_its_address() {
    let mut gateway = stateful(|config| {
        config.limits.of_subscriber.bindings = 10;
        config.static_bindings = vec![StaticBinding {
            softwire: None,
            protocol: NatProtocol::Udp,
            inside: Inside(Endpoint6::new("2001:db8:1::80".parse().unwrap(), 53)),
            outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 53)),
        }];
    });
    gateway.counted_before();
    for host in 0x100..0x164 {
        gateway.receives(v6(&format!("2001:db8:1::{host:x}"), SERVER6).udp(4_000, 53, b"question"));
    }
    gateway.counted([
        ("nat.bindings.made", 10),
        ("nat.sessions.made", 10),
        ("nat64.v6_to_v4", 10),
        ("SubscriberLimit", 90),
        ("icmp_errors.made", 90),
    ]);
    gateway.receives(v6("2001:db8:1::100", SERVER6).udp(4_000, 54, b"question"));
    assert_eq!(gateway.last, Verdict::Forward, "a session of a binding that there is");
    gateway.receives(v6("2001:db8:1:1::1", SERVER6).udp(4_000, 53, b"question"));
    assert_eq!(gateway.last, Verdict::Forward, "another network");
    gateway.now = gateway.now + Duration::from_secs(301);
    gateway.receives(v6("2001:db8:1::200", SERVER6).udp(4_000, 53, b"question"));
    assert_eq!(gateway.last, Verdict::Forward, "its bindings have ended");
}

#[test]
fn one_ipv6_network_cannot_take_the_whole_dynamic_pool_by_changing_its_address() {
    let mut gateway = siit(|config| {
        let mut pool = DynamicPoolConfig::new("172.16.0.0/24".parse().unwrap());
        pool.hosts_per_subscriber = 10;
        config.dynamic_pool = Some(pool);
    });
    let packet = |host: &str| v6(host, "2001:db8:64::203.0.113.1").udp(1, 2, b"data");
    gateway.counted_before();
    for host in 0..100 {
        gateway.receives(packet(&format!("2001:db8:1::{host:x}")));
    }
    gateway.counted([("siit.v6_to_v4", 10), ("SubscriberLimit", 90), ("icmp_errors.made", 90)]);
    gateway.receives(packet("2001:db8:1::9"));
    assert_eq!(gateway.last, Verdict::Forward, "it has an address");
    gateway.receives(packet("2001:db8:1:1::1"));
    assert_eq!(gateway.last, Verdict::Forward, "another network");
    gateway.now = gateway.now + DynamicPoolConfig::LIFETIME;
    for host in 10..20 {
        gateway.receives(packet(&format!("2001:db8:1::{host:x}")));
        assert_eq!(gateway.last, Verdict::Forward, "those before it are silent");
    }
    gateway.receives(packet("2001:db8:1::9"));
    assert_eq!(
        gateway.last,
        Verdict::Dropped(DropReason::SubscriberLimit),
        "nor do remembered ones come back above it"
    );
}

/// A fragment that waits for the rest of its packet.
fn first_part(whole: Build, number: u32) -> Build {
    whole.fragment(number, 0, true).part(0, 64)
}

#[test]
fn fragments_from_one_side_leave_the_other_side_its_room() {
    let mut gateway = gateway(|config| {
        config.fragments.packets = 100;
        config.nat64.push(nat64());
    });
    let question = v6(HOST, SERVER6).udp(4_000, 53, &[7; 92]);
    gateway.receives(question.clone());
    let sent = gateway.sent();
    let address = std::net::Ipv4Addr::new(sent[12], sent[13], sent[14], sent[15]).to_string();
    let port = u16::from_be_bytes([sent[20], sent[21]]);
    let answer = v4(SERVER4, &address).udp(53, port, &[7; 92]);
    let crosses = |gateway: &mut Gateway, whole: &Build, number| {
        gateway.receives(first_part(whole.clone(), number));
        gateway.receives(whole.clone().fragment(number, 64, false).part(64, 100));
        assert_eq!(gateway.last, Verdict::Merged);
        let _ = gateway.sent();
    };
    for number in 0..1_000_u32 {
        let forged = format!("203.0.{}.{}", number / 250, 1 + number % 250);
        gateway.receives(first_part(v4(&forged, &address).udp(53, 9, &[7; 92]), number));
    }
    assert_eq!(gateway.last, Verdict::Held, "what is new replaces what is old");
    for number in 0..60 {
        crosses(&mut gateway, &question, number);
    }
    for _ in 0..5 {
        gateway.waits(Duration::from_secs(1));
    }
    while gateway.waiting() > 0 {
        let _ = gateway.sent();
    }
    for number in 0..1_000_u32 {
        let forged = format!("2001:db8:{}::1", number + 2);
        gateway.receives(first_part(v6(&forged, SERVER6).udp(4_000, 53, &[7; 92]), number));
    }
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::FragmentMemory));
    for number in 0..60 {
        crosses(&mut gateway, &answer, number);
    }
}

#[test]
fn nothing_is_held_for_an_outside_address_without_binding_nor_for_hosts_that_are_not_inside() {
    let static_host = "2001:db8:9::1";
    let mut gateway = stateful(|config| {
        config.inside = vec!["2001:db8:1::/48".parse().unwrap()];
        config.static_bindings = vec![StaticBinding {
            softwire: None,
            protocol: NatProtocol::Tcp,
            inside: Inside(Endpoint6::new(static_host.parse().unwrap(), 80)),
            outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 80)),
        }];
    });
    let forged = v4(SERVER4, "192.0.2.1");
    gateway.receives(first_part(forged.clone().udp(53, 4_000, &[7; 92]), 1));
    gateway.receives(first_part(forged.clone().echo(1, 2, &[7; 92]), 2));
    gateway.receives(first_part(forged.clone().protocol(47, &[7; 92], None), 3));
    gateway.receives(first_part(v6("2001:db8:2::1", SERVER6).udp(4_000, 53, &[7; 92]), 4));
    gateway.receives(first_part(forged.tcp(4_000, 80, SYN, &[7; 92]), 5));
    assert_eq!(gateway.last, Verdict::Held);
    gateway.receives(first_part(v6(static_host, SERVER6).tcp(80, 4_000, SYN_ACK, &[7; 92]), 6));
    assert_eq!(gateway.last, Verdict::Held);
    gateway.counted([
        ("held", 2),
        ("NoBinding", 2),
        ("ProtocolUnsupported", 1),
        ("SourceNotInside", 1),
        ("icmp_errors.made", 3),
    ]);
}
