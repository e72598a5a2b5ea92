//! Two hosts behind the same NAT64 talk by their outside endpoints (RFC 6146 §3.8), as either of them would with any other host:
//! TCP, UDP, echo, fragments, errors; and with hosts that a stateless translator maps.

use crate::support;
use crate::support::{Gateway, checksum_is_right, eam, icmp6, v6};
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::nat::{Filtering, Inside, NatProtocol, Outside, StaticBinding};
use sixway_dataplane::{DropReason, Limits, Verdict};
use sixway_wire::{Endpoint4, Endpoint6};
use std::net::{Ipv4Addr, Ipv6Addr};

const CALLER: &str = "2001:db8:1::1";
const CALLED: &str = "2001:db8:1::2";
const SERVER6: &str = "64:ff9b::203.0.113.2";
/// The called host's static endpoint, as those inside see it.
const DOOR: &str = "64:ff9b::192.0.2.1";
const DOOR_PORT: u16 = 8_080;
const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// The called host has a static binding for each protocol.
fn gateway(filtering: Filtering) -> Gateway {
    support::gateway(|config| config.nat64.push(with_door(filtering)))
}

fn with_door(filtering: Filtering) -> sixway_dataplane::mechanism::nat64::Nat64Config {
    let mut nat64 = support::nat64();
    nat64.filtering = filtering;
    for protocol in [NatProtocol::Tcp, NatProtocol::Udp, NatProtocol::Icmp] {
        nat64.static_bindings.push(StaticBinding {
            softwire: None,
            protocol,
            inside: Inside(Endpoint6::new(CALLED.parse().unwrap(), 80)),
            outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), DOOR_PORT)),
        });
    }
    nat64
}

/// Source address and port (or identifier) of an IPv6 packet.
fn source(packet: &[u8]) -> (String, u16) {
    let port_at = if packet[6] == 58 { 44 } else { 40 };
    let address = Ipv6Addr::from(<[u8; 16]>::try_from(&packet[8..24]).unwrap());
    (address.to_string(), u16::from_be_bytes([packet[port_at], packet[port_at + 1]]))
}

#[test]
fn a_connection_lives_and_ends_between_two_hosts() {
    for filtering in [Filtering::EndpointIndependent, Filtering::AddressDependent] {
        let mut gateway = gateway(filtering);
        gateway.receives(v6(CALLER, DOOR).tcp(4_001, DOOR_PORT, SYN, b""));
        let sent = gateway.sent();
        let (caller, port) = source(&sent);
        assert_eq!(sent, v6(&caller, CALLED).hops(63).tcp(port, 80, SYN, b"").octets());
        assert!(caller.starts_with("64:ff9b::"));
        for (flags, from_caller) in [
            (SYN | ACK, false),
            (ACK, true),
            (ACK, false),
            (FIN | ACK, true),
            (FIN | ACK, false),
            (ACK, true),
        ] {
            if from_caller {
                gateway.receives(v6(CALLER, DOOR).tcp(4_001, DOOR_PORT, flags, b"data"));
                gateway.sends(v6(&caller, CALLED).hops(63).tcp(port, 80, flags, b"data"));
            } else {
                gateway.receives(v6(CALLED, &caller).tcp(80, port, flags, b"data"));
                gateway.sends(v6(DOOR, CALLER).hops(63).tcp(DOOR_PORT, 4_001, flags, b"data"));
            }
        }
        // One session for either host, and a binding for the caller in addition to the static one.
        gateway.counted([
            ("nat64.v6_to_v4", 7),
            ("nat64.v4_to_v6", 7),
            ("nat.bindings.made", 1),
            ("nat.sessions.made", 2),
        ]);
    }
}

#[test]
fn a_ping_of_ones_own_outside_address_reaches_oneself_and_no_other_host() {
    let mut gateway = gateway(Filtering::EndpointIndependent);
    gateway.receives(v6(CALLER, SERVER6).echo(7, 1, b"ping"));
    let sent = gateway.sent();
    let own = format!("64:ff9b::{}", Ipv4Addr::new(sent[12], sent[13], sent[14], sent[15]));
    gateway.receives(v6(CALLER, &own).echo(7, 2, b"ping"));
    gateway.sends(v6(&own, CALLER).hops(63).echo(7, 2, b"ping"));
    gateway.receives(v6(CALLER, &own).echo_reply(7, 2, b"ping"));
    gateway.sends(v6(&own, CALLER).hops(63).echo_reply(7, 2, b"ping"));
    // The identifier is the caller's outside port: no host has it at another address.
    for last in 0..4 {
        let other = format!("64:ff9b::192.0.2.{last}");
        if other != own {
            gateway.receives(v6(CALLER, &other).echo(7, 3, b"ping"));
            assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoBinding), "{other}");
            // The answer to an IPv4 sender, translated: Host Unreachable becomes No Route.
            let error = gateway.sent();
            assert_eq!((error[6], error[40], error[41]), (58, 1, 0), "{other}");
        }
    }
    gateway.sends_nothing();
}

#[test]
fn a_host_talks_to_itself_by_its_outside_endpoint() {
    let mut gateway = gateway(Filtering::EndpointIndependent);
    gateway.receives(v6(CALLED, DOOR).udp(4_001, DOOR_PORT, b"hello"));
    let sent = gateway.sent();
    let (seen, port) = source(&sent);
    assert_eq!(sent, v6(&seen, CALLED).hops(63).udp(port, 80, b"hello").octets());
    gateway.receives(v6(CALLED, &seen).udp(80, port, b"hello yourself"));
    gateway.sends(v6(DOOR, CALLED).hops(63).udp(DOOR_PORT, 4_001, b"hello yourself"));
}

