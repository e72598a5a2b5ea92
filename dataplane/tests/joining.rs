//! What comes out of tunnels is joined to GSO packets, which are on the wire what was put into the tunnel.

use crate::support::super_frame::{on_the_wire, unfinished};
use crate::support::{Build, configured, in_ipv4, v6};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use sixway_dataplane::engine::{Engine, EngineConfig, TunnelConfig};
use sixway_dataplane::frame::MAX_PACKET;
use sixway_dataplane::{Checksum, Frame, Instant, Offload, Outbox, SegmentKind, Verdict};
use sixway_trial::budget;
use std::collections::BTreeMap;

const LOCAL: &str = "192.0.2.9";
const REMOTE: &str = "198.51.100.7";
const HOST: &str = "2001:db8:1::1";
const PEER: &str = "2001:db8:7::1";
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const URG: u8 = 0x20;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

/// A TCP segment of a flow.
#[derive(Clone, Debug)]
struct Tcp {
    port: u16,
    sequence: u32,
    acknowledgment: u32,
    flags: u8,
    window: u16,
    options: Vec<u8>,
    data: Vec<u8>,
}

impl Tcp {
    fn new(sequence: u32, length: usize) -> Self {
        let data = (0..length).map(|at| (at as u32).wrapping_add(sequence) as u8).collect();
        Self { port: 80, sequence, acknowledgment: 7, flags: ACK, window: 512, options: Vec::new(), data }
    }

    fn flags(self, flags: u8) -> Self {
        Self { flags, ..self }
    }

    fn packet(&self) -> Build {
        let offset = (((20 + self.options.len()) / 4) << 4) as u8;
        let body = [
            &self.port.to_be_bytes()[..],
            &[0x0f, 0xa0],
            &self.sequence.to_be_bytes(),
            &self.acknowledgment.to_be_bytes(),
            &[offset, self.flags],
            &self.window.to_be_bytes(),
            &[0, 0, 0, 0],
            &self.options,
            &self.data,
        ];
        v6(PEER, HOST).protocol(6, &body.concat(), Some(16))
    }

    fn octets(&self) -> Vec<u8> {
        self.packet().octets()
    }
}

/// A batch that came through the tunnel, and what left of it.
struct Out {
    verdicts: Vec<Verdict>,
    left: Vec<(Vec<u8>, Offload)>,
    engine: Engine,
}

impl Out {
    fn joined(&self) -> u64 {
        self.engine.counters().gso_joined
    }

    fn wire(&self) -> Vec<Vec<u8>> {
        self.left.iter().flat_map(|(octets, offload)| on_the_wire(octets, *offload)).collect()
    }
}

fn engine(join: bool) -> Engine {
    let tunnels = vec![TunnelConfig::Configured(configured())];
    Engine::new(&EngineConfig { tunnels, join, ..EngineConfig::default() }).unwrap()
}

/// Inner packets, and whether their checksum is unfinished, come through the tunnel in one batch, in frames of that capacity.
fn receive_with(join: bool, packets: &[(Vec<u8>, bool)], capacity: usize) -> Out {
    let mut engine = engine(join);
    let mut frames: Vec<Frame> = packets
        .iter()
        .map(|(inner, is_unfinished)| {
            let mut frame = Frame::with_capacity(capacity);
            let checksum = if *is_unfinished { Checksum::Partial } else { Checksum::Complete };
            let inner = if *is_unfinished { unfinished(inner.clone()) } else { inner.clone() };
            let offload = Offload { checksum, ..Offload::default() };
            frame.fill(&in_ipv4(REMOTE, LOCAL, inner).octets(), offload);
            frame
        })
        .collect();
    let mut out = Outbox::new(64);
    engine.process(&mut frames, Instant::from_secs(1_000), &mut out);
    assert!(out.is_empty());
    let counters = engine.counters();
    assert!(counters.frames_are_conserved(), "{counters:?}");
    let merged = frames.iter().filter(|frame| frame.verdict == Verdict::Merged).count() as u64;
    assert_eq!((counters.merged, counters.gso_joined), (merged, merged));
    let leaving = frames.iter().filter(|frame| frame.verdict.leaves());
    let left: Vec<_> = leaving.map(|frame| (frame.bytes().to_vec(), frame.offload)).collect();
    assert_eq!(counters.octets, left.iter().map(|(octets, _)| octets.len() as u64).sum::<u64>());
    assert_eq!(counters.packets, packets.len() as u64);
    Out { verdicts: frames.iter().map(|frame| frame.verdict).collect(), left, engine }
}

