//! Single clauses of RFC 5508 and RFC 7857 that only concern one kind of packet, through the whole gateway.

use crate::support;
use crate::support::{Gateway, checksum_is_right, icmp4, v4};
use sixway_dataplane::mechanism::nat44::Nat44Config;
use sixway_dataplane::nat::{Filtering, Inside, NatProtocol, Outside, StaticBinding};
use sixway_dataplane::{DropReason, Verdict};
use sixway_wire::{Endpoint4, Endpoint6};
use std::net::Ipv4Addr;
use std::time::Duration;

const HOST: &str = "10.0.0.1";
const OTHER: &str = "10.0.0.2";
const SERVER: &str = "203.0.113.1";
const SYN: u8 = 2;

fn gateway(edit: impl FnOnce(&mut Nat44Config)) -> Gateway {
    support::gateway(|config| {
        let mut nat44 = support::nat44();
        edit(&mut nat44);
        config.nat44.push(nat44);
    })
}

/// The source of a packet without options, with its port or identifier.
fn source(packet: &[u8]) -> (String, u16) {
    let at = if packet[9] == 1 { 24 } else { 20 };
    let address = Ipv4Addr::from(<[u8; 4]>::try_from(&packet[12..16]).unwrap());
    (address.to_string(), u16::from_be_bytes([packet[at], packet[at + 1]]))
}

fn bindings(gateway: &mut Gateway) -> u32 {
    gateway.engine.stateful_at(0).unwrap().0.occupancy().bindings
}

#[test]
fn the_timer_of_icmp_queries_is_configured_alone() {
    // RFC 5508 REQ-2 a.
    for (timer, lives) in [(60, 60), (400, 400)] {
        let mut gateway = gateway(|nat44| nat44.timeouts.icmp = Duration::from_secs(timer));
        gateway.receives(v4(HOST, SERVER).echo(7, 1, b"ping"));
        let (outside, identifier) = source(&gateway.sent());
        gateway.waits(Duration::from_secs(lives - 1));
        gateway.receives(v4(SERVER, &outside).echo_reply(identifier, 1, b"ping"));
        gateway.sends(v4(SERVER, HOST).hops(63).echo_reply(7, 1, b"ping"));
        gateway.waits(Duration::from_secs(lives + 1));
        assert_eq!(bindings(&mut gateway), 0, "{timer}");
        gateway.receives(v4(HOST, SERVER).udp(4_001, 53, b""));
        gateway.sent();
        gateway.waits(Duration::from_secs(299));
        assert_eq!(bindings(&mut gateway), 1, "the timer of UDP is another one");
    }
}

#[test]
fn what_an_error_quotes_may_have_options() {
    // RFC 5508 REQ-3 b, in both directions: a record route option, and padding.
    let options = [7, 7, 4, 192, 0, 2, 99, 0];
    let mut gateway = gateway(|_| {});
    gateway.receives(v4(HOST, SERVER).udp(4_001, 53, b"question"));
    let (outside, port) = source(&gateway.sent());
    let seen = v4(&outside, SERVER).hops(60).options(&options).udp(port, 53, b"question").octets();
    assert_eq!(seen[0], 0x47, "seven words");
    gateway.receives(v4("198.51.100.9", &outside).icmp(icmp4(11, 0, [0; 4], &seen)));
    let quote = v4(HOST, SERVER).hops(60).options(&options).udp(4_001, 53, b"question").octets();
    gateway.sends(v4("198.51.100.9", HOST).hops(63).icmp(icmp4(11, 0, [0; 4], &quote)));

    let seen = v4(SERVER, HOST).hops(60).options(&options).udp(53, 4_001, b"answer").octets();
    gateway.receives(v4(HOST, SERVER).icmp(icmp4(3, 3, [0; 4], &seen)));
    let quote = v4(SERVER, &outside).hops(60).options(&options).udp(53, port, b"answer").octets();
    let sent = gateway.sent();
    assert!(checksum_is_right(&sent));
    assert_eq!(sent, v4(&outside, SERVER).hops(63).icmp(icmp4(3, 3, [0; 4], &quote)).octets());
}

#[test]
fn who_may_come_in_by_one_protocol_may_not_by_another() {
    // RFC 7857 §6: also where everyone may come in.
    for filtering in [Filtering::EndpointIndependent, Filtering::AddressDependent] {
        let mut gateway = gateway(|nat44| nat44.filtering = filtering);
        gateway.receives(v4(HOST, SERVER).tcp(4_001, 80, SYN, b""));
        let (outside, port) = source(&gateway.sent());
        for packet in
            [v4(SERVER, &outside).udp(80, port, b"hello"), v4(SERVER, &outside).echo(port, 1, b"ping")]
        {
            gateway.receives(packet);
            assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoBinding));
            assert_eq!(gateway.sent()[20], 3, "an ICMP error");
        }
        // A binding of the other protocol with the same port lets its own packets in, and changes nothing for the first.
        let other: Ipv4Addr = OTHER.parse().unwrap();
        let inside = Inside(Endpoint6::new(other.to_ipv6_mapped(), 53));
        let outside_endpoint = Outside(Endpoint4::new(outside.parse().unwrap(), port));
        let binding =
            StaticBinding { protocol: NatProtocol::Udp, softwire: None, inside, outside: outside_endpoint };
        gateway.engine.stateful_at(0).unwrap().0.add_static(&binding).unwrap();
        gateway.receives(v4(SERVER, &outside).tcp(80, port, SYN | 16, b""));
        gateway.sends(v4(SERVER, HOST).hops(63).tcp(80, 4_001, SYN | 16, b""));
        gateway.receives(v4(SERVER, &outside).udp(80, port, b"hello"));
        gateway.sends(v4(SERVER, OTHER).hops(63).udp(80, 53, b"hello"));
        // RFC 7857 §5: the same inside port has another mapping.
        gateway.receives(v4(HOST, SERVER).udp(4_001, 80, b"hello"));
        assert_ne!(source(&gateway.sent()).1, port);
    }
}
