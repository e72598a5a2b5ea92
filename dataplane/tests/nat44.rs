//! NAT44 (RFC 3022, RFC 4787, RFC 5382, RFC 5508), packet by packet through the whole gateway.

use crate::support;
use crate::support::{Build, Gateway, checksum_is_right, icmp4, v4};
use sixway_dataplane::engine::{Engine, TunnelConfig};
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::mechanism::ip_in_ip::IpInIpConfig;
use sixway_dataplane::mechanism::nat44::Nat44Config;
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::nat::{
    Filtering, Inside, NatProtocol, NotAdopted, Outside, SavedSession, Selection, StaticBinding,
    StaticBindingError,
};
use sixway_dataplane::tunnel::TunnelPolicy;
use sixway_dataplane::{DropReason, Frame, Instant, Outbox, Verdict, WorkerId};
use sixway_wire::{Endpoint4, Endpoint6};
use std::net::Ipv4Addr;
use std::time::Duration;

const HOST: &str = "10.0.0.1";
const OTHER: &str = "10.0.0.2";
const SERVER: &str = "203.0.113.1";
const STRANGER: &str = "203.0.113.2";
const DOOR: &str = "192.0.2.1";
const DOOR_PORT: u16 = 8_080;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

fn gateway(edit: impl FnOnce(&mut Nat44Config)) -> Gateway {
    support::gateway(|config| {
        let mut nat44 = support::nat44();
        edit(&mut nat44);
        config.nat44.push(nat44);
    })
}

/// The other host has a static binding for each protocol.
fn with_door(nat44: &mut Nat44Config) {
    for protocol in NatProtocol::ALL {
        nat44.static_bindings.push(StaticBinding {
            softwire: None,
            protocol,
            inside: Inside(Endpoint4::new(OTHER.parse().unwrap(), 80)),
            outside: Outside(Endpoint4::new(DOOR.parse().unwrap(), DOOR_PORT)),
        });
    }
}

/// Source address and port (or identifier) of an IPv4 packet without options.
fn source(packet: &[u8]) -> (String, u16) {
    let port_at = if packet[9] == 1 { 24 } else { 20 };
    let address = Ipv4Addr::from(<[u8; 4]>::try_from(&packet[12..16]).unwrap());
    (address.to_string(), u16::from_be_bytes([packet[port_at], packet[port_at + 1]]))
}

/// The inside host sends a datagram to the server; its outside endpoint.
fn opened(gateway: &mut Gateway) -> (String, u16) {
    gateway.receives(v4(HOST, SERVER).udp(4_001, 53, b"question"));
    let sent = gateway.sent();
    gateway.counted_before();
    source(&sent)
}

#[test]
fn a_connection_goes_out_comes_back_and_ends() {
    let mut gateway = gateway(|_| {});
    gateway.receives(v4(HOST, SERVER).tcp(4_001, 443, SYN, b""));
    let sent = gateway.sent();
    let (outside, port) = source(&sent);
    assert!("192.0.2.0/30".parse::<sixway_wire::Prefix4>().unwrap().contains(outside.parse().unwrap()));
    assert_eq!(sent, v4(&outside, SERVER).hops(63).tcp(port, 443, SYN, b"").octets());
    for (flags, is_out) in
        [(SYN | ACK, false), (ACK, true), (ACK, false), (FIN | ACK, true), (FIN | ACK, false), (ACK, true)]
    {
        if is_out {
            gateway.receives(v4(HOST, SERVER).tcp(4_001, 443, flags, b"data"));
            gateway.sends(v4(&outside, SERVER).hops(63).tcp(port, 443, flags, b"data"));
        } else {
            gateway.receives(v4(SERVER, &outside).tcp(443, port, flags, b"data"));
            gateway.sends(v4(SERVER, HOST).hops(63).tcp(443, 4_001, flags, b"data"));
        }
    }
    gateway.counted([
        ("nat44.to_outside", 4),
        ("nat44.to_inside", 3),
        ("nat.bindings.made", 1),
        ("nat.sessions.made", 1),
    ]);
}

#[test]
fn a_binding_is_the_same_whatever_the_destination_and_a_host_keeps_its_address() {
    // RFC 4787 REQ-1, REQ-2.
    let mut gateway = gateway(|_| {});
    let first = opened(&mut gateway);
    gateway.receives(v4(HOST, STRANGER).udp(4_001, 99, b""));
    assert_eq!(source(&gateway.sent()), first);
    gateway.receives(v4(HOST, SERVER).udp(4_002, 53, b""));
    let second = source(&gateway.sent());
    assert_eq!(second.0, first.0);
    assert_ne!(second.1, first.1);
    assert_eq!(second.1 % 2, 0, "port parity, RFC 4787 REQ-4");
}

#[test]
fn unsolicited_packets_pass_as_the_filtering_allows() {
    for (filtering, [by_port, by_address]) in [
        (Filtering::EndpointIndependent, [true, true]),
        (Filtering::AddressDependent, [true, false]),
        (Filtering::AddressAndPortDependent, [false, false]),
    ] {
        let mut gateway = gateway(|nat44| nat44.filtering = filtering);
        let (outside, port) = opened(&mut gateway);
        gateway.receives(v4(SERVER, &outside).udp(54, port, b"from another port"));
        if by_port {
            gateway.sends(v4(SERVER, HOST).hops(63).udp(54, 4_001, b"from another port"));
        } else {
            assert_eq!(gateway.last, Verdict::Dropped(DropReason::Filtered));
            assert_eq!(gateway.sent()[20..22], [3, 13], "administratively prohibited");
        }
        gateway.receives(v4(SERVER, &outside).udp(53, port, b"answer"));
        gateway.sends(v4(SERVER, HOST).hops(63).udp(53, 4_001, b"answer"));
        gateway.receives(v4(STRANGER, &outside).udp(53, port, b"hello"));
        if by_address {
            gateway.sends(v4(STRANGER, HOST).hops(63).udp(53, 4_001, b"hello"));
        } else {
            assert_eq!(gateway.last, Verdict::Dropped(DropReason::Filtered));
        }
    }
}