fn receive(packets: &[Vec<u8>]) -> Out {
    let packets: Vec<_> = packets.iter().map(|packet| (packet.clone(), false)).collect();
    receive_with(true, &packets, MAX_PACKET)
}

/// As they are: nothing was joined.
fn stay_apart(packets: &[Vec<u8>]) {
    let out = receive(packets);
    assert_eq!(out.joined(), 0);
    assert_eq!(out.left.into_iter().map(|(octets, _)| octets).collect::<Vec<_>>(), packets);
}

#[test]
fn consecutive_segments_of_a_flow_become_one_gso_packet() {
    let segments: Vec<_> = (0..40).map(|n| Tcp::new(1_000 * n, 1_000).octets()).collect();
    let out = receive(&segments);
    assert_eq!(out.left.len(), 1);
    let (octets, offload) = &out.left[0];
    assert_eq!(octets.len(), 60 + 40_000);
    assert_eq!((offload.checksum, offload.transport), (Checksum::Partial, 40));
    let described = offload.segments.unwrap();
    assert_eq!((described.size, described.kind), (1_000, SegmentKind::Tcp));
    assert_eq!(out.wire(), segments);
    assert_eq!(out.verdicts[0], Verdict::Forward);
    assert!(out.verdicts[1..].iter().all(|verdict| *verdict == Verdict::Merged));
}

#[test]
fn datagrams_of_one_size_become_one_gso_packet_whose_last_may_be_shorter() {
    let datagram = |length: usize| v6(PEER, HOST).udp(443, 4_000, &vec![length as u8; length]).octets();
    let sent = [datagram(1_200), datagram(1_200), datagram(700), datagram(700), datagram(701)];
    let out = receive(&sent);
    assert_eq!(out.left.iter().map(|(octets, _)| octets.len()).collect::<Vec<_>>(), [3_148, 748, 749]);
    assert_eq!(out.left[0].1.segments.unwrap().kind, SegmentKind::Udp);
    assert_eq!(out.wire(), sent);
}

#[test]
fn segments_with_other_options_stay_apart_however_short_the_first_is() {
    let options = |words: usize| vec![1; 4 * words];
    for (first, second) in [(0, 10), (10, 0), (1, 9)] {
        for length in [1, 8, 100] {
            let segment = |at, words| Tcp { options: options(words), ..Tcp::new(at, length) }.octets();
            stay_apart(&[segment(0, first), segment(length as u32, second)]);
        }
    }
}

#[test]
fn a_shorter_segment_or_push_is_the_last_of_its_gso_packet() {
    let sent = [
        Tcp::new(0, 100).octets(),
        Tcp::new(100, 40).octets(),
        Tcp::new(140, 100).octets(),
        Tcp::new(240, 100).flags(ACK | PSH).octets(),
        Tcp::new(340, 100).octets(),
        Tcp::new(440, 100).octets(),
    ];
    let out = receive(&sent);
    assert_eq!(out.left.iter().map(|(octets, _)| octets.len()).collect::<Vec<_>>(), [200, 260, 260]);
    assert_eq!(out.left[1].0[53], ACK | PSH);
    assert_eq!(out.wire(), sent);
}

#[test]
fn flows_that_take_turns_are_joined_each_for_itself_and_in_order() {
    let flow = |port, n: u32| Tcp { port, ..Tcp::new(500 * n, 500) }.octets();
    let sent: Vec<_> = (0..10).flat_map(|n| [flow(80, n), flow(81, n), flow(82, n)]).collect();
    let out = receive(&sent);
    assert_eq!(out.left.len(), 3);
    for (octets, offload) in &out.left {
        let port = octets[41];
        let of_flow: Vec<_> = sent.iter().filter(|packet| packet[41] == port).cloned().collect();
        assert_eq!(on_the_wire(octets, *offload), of_flow);
    }
}

