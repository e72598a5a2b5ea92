//! Packets: chosen so that most of them can be forwarded, with troubles of every kind in the others.

use super::choices::Choices;
use super::draft::{Addresses, Draft};
use super::scene::{Port, VLAN};
use super::sessions::{Entry, Session};
use super::trouble::{self, Trouble};
use super::world::{OUT, PacketAddresses, World};
use std::net::Ipv4Addr;

/// A frame as it comes in.
#[derive(Clone, Debug)]
pub struct Input {
    /// The whole frame, from its Ethernet header on.
    pub frame: Vec<u8>,
    /// The device, and what is below it; of a frame with a tag the device below.
    pub port: Port,
    /// The counter of the program that is to forward it.
    pub counter: u32,
    /// There is no trouble in it: if the engine forwards it, so must the program.
    pub is_plain: bool,
    /// For the report of a failure.
    pub troubles: Vec<Trouble>,
}

/// What is made of choices.
pub fn input(world: &World, sessions: &[Session], choices: &mut Choices) -> Input {
    let lane = &world.lanes[choices.below(world.lanes.len())];
    let way = (lane.way)(choices);
    let troubles = troubles(choices);
    let mut made = Made::new(way, sessions, choices);
    for trouble in &troubles {
        trouble::into_draft(*trouble, &mut made, world, choices);
    }
    let mut octets = made.octets();
    for trouble in &troubles {
        trouble::into_octets(*trouble, &mut octets, choices);
    }
    let port = if lane.counter % 2 == OUT { Port::Inner } else { Port::Outer };
    let port = if made.session.is_none() && choices.one_in(8) { Port::Tagged } else { port };
    let (frame, port) = framed(&troubles, octets, port, choices);
    let is_the_entrys = made.session.is_none_or(|session| match session.entry {
        Entry::Armed => false,
        Entry::Active => true,
        Entry::HalfOpen => {
            lane.counter % 2 != OUT && made.draft.body.get(13).is_some_and(|flags| is_syn_ack(*flags))
        }
    });
    let is_plain = troubles.is_empty() && is_the_entrys && !made.has_late_mss;
    Input { frame, port, counter: lane.counter, is_plain, troubles }
}

fn troubles(choices: &mut Choices) -> Vec<Trouble> {
    let many = [0, 0, 0, 0, 0, 1, 1, 1, 1, 2][choices.below(10)];
    (0..many).map(|_| choices.of(Trouble::ALL)).collect()
}

/// A packet before it is octets; of a tunnel packet the inner and the outer one.
pub struct Made {
    pub draft: Draft,
    pub outer: Option<Draft>,
    pub session: Option<Session>,
    /// A SYN whose MSS option is not the first option, or says 65535: the programs leave it to the engine.
    pub has_late_mss: bool,
}

impl Made {
    fn new(way: PacketAddresses, sessions: &[Session], choices: &mut Choices) -> Self {
        let (addresses, ends, session) = match way {
            PacketAddresses::V4(source, destination) => (Addresses::V4(source, destination), None, None),
            PacketAddresses::V6(source, destination) => (Addresses::V6(source, destination), None, None),
            PacketAddresses::In4(from, to, source, destination) => {
                (Addresses::V6(source, destination), Some((from, to)), None)
            }
            PacketAddresses::Session(number, outward) => {
                let mine: Vec<_> = sessions.iter().filter(|session| session.mechanism == number).collect();
                let session = mine[choices.below(mine.len())];
                (session.addresses(outward), None, Some((session, outward)))
            }
        };
        let mut draft = Draft::new(addresses);
        draft.tos = if choices.one_in(2) { choices.octet() } else { 0 };
        draft.hops = if choices.one_in(4) { choices.octet().max(2) } else { 64 };
        draft.label = if choices.one_in(4) { choices.double() } else { 0 };
        draft.identification = choices.word();
        draft.dont_fragment = !choices.one_in(3);
        let has_late_mss = load(&mut draft, session, choices);
        let outer = ends.map(|(from, to)| outer(from, to, choices));
        Self { draft, outer, session: session.map(|(session, _)| session.clone()), has_late_mss }
    }

    pub fn octets(&self) -> Vec<u8> {
        let inner = self.draft.octets();
        let Some(outer) = &self.outer else { return inner };
        let mut outer = outer.clone();
        outer.body = inner;
        outer.octets()
    }
}

fn outer(from: Ipv4Addr, to: Ipv4Addr, choices: &mut Choices) -> Draft {
    let mut outer = Draft::new(Addresses::V4(from, to));
    outer.protocol = 41;
    // Every combination of ECN comes to be; the outer one is often the inner one's like.
    outer.tos = choices.of(&[0, 0, 0, 1, 2, 3, 0xb8, 0xbb]);
    outer.hops = choices.of(&[64, 64, 255, 2, 1]);
    outer.dont_fragment = !choices.one_in(2);
    outer.identification = choices.word();
    outer
}