#[test]
fn a_server_inside_is_reached_by_its_static_binding() {
    let mut gateway = gateway(with_door);
    gateway.receives(v4(STRANGER, DOOR).tcp(5_001, DOOR_PORT, SYN, b""));
    gateway.sends(v4(STRANGER, OTHER).hops(63).tcp(5_001, 80, SYN, b""));
    gateway.receives(v4(OTHER, STRANGER).tcp(80, 5_001, SYN | ACK, b""));
    gateway.sends(v4(DOOR, STRANGER).hops(63).tcp(DOOR_PORT, 5_001, SYN | ACK, b""));
    gateway.receives(v4(STRANGER, DOOR).echo(DOOR_PORT, 1, b"ping"));
    gateway.sends(v4(STRANGER, OTHER).hops(63).echo(80, 1, b"ping"));
}

#[test]
fn two_hosts_inside_talk_by_their_outside_endpoints() {
    // RFC 4787 REQ-9, RFC 5382 REQ-8: the called host sees the caller's outside endpoint.
    let mut gateway = gateway(with_door);
    gateway.receives(v4(HOST, DOOR).tcp(4_001, DOOR_PORT, SYN, b""));
    let sent = gateway.sent();
    let (caller, port) = source(&sent);
    assert!(caller.starts_with("192.0.2."), "{caller}");
    assert_eq!(sent, v4(&caller, OTHER).hops(63).tcp(port, 80, SYN, b"").octets());
    gateway.receives(v4(OTHER, &caller).tcp(80, port, SYN | ACK, b""));
    gateway.sends(v4(DOOR, HOST).hops(63).tcp(DOOR_PORT, 4_001, SYN | ACK, b""));
    gateway.sends_nothing();
}

#[test]
fn an_error_between_two_hosts_inside_is_about_what_each_of_them_knows() {
    let mut gateway = gateway(with_door);
    gateway.receives(v4(HOST, DOOR).udp(4_001, DOOR_PORT, b"hello"));
    let arrived = gateway.sent();
    let (caller, port) = source(&arrived);
    gateway.receives(v4(OTHER, &caller).icmp(icmp4(3, 3, [0; 4], &arrived)));
    let sent = gateway.sent();
    let quote = v4(HOST, DOOR).hops(63).udp(4_001, DOOR_PORT, b"hello").octets();
    assert_eq!(sent, v4(DOOR, HOST).hops(63).icmp(icmp4(3, 3, [0; 4], &quote)).octets());
    assert_ne!(port, 0);
}

#[test]
fn every_icmp_error_is_translated_with_what_it_quotes() {
    // RFC 5508 REQ-4, REQ-5: either way, of each type, with the sender of one from outside as it is.
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway);
    let router = "198.51.100.9";
    for (kind, code, rest) in
        [(3, 1, [0; 4]), (3, 4, [0, 0, 5, 0xdc]), (11, 0, [0; 4]), (12, 0, [9, 0, 0, 0])]
    {
        let seen = v4(&outside, SERVER).hops(60).udp(port, 53, b"question").octets();
        gateway.receives(v4(router, &outside).icmp(icmp4(kind, code, rest, &seen)));
        let quote = v4(HOST, SERVER).hops(60).udp(4_001, 53, b"question").octets();
        gateway.sends(v4(router, HOST).hops(63).icmp(icmp4(kind, code, rest, &quote)));

        let seen = v4(SERVER, HOST).hops(60).udp(53, 4_001, b"answer").octets();
        gateway.receives(v4("10.9.9.9", SERVER).icmp(icmp4(kind, code, rest, &seen)));
        let quote = v4(SERVER, &outside).hops(60).udp(53, port, b"answer").octets();
        gateway.sends(v4(&outside, SERVER).hops(63).icmp(icmp4(kind, code, rest, &quote)));
    }
    gateway.sends_nothing();
}

#[test]
fn an_error_with_a_wrong_checksum_is_dropped_and_one_whose_quote_has_a_wrong_one_is_not() {
    // RFC 5508 REQ-3 and c. a) is not followed: routers change what they quote, and without their errors path MTU discovery fails.
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway);
    let mut seen = v4(&outside, SERVER).hops(60).udp(port, 53, b"question").octets();
    let mut inner = v4(SERVER, HOST).hops(60).udp(53, 4_001, b"answer").octets();
    for error in [
        v4(STRANGER, &outside).icmp(icmp4(3, 1, [0; 4], &seen)),
        v4("10.9.9.9", SERVER).icmp(icmp4(3, 1, [0; 4], &inner)),
    ] {
        let mut octets = error.octets();
        octets[22] ^= 1;
        gateway.receives(octets);
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::BadIcmpChecksum));
        gateway.sends_nothing();
    }
    // The checksums of UDP and of the header.
    for at in [26, 10] {
        seen[at] ^= 1;
        inner[at] ^= 1;
        gateway.receives(v4(STRANGER, &outside).icmp(icmp4(3, 1, [0; 4], &seen)));
        assert_eq!(gateway.last, Verdict::Forward, "{at}");
        gateway.sent();
        gateway.receives(v4("10.9.9.9", SERVER).icmp(icmp4(3, 1, [0; 4], &inner)));
        assert_eq!(gateway.last, Verdict::Forward, "{at}");
        gateway.sent();
    }
}