#[test]
fn segments_that_differ_in_what_a_cut_would_not_restore_stay_apart() {
    let first = Tcp::new(0, 100);
    let next = Tcp::new(100, 100);
    let stamp = |value: u8| [1, 1, 8, 10, 0, 0, 0, value, 0, 0, 0, 9].to_vec();
    for other in [
        Tcp { sequence: 101, ..next.clone() },
        Tcp { sequence: 0, ..next.clone() },
        Tcp { acknowledgment: 8, ..next.clone() },
        Tcp { window: 513, ..next.clone() },
        Tcp { options: stamp(1), ..next.clone() },
        Tcp::new(100, 101),
        Tcp::new(100, 0),
        next.clone().flags(ACK | ECE),
        next.clone().flags(ACK | CWR),
        next.clone().flags(ACK | FIN),
        next.clone().flags(ACK | SYN),
        next.clone().flags(ACK | RST),
        next.clone().flags(ACK | URG),
        next.clone().flags(0),
    ] {
        stay_apart(&[first.octets(), other.octets()]);
    }
    let stamped = |sequence, value| Tcp { options: stamp(value), ..Tcp::new(sequence, 100) }.octets();
    stay_apart(&[stamped(0, 1), stamped(100, 2)]);
    assert_eq!(receive(&[stamped(0, 1), stamped(100, 1)]).joined(), 1);
    for other in [
        next.packet().hops(63),
        next.packet().tos(1),
        next.packet().tos(0xb8),
        next.packet().extension(60, &[0, 0, 1, 4, 0, 0, 0, 0]),
        Tcp { port: 81, ..next.clone() }.packet(),
    ] {
        stay_apart(&[first.octets(), other.octets()]);
    }
    let mut labelled = next.octets();
    labelled[3] = 1;
    stay_apart(&[first.octets(), labelled]);
    stay_apart(&[first.octets(), v6(PEER, HOST).udp(80, 4_000, &[1; 100]).octets()]);
}

#[test]
fn whatever_of_a_flow_is_not_joined_ends_its_gso_packet() {
    let between = [
        Tcp::new(200, 0).octets(),
        Tcp::new(100, 100).octets(), // sent again
        v6(PEER, HOST).extension(60, &[0, 0, 1, 4, 0, 0, 0, 0]).udp(80, 4_000, b"data").octets(),
        v6(PEER, HOST).udp(80, 4_000, &[7; 100]).fragment(1, 0, true).part(0, 64).octets(),
    ];
    for other in between {
        let sent = [
            Tcp::new(0, 100).octets(),
            Tcp::new(100, 100).octets(),
            other.clone(),
            Tcp::new(200, 100).octets(),
            Tcp::new(300, 100).octets(),
        ];
        let out = receive(&sent);
        assert_eq!(out.wire(), sent, "{other:?}");
        assert!(out.joined() >= 2);
    }
}

#[test]
fn a_segment_with_a_wrong_checksum_goes_as_it_is() {
    for bad in 0..3 {
        let mut sent: Vec<_> = (0..3).map(|n| Tcp::new(100 * n, 100).octets()).collect();
        sent[bad][80] ^= 1;
        let out = receive(&sent);
        assert_eq!(out.wire(), sent, "{bad}");
        assert_eq!(out.joined(), if bad == 1 { 0 } else { 1 }, "{bad}");
    }
}

#[test]
fn a_checksum_that_a_cut_would_write_otherwise_is_left_alone() {
    // Data that makes the checksum 0, which may be written as 0xffff too.
    let segment = |n: u32| {
        let mut zero = Tcp::new(100 * n, 100);
        zero.data[..2].fill(0);
        let checksum = u16::from_be_bytes([zero.octets()[56], zero.octets()[57]]);
        zero.data[..2].copy_from_slice(&checksum.to_be_bytes());
        zero.octets()
    };
    let sent = [segment(0), segment(1)];
    assert_eq!(sent[1][56..58], [0, 0]);
    assert_eq!(receive(&sent).wire(), sent);
    assert_eq!(receive(&sent).joined(), 1);
    let mut other = sent.clone();
    other[1][56..58].fill(0xff);
    stay_apart(&other);
    let mut without =
        [v6(PEER, HOST).udp(1, 2, &[1; 50]).octets(), v6(PEER, HOST).udp(1, 2, &[1; 50]).octets()];
    without[1][46..48].fill(0);
    stay_apart(&without);
}

#[test]
fn no_gso_packet_is_larger_than_a_packet_or_its_frame() {
    let segments: Vec<_> = (0..60).map(|n| Tcp::new(1_400 * n, 1_400).octets()).collect();
    let out = receive(&segments);
    assert_eq!(out.left.iter().map(|(octets, _)| octets.len()).collect::<Vec<_>>(), [64_460, 19_660]);
    assert_eq!(out.wire(), segments);
    let segments: Vec<_> = segments.into_iter().map(|segment| (segment, false)).collect();
    let out = receive_with(true, &segments, 5_000);
    assert!(out.left.iter().all(|(octets, _)| octets.len() <= 5_000));
    assert_eq!(out.joined(), 40);
}