#[test]
fn filtering_holds_between_hosts_too() {
    let mut gateway = gateway(Filtering::AddressDependent);
    gateway.receives(v6(CALLED, SERVER6).udp(7_000, 53, b"question"));
    let sent = gateway.sent();
    let seen = format!("64:ff9b::{}", Ipv4Addr::new(sent[12], sent[13], sent[14], sent[15]));
    let port = u16::from_be_bytes([sent[20], sent[21]]);
    gateway.receives(v6(CALLER, &seen).udp(4_001, port, b"hello"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::Filtered));
    let error = gateway.sent();
    assert_eq!((error[6], error[40], error[41]), (58, 1, 1), "administratively prohibited");
    assert_eq!(error[24..40], CALLER.parse::<std::net::Ipv6Addr>().unwrap().octets());
}

#[test]
fn an_error_crosses_the_hairpin_with_its_quote_as_the_sender_sent_it() {
    let mut gateway = gateway(Filtering::EndpointIndependent);
    let kinds = [(1u8, 4u8, [0u8; 4]), (3, 0, [0; 4]), (2, 0, 1_400u32.to_be_bytes())];
    for (n, (kind, code, rest)) in kinds.into_iter().enumerate() {
        let from = 4_001 + n as u16;
        gateway.receives(v6(CALLER, DOOR).hops(9).udp(from, DOOR_PORT, b"hello"));
        let arrived = gateway.sent();
        let (caller, _) = source(&arrived);
        gateway.receives(v6(CALLED, &caller).icmp(icmp6(kind, code, rest, &arrived)));
        let as_sent = v6(CALLER, DOOR).hops(8).udp(from, DOOR_PORT, b"hello").octets();
        gateway.sends(v6(DOOR, CALLER).hops(63).icmp(icmp6(kind, code, rest, &as_sent)));
    }
}

#[test]
fn only_the_last_result_of_a_hairpin_is_judged_by_its_size() {
    let mut gateway = support::gateway(|config| {
        config.limits = Limits { mtu4: 1_000, mtu6: 1_500 };
        config.nat64.push(with_door(Filtering::EndpointIndependent));
    });
    gateway.receives(v6(CALLER, DOOR).udp(4_001, DOOR_PORT, &[7; 1_452]));
    let sent = gateway.sent();
    assert_eq!(sent.len(), 1_500);
    assert!(checksum_is_right(&sent));
}

#[test]
fn a_hairpin_that_is_refused_on_its_way_back_is_reported_to_the_host_that_sent_it() {
    let mut gateway = support::gateway(|config| {
        config.limits = Limits { mtu4: 1_500, mtu6: 1_400 };
        config.nat64.push(with_door(Filtering::EndpointIndependent));
    });
    let packet = v6(CALLER, DOOR).udp(4_001, DOOR_PORT, &[7; 1_400]).octets();
    gateway.receives(packet.clone());
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::PacketTooBig));
    let sent = gateway.sent();
    assert_eq!(sent[24..40], CALLER.parse::<Ipv6Addr>().unwrap().octets());
    assert_eq!((sent[40], sent[41], &sent[44..48]), (2, 0, &1_400u32.to_be_bytes()[..]));
    assert_eq!(sent[48..], packet[..1_232], "the packet as it was sent");
}

#[test]
fn fragments_are_put_together_before_they_are_turned_around() {
    let data: Vec<u8> = (0..1_800u32).map(|n| n as u8).collect();
    for order in [[0, 1], [1, 0]] {
        let mut gateway = gateway(Filtering::EndpointIndependent);
        let whole = v6(CALLER, DOOR).udp(4_000, DOOR_PORT, &data);
        let parts = [
            whole.clone().fragment(0xabcd, 0, true).part(0, 1_232),
            whole.fragment(0xabcd, 1_232, false).part(1_232, 1_808),
        ];
        for index in order {
            gateway.receives(parts[index].clone());
        }
        let (first, second) = (gateway.sent(), gateway.sent());
        assert!(first.len() <= 1_500 && second.len() <= 1_500);
        let carried = [&first[48..], &second[48..]].concat();
        assert_eq!((&carried[2..4], &carried[8..]), (&80u16.to_be_bytes()[..], &data[..]));
        assert_eq!(first[44..48], second[44..48], "one packet");
    }
}

#[test]
fn a_host_of_the_nat64_reaches_one_that_a_table_maps() {
    let mut gateway = support::gateway(|config| {
        config.nat64.push(support::nat64());
        config.siit.push(SiitConfig {
            prefix: Some(support::prefix("2001:db8:64::/96")),
            eam: eam(&[("198.51.100.8/29", "2001:db8:9::/125")]),
            ..SiitConfig::default()
        });
    });
    // Out by the NAT64 to the table's IPv4 address: to the link, from where the network brings it back.
    gateway.receives(v6(CALLER, "64:ff9b::198.51.100.9").udp(4_001, 53, b"question"));
    let outside = gateway.sent();
    assert_eq!(outside[16..20], [198, 51, 100, 9]);
    let address = Ipv4Addr::new(outside[12], outside[13], outside[14], outside[15]);
    let port = u16::from_be_bytes([outside[20], outside[21]]);
    gateway.receives(outside);
    gateway.sends(v6(&format!("2001:db8:64::{address}"), "2001:db8:9::1").hops(62).udp(
        port,
        53,
        b"question",
    ));
    gateway.receives(v6("2001:db8:9::1", &format!("2001:db8:64::{address}")).udp(53, port, b"answer"));
    let outside = gateway.sent();
    gateway.receives(outside);
    gateway.sends(v6("64:ff9b::198.51.100.9", CALLER).hops(62).udp(53, 4_001, b"answer"));
}