#[test]
fn a_syn_for_which_there_is_no_room_gets_no_answer_before_six_seconds_or_at_all() {
    // RFC 5382 REQ-4 a.
    let mut gateway = gateway(|nat44| nat44.limits.sessions = 8);
    let syn = |port| v4(STRANGER, "192.0.2.1").tcp(port, 2_000, SYN, b"");
    for port in 1..=8 {
        gateway.receives(syn(port));
    }
    let full = u64::from(gateway.last == Verdict::Dropped(DropReason::StoredSynsFull));
    gateway.receives(syn(9));
    assert_eq!((full, gateway.last), (1, Verdict::Dropped(DropReason::StoredSynsFull)));
    gateway.sends_nothing();
}

#[test]
fn an_error_of_a_router_outside_with_an_address_of_the_insides_comes_in() {
    // Providers number their routers with private addresses: without their errors path MTU discovery fails.
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway);
    let seen = v4(&outside, SERVER).hops(60).udp(port, 53, b"question").octets();
    gateway.receives(v4("10.255.0.1", &outside).icmp(icmp4(3, 4, [0, 0, 5, 0xdc], &seen)));
    let quote = v4(HOST, SERVER).hops(60).udp(4_001, 53, b"question").octets();
    gateway.sends(v4("10.255.0.1", HOST).hops(63).icmp(icmp4(3, 4, [0, 0, 5, 0xdc], &quote)));
}

#[test]
fn redirects_and_source_quenches_end_here() {
    // RFC 5508 REQ-10 c, RFC 6633 §5.
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway);
    let seen = v4(&outside, SERVER).udp(port, 53, b"question").octets();
    for kind in [4, 5] {
        let error = v4(STRANGER, &outside).icmp(icmp4(kind, 0, [0; 4], &seen));
        gateway.refuses(error, DropReason::IcmpUntranslatable);
    }
}

#[test]
fn an_error_about_what_nobody_sent_is_dropped() {
    let quotes = |filtering| match filtering {
        Filtering::AddressAndPortDependent => vec![(STRANGER, 0, 53), (SERVER, 2, 53), (SERVER, 0, 54)],
        _ => vec![(STRANGER, 0, 53), (SERVER, 2, 53)],
    };
    for filtering in [Filtering::AddressDependent, Filtering::AddressAndPortDependent] {
        let mut gateway = gateway(|nat44| nat44.filtering = filtering);
        let (outside, port) = opened(&mut gateway);
        for (destination, off, to) in quotes(filtering) {
            let seen = v4(&outside, destination).udp(port ^ off, to, b"question").octets();
            let error = v4(STRANGER, &outside).icmp(icmp4(3, 1, [0; 4], &seen));
            gateway.refuses(error, DropReason::NoSessionForError);
        }
        let seen = v4(&outside, SERVER).hops(60).udp(port, 53, b"question").octets();
        gateway.receives(v4(STRANGER, &outside).icmp(icmp4(3, 1, [0; 4], &seen)));
        assert_eq!(gateway.last, Verdict::Forward);
    }
    let mut gateway = gateway(|_| {});
    opened(&mut gateway);
    // About another subscriber's flow, by a host inside.
    let seen = v4(STRANGER, HOST).udp(53, 4_001, b"answer").octets();
    gateway.refuses(v4(OTHER, STRANGER).icmp(icmp4(3, 1, [0; 4], &seen)), DropReason::NoSessionForError);
}

#[test]
fn echo_and_timestamp_queries_have_sessions_and_other_queries_have_none() {
    // RFC 5508 REQ-1, REQ-10; RFC 6918 §3.
    let mut gateway = gateway(|_| {});
    gateway.receives(v4(HOST, SERVER).echo(7, 1, b"ping"));
    let sent = gateway.sent();
    let (outside, identifier) = source(&sent);
    assert_eq!(sent, v4(&outside, SERVER).hops(63).echo(identifier, 1, b"ping").octets());
    gateway.receives(v4(SERVER, &outside).echo_reply(identifier, 1, b"ping"));
    gateway.sends(v4(SERVER, HOST).hops(63).echo_reply(7, 1, b"ping"));
    // The same identifier: the same binding.
    gateway.receives(v4(HOST, SERVER).icmp(icmp4(13, 0, [0, 7, 0, 1], &[0; 12])));
    let [a, b] = identifier.to_be_bytes();
    gateway.sends(v4(&outside, SERVER).hops(63).icmp(icmp4(13, 0, [a, b, 0, 1], &[0; 12])));
    gateway.receives(v4(SERVER, &outside).icmp(icmp4(14, 0, [a, b, 0, 1], &[0; 12])));
    gateway.sends(v4(SERVER, HOST).hops(63).icmp(icmp4(14, 0, [0, 7, 0, 1], &[0; 12])));
    // An error about a query.
    let seen = v4(&outside, SERVER).hops(60).icmp(icmp4(13, 0, [a, b, 0, 1], &[0; 12])).octets();
    gateway.receives(v4(STRANGER, &outside).icmp(icmp4(11, 0, [0; 4], &seen)));
    let quote = v4(HOST, SERVER).hops(60).icmp(icmp4(13, 0, [0, 7, 0, 1], &[0; 12])).octets();
    gateway.sends(v4(STRANGER, HOST).hops(63).icmp(icmp4(11, 0, [0; 4], &quote)));
    gateway.counted_before();
    for kind in [9, 10, 15, 16, 17, 18, 40] {
        let query = v4(HOST, SERVER).icmp(icmp4(kind, 0, [0, 7, 0, 1], &[0; 12]));
        gateway.refuses(query, DropReason::IcmpUntranslatable);
    }
}

