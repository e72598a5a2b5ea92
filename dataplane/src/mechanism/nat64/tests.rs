//! Every path of a packet through NAT64, packet by packet.

use super::*;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::effects::Generated;
use crate::frame::{Frame, SegmentKind, Segments};
use crate::instant::Instant;
use crate::mechanism::contract::Arrival;
use crate::nat::Outside;
use crate::nat::StateLimits;
use crate::nat::{
    Filtering, Inside, NatProtocol, PoolConfig, Selection, SessionRow, StaticBinding, StaticBindingError,
    TCP_EST, TCP_INCOMING_SYN, TCP_TRANS, UDP_DEFAULT,
};
use crate::parse::{ACK, Addresses, FIN, QuotedTuple, RST, SYN};
use crate::parse::{Packet, Transport};
use crate::stateful::Stateful as _;
use crate::translate::address::rfc6052::Rfc6052;
use crate::verdict::{Action, Decision, Edit, Quoted};
use crate::verdict::{Next, PolicyId, WorkerId};
use core::net::Ipv4Addr;
use core::time::Duration;
use sixway_wire::Endpoint4;
use sixway_wire::Endpoint6;
use sixway_wire::protocol::{ICMPV4, ICMPV6, SCTP, TCP, UDP};

mod filtering;
mod icmp;
mod limits;
mod operating;
mod tcp;

const HOST: &str = "2001:db8::1";
const OTHER: &str = "2001:db8::2";
const SERVER: &str = "203.0.113.1";
const STRANGER: &str = "203.0.113.2";
const IMAGE: &str = "64:ff9b::203.0.113.1";

fn config() -> Nat64Config {
    Nat64Config {
        limits: StateLimits { sessions: 1_000, bindings: 1_000, ..StateLimits::default() },
        ..Nat64Config::new(
            Rfc6052::new("64:ff9b::/96".parse().unwrap(), true).unwrap(),
            PoolConfig { addresses: vec!["192.0.2.0/28".parse().unwrap()], ports: vec![1_024..=65_535] },
        )
    }
}

fn e4(address: &str, port: u16) -> Endpoint4 {
    Endpoint4::new(address.parse().unwrap(), port)
}

fn e6(address: &str, port: u16) -> Endpoint6 {
    Endpoint6::new(address.parse().unwrap(), port)
}

/// A packet as the parser would make it.
fn packet(addresses: Addresses, protocol: u8, transport: Transport) -> Packet {
    let transport_at = if matches!(addresses, Addresses::V6 { .. }) { 40 } else { 20 };
    Packet {
        addresses,
        protocol,
        hops: 64,
        traffic_class: 0,
        dont_fragment: true,
        transport_at,
        length: 100,
        fragment: None,
        fragment_header: 0,
        transport,
        segments_left_at: 0,
        source_route: false,
        extension_after_fragment: false,
    }
}

fn v6(source: &str, destination: &str, protocol: u8, transport: Transport) -> Packet {
    let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
    packet(Addresses::V6 { source, destination }, protocol, transport)
}

fn v4(source: &str, destination: Ipv4Addr, protocol: u8, transport: Transport) -> Packet {
    packet(Addresses::V4 { source: source.parse().unwrap(), destination }, protocol, transport)
}

const fn ports(source: u16, destination: u16, tcp_flags: u8) -> Transport {
    Transport::Ports { source, destination, tcp_flags }
}

const fn echo(kind: u8, identifier: u16) -> Transport {
    Transport::IcmpQuery { kind, code: 0, identifier }
}

/// What a stored SYN is answered with.
const STORED: Decision = Decision::keep(Next::Held);

/// A NAT64 with a clock and counters, as an engine would drive it.
struct Harness {
    nat64: Nat64,
    now: Instant,
    effects: Effects,
}

impl Harness {
    fn new(config: &Nat64Config) -> Self {
        let nat64 = Nat64::new(config, PolicyId(3), WorkerId(0), 1, [5, 6]);
        Self { nat64, now: Instant::from_secs(1_000), effects: Effects::default() }
    }

    fn endpoint_independent() -> Self {
        Self::new(&config())
    }

    fn address_dependent() -> Self {
        Self::new(&Nat64Config { filtering: Filtering::AddressDependent, ..config() })
    }

    fn send_quoting(&mut self, packet: &Packet, quoted: Option<QuotedTuple>) -> Result<Decision, DropReason> {
        let mut probe = Probe::EMPTY;
        self.nat64.probe(packet, &mut probe);
        self.nat64.warm(&mut probe);
        let frame = Frame::holding(&[0x45; 60]);
        let arrival = Arrival { quoted, ..Arrival::new(&frame, packet, None) };
        let outcome = self.nat64.decide(&arrival, &probe, self.now, &mut self.effects);
        if outcome == Ok(STORED) {
            self.effects.counters.held += 1;
        }
        outcome
    }

