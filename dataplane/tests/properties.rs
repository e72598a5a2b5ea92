//! What holds for every packet: checksums, sizes, conservation, independence of batches, there and back again.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod support;

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::mechanism::siit::dynamic_pool::DynamicPoolConfig;
use sixway_dataplane::nat::{Inside, NatProtocol, Outside, PoolConfig, Selection, SessionRow, StaticBinding};
use sixway_dataplane::parse::{Addresses, Packet, parse};
use sixway_dataplane::{
    Checksum, Counters, DropReason, Frame, Instant, Limits, Offload, Outbox, SegmentKind, Segments, Verdict,
    WorkerId,
};
use sixway_wire::{Endpoint4, Endpoint6};
use std::collections::BTreeMap;
use std::time::Duration;
use support::{Build, eam, hex, icmp4, icmp6, prefix, siit, v4, v6};

const LIMITS: Limits = Limits { mtu4: 1_400, mtu6: 1_500 };
/// Sources and destinations: mapped hosts, hosts of either prefix, pool addresses, the gateway, and trouble.
const HOSTS4: &[&str] = &[
    "198.51.100.9",
    "198.51.100.10",
    "203.0.113.2",
    "8.8.8.8",
    "192.0.2.1",
    "192.0.2.2",
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

/// SIIT and NAT64 at once.
fn both() -> EngineConfig {
    let mut nat64 = support::nat64();
    nat64.pool = PoolConfig { addresses: vec!["192.0.2.0/30".parse().unwrap()], ports: vec![4_000..=4_015] };
    nat64.static_bindings = vec![StaticBinding {
        protocol: NatProtocol::Udp,
        inside: Inside(Endpoint6::new("2001:db8:9::9".parse().unwrap(), 53)),
        outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 4_003)),
    }];
    EngineConfig {
        own4: Some("192.0.2.254".parse().unwrap()),
        own6: Some("2001:db8::fe".parse().unwrap()),
        limits: LIMITS,
        nat64: vec![nat64],
        siit: vec![SiitConfig {
            prefix: Some(prefix("2001:db8:64::/96")),
            eam: eam(&[("198.51.100.8/29", "2001:db8:1::/125")]),
            icmp_source_pool: vec!["203.0.113.9".parse().unwrap()],
            dynamic_pool: Some(DynamicPoolConfig::new("172.16.0.0/28".parse().unwrap())),
            ..SiitConfig::default()
        }],
        icmp_errors_per_second: 1_000_000,
        ..EngineConfig::default()
    }
}

/// What follows the IP headers.
#[derive(Clone, Debug)]
enum Load {
    Udp { checksum: bool },
    Tcp { flags: u8 },
    Echo { reply: bool },
    Error { kind: u8, code: u8, value: u32, quoted: usize },
    Query { kind: u8 },
    Other { protocol: u8 },
}

fn load() -> impl Strategy<Value = Load> {
    prop_oneof![
        4 => proptest::bool::weighted(0.8).prop_map(|checksum| Load::Udp { checksum }),
        4 => select(&[2u8, 18, 16, 17, 4, 1][..]).prop_map(|flags| Load::Tcp { flags }),
        3 => any::<bool>().prop_map(|reply| Load::Echo { reply }),
        3 => (select(&[1u8, 2, 3, 4, 11, 12][..]), 0u8..6, any::<u32>(), 0usize..700)
            .prop_map(|(kind, code, value, quoted)| Load::Error { kind, code, value, quoted }),
        1 => any::<u8>().prop_map(|kind| Load::Query { kind }),
        1 => any::<u8>().prop_map(|protocol| Load::Other { protocol }),
    ]
}

/// What both families carry alike.
fn plain_load() -> impl Strategy<Value = Load> {
    prop_oneof![
        Just(Load::Udp { checksum: true }),
        any::<u8>().prop_map(|flags| Load::Tcp { flags }),
        any::<bool>().prop_map(|reply| Load::Echo { reply }),
        select(&[4u8, 41, 47, 50, 51, 89, 132, 253][..]).prop_map(|protocol| Load::Other { protocol }),
    ]
}