#[test]
fn fragments_in_any_order_are_translated_with_their_packet() {
    // RFC 4787 REQ-14. Their identifications outside are not those of other hosts (RFC 6864 §5.3.1).
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway);
    let data = [7; 1_400];
    let whole = v4(HOST, SERVER).may_fragment().identification(0x77).udp(4_001, 53, &data);
    gateway.receives(whole.clone().fragment(0x77, 800, false).part(800, 1_408));
    gateway.receives(whole.fragment(0x77, 0, true).part(0, 800));
    let sent = gateway.sent();
    let identification = u32::from(u16::from_be_bytes([sent[4], sent[5]]));
    let expected = v4(&outside, SERVER).may_fragment().hops(63).identification(identification);
    assert_eq!(sent, expected.udp(port, 53, &data).octets());
    gateway.receives(v4(OTHER, SERVER).may_fragment().identification(0x77).udp(4_001, 53, &data));
    let other = gateway.sent();
    assert_ne!(u32::from(u16::from_be_bytes([other[4], other[5]])), identification);
    assert!(checksum_is_right(&other));
    // Back, and its identification is the sender's.
    let whole = v4(SERVER, &outside).may_fragment().identification(0x99).udp(53, port, &data);
    gateway.receives(whole.clone().fragment(0x99, 0, true).part(0, 800));
    gateway.receives(whole.fragment(0x99, 800, false).part(800, 1_408));
    gateway.sends(v4(SERVER, HOST).may_fragment().hops(63).identification(0x99).udp(53, 4_001, &data));
}

#[test]
fn fragments_from_outside_take_no_room_from_those_from_inside() {
    let mut gateway = support::gateway(|config| {
        config.nat44.push(support::nat44());
        config.fragments.packets = 4;
    });
    let (outside, _) = opened(&mut gateway);
    for number in 0..20 {
        let source = format!("203.0.113.{}", 10 + number);
        gateway.receives(v4(&source, &outside).udp(1, 2, &[0; 64]).fragment(number, 0, true).part(0, 32));
    }
    let dropped = gateway.engine.counters().dropped;
    let (of_share, of_table) =
        (dropped[DropReason::FragmentShare as usize], dropped[DropReason::FragmentMemory as usize]);
    assert_eq!((of_share, of_table), (0, 16), "newer ones replace older ones in their table");
    let whole = v4(HOST, SERVER).udp(4_001, 53, &[1; 64]);
    gateway.receives(whole.clone().fragment(1, 0, true).part(0, 32));
    assert_eq!(gateway.last, Verdict::Held);
    gateway.receives(whole.fragment(1, 32, false).part(32, 72));
    assert_eq!(source(&gateway.sent()).0, outside);
}

#[test]
fn a_checksum_of_zero_stays() {
    // RFC 768: no checksum was computed.
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway);
    gateway.receives(v4(HOST, SERVER).udp(4_001, 53, b"plain").without_checksum());
    gateway.sends(v4(&outside, SERVER).hops(63).udp(port, 53, b"plain").without_checksum());
}

#[test]
fn options_and_the_traffic_class_are_carried() {
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway);
    let alert = [0x94, 4, 0, 0];
    gateway.receives(v4(HOST, SERVER).tos(0xb9).options(&alert).udp(4_001, 53, b"x"));
    gateway.sends(v4(&outside, SERVER).hops(63).tos(0xb9).options(&alert).udp(port, 53, b"x"));
}

#[test]
fn a_packet_too_large_for_the_link_is_answered_or_cut() {
    let mut gateway = support::gateway(|config| {
        config.nat44.push(support::nat44());
        config.limits.mtu4 = 1_400;
    });
    let (outside, _) = opened(&mut gateway);
    gateway.receives(v4(HOST, SERVER).udp(4_001, 53, &[0; 1_452]));
    let error = gateway.sent();
    assert_eq!((error[20], error[21], &error[26..28]), (3, 4, &1_400_u16.to_be_bytes()[..]));
    assert_eq!(&error[16..20], &[10, 0, 0, 1]);
    gateway.receives(v4(HOST, SERVER).may_fragment().udp(4_001, 53, &[0; 1_452]));
    let (first, second) = (gateway.sent(), gateway.sent());
    assert_eq!(first[4..6], second[4..6], "one identification");
    assert!(first.len() <= 1_400 && first[6] & 0x20 != 0 && source(&first).0 == outside);
}

#[test]
fn an_unsolicited_syn_is_answered_after_six_seconds() {
    // RFC 5382 REQ-4.
    let mut gateway = gateway(|_| {});
    opened(&mut gateway);
    let syn = v4(STRANGER, "192.0.2.2").tcp(5_001, 4_711, SYN, b"");
    gateway.receives(syn.clone());
    assert_eq!(gateway.last, Verdict::Held);
    gateway.waits(Duration::from_secs(5));
    gateway.sends_nothing();
    gateway.waits(Duration::from_secs(2));
    let error = gateway.sent();
    assert_eq!((error[20], error[21]), (3, 3));
    assert_eq!(error[28..56], syn.octets()[..28]);
}

#[test]
fn a_silent_connection_is_probed_before_it_ends() {
    let mut gateway = gateway(|_| {});
    gateway.receives(v4(HOST, SERVER).tcp(4_001, 443, SYN, b""));
    let (outside, port) = source(&gateway.sent());
    gateway.receives(v4(SERVER, &outside).tcp(443, port, SYN | ACK, b""));
    gateway.sent();
    gateway.receives(v4(HOST, SERVER).tcp(4_001, 443, ACK, b""));
    gateway.sent();
    gateway.waits(Duration::from_secs(7_201));
    let probe = gateway.sent();
    assert_eq!(
        (probe[9], probe[33], &probe[12..16], &probe[16..20]),
        (6, ACK, &[203, 0, 113, 1][..], &[10, 0, 0, 1][..])
    );
    assert!(checksum_is_right(&probe));
}