    /// The endpoints of the packet that an ICMP error quotes.
    fn quoted(&self, decision: &Decision) -> Option<Quoted> {
        self.effects.quoted_at(decision.quoted?)
    }

    fn send(&mut self, packet: &Packet) -> Result<Decision, DropReason> {
        self.send_quoting(packet, None)
    }

    /// The packet is translated; its new source and destination.
    #[track_caller]
    fn sent_out(&mut self, packet: &Packet) -> (Endpoint4, Endpoint4) {
        match self.send(packet) {
            Ok(Decision {
                action:
                    Action { edit: Some(Edit::Translate6To4 { source, destination, keep_ports: false }), .. },
                ..
            }) => (source, destination),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn sent_in(&mut self, packet: &Packet) -> (Endpoint6, Endpoint6) {
        match self.send(packet) {
            Ok(Decision {
                action:
                    Action { edit: Some(Edit::Translate4To6 { source, destination, keep_ports: false }), .. },
                ..
            }) => (source, destination),
            other => panic!("{other:?}"),
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    fn expire(&mut self) -> Vec<Generated> {
        self.nat64.expire(self.now, usize::MAX, &mut self.effects);
        self.effects.take_generated()
    }

    fn sessions(&self) -> Vec<SessionRow> {
        let mut rows = Vec::new();
        assert_eq!(self.nat64.sessions(0, u32::MAX, &Selection::default(), self.now, &mut rows), None);
        rows
    }

    #[track_caller]
    fn state(&self) -> &'static str {
        match self.sessions()[..] {
            [one] => one.state,
            ref rows => panic!("{rows:?}"),
        }
    }

    /// Host to server over TCP with these flags.
    fn out(&mut self, flags: u8) -> Result<Decision, DropReason> {
        self.send(&v6(HOST, IMAGE, TCP, ports(5_000, 80, flags)))
    }

    /// Server to the outside endpoint over TCP with these flags.
    fn back(&mut self, outside: Endpoint4, flags: u8) -> Result<Decision, DropReason> {
        self.send(&v4(SERVER, outside.address, TCP, ports(80, outside.port, flags)))
    }

    /// A connection from inside, established; its outside endpoint.
    fn connect(&mut self) -> Endpoint4 {
        let (outside, _) = self.sent_out(&v6(HOST, IMAGE, TCP, ports(5_000, 80, SYN)));
        assert!(self.back(outside, SYN | ACK).is_ok());
        outside
    }
}

#[test]
fn a_udp_packet_from_inside_makes_a_binding_and_a_session_and_its_answer_comes_back() {
    let mut bench = Harness::endpoint_independent();
    let (outside, remote) = bench.sent_out(&v6(HOST, IMAGE, UDP, ports(5_001, 53, 0)));
    assert_eq!(remote, e4(SERVER, 53));
    assert!(bench.nat64.owns_outside(outside.address) && outside.port % 2 == 1 && outside.port >= 1_024);
    let (source, destination) = bench.sent_in(&v4(SERVER, outside.address, UDP, ports(53, outside.port, 0)));
    assert_eq!((source, destination), (e6(IMAGE, 53), e6(HOST, 5_001)));
    assert_eq!((bench.effects.counters.bindings_made, bench.effects.counters.sessions_made), (1, 1));
}

#[test]
fn every_remote_sees_an_inside_endpoint_at_the_same_outside_endpoint() {
    let mut bench = Harness::endpoint_independent();
    let (one, _) = bench.sent_out(&v6(HOST, IMAGE, UDP, ports(5_001, 53, 0)));
    let (two, remote) = bench.sent_out(&v6(HOST, "64:ff9b::203.0.113.2", UDP, ports(5_001, 99, 0)));
    assert_eq!((one, remote), (two, e4(STRANGER, 99)));
    assert_eq!((bench.effects.counters.bindings_made, bench.effects.counters.sessions_made), (1, 2));
}

#[test]
fn an_echo_keeps_its_identifier_inside_and_has_another_outside() {
    let mut bench = Harness::endpoint_independent();
    let (outside, remote) = bench.sent_out(&v6(HOST, IMAGE, ICMPV6, echo(128, 77)));
    assert_eq!(remote, e4(SERVER, outside.port));
    let reply = v4(SERVER, outside.address, ICMPV4, echo(0, outside.port));
    assert_eq!(bench.sent_in(&reply), (e6(IMAGE, 77), e6(HOST, 77)));
    assert_eq!(bench.sessions()[0].remote, e4(SERVER, 0));
}

#[test]
fn a_tcp_connection_from_inside_is_established_by_the_answering_syn() {
    let mut bench = Harness::endpoint_independent();
    bench.connect();
    assert_eq!(bench.state(), "established");
}
