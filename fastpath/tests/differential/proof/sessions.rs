//! Sessions of stateful translators, made in the engine by the packets that begin them.

use super::choices::Random;
use super::draft::{Addresses, Draft};
use super::world::World;
use sixway_dataplane::engine::Engine;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::nat::{Inside, NatProtocol, Outside};
use sixway_dataplane::offload::OffloadedFlow;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_dataplane::{Frame, Instant, Outbox, Verdict};
use sixway_wire::{Endpoint4, Endpoint6};
use std::net::{Ipv4Addr, Ipv6Addr};

/// An established session.
#[derive(Clone, Debug)]
pub struct Session {
    pub mechanism: u8,
    pub identity: Identity,
    pub protocol: NatProtocol,
    pub inside: Endpoint6,
    pub outside: Endpoint4,
    pub remote: Endpoint4,
    /// The remote address as the inside knows it.
    pub remote6: Ipv6Addr,
    /// What its entry is to be.
    pub entry: Entry,
}

/// The state of a session's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    Armed,
    Active,
    /// Nothing but its SYN has come.
    HalfOpen,
}

/// Remote networks, by the second octet: those with each kind of next hop.
const REMOTES: [u8; 10] = [1, 1, 1, 2, 3, 6, 1, 4, 5, 7];
/// Inside networks.
const INSIDES: [u16; 10] = [1, 2, 3, 6, 1, 1, 1, 4, 5, 7];

/// A stateful translator, and how the inside knows remote addresses.
#[derive(Clone, Copy)]
enum Translator<'a> {
    Nat64(&'a Rfc6052),
    Nat44,
}

impl Translator<'_> {
    fn identity(self) -> Identity {
        match self {
            Self::Nat64(prefix) => Identity::of_nat64(prefix.prefix()),
            Self::Nat44 => Identity::of_nat44(),
        }
    }

    /// A host of an inside network.
    fn host(self, network: u16, last: u16) -> Ipv6Addr {
        match self {
            Self::Nat64(_) => Ipv6Addr::new(0x2a00 + network, 0, 0, 0, 0, 0, 0, last | 1),
            Self::Nat44 => Ipv4Addr::new(10, 40 + network as u8, 0, last as u8 | 1).to_ipv6_mapped(),
        }
    }

    fn remote6(self, remote: Ipv4Addr) -> Ipv6Addr {
        match self {
            Self::Nat64(prefix) => prefix.embed(remote).unwrap(),
            Self::Nat44 => remote.to_ipv6_mapped(),
        }
    }

    /// The source of a packet to another inside host, as that one knows it.
    fn source(self, sent: &[u8]) -> Endpoint4 {
        let port = |at: usize| u16::from_be_bytes([sent[at], sent[at + 1]]);
        match self {
            Self::Nat64(prefix) => {
                let source = Ipv6Addr::from(<[u8; 16]>::try_from(&sent[8..24]).unwrap());
                Endpoint4::new(prefix.extract(source).unwrap(), port(40))
            }
            Self::Nat44 => Endpoint4::new(<[u8; 4]>::try_from(&sent[12..16]).unwrap().into(), port(20)),
        }
    }
}

/// Makes some of each protocol at each stateful translator.
pub fn establish(world: &World, engine: &mut Engine, now: Instant) -> Vec<Session> {
    let mut random = Random(7);
    let mut sessions = Vec::new();
    let nat64 = world.config.nat64.iter().map(|nat64| Translator::Nat64(&nat64.prefix));
    let translators = nat64.chain(world.config.nat44.iter().map(|_| Translator::Nat44));
    for (mechanism, translator) in translators.clone().enumerate() {
        let first = sessions.len();
        for number in 0..2 * REMOTES.len() {
            let (at, protocol) = (number / 2, [NatProtocol::Tcp, NatProtocol::Udp][number % 2]);
            let mut session = session(translator, (at, number), protocol, &mut random);
            session.mechanism = mechanism as u8;
            session.begin(engine, now);
            sessions.push(session);
        }
        for number in 0..2 {
            let hairpin = hairpin(&sessions[first + number], translator, engine, now);
            sessions.extend(hairpin);
        }
    }
    for (mechanism, translator) in translators.clone().enumerate() {
        for at in 0..REMOTES.len() {
            let mut session = session(translator, (at, at), NatProtocol::Icmp, &mut random);
            session.mechanism = mechanism as u8;
            session.begin(engine, now);
            sessions.push(session);
        }
    }
    for (mechanism, translator) in translators.enumerate() {
        for at in 0..REMOTES.len() {
            let mut session = session(translator, (at, at), NatProtocol::Tcp, &mut random);
            (session.mechanism, session.entry) = (mechanism as u8, Entry::HalfOpen);
            session.learn(&pass(engine, session.packet(true, 2), now));
            sessions.push(session);
        }
    }
    sessions
}