#[test]
fn a_reset_alone_does_not_end_a_session() {
    let mut gateway = gateway(|_| {});
    gateway.receives(v4(HOST, SERVER).tcp(4_001, 443, SYN, b""));
    let (outside, port) = source(&gateway.sent());
    gateway.receives(v4(SERVER, &outside).tcp(443, port, SYN | ACK, b""));
    gateway.sent();
    gateway.receives(v4(SERVER, &outside).tcp(443, port, RST, b""));
    gateway.sent();
    gateway.receives(v4(HOST, SERVER).tcp(4_001, 443, ACK, b"data"));
    assert_eq!(source(&gateway.sent()), (outside, port));
}

#[test]
fn addresses_that_the_operator_excludes_and_this_hosts_have_no_sessions() {
    let mut gateway = support::gateway(|config| {
        let mut nat44 = support::nat44();
        nat44.excluded = vec!["198.18.0.0/15".parse().unwrap()];
        config.nat44.push(nat44);
        config.host4 = vec!["172.16.0.1".parse().unwrap()];
    });
    let (outside, port) = opened(&mut gateway);
    for (destination, reason) in [
        ("198.18.0.1", DropReason::ExcludedIpv4),
        ("172.16.0.1", DropReason::DestinationIsHost),
        ("169.254.169.254", DropReason::LinkLocalIpv4),
        ("240.0.0.1", DropReason::MartianDestination),
    ] {
        gateway.receives(v4(HOST, destination).udp(4_001, 80, b""));
        assert_eq!(gateway.last, Verdict::Dropped(reason), "{destination}");
    }
    for (from, reason) in
        [("198.18.0.1", DropReason::ExcludedIpv4), ("169.254.0.1", DropReason::LinkLocalIpv4)]
    {
        gateway.receives(v4(from, &outside).udp(80, port, b""));
        assert_eq!(gateway.last, Verdict::Dropped(reason), "{from}");
    }
}

#[test]
fn the_pool_may_be_this_hosts_own_address() {
    let mut gateway = support::gateway(|config| {
        let mut nat44 = support::nat44();
        with_door(&mut nat44);
        config.nat44.push(nat44);
        config.host4 = vec![DOOR.parse().unwrap()];
    });
    gateway.receives(v4(HOST, DOOR).tcp(4_001, DOOR_PORT, SYN, b""));
    assert_eq!(gateway.sent()[16..20], [10, 0, 0, 2]);
}

#[test]
fn a_fragment_from_outside_is_held_only_for_an_address_with_bindings() {
    let mut gateway = gateway(|_| {});
    let (outside, _) = opened(&mut gateway);
    let unused = (0..4).map(|last| format!("192.0.2.{last}")).find(|address| *address != outside).unwrap();
    let part = |to: &str| v4(SERVER, to).udp(53, 9, &[0; 64]).fragment(1, 0, true).part(0, 32);
    gateway.receives(part(&unused));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoBinding));
    gateway.sent();
    gateway.receives(part(&outside));
    assert_eq!(gateway.last, Verdict::Held);
    gateway.receives(v4(SERVER, &outside).protocol(132, &[0; 64], None).fragment(2, 0, true).part(0, 32));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::ProtocolUnsupported));
}

#[test]
fn an_error_from_inside_about_an_echo_reply_has_its_identifier() {
    let mut gateway = gateway(|_| {});
    gateway.receives(v4(HOST, SERVER).echo(7, 1, b"ping"));
    let (outside, identifier) = source(&gateway.sent());
    let seen = v4(SERVER, HOST).hops(60).echo_reply(7, 1, b"ping").octets();
    gateway.receives(v4(HOST, SERVER).icmp(icmp4(3, 2, [0; 4], &seen)));
    let quote = v4(SERVER, &outside).hops(60).echo_reply(identifier, 1, b"ping").octets();
    gateway.sends(v4(&outside, SERVER).hops(63).icmp(icmp4(3, 2, [0; 4], &quote)));
}

#[test]
fn an_error_about_a_stored_syn_is_not_the_inside_hosts() {
    let mut gateway = gateway(|nat44| nat44.filtering = Filtering::AddressAndPortDependent);
    gateway.receives(v4(HOST, SERVER).tcp(4_001, 443, SYN, b""));
    let (outside, port) = source(&gateway.sent());
    gateway.receives(v4(STRANGER, &outside).tcp(5_001, port, SYN, b""));
    assert_eq!(gateway.last, Verdict::Held);
    let seen = v4(&outside, STRANGER).tcp(port, 5_001, SYN | ACK, b"").octets();
    gateway.counted_before();
    gateway.refuses(
        v4("198.51.100.9", &outside).icmp(icmp4(3, 1, [0; 4], &seen)),
        DropReason::NoSessionForError,
    );
}

#[test]
fn the_fast_path_gets_sessions_of_hosts_by_their_mapped_addresses() {
    let mut gateway = gateway(|_| {});
    let fast_path = support::fast_path::MemoryFastPath::new(8);
    gateway.engine.set_fast_path(Box::new(fast_path.clone()), 1);
    for _ in 0..20 {
        opened(&mut gateway);
        gateway.engine.emptied(gateway.now);
        gateway.engine.settle(gateway.now);
    }
    let (_, entry) = fast_path.only();
    assert_eq!(entry.flow.mechanism, Identity::of_nat44());
    assert_eq!(entry.flow.inside.0.address.to_ipv4_mapped(), Some(HOST.parse().unwrap()));
}

