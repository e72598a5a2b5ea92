//! Packets of every kind, from strategies that shrink.

use super::judge::{folded, is_right, pseudo_header};
use crate::support::{Build, hex, icmp4, icmp6, v4, v6};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use sixway_dataplane::parse::{Addresses, parse};
use sixway_dataplane::{Checksum, Frame, Offload, SegmentKind, Segments};

/// Sources and destinations: mapped hosts, hosts of either prefix, pool addresses, the gateway, and trouble.
const HOSTS4: &[&str] = &[
    "198.51.100.9",
    "198.51.100.10",
    "203.0.113.2",
    "8.8.8.8",
    "192.0.2.1",
    "192.0.2.2",
    "192.0.2.5",
    "172.16.0.1",
    "192.0.2.254",
    "127.0.0.1",
    "224.0.0.1",
    "10.0.0.1",
];
const HOSTS6: &[&str] = &[
    "2001:db8:1::1",
    "2001:db8:1::2",
    "2001:db8:9::9",
    "2001:db8:ffff::1",
    "2001:db8:64::203.0.113.2",
    "2001:db8:64::198.51.100.9",
    "64:ff9b::203.0.113.2",
    "64:ff9b::8.8.8.8",
    "64:ff9b::192.0.2.1",
    "64:ff9b::192.0.2.2",
    "2001:db8::fe",
    "fe80::1",
    "ff02::1",
    "::1",
];
/// Few enough that packets meet the bindings which others made.
const PORTS: &[u16] = &[53, 80, 4_000, 4_001, 4_002, 4_003];

/// What follows the IP headers.
#[derive(Clone, Debug)]
pub enum Load {
    Udp { checksum: bool },
    Tcp { flags: u8 },
    Echo { reply: bool },
    Error { kind: u8, code: u8, value: u32, quoted: usize },
    Query { kind: u8 },
    Other { protocol: u8 },
}

pub fn load() -> impl Strategy<Value = Load> {
    prop_oneof![
        4 => proptest::bool::weighted(0.8).prop_map(|checksum| Load::Udp { checksum }),
        4 => select(&[2u8, 18, 16, 17, 4, 1][..]).prop_map(|flags| Load::Tcp { flags }),
        3 => any::<bool>().prop_map(|reply| Load::Echo { reply }),
        3 => (select(&[1u8, 2, 3, 4, 11, 12][..]), 0u8..6, any::<u32>(), 0usize..700)
            .prop_map(|(kind, code, value, quoted)| Load::Error { kind, code, value, quoted }),
        1 => any::<u8>().prop_map(|kind| Load::Query { kind }),
        2 => prop_oneof![any::<u8>(), select(&[4u8, 41, 47, 50][..])].prop_map(|protocol| Load::Other { protocol }),
    ]
}

/// What both families carry alike.
pub fn plain_load() -> impl Strategy<Value = Load> {
    prop_oneof![
        Just(Load::Udp { checksum: true }),
        any::<u8>().prop_map(|flags| Load::Tcp { flags }),
        any::<bool>().prop_map(|reply| Load::Echo { reply }),
        select(&[4u8, 41, 47, 50, 51, 89, 132, 253][..]).prop_map(|protocol| Load::Other { protocol }),
    ]
}

/// Everything else about a packet.
#[derive(Clone, Debug)]
pub struct Shape {
    pub from: usize,
    pub to: usize,
    pub ports: (u16, u16),
    pub hops: u8,
    pub tos: u8,
    pub may_fragment: bool,
    pub identification: u16,
    pub fragment: Option<(u16, bool)>,
    pub option: Option<u8>,
    pub data: usize,
    pub seed: u8,
}

pub fn shape() -> impl Strategy<Value = Shape> {
    let sizes =
        prop_oneof![5 => 0usize..80, 2 => 80usize..1_200, 3 => 1_200usize..1_520, 1 => 1_520usize..9_000];
    let numbers = (0usize..64, 0usize..64, select(PORTS), select(PORTS));
    let fields = (prop_oneof![9 => Just(64u8), 1 => any::<u8>()], any::<u8>(), any::<bool>(), 0u16..4);
    let rare =
        (weighted(0.2, (select(&[0u16, 8, 1_208, 1_232, 64_000][..]), any::<bool>())), weighted(0.1, 0u8..4));
    (numbers, fields, rare, sizes, any::<u8>()).prop_map(
        |((from, to, source, destination), (hops, tos, may_fragment, identification), rare, data, seed)| {
            let (fragment, option) = rare;
            let ports = (source, destination);
            Shape { from, to, ports, hops, tos, may_fragment, identification, fragment, option, data, seed }
        },
    )
}

/// A packet of either family.
pub fn packet() -> impl Strategy<Value = Vec<u8>> {
    let damage = weighted(0.05, (any::<prop::sample::Index>(), any::<u8>()));
    let cut = weighted(0.03, any::<prop::sample::Index>());
    (any::<bool>(), shape(), load(), damage, cut).prop_map(|(is_v4, shape, load, damage, cut)| {
        let mut octets = build(is_v4, &shape, &load).octets();
        if let Some((at, octet)) = damage {
            let at = at.index(octets.len());
            octets[at] ^= octet;
        }
        if let Some(cut) = cut {
            octets.truncate(cut.index(octets.len()));
        }
        octets
    })
}