/// What follows the IP headers: of a session what it is of, else TCP, UDP or echo. Whether it is a SYN with a late MSS option.
fn load(draft: &mut Draft, session: Option<(&Session, bool)>, choices: &mut Choices) -> bool {
    let data: Vec<u8> = {
        let (length, octet) = (length(choices), choices.octet());
        (0..length).map(|n| (n as u8).wrapping_mul(7) ^ octet).collect()
    };
    let flags = choices.of(&[0x10, 0x18, 0x10, 0x18, 0x30, 0xd0, 0x50]);
    let options: &[u8] = if choices.one_in(3) { &[1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 7] } else { &[] };
    if let Some((session, outward)) = session {
        if session.entry == Entry::HalfOpen && !choices.one_in(4) {
            return connection(draft, session.ports(outward), &[], choices);
        }
        session.load(draft, outward, (flags, options), &data);
        return false;
    }
    let (source, destination) = (choices.word(), choices.word());
    match choices.below(6) {
        0 | 1 => draft.udp(source, destination, &data),
        2 | 3 => draft.tcp(source, destination, flags, options, &data),
        4 => {
            let data = if choices.one_in(4) { &data[..] } else { &[] };
            return connection(draft, (source, destination), data, choices);
        }
        _ => draft.echo(choices.one_in(2), source, &data),
    }
    false
}

/// A packet that begins or ends a TCP connection. Whether it has a late MSS option.
fn connection(draft: &mut Draft, ports: (u16, u16), data: &[u8], choices: &mut Choices) -> bool {
    let flags = choices.of(&[0x02, 0x02, 0x12, 0x12, 0x52, 0xc2, 0x11, 0x01, 0x04, 0x14, 0x03, 0x06]);
    let mss: u16 =
        choices.of(&[0, 1, 2, 536, 1_220, 1_221, 1_400, 1_420, 1_421, 1_440, 1_460, 8_960, 65_534, 65_535]);
    let [high, low] = mss.to_be_bytes();
    let (options, is_late) = match choices.below(6) {
        0 => (vec![], false),
        1 => (vec![2, 4, high, low], mss == u16::MAX),
        2 | 3 => (
            [&[2, 4, high, low][..], &[4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7]].concat(),
            mss == u16::MAX,
        ),
        4 => (vec![1, 2, 4, high, low, 1, 1, 1], true),
        _ => (
            choices.of(&[[1, 1, 1, 1], [0, 0, 0, 0], [2, 2, 9, 9], [2, 5, 9, 9], [3, 4, 9, 9]]).to_vec(),
            true,
        ),
    };
    draft.tcp(ports.0, ports.1, flags, &options, data);
    is_late && flags & 0x02 != 0
}

/// Whether TCP flags are those of a SYN/ACK, whatever it says of congestion.
fn is_syn_ack(flags: u8) -> bool {
    flags & 0x17 == 0x12
}

/// Octets of data: few, many, and those that make packets as large as something allows, or nearly.
fn length(choices: &mut Choices) -> usize {
    const EDGES: &[usize] = &[1_260, 1_280, 1_300, 1_340, 1_400, 1_420, 1_440, 1_450, 1_460, 1_480, 1_500];
    match choices.below(8) {
        0..=3 => usize::from(choices.octet()) % 100,
        4 => choices.below(1_200),
        _ => {
            let headers = choices.of(&[28, 40, 48, 60, 68, 72, 80]);
            (choices.of(EDGES) + usize::from(choices.octet() % 5)).saturating_sub(headers + 2)
        }
    }
}

/// Puts an Ethernet header in front, with what troubles it.
fn framed(troubles: &[Trouble], octets: Vec<u8>, port: Port, choices: &mut Choices) -> (Vec<u8>, Port) {
    let mut port = port;
    let mut octets = octets;
    // What the kernel takes for a test run.
    octets.truncate(3_000);
    let mut to = port.mac();
    let protocol = if octets.first().is_some_and(|first| first >> 4 == 4) { [8, 0] } else { [0x86, 0xdd] };
    let mut protocol = protocol;
    let mut tags: Vec<u8> = Vec::new();
    if port == Port::Tagged {
        (tags, port) = ([&[0x81, 0][..], &VLAN.to_be_bytes()].concat(), Port::Trunk);
    }
    for trouble in troubles {
        match trouble {
            Trouble::OtherMac => {
                to = choices.of(&[
                    [2, 0, 0, 0, 9, 9],
                    [0xff; 6],
                    [1, 0, 0x5e, 0, 0, 1],
                    [0x33, 0x33, 0, 0, 0, 1],
                ])
            }
            Trouble::OtherEthertype => {
                protocol = choices.of(&[[8, 6], [0x88, 0xcc], [8, 0], [0x86, 0xdd], [0, 46]])
            }
            Trouble::OtherTag => {
                let tag = choices.of(&[
                    &[0x81, 0, 0, 9][..],
                    &[0x81, 0, 0, 0],
                    &[0x81, 0, 0, 7],
                    &[0x88, 0xa8, 0, 7],
                    &[0x81, 0, 0xe0, 7],
                ]);
                tags = if choices.one_in(4) { [tag, &tags].concat() } else { tag.to_vec() };
            }
            Trouble::OtherPort => {
                port = choices.of(&[Port::Outer, Port::Inner, Port::Narrow, Port::Trunk, Port::Unhooked]);
                to = port.mac();
                tags.clear();
            }
            _ => {}
        }
    }
    let from = [2, 0, 0, 0, 1, port as u8 + 1];
    ([&to[..], &from, &tags, &protocol, &octets].concat(), port)
}