#[test]
fn between_inside_hosts_and_to_exceptions_nothing_is_translated() {
    let mut gateway = gateway(|nat44| nat44.except = vec!["172.20.0.0/16".parse().unwrap()]);
    for destination in [OTHER, "172.20.0.1"] {
        gateway.receives(v4(HOST, destination).udp(4_001, 80, b""));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoMechanism), "{destination}");
    }
    // Packets of hosts that are not inside do not leave either.
    gateway.receives(v4("172.30.0.1", SERVER).udp(4_001, 80, b""));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoMechanism));
}

#[test]
fn a_source_of_the_pool_from_outside_is_refused() {
    let mut gateway = gateway(with_door);
    gateway.refuses(v4("192.0.2.2", DOOR).udp(1_111, DOOR_PORT, b""), DropReason::SourceInPool);
}

#[test]
fn next_to_a_stateless_translator_inside_hosts_are_translated_by_the_nat() {
    let mut gateway = support::gateway(|config| {
        config.nat44.push(support::nat44());
        let prefix = Some(support::prefix("2001:db8:64::/96"));
        config.siit.push(SiitConfig { prefix, ..SiitConfig::default() });
    });
    opened(&mut gateway);
    gateway.receives(v4(STRANGER, SERVER).udp(1, 2, b""));
    assert_eq!(gateway.sent()[0] >> 4, 6, "what nobody claims is still the stateless translator's");
}

#[test]
fn behind_a_tunnel_and_at_another_translators_pool_an_inside_host_is_known_as_it_should_be() {
    let mut gateway = support::gateway(|config| {
        config.nat44.push(support::nat44());
        let mut nat64 = support::nat64();
        nat64.pool.addresses = vec!["192.0.2.8/30".parse().unwrap()];
        config.nat64.push(nat64);
        config.tunnels.push(TunnelConfig::IpInIp(IpInIpConfig {
            local: "2001:db8:aaaa::1".parse().unwrap(),
            remote: "2001:db8:bbbb::1".parse().ok(),
            prefixes4: vec!["172.20.0.0/16".parse().unwrap()],
            prefixes6: Vec::new(),
            strict_sources: true,
            policy: TunnelPolicy::default(),
        }));
    });
    // Another site of the owner.
    let packet = v4(HOST, "172.20.0.1").udp(4_001, 53, b"question");
    gateway.receives(packet.clone());
    let sent = gateway.sent();
    assert!(sent[0] >> 4 == 6 && sent.ends_with(&packet.octets()), "{sent:x?}");
    // The kernel routes it back, for the NAT64 to look at its outside address.
    gateway.receives(v4(HOST, "192.0.2.9").udp(4_001, 53, b"question"));
    assert!(source(&gateway.sent()).0.starts_with("192.0.2."));
}

#[test]
fn a_batch_and_single_packets_are_decided_alike() {
    let mut single = gateway(|_| {});
    let packets: Vec<Build> = (0..40).map(|n| v4(HOST, SERVER).udp(4_000 + n, 53, b"question")).collect();
    let mut batch = support::gateway(|config| config.nat44.push(support::nat44()));
    let mut frames: Vec<Frame> = packets.iter().map(|packet| Frame::holding(&packet.octets())).collect();
    batch.engine.process(&mut frames, batch.now, &mut Outbox::new(64));
    for (packet, frame) in packets.into_iter().zip(&frames) {
        single.receives(packet);
        assert_eq!(frame.verdict, Verdict::Forward);
        assert_eq!(single.sent(), frame.bytes());
    }
}

#[test]
fn a_static_binding_of_a_host_that_is_not_inside_is_refused() {
    let mut gateway = gateway(|_| {});
    let mapped = |address: &str| address.parse::<Ipv4Addr>().unwrap().to_ipv6_mapped();
    let (translator, _) = gateway.engine.stateful_at(0).unwrap();
    let binding = |inside| StaticBinding {
        softwire: None,
        protocol: NatProtocol::Udp,
        inside: Inside(Endpoint6::new(inside, 80)),
        outside: Outside(Endpoint4::new(DOOR.parse().unwrap(), DOOR_PORT)),
    };
    let refused = |error| Err::<(), _>(error);
    assert_eq!(translator.add_static(&binding(mapped("172.16.0.1"))), refused(StaticBindingError::NotInside));
    let other = "2001:db8::1".parse().unwrap();
    assert_eq!(translator.add_static(&binding(other)), refused(StaticBindingError::OtherFamily));
    assert_eq!(translator.add_static(&binding(mapped(HOST))), Ok(()));
    gateway.receives(v4(STRANGER, DOOR).udp(1_111, DOOR_PORT, b"hello"));
    gateway.sends(v4(STRANGER, HOST).hops(63).udp(1_111, 80, b"hello"));
}

#[test]
fn a_subscriber_is_an_address_and_has_its_limit() {
    // RFC 6888 REQ-4.
    let mut gateway = gateway(|nat44| nat44.limits.of_subscriber.bindings = 10);
    for port in 0..11 {
        gateway.receives(v4(HOST, SERVER).udp(4_000 + port, 53, b""));
    }
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::SubscriberLimit));
    gateway.receives(v4(OTHER, SERVER).udp(4_000, 53, b""));
    assert_eq!(gateway.last, Verdict::Forward);
}

/// Several workers' engines, which hand frames over as the rings do.
struct Workers {
    engines: Vec<Engine>,
    now: Instant,
}