pub fn build(is_v4: bool, shape: &Shape, load: &Load) -> Build {
    let mut packet = if is_v4 {
        v4(HOSTS4[shape.from % HOSTS4.len()], HOSTS4[shape.to % HOSTS4.len()])
    } else {
        v6(HOSTS6[shape.from % HOSTS6.len()], HOSTS6[shape.to % HOSTS6.len()])
    };
    packet = packet.hops(shape.hops).tos(shape.tos).identification(shape.identification.into());
    if shape.may_fragment {
        packet = packet.may_fragment();
    }
    let (source, destination) = shape.ports;
    let data: Vec<u8> = (0..shape.data).map(|n| (n as u8).wrapping_mul(7) ^ shape.seed).collect();
    packet = match *load {
        Load::Udp { checksum } => {
            let packet = packet.udp(source, destination, &data);
            if checksum { packet } else { packet.without_checksum() }
        }
        Load::Tcp { flags } => packet.tcp(source, destination, flags, &data),
        Load::Echo { reply: false } => packet.echo(source, 1, &data),
        Load::Echo { reply: true } => packet.echo_reply(destination, 1, &data),
        Load::Error { kind, code, value, quoted } => {
            let back = Shape {
                from: shape.to,
                to: shape.from,
                ports: (destination, source),
                fragment: None,
                data: 600,
                ..shape.clone()
            };
            let inner = if shape.seed.is_multiple_of(2) {
                Load::Udp { checksum: true }
            } else {
                Load::Echo { reply: false }
            };
            let mut quote = build(is_v4, &back, &inner).octets();
            quote.truncate(quoted);
            let rest = value.to_be_bytes();
            packet.icmp(if is_v4 { icmp4(kind, code, rest, &quote) } else { icmp6(kind, code, rest, &quote) })
        }
        Load::Query { kind } => packet.icmp(icmp4(kind, 0, [0; 4], &data)),
        Load::Other { protocol } => packet.protocol(protocol, &data, None),
    };
    if let Some(option) = shape.option {
        packet = if is_v4 {
            packet.options(&[[7, 7, 4, 0, 0, 0, 0, 0], [131, 7, 4, 1, 1, 1, 1, 0]][usize::from(option % 2)])
        } else {
            packet.extension([0, 60, 43, 44][usize::from(option)], &[0, 0, 1, 4, 0, 0, 0, 0])
        };
    }
    match (shape.fragment, load) {
        (None, _) | (_, Load::Error { .. }) => packet,
        (Some((offset, more)), _) => {
            packet.fragment(shape.identification.into(), offset, more).part(0, shape.data / 8 * 8)
        }
    }
}

/// A UDP packet from inside or outside in two fragments, in either order.
pub fn fragments() -> impl Strategy<Value = Vec<Vec<u8>>> {
    (any::<bool>(), shape(), any::<bool>()).prop_map(|(is_v4, shape, in_order)| {
        let shape = Shape { fragment: None, option: None, hops: 64, data: 24 + shape.data % 2_000, ..shape };
        let whole = build(is_v4, &shape, &Load::Udp { checksum: true });
        let part = |offset: usize, to: usize, more| {
            let fragment = whole.clone().fragment(shape.identification.into(), offset as u16, more);
            fragment.part(offset, to).octets()
        };
        let middle = (shape.data / 2).next_multiple_of(8);
        let parts = [part(0, middle, true), part(middle, 8 + shape.data, false)];
        if in_order { parts.to_vec() } else { parts.into_iter().rev().collect() }
    })
}

/// A packet and what the link says of it.
#[derive(Clone)]
pub struct Input {
    pub octets: Vec<u8>,
    pub offload: Offload,
}

impl Input {
    pub fn is_right(&self) -> bool {
        parse(&self.octets).is_ok_and(|packet| is_right(&self.octets, &packet, self.offload.checksum))
    }

    pub fn is_fragment(&self) -> bool {
        parse(&self.octets).is_ok_and(|packet| packet.fragment.is_some())
    }

    /// Whether it is for the gateway's own address.
    pub fn is_own(&self) -> bool {
        parse(&self.octets).is_ok_and(|packet| match packet.addresses {
            Addresses::V4 { destination, .. } => destination.to_string() == "192.0.2.254",
            Addresses::V6 { destination, .. } => destination.to_string() == "2001:db8::fe",
        })
    }
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = &self.octets[..self.octets.len().min(100)];
        write!(f, "{} octets, {:?}: {}", self.octets.len(), self.offload, hex(start))
    }
}

/// Frames, some of them GSO packets, some with unfinished checksums, as a kernel hands them out.
pub fn frames(count: usize) -> impl Strategy<Value = Vec<Input>> {
    let offloads = (weighted(0.15, select(&[100u16, 536, 1_300, 1_440][..])), proptest::bool::weighted(0.2));
    let octets = prop_oneof![9 => packet().prop_map(|packet| vec![packet]), 1 => fragments()];
    let some = (octets, offloads).prop_map(|(packets, (size, is_unfinished))| {
        packets.into_iter().map(|octets| described(octets, size, is_unfinished)).collect::<Vec<_>>()
    });
    vec(some, count).prop_map(move |frames| frames.into_iter().flatten().take(count).collect())
}

/// A packet with what a kernel could say of it.
pub fn described(mut octets: Vec<u8>, size: Option<u16>, is_unfinished: bool) -> Input {
    let mut offload = Offload::default();
    if let Ok(packet) = parse(&octets)
        && let (kind @ (6 | 17), None) = (packet.protocol, packet.fragment)
    {
        let (kind, at) = if kind == 6 { (SegmentKind::Tcp, 16) } else { (SegmentKind::Udp, 6) };
        offload.segments = size.map(|size| Segments { size, kind });
        if is_unfinished {
            offload.checksum = Checksum::Partial;
            let unfinished = folded(pseudo_header(&octets, &packet));
            let at = usize::from(packet.transport_at) + at;
            octets[at..at + 2].copy_from_slice(&unfinished.to_be_bytes());
        }
    }
    Input { octets, offload }
}

pub fn hold(input: &Input) -> Frame {
    let mut frame = Frame::holding(&input.octets);
    frame.offload = input.offload;
    frame
}
