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
    pub is_tcp: bool,
    pub inside: Endpoint6,
    pub outside: Endpoint4,
    pub remote: Endpoint4,
    /// The remote address as the inside knows it.
    pub remote6: Ipv6Addr,
    /// Its entry is to be armed, but not active.
    pub is_armed: bool,
}

/// Remote networks, by the second octet: those with each kind of next hop.
const REMOTES: [u8; 10] = [1, 1, 1, 2, 3, 6, 1, 4, 5, 7];
/// Inside networks.
const INSIDES: [u16; 10] = [1, 2, 3, 6, 1, 1, 1, 4, 5, 7];

/// Makes some of either protocol at each stateful translator.
pub fn establish(world: &World, engine: &mut Engine, now: Instant) -> Vec<Session> {
    let mut random = Random(7);
    let mut sessions = Vec::new();
    for (mechanism, nat64) in world.config.nat64.iter().enumerate() {
        for number in 0..2 * REMOTES.len() {
            let (at, is_tcp) = (number / 2, number % 2 == 0);
            let last = random.next() as u16;
            let inside = Ipv6Addr::new(0x2a00 + INSIDES[at], 0, 0, 0, 0, 0, 0, last | 1);
            let inside = Endpoint6::new(inside, random.next() as u16 | 1_024);
            // Of the first network one half is the host's, not ours.
            let remote = Ipv4Addr::new(45, REMOTES[at], 0, if number == 4 { 17 } else { number as u8 % 16 });
            let remote = Endpoint4::new(remote, [443, 53][number % 2]);
            let remote6 = nat64.prefix.embed(remote.address).unwrap();
            let (mechanism, is_armed) = (mechanism as u8, number >= 18);
            let identity = Identity::of_nat64(nat64.prefix.prefix());
            let mut session =
                Session { mechanism, identity, is_tcp, inside, outside: remote, remote, remote6, is_armed };
            session.begin(engine, now);
            sessions.push(session);
        }
        let first = sessions.len() - 2 * REMOTES.len();
        for number in 0..2 {
            let hairpin = hairpin(&sessions[first + number], &nat64.prefix, engine, now);
            sessions.extend(hairpin);
        }
    }
    sessions
}

/// Another inside host calls the outside endpoint of this session's host (RFC 6146 §3.8): two sessions; one's outside endpoint
/// is the other's remote.
fn hairpin(called: &Session, prefix: &Rfc6052, engine: &mut Engine, now: Instant) -> [Session; 2] {
    let towards = |remote: Endpoint4| prefix.embed(remote.address).unwrap();
    let inside = Endpoint6::new("2a02::99".parse().unwrap(), 4_000);
    let remote6 = towards(called.outside);
    let mut caller = Session { inside, remote: called.outside, remote6, ..called.clone() };
    let sent = pass(engine, caller.packet(true, 2), now);
    let source = Ipv6Addr::from(<[u8; 16]>::try_from(&sent[8..24]).unwrap());
    caller.outside.address = prefix.extract(source).unwrap();
    caller.outside.port = u16::from_be_bytes([sent[40], sent[41]]);
    let called = Session { remote: caller.outside, remote6: towards(caller.outside), ..called.clone() };
    pass(engine, called.packet(true, 0x12), now);
    pass(engine, caller.packet(true, 0x10), now);
    [caller, called]
}

impl Session {
    /// Sends what begins it, and learns the outside endpoint.
    fn begin(&mut self, engine: &mut Engine, now: Instant) {
        if !self.is_tcp {
            self.learn(&pass(engine, self.packet(true, 0), now));
            return;
        }
        self.learn(&pass(engine, self.packet(true, 2), now));
        pass(engine, self.packet(false, 0x12), now);
        pass(engine, self.packet(true, 0x10), now);
    }

    fn learn(&mut self, sent: &[u8]) {
        let address = Ipv4Addr::from(<[u8; 4]>::try_from(&sent[12..16]).unwrap());
        self.outside = Endpoint4::new(address, u16::from_be_bytes([sent[20], sent[21]]));
    }

    /// A packet of it, with little data or none.
    pub fn packet(&self, outward: bool, flags: u8) -> Vec<u8> {
        let data: &[u8] = if self.is_tcp { &[] } else { &[1, 2, 3, 4, 5, 6, 7, 8, 9] };
        self.packet_with(outward, flags, data)
    }

    /// A packet of it with this data.
    pub fn packet_with(&self, outward: bool, flags: u8, data: &[u8]) -> Vec<u8> {
        let mut draft = Draft::new(self.addresses(outward));
        let (source, destination) = self.ports(outward);
        if self.is_tcp {
            draft.tcp(source, destination, flags, &[], data);
        } else {
            draft.udp(source, destination, data);
        }
        draft.octets()
    }

    pub fn addresses(&self, outward: bool) -> Addresses {
        if outward {
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
            protocol: if self.is_tcp { NatProtocol::Tcp } else { NatProtocol::Udp },
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