impl Workers {
    fn new(count: u8) -> Self {
        Self::with(count, with_door)
    }

    fn with(count: u8, edit: fn(&mut Nat44Config)) -> Self {
        let engine = |worker| {
            let gateway = support::gateway(|config| {
                let mut nat44 = support::nat44();
                edit(&mut nat44);
                config.nat44.push(nat44);
                (config.worker, config.workers) = (WorkerId(worker), count);
            });
            gateway.engine
        };
        Self { engines: (0..count).map(engine).collect(), now: Instant::from_secs(1_000) }
    }

    /// A packet comes in at a worker: what leaves, from whichever.
    fn receive(&mut self, at: usize, packet: Vec<u8>) -> Vec<u8> {
        match self.take(at, packet) {
            Ok(sent) => sent,
            Err(verdict) => panic!("{verdict:?}"),
        }
    }

    fn take(&mut self, at: usize, packet: Vec<u8>) -> Result<Vec<u8>, Verdict> {
        let mut frame = Frame::holding(&packet);
        let mut out = Outbox::new(64);
        self.engines[at].process(std::slice::from_mut(&mut frame), self.now, &mut out);
        for _ in 0..4 {
            match frame.verdict {
                Verdict::Forward => return Ok(frame.bytes().to_vec()),
                Verdict::HandOver(worker) => {
                    let engine = &mut self.engines[usize::from(worker.0)];
                    engine.take_over(std::slice::from_mut(&mut frame), self.now, &mut out);
                }
                verdict => return Err(verdict),
            }
        }
        panic!("it is handed over and over");
    }

    /// The sessions, as another process gets them.
    fn export(&mut self) -> Vec<(Identity, SavedSession)> {
        let mut all = Vec::new();
        for engine in &mut self.engines {
            for translator in engine.stateful() {
                let mut saved = Vec::new();
                assert_eq!(translator.export(0, u32::MAX, self.now, &mut saved), None);
                all.extend(saved.into_iter().map(|one| (translator.identity(), one)));
            }
        }
        all
    }

    /// Restores sessions; how many, and why others were not.
    fn restore(&mut self, sessions: &[(Identity, SavedSession)]) -> (usize, Vec<NotAdopted>) {
        let Some((identity, _)) = sessions.first() else { return (0, Vec::new()) };
        let ends = sessions.iter().map(|(_, one)| (one.inside, one.protocol, one.outside));
        Engine::unite(&mut self.engines, *identity, ends);
        let (mut restored, mut refused) = (0, Vec::new());
        for (identity, session) in sessions {
            let outcomes = self.engines.iter_mut().map(|engine| {
                let found = engine.stateful_of(*identity, session.outside.0);
                let (translator, counters) = found.unwrap();
                translator.restore(session, self.now, counters)
            });
            match outcomes.into_iter().find(|outcome| *outcome != Err(NotAdopted::OtherWorker)) {
                Some(Ok(())) => restored += 1,
                other => refused.push(other.map_or(NotAdopted::OtherWorker, |why| why.unwrap_err())),
            }
        }
        (restored, refused)
    }
}

#[test]
fn sessions_continue_in_another_process_with_another_number_of_workers() {
    for (before, after) in [(1, 3), (4, 1), (2, 2)] {
        let mut old = Workers::new(before);
        let hosts: Vec<String> = (1..=32).map(|n| format!("10.0.{n}.1")).collect();
        let outsides: Vec<_> = hosts
            .iter()
            .map(|host| source(&old.receive(0, v4(host, SERVER).udp(4_001, 53, b"question").octets())))
            .collect();
        let saved = old.export();
        assert_eq!(saved.len(), hosts.len());
        let mut new = Workers::new(after);
        assert_eq!(new.restore(&saved), (hosts.len(), Vec::new()), "from {before} to {after} workers");
        for (host, (outside, port)) in hosts.iter().zip(&outsides) {
            let answer = v4(SERVER, outside).udp(53, *port, b"answer").octets();
            let expected = v4(SERVER, host).hops(63).udp(53, 4_001, b"answer").octets();
            assert_eq!(new.receive(0, answer), expected);
            let sent = new.receive(0, v4(host, SERVER).udp(4_001, 53, b"more").octets());
            assert_eq!(source(&sent), (outside.clone(), *port));
        }
    }
}

#[test]
fn sessions_of_who_is_not_inside_any_more_end_with_the_process() {
    let mut old = Workers::new(1);
    old.receive(0, v4(HOST, SERVER).udp(4_001, 53, b"question").octets());
    old.receive(0, v4("10.1.0.1", SERVER).udp(4_001, 53, b"question").octets());
    old.receive(0, v4(HOST, STRANGER).udp(4_002, 53, b"question").octets());
    let saved = old.export();
    let mut new = Workers::with(1, |nat44| {
        nat44.inside = vec!["10.0.0.0/16".parse().unwrap()];
        nat44.excluded = vec![format!("{STRANGER}/32").parse().unwrap()];
    });
    assert_eq!(new.restore(&saved), (1, vec![NotAdopted::AddressRefused; 2]));
    let mut at_home = Workers::new(1);
    at_home.engines[0].set_tunnels(&[], &[SERVER.parse().unwrap()], &[]);
    assert_eq!(
        at_home.restore(&saved),
        (1, vec![NotAdopted::AddressRefused; 2]),
        "the server's address is this host's"
    );
}