/// Everything else about a packet.
#[derive(Clone, Debug)]
struct Shape {
    from: usize,
    to: usize,
    ports: (u16, u16),
    hops: u8,
    tos: u8,
    may_fragment: bool,
    identification: u16,
    fragment: Option<(u16, bool)>,
    option: Option<u8>,
    data: usize,
    seed: u8,
}

fn shape() -> impl Strategy<Value = Shape> {
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
fn packet() -> impl Strategy<Value = Vec<u8>> {
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

fn build(is_v4: bool, shape: &Shape, load: &Load) -> Build {
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
fn fragments() -> impl Strategy<Value = Vec<Vec<u8>>> {
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
struct Input {
    octets: Vec<u8>,
    offload: Offload,
}

impl Input {
    fn is_right(&self) -> bool {
        parse(&self.octets).is_ok_and(|packet| is_right(&self.octets, &packet, self.offload.checksum))
    }

    fn is_fragment(&self) -> bool {
        parse(&self.octets).is_ok_and(|packet| packet.fragment.is_some())
    }

    /// Whether it is for the gateway's own address.
    fn is_own(&self) -> bool {
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

/// Frames, some of them super-frames, some with unfinished checksums, as a kernel hands them out.
fn frames(count: usize) -> impl Strategy<Value = Vec<Input>> {
    let offloads = (weighted(0.15, select(&[100u16, 536, 1_300, 1_440][..])), proptest::bool::weighted(0.2));
    let octets = prop_oneof![9 => packet().prop_map(|packet| vec![packet]), 1 => fragments()];
    let some = (octets, offloads).prop_map(|(packets, (size, is_unfinished))| {
        packets.into_iter().map(|octets| described(octets, size, is_unfinished)).collect::<Vec<_>>()
    });
    vec(some, count).prop_map(move |frames| frames.into_iter().flatten().take(count).collect())
}

/// A packet with what a kernel could say of it.
fn described(mut octets: Vec<u8>, size: Option<u16>, is_unfinished: bool) -> Input {
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

fn sum(octets: &[u8]) -> u64 {
    octets.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0))).sum()
}

fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The sum of the pseudo-header that goes with all behind the IP headers.
fn pseudo_header(octets: &[u8], packet: &Packet) -> u64 {
    let addresses = match packet.addresses {
        Addresses::V4 { .. } => &octets[12..20],
        Addresses::V6 { .. } => &octets[8..40],
    };
    let length = u64::from(packet.length) - u64::from(packet.transport_at);
    sum(addresses) + u64::from(packet.protocol) + length
}

/// Whether a packet's transport checksum is right, as far as there is one that can be judged.
fn is_right(octets: &[u8], packet: &Packet, checksum: Checksum) -> bool {
    let body = &octets[usize::from(packet.transport_at)..packet.length as usize];
    let is_v4 = matches!(packet.addresses, Addresses::V4 { .. });
    let pseudo = pseudo_header(octets, packet);
    match (packet.protocol, checksum) {
        _ if packet.fragment.is_some() => true,
        // The field holds the sum of the pseudo-header; 0 and 0xffff are one number.
        (6, Checksum::Partial) => sum(&body[16..18]) % 0xffff == pseudo % 0xffff,
        (17, Checksum::Partial) => sum(&body[6..8]) % 0xffff == pseudo % 0xffff,
        (17, Checksum::Complete) if body[6..8] == [0, 0] => is_v4,
        // A datagram may be shorter than its packet; the checksum is then over the datagram alone.
        (17, Checksum::Complete) => {
            let length = usize::from(u16::from_be_bytes([body[4], body[5]]));
            length != body.len() || folded(pseudo + sum(body)) == 0xffff
        }
        (6, Checksum::Complete) => folded(pseudo + sum(body)) == 0xffff,
        (58, _) if !is_v4 => folded(pseudo + sum(body)) == 0xffff,
        (1, _) if is_v4 => folded(sum(body)) == 0xffff,
        _ => true,
    }
}

/// The largest packet that a frame is on the wire.
fn on_the_wire(octets: &[u8], packet: &Packet, offload: Offload) -> usize {
    let Some(segments) = offload.segments else { return octets.len() };
    let transport = match segments.kind {
        SegmentKind::Udp => 8,
        SegmentKind::Tcp | SegmentKind::TcpEcn => {
            usize::from(octets[usize::from(packet.transport_at) + 12] >> 4) * 4
        }
    };
    octets.len().min(usize::from(packet.transport_at) + transport + usize::from(segments.size))
}

/// How many packets a frame is on the wire.
fn segments_of(frame: &Frame) -> u32 {
    let Some(segments) = frame.offload.segments else { return 1 };
    let octets = frame.bytes();
    let transport_at = usize::from(parse(octets).unwrap().transport_at);
    let header = match segments.kind {
        SegmentKind::Udp => 8,
        SegmentKind::Tcp | SegmentKind::TcpEcn => usize::from(octets[transport_at + 12] >> 4) * 4,
    };
    (octets.len() - transport_at - header).div_ceil(usize::from(segments.size)).max(1) as u32
}

/// What leaves is a packet, right if what came was right, and fits its link.
fn judge(octets: &[u8], offload: Offload, came_right: bool) {
    let packet = parse(octets).unwrap_or_else(|reason| panic!("{reason:?}: {}", hex(octets)));
    assert_eq!(packet.length as usize, octets.len(), "{}", hex(octets));
    let mtu = match packet.addresses {
        Addresses::V4 { .. } => LIMITS.mtu4,
        Addresses::V6 { .. } => LIMITS.mtu6,
    };
    assert!(on_the_wire(octets, &packet, offload) <= usize::from(mtu), "{}", hex(octets));
    assert!(!came_right || is_right(octets, &packet, offload.checksum), "{offload:?}: {}", hex(octets));
}

/// Verdicts as an outsider counts them.
#[derive(Default)]
struct Tally {
    verdicts: BTreeMap<&'static str, u64>,
    dropped: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn add(&mut self, verdict: Verdict) {
        let name = match verdict {
            Verdict::Pending => panic!("a frame without verdict"),
            Verdict::Forward | Verdict::InPieces => "forwarded",
            Verdict::Answered => "answered",
            Verdict::Punted => "punted",
            Verdict::Held => "held",
            Verdict::Merged => "merged",
            Verdict::HandOver(_) => panic!("there is one worker"),
            Verdict::Dropped(reason) => {
                *self.dropped.entry(reason.name()).or_default() += 1;
                "dropped"
            }
        };
        *self.verdicts.entry(name).or_default() += 1;
    }

    fn of(&self, name: &str) -> u64 {
        self.verdicts.get(name).copied().unwrap_or_default()
    }

    /// What can be compared: fragments that were held change sides when their packet is whole or lost.
    fn agrees_with(&self, counters: &Counters) {
        assert_eq!(self.of("answered"), counters.answered);
        assert_eq!(self.of("punted"), counters.punted);
        assert_eq!(self.verdicts.values().sum::<u64>(), counters.received);
        assert!(self.of("forwarded") <= counters.forwarded);
        for reason in DropReason::ALL {
            let seen = self.dropped.get(reason.name()).copied().unwrap_or_default();
            assert!(seen <= counters.dropped[*reason as usize], "{}", reason.name());
        }
        if self.of("held") == 0 && self.of("merged") == 0 {
            assert_eq!(self.of("forwarded"), counters.forwarded);
            assert_eq!(self.of("dropped"), counters.dropped_total());
        }
    }
}

fn hold(input: &Input) -> Frame {
    let mut frame = Frame::holding(&input.octets);
    frame.offload = input.offload;
    frame
}

/// What an engine made of frames: everything that anyone can see.
#[derive(Debug, PartialEq)]
struct Seen {
    verdicts: Vec<Verdict>,
    left: Vec<Vec<u8>>,
    beside: Vec<Vec<u8>>,
    counters: Counters,
    sessions: Vec<SessionRow>,
}

fn run(input: &[Input], batch: usize) -> Seen {
    let mut engine = Engine::new(&both()).unwrap();
    let now = Instant::from_secs(1_000);
    let mut seen = Seen {
        verdicts: Vec::new(),
        left: Vec::new(),
        beside: Vec::new(),
        counters: Counters::default(),
        sessions: Vec::new(),
    };
    for some in input.chunks(batch) {
        let mut frames: Vec<Frame> = some.iter().map(hold).collect();
        let mut out = Outbox::new(16_384);
        engine.process(&mut frames, now, &mut out);
        assert!(engine.counters().frames_are_conserved());
        for frame in &frames {
            seen.verdicts.push(frame.verdict);
            seen.left.extend(frame.verdict.leaves().then(|| frame.bytes().to_vec()));
        }
        seen.beside.extend(out.frames().iter().map(|frame| frame.bytes().to_vec()));
    }
    // Errors about what cannot be read are made before a stride is translated: their order is nobody's business.
    seen.beside.sort();
    seen.counters = engine.counters().clone();
    engine.nat64()[0].sessions(0, u32::MAX, &Selection::default(), now, &mut seen.sessions);
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_what_leaves_is_right_and_fits_and_every_frame_is_accounted_for(
        batches in vec((frames(16), 0u64..3_000), 1..8),
    ) {
        let mut engine = Engine::new(&both()).unwrap();
        let mut now = Instant::from_secs(1_000);
        let mut out = Outbox::new(4_096);
        let mut tally = Tally::default();
        // Of a packet put together nobody knows which fragment was wrong.
        let mut all_right = true;
        let (mut on_the_wire, mut beside) = (0, 0);
        // A large echo for the gateway is answered in fragments, which are no packets that it forwards.
        let is_countable = !batches.iter().flat_map(|(input, _)| input).any(Input::is_own);
        for (input, pause) in batches {
            let right: Vec<bool> = input.iter().map(Input::is_right).collect();
            all_right &= right.iter().all(|right| *right) && !input.iter().any(Input::is_fragment);
            let mut frames: Vec<Frame> = input.iter().map(hold).collect();
            engine.process(&mut frames, now, &mut out);
            for (frame, right) in frames.iter().zip(right) {
                tally.add(frame.verdict);
                if frame.verdict.leaves() {
                    judge(frame.bytes(), frame.offload, right);
                    on_the_wire += u64::from(segments_of(frame));
                }
            }
            tally.agrees_with(engine.counters());
            now = now + Duration::from_millis(pause);
            engine.tick(now, &mut out);
            out.frames().iter().for_each(|frame| judge(frame.bytes(), frame.offload, all_right));
            beside += out.len() as u64;
            out.clear();
            let counters = engine.counters();
            prop_assert!(counters.frames_are_conserved());
            let own = counters.icmp_errors_made + counters.tcp_probes_made;
            prop_assert!(!is_countable || counters.packets == on_the_wire + beside - own);
        }
    }

    #[test]
    fn a_batch_is_translated_as_its_packets_are_one_by_one(input in frames(256)) {
        let (together, apart) = (run(&input, 256), run(&input, 1));
        prop_assert_eq!(together, apart);
    }

    #[test]
    fn two_workers_account_for_every_frame_and_hand_over_no_more_than_is_taken(
        input in vec((frames(8), any::<bool>(), 0u64..1_000), 1..8),
    ) {
        let worker = |worker| Engine::new(&EngineConfig { worker: WorkerId(worker), workers: 2, ..both() }).unwrap();
        let mut engines = [worker(0), worker(1)];
        let mut now = Instant::from_secs(1_000);
        for (some, at, pause) in input {
            let mut out = Outbox::new(4_096);
            let mut frames: Vec<Frame> = some.iter().map(hold).collect();
            engines[usize::from(at)].process(&mut frames, now, &mut out);
            for frame in &mut frames {
                let mut steps = 0;
                while let Verdict::HandOver(WorkerId(to)) = frame.verdict {
                    steps += 1;
                    prop_assert!(steps < 5, "it goes in circles: {:?}", frame);
                    engines[usize::from(to)].take_over(std::slice::from_mut(frame), now, &mut out);
                }
                prop_assert_ne!(frame.verdict, Verdict::Pending);
                if frame.verdict.leaves() {
                    judge(frame.bytes(), frame.offload, false);
                }
            }
            now = now + Duration::from_millis(pause);
            engines.iter_mut().for_each(|engine| engine.tick(now, &mut out));
            out.frames().iter().for_each(|frame| judge(frame.bytes(), frame.offload, false));
            let counters = engines.each_ref().map(|engine| engine.counters());
            prop_assert!(counters.iter().all(|counters| counters.frames_are_conserved()));
            let given: u64 = counters.iter().map(|counters| counters.handed_over).sum();
            prop_assert_eq!(given, counters.iter().map(|counters| counters.taken_over).sum::<u64>());
        }
    }

    #[test]
    fn an_ipv6_packet_is_itself_again_after_ipv4_but_for_its_hop_limit(
        tos in any::<u8>(), load in plain_load(), hops in 3u8.., data in 0usize..1_400, seed in any::<u8>(),
    ) {
        let shape = Shape {
            from: 0, to: 4, ports: (1, 2), hops, tos, may_fragment: false, identification: 0, fragment: None,
            option: None, data, seed,
        };
        let mut gateway = siit(|config| config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]));
        let original = build(false, &shape, &load);
        gateway.receives(original.clone());
        let between = gateway.sent();
        prop_assert!(is_right(&between, &parse(&between).unwrap(), Checksum::Complete));
        gateway.receives(between);
        gateway.sends(original.hops(hops - 2));
    }

    #[test]
    fn an_ipv4_packet_is_itself_again_after_ipv6_but_for_what_ipv6_does_not_carry(
        tos in any::<u8>(), load in plain_load(), hops in 3u8.., data in 0usize..1_400, seed in any::<u8>(),
    ) {
        let shape = Shape {
            from: 0, to: 2, ports: (1, 2), hops, tos, may_fragment: false, identification: 0, fragment: None,
            option: None, data, seed,
        };
        let mut gateway = siit(|config| config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]));
        let original = build(true, &shape, &load);
        gateway.receives(original.clone());
        let between = gateway.sent();
        prop_assert!(is_right(&between, &parse(&between).unwrap(), Checksum::Complete));
        gateway.receives(between);
        let sent = gateway.sent();
        // Up to 1,260 octets DF is not set again, and an identification is made (RFC 7915 §5.1).
        let mut expected = original.hops(hops - 2);
        if sent.len() <= 1_260 {
            expected = expected.may_fragment().identification(u16::from_be_bytes([sent[4], sent[5]]).into());
        }
        prop_assert_eq!(hex(&sent), hex(&expected.octets()));
    }

    #[test]
    fn a_fragment_is_itself_again_after_the_other_family(
        is_v4 in any::<bool>(), offset in 0u16..8_000, more in any::<bool>(), units in 1usize..140, seed in any::<u8>(),
        identification in any::<u16>(),
    ) {
        prop_assume!(more || offset > 0);
        let mut gateway = siit(|config| config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]));
        let (from, to) = if is_v4 { (0, 2) } else { (0, 4) };
        let shape = Shape {
            from, to, ports: (1, 2), hops: 64, tos: 0, may_fragment: true, identification,
            fragment: Some((offset / 8 * 8, more)), option: None, data: 8 * units, seed,
        };
        prop_assume!(shape.fragment != Some((0, false)));
        let original = build(is_v4, &shape, &Load::Udp { checksum: true });
        gateway.receives(original.clone());
        let between = gateway.sent();
        gateway.receives(between);
        gateway.sends(original.hops(62));
    }
}

/// Every kind of packet above is translated at least sometimes: the properties are not about drops alone.
#[test]
fn the_packets_of_these_properties_reach_what_they_should() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut engine = Engine::new(&both()).unwrap();
    let mut out = Outbox::new(4_096);
    for round in 0..40 {
        let input = frames(64).new_tree(&mut runner).unwrap().current();
        let mut frames: Vec<Frame> = input.iter().map(hold).collect();
        engine.process(&mut frames, Instant::from_secs(1_000 + round), &mut out);
        out.clear();
    }
    let never: Vec<&str> = engine
        .counters()
        .named()
        .filter(|(name, _, value)| *value == 0 && !name.contains("ended") && !name.contains("limited"))
        .map(|(name, _, _)| name)
        .collect();
    let unneeded =
        ["taken_over", "handed_over", "merged", "icmp_errors.unsourced", "tcp_probes.made", "punted"];
    let missing: Vec<&&str> = never.iter().filter(|name| !unneeded.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}: {:?}", engine.counters());
}