/// A session that has not begun, with a remote host of one of the networks.
fn session(
    translator: Translator<'_>,
    (at, number): (usize, usize),
    protocol: NatProtocol,
    random: &mut Random,
) -> Session {
    let last = random.next() as u16;
    let inside = translator.host(INSIDES[at], last);
    let inside = Endpoint6::new(inside, random.next() as u16 | 1_024);
    // Of the first network one half is the host's, not ours.
    let last = if at == 2 && protocol == NatProtocol::Tcp { 17 } else { number as u8 % 16 };
    let port = match protocol {
        NatProtocol::Tcp => 443,
        NatProtocol::Udp => 53,
        NatProtocol::Icmp => 0,
    };
    let remote = Endpoint4::new(Ipv4Addr::new(45, REMOTES[at], 0, last), port);
    let remote6 = translator.remote6(remote.address);
    let (identity, entry) = (translator.identity(), if at == 9 { Entry::Armed } else { Entry::Active });
    Session { mechanism: 0, identity, protocol, inside, outside: remote, remote, remote6, entry }
}

/// Another inside host calls the outside endpoint of this session's host (RFC 6146 §3.8): two sessions; one's outside endpoint
/// is the other's remote.
fn hairpin(called: &Session, translator: Translator<'_>, engine: &mut Engine, now: Instant) -> [Session; 2] {
    let towards = |remote: Endpoint4| translator.remote6(remote.address);
    let inside = Endpoint6::new(translator.host(2, 0x99), 4_000);
    let remote6 = towards(called.outside);
    let mut caller = Session { inside, remote: called.outside, remote6, ..called.clone() };
    let sent = pass(engine, caller.packet(true, 2), now);
    caller.outside = translator.source(&sent);
    let called = Session { remote: caller.outside, remote6: towards(caller.outside), ..called.clone() };
    pass(engine, called.packet(true, 0x12), now);
    pass(engine, caller.packet(true, 0x10), now);
    [caller, called]
}

impl Session {
    /// Sends what begins it, and learns the outside endpoint.
    fn begin(&mut self, engine: &mut Engine, now: Instant) {
        if self.protocol != NatProtocol::Tcp {
            self.learn(&pass(engine, self.packet(true, 0), now));
            return;
        }
        self.learn(&pass(engine, self.packet(true, 2), now));
        pass(engine, self.packet(false, 0x12), now);
        pass(engine, self.packet(true, 0x10), now);
    }

    fn learn(&mut self, sent: &[u8]) {
        let address = Ipv4Addr::from(<[u8; 4]>::try_from(&sent[12..16]).unwrap());
        let at = if self.protocol == NatProtocol::Icmp { 24 } else { 20 };
        self.outside = Endpoint4::new(address, u16::from_be_bytes([sent[at], sent[at + 1]]));
    }

    /// A packet of it, with little data or none.
    pub fn packet(&self, outward: bool, flags: u8) -> Vec<u8> {
        let data: &[u8] = if self.protocol == NatProtocol::Tcp { &[] } else { &[1, 2, 3, 4, 5, 6, 7, 8, 9] };
        self.packet_with(outward, flags, data)
    }

    /// A packet of it with this data.
    pub fn packet_with(&self, outward: bool, flags: u8, data: &[u8]) -> Vec<u8> {
        let mut draft = Draft::new(self.addresses(outward));
        self.load(&mut draft, outward, (flags, &[]), data);
        draft.octets()
    }

    /// What follows the IP header: flags and options are TCP's.
    pub fn load(&self, draft: &mut Draft, outward: bool, (flags, options): (u8, &[u8]), data: &[u8]) {
        let (source, destination) = self.ports(outward);
        match self.protocol {
            NatProtocol::Tcp => draft.tcp(source, destination, flags, options, data),
            NatProtocol::Udp => draft.udp(source, destination, data),
            NatProtocol::Icmp => draft.echo(!outward, source | destination, data),
        }
    }

    pub fn addresses(&self, outward: bool) -> Addresses {
        if let (true, Some(inside)) = (outward, self.inside.address.to_ipv4_mapped()) {
            Addresses::V4(inside, self.remote.address)
        } else if outward {
            Addresses::V6(self.inside.address, self.remote6)
        } else {
            Addresses::V4(self.remote.address, self.outside.address)
        }
    }

    pub fn ports(&self, outward: bool) -> (u16, u16) {
        if outward { (self.inside.port, self.remote.port) } else { (self.remote.port, self.outside.port) }
    }

    pub fn flow(&self) -> OffloadedFlow {
        OffloadedFlow {
            mechanism: self.identity,
            protocol: self.protocol,
            inside: Inside(self.inside),
            outside: Outside(self.outside),
            remote: self.remote,
        }
    }
}

/// What the engine makes of a packet that it must forward.
fn pass(engine: &mut Engine, packet: Vec<u8>, now: Instant) -> Vec<u8> {
    let mut frame = Frame::holding(&packet);
    let mut out = Outbox::new(8);
    engine.process(std::slice::from_mut(&mut frame), now, &mut out);
    assert_eq!(frame.verdict, Verdict::Forward, "{packet:02x?}");
    frame.bytes().to_vec()
}