#[test]
fn of_two_translators_the_one_with_the_outside_address_has_the_session() {
    let engine = || {
        let gateway = support::gateway(|config| {
            let mut other = support::nat44();
            other.inside = vec!["172.16.0.0/12".parse().unwrap()];
            other.pool.addresses = vec!["192.0.2.8/30".parse().unwrap()];
            config.nat44 = vec![support::nat44(), other];
        });
        Workers { engines: vec![gateway.engine], now: Instant::from_secs(1_000) }
    };
    let mut old = engine();
    for host in [HOST, "172.16.0.1"] {
        old.receive(0, v4(host, SERVER).udp(4_001, 53, b"question").octets());
    }
    let saved = old.export();
    let mut new = engine();
    assert_eq!(new.restore(&saved), (2, Vec::new()));
    assert_eq!(new.engines[0].stateful().map(|one| one.occupancy().sessions).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn rows_are_selected_by_the_mapped_addresses_of_inside_hosts() {
    let mut gateway = gateway(with_door);
    for host in [HOST, "10.1.0.1"] {
        gateway.receives(v4(host, SERVER).udp(4_001, 53, b"question"));
    }
    let now = gateway.now;
    let mut rows = |inside: Option<&str>| {
        let selection = Selection { inside: inside.map(|it| it.parse().unwrap()), ..Selection::default() };
        let (translator, _) = gateway.engine.stateful_at(0).unwrap();
        let (mut sessions, mut bindings) = (Vec::new(), Vec::new());
        assert_eq!(translator.sessions(0, u32::MAX, &selection, now, &mut sessions), None);
        assert_eq!(translator.bindings(0, u32::MAX, &selection, &mut bindings), None);
        let hosts = sessions.iter().map(|row| row.inside.unwrap().0.address.to_string());
        (hosts.collect::<Vec<_>>(), bindings.len())
    };
    assert_eq!(rows(None), (vec!["::ffff:10.0.0.1".to_owned(), "::ffff:10.1.0.1".to_owned()], 5));
    assert_eq!(rows(Some("::ffff:10.0.0.0/112")), (vec!["::ffff:10.0.0.1".to_owned()], 4));
    assert_eq!(rows(Some("2001:db8::/32")), (vec![], 0));
}

#[test]
fn an_operator_ends_sessions_and_bindings() {
    let mut gateway = gateway(with_door);
    let (outside, port) = opened(&mut gateway);
    let mapped = |address: &str, port| {
        Inside(Endpoint6::new(address.parse::<Ipv4Addr>().unwrap().to_ipv6_mapped(), port))
    };
    let server = Endpoint4::new(SERVER.parse().unwrap(), 53);
    let (translator, counters) = gateway.engine.stateful_at(0).unwrap();
    assert!(!translator.end_session(NatProtocol::Udp, mapped(OTHER, 4_001).into(), server, counters));
    assert!(translator.end_session(NatProtocol::Udp, mapped(HOST, 4_001).into(), server, counters));
    let (outside, port) = {
        gateway.receives(v4(SERVER, &outside).udp(53, port, b"late"));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoBinding));
        gateway.sent();
        opened(&mut gateway)
    };
    let ended = Outside(Endpoint4::new(outside.parse().unwrap(), port));
    let (translator, counters) = gateway.engine.stateful_at(0).unwrap();
    assert_eq!(translator.end_binding(NatProtocol::Udp, ended, 8, counters), Some(true));
    let binding = StaticBinding {
        softwire: None,
        protocol: NatProtocol::Udp,
        inside: mapped(OTHER, 80),
        outside: Outside(Endpoint4::new(DOOR.parse().unwrap(), DOOR_PORT)),
    };
    assert_eq!(translator.remove_static(&binding, 8, counters), Some(true));
    assert_eq!(translator.remove_static(&binding, 8, counters), None);
    assert_eq!(translator.occupancy().bindings, 2, "those of TCP and ICMP");
}

#[test]
fn whichever_worker_a_packet_comes_to_its_owner_decides() {
    let mut workers = Workers::new(4);
    for host in 1..=16 {
        let host = format!("10.0.{host}.1");
        let sent = workers.receive(0, v4(&host, SERVER).udp(4_001, 53, b"question").octets());
        let (outside, port) = source(&sent);
        for at in 0..4 {
            let sent = workers.receive(at, v4(SERVER, &outside).udp(53, port, b"answer").octets());
            assert_eq!(sent, v4(SERVER, &host).hops(63).udp(53, 4_001, b"answer").octets());
            let ping = v4(&host, SERVER).echo(7, 1, b"ping").octets();
            let (pinger, identifier) = source(&workers.receive(at, ping));
            let reply = v4(SERVER, &pinger).echo_reply(identifier, 1, b"ping").octets();
            let expected = v4(SERVER, &host).hops(63).echo_reply(7, 1, b"ping").octets();
            assert_eq!(workers.receive(at, reply), expected);
            let seen = v4(&outside, SERVER).udp(port, 53, b"question").octets();
            let error = v4("10.255.0.1", &outside).icmp(icmp4(11, 0, [0; 4], &seen)).octets();
            let quote = v4(&host, SERVER).udp(4_001, 53, b"question").octets();
            let expected = v4("10.255.0.1", &host).hops(63).icmp(icmp4(11, 0, [0; 4], &quote)).octets();
            assert_eq!(workers.receive(at, error), expected);
            let seen = v4(SERVER, &host).udp(53, 4_001, b"answer").octets();
            let error = v4(&host, SERVER).icmp(icmp4(3, 3, [0; 4], &seen)).octets();
            assert_eq!(source(&workers.receive(at, error)).0, outside);
            // A hairpin of two workers.
            let sent = workers.receive(at, v4(&host, DOOR).udp(4_001, DOOR_PORT, b"hello").octets());
            assert_eq!(sent, v4(&outside, OTHER).hops(63).udp(port, 80, b"hello").octets());
        }
    }
}