#[test]
fn a_gateway_that_is_told_not_to_joins_nothing() {
    let segments: Vec<_> = (0..10).map(|n| (Tcp::new(100 * n, 100).octets(), false)).collect();
    assert_eq!(receive_with(false, &segments, MAX_PACKET).left.len(), 10);
}

/// What comes next in one of a few flows.
#[derive(Clone, Debug)]
enum Step {
    Data { length: usize, flags: u8 },
    Again,
    Nothing { flags: u8 },
    Window(u16),
    Udp { length: usize },
    Broken,
    Fragment,
}

fn steps() -> impl Strategy<Value = Vec<(u8, Step, bool)>> {
    let length = prop_oneof![6 => Just(300usize), 1 => 1usize..300, 1 => 300usize..1_200];
    let step = prop_oneof![
        12 => (length, prop_oneof![8 => Just(ACK), 1 => Just(ACK | PSH), 1 => any::<u8>()])
            .prop_map(|(length, flags)| Step::Data { length, flags }),
        1 => Just(Step::Again),
        1 => any::<u8>().prop_map(|flags| Step::Nothing { flags }),
        1 => any::<u16>().prop_map(Step::Window),
        4 => prop_oneof![4 => Just(200usize), 1 => 0usize..400].prop_map(|length| Step::Udp { length }),
        1 => Just(Step::Broken),
        1 => Just(Step::Fragment),
    ];
    vec((0u8..3, step, proptest::bool::weighted(0.1)), 1..150)
}

/// The packets of all flows, in the order of their steps.
fn packets(steps: &[(u8, Step, bool)]) -> Vec<(Vec<u8>, bool)> {
    let mut flows = [(u32::MAX - 500, 512); 3];
    let mut all = Vec::new();
    for (flow, step, is_unfinished) in steps {
        let (sequence, window) = &mut flows[usize::from(*flow)];
        let tcp =
            |length, sequence, window| Tcp { port: u16::from(*flow), window, ..Tcp::new(sequence, length) };
        let whole = |octets| (octets, *is_unfinished);
        match *step {
            Step::Data { length, flags } => {
                all.push(whole(tcp(length, *sequence, *window).flags(flags).octets()));
                *sequence = sequence.wrapping_add(length as u32);
            }
            Step::Again => all.push(whole(tcp(300, sequence.wrapping_sub(300), *window).octets())),
            Step::Nothing { flags } => all.push(whole(tcp(0, *sequence, *window).flags(flags).octets())),
            Step::Window(new) => *window = new,
            Step::Udp { length } => {
                let data: Vec<u8> = (0..length).map(|at| at as u8).collect();
                all.push(whole(v6(PEER, HOST).udp(u16::from(*flow), 4_000, &data).octets()));
            }
            Step::Broken => {
                let mut broken = tcp(300, *sequence, *window).octets();
                broken[100] ^= 4;
                all.push((broken, false));
                *sequence = sequence.wrapping_add(300);
            }
            Step::Fragment => {
                let datagram = v6(PEER, HOST).udp(u16::from(*flow), 4_000, &[1; 200]);
                all.push((datagram.fragment(9, 8, true).part(8, 48).octets(), false));
            }
        }
    }
    all
}

/// Protocol and ports; fragments count for themselves.
fn flow_of(packet: &[u8]) -> (u8, Vec<u8>) {
    (packet[6], packet[40..44].to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(budget(256)) })]

    #[test]
    fn what_was_joined_is_cut_into_the_very_packets_in_the_order_of_their_flow(
        steps in steps(), capacity in prop_oneof![Just(MAX_PACKET), 1_300usize..4_000],
    ) {
        let sent = packets(&steps);
        let out = receive_with(true, &sent, capacity);
        let mut by_flow: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (packet, _) in sent {
            by_flow.entry(flow_of(&packet)).or_default().push(packet);
        }
        let mut left_by_flow: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for packet in out.wire() {
            left_by_flow.entry(flow_of(&packet)).or_default().push(packet);
        }
        prop_assert_eq!(left_by_flow, by_flow);
    }
}

/// The property above is not about packets that are never joined.
#[test]
fn many_segments_of_these_properties_are_joined() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut joined, mut all) = (0, 0);
    for _ in 0..20 {
        let steps = steps().new_tree(&mut runner).unwrap().current();
        let sent = packets(&steps);
        joined += receive_with(true, &sent, MAX_PACKET).joined();
        all += sent.len() as u64;
    }
    assert!(joined * 5 > all, "{joined} of {all}");
}
