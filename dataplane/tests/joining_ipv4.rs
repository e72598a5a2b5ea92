//! IPv4 that comes out of tunnels is joined to GSO packets as IPv6 is; the cut counts the Identification up.

use crate::support::super_frame::on_the_wire;
use crate::support::{Build, v4, v6};
use proptest::collection::vec;
use proptest::prelude::*;
use sixway_dataplane::engine::{Engine, EngineConfig, TunnelConfig};
use sixway_dataplane::frame::MAX_PACKET;
use sixway_dataplane::mechanism::b4::B4Config;
use sixway_dataplane::tunnel::TunnelPolicy;
use sixway_dataplane::{Checksum, Frame, Instant, Offload, Outbox, SegmentKind};
use sixway_trial::budget;
use std::collections::BTreeMap;

const LOCAL: &str = "2001:db8:1::b4";
const AFTR: &str = "2001:db8:a::1";
const LAN: &str = "192.168.1.5";
const FAR: &str = "198.51.100.7";
const ACK: u8 = 0x10;
const PSH: u8 = 0x08;

fn engine() -> Engine {
    let b4 = B4Config {
        local: LOCAL.parse().unwrap(),
        remote: AFTR.parse().ok(),
        inside: vec!["192.168.0.0/16".parse().unwrap()],
        policy: TunnelPolicy::default(),
    };
    Engine::new(&EngineConfig { tunnels: vec![TunnelConfig::B4(b4)], ..EngineConfig::default() }).unwrap()
}

/// What leaves when these inner packets come through the tunnel in one batch.
fn receive(packets: &[Vec<u8>]) -> (Vec<(Vec<u8>, Offload)>, u64) {
    let mut engine = engine();
    let mut frames: Vec<Frame> = packets
        .iter()
        .map(|inner| {
            let mut frame = Frame::with_capacity(MAX_PACKET);
            frame.fill(&v6(AFTR, LOCAL).protocol(4, inner, None).octets(), Offload::default());
            frame
        })
        .collect();
    engine.process(&mut frames, Instant::from_secs(1_000), &mut Outbox::new(64));
    let counters = engine.counters();
    assert!(counters.frames_are_conserved(), "{counters:?}");
    let leaving = frames.iter().filter(|frame| frame.verdict.leaves());
    let left: Vec<_> = leaving.map(|frame| (frame.bytes().to_vec(), frame.offload)).collect();
    assert_eq!(counters.octets, left.iter().map(|(octets, _)| octets.len() as u64).sum::<u64>());
    assert_eq!(counters.packets, packets.len() as u64);
    (left, counters.gso_joined)
}

fn wire(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    receive(packets).0.iter().flat_map(|(octets, offload)| on_the_wire(octets, *offload)).collect()
}

fn stay_apart(packets: &[Vec<u8>]) {
    let (left, joined) = receive(packets);
    assert_eq!(joined, 0);
    assert_eq!(left.into_iter().map(|(octets, _)| octets).collect::<Vec<_>>(), packets);
}

/// A segment with `length` octets of data.
fn tcp(sequence: u32, length: usize, flags: u8) -> Build {
    tcp_with(sequence, 0, length, flags)
}

/// The same with this number of words of options.
fn tcp_with(sequence: u32, options: u8, length: usize, flags: u8) -> Build {
    let mut body = [
        &[0, 80, 0x0f, 0xa0][..],
        &sequence.to_be_bytes(),
        &[0, 0, 0, 7, 0x50 + 0x10 * options, flags, 2, 0, 0, 0, 0, 0],
    ]
    .concat();
    body.resize(body.len() + 4 * usize::from(options), 1);
    body.extend((0..length).map(|at| (at as u32).wrapping_add(sequence) as u8));
    v4(FAR, LAN).protocol(6, &body, Some(16))
}

/// The packet with this Identification, and DF or not.
fn named(packet: Build, identification: u16, dont_fragment: bool) -> Vec<u8> {
    let mut octets = packet.octets();
    octets[4..6].copy_from_slice(&identification.to_be_bytes());
    octets[6..8].copy_from_slice(&[u8::from(dont_fragment) << 6, 0]);
    sealed(octets)
}

/// The packet with a right header checksum.
fn sealed(mut octets: Vec<u8>) -> Vec<u8> {
    octets[10..12].fill(0);
    let sum: u32 = octets[..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    octets[10..12].copy_from_slice(&sum.to_be_bytes());
    octets
}

#[test]
fn consecutive_segments_of_a_flow_become_one_gso_packet() {
    for dont_fragment in [true, false] {
        let segments: Vec<_> = (0..40)
            .map(|n| named(tcp(1_000 * n, 1_000, ACK), 65_530_u16.wrapping_add(n as u16), dont_fragment))
            .collect();
        let (left, joined) = receive(&segments);
        assert_eq!((left.len(), joined), (1, 39));
        let (octets, offload) = &left[0];
        assert_eq!(octets.len(), 40 + 40_000);
        assert_eq!((offload.checksum, offload.transport), (Checksum::Partial, 20));
        let described = offload.segments.unwrap();
        assert_eq!((described.size, described.kind), (1_000, SegmentKind::Tcp));
        assert_eq!(sealed(octets.clone()), *octets, "the header checksum is that of the whole");
        assert_eq!(wire(&segments), segments);
    }
}

#[test]
fn datagrams_of_one_size_become_one_gso_packet_whose_last_may_be_shorter() {
    let datagram = |length: usize, n| named(v4(FAR, LAN).udp(443, 4_000, &vec![7; length]), n, true);
    let sent = [datagram(1_200, 1), datagram(1_200, 2), datagram(700, 3), datagram(700, 4), datagram(701, 5)];
    let (left, _) = receive(&sent);
    assert_eq!(left.iter().map(|(octets, _)| octets.len()).collect::<Vec<_>>(), [3_128, 728, 729]);
    assert_eq!(left[0].1.segments.unwrap().kind, SegmentKind::Udp);
    assert_eq!(wire(&sent), sent);
}

#[test]
fn with_df_the_identification_means_nothing_and_without_it_counts_up_or_the_segments_stay_apart() {
    let pair = |other, dont_fragment| {
        [named(tcp(0, 100, ACK), 9, dont_fragment), named(tcp(100, 100, ACK), other, dont_fragment)]
    };
    assert_eq!(receive(&pair(10, false)).1, 1);
    stay_apart(&pair(9, false));
    stay_apart(&pair(11, false));
    for other in [0, 9, 10, 700] {
        assert_eq!(receive(&pair(other, true)).1, 1, "{other}");
    }
    // The third of three.
    let third = |id| {
        [
            named(tcp(0, 100, ACK), 9, false),
            named(tcp(100, 100, ACK), 10, false),
            named(tcp(200, 100, ACK), id, false),
        ]
    };
    assert_eq!(receive(&third(11)).1, 2);
    assert_eq!(receive(&third(10)).1, 1);
}

#[test]
fn what_the_cut_does_not_restore_keeps_segments_apart() {
    let changes: [(&str, Change); 7] = [
        ("TOS", |it| it[1] = 4),
        ("congestion mark", |it| it[1] = 3),
        ("DF", |it| it[6] ^= 0x40),
        ("TTL", |it| it[8] = 9),
        ("source", |it| it[15] ^= 1),
        ("acknowledgment number", |it| it[31] ^= 1),
        ("flags", |it| it[33] |= 1),
    ];
    for (what, change) in changes {
        let [first, second] = [0, 100].map(|at| named(tcp(at, 100, ACK), 9 + (at / 100) as u16, true));
        let mut other = second;
        change(&mut other);
        let (left, joined) = receive(&[first.clone(), sealed(other.clone())]);
        assert_eq!((left.len(), joined), (2, 0), "{what}");
    }
}

#[test]
fn fragments_and_options_are_no_segments_and_hold_back_what_follows() {
    let mut fragment = named(v4(FAR, LAN).udp(80, 4_000, &[1; 100]), 50, false);
    fragment[6] = 0x20;
    let fragment = sealed(fragment);
    let sent = [named(tcp(0, 100, ACK), 1, true), fragment, named(tcp(100, 100, ACK), 2, true)];
    stay_apart(&sent);
}

#[test]
fn a_wrong_transport_checksum_is_not_mended_by_joining() {
    let mut broken = named(tcp(100, 100, ACK), 2, true);
    broken[60] ^= 4;
    stay_apart(&[named(tcp(0, 100, ACK), 1, true), broken]);
}

#[test]
fn segments_with_other_options_stay_apart_however_short_the_first_is() {
    for dont_fragment in [true, false] {
        for (first, second) in [(0, 10), (10, 0), (1, 9)] {
            for length in [1, 8, 100] {
                stay_apart(&[
                    named(tcp_with(0, first, length, ACK), 1, dont_fragment),
                    named(tcp_with(length as u32, second, length, ACK), 2, dont_fragment),
                ]);
            }
        }
    }
}

#[test]
fn acknowledgments_without_data_end_only_the_gso_packets_of_their_own_flow() {
    let mut other = tcp(7, 0, ACK).octets();
    other[16..20].copy_from_slice(&[192, 168, 1, 9]);
    let sent = [named(tcp(0, 100, ACK), 1, true), sealed(other), named(tcp(100, 100, ACK), 2, true)];
    assert_eq!(receive(&sent).1, 1);
    let own = [
        named(tcp(0, 100, ACK), 1, true),
        named(tcp(100, 0, ACK), 2, true),
        named(tcp(100, 100, ACK), 3, true),
    ];
    stay_apart(&own);
}

/// Changes an octet.
type Change = fn(&mut [u8]);

fn flow_of(packet: &[u8]) -> (u8, Vec<u8>) {
    (packet[9], packet[20..24].to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(budget(256)) })]

    #[test]
    fn what_was_joined_is_cut_into_the_very_packets_in_the_order_of_their_flow(
        steps in vec((
            0u8..3, 0u8..10, prop_oneof![6 => Just(300usize), 1 => 0usize..300, 1 => 300usize..1_200], any::<u8>(),
        ), 1..150),
    ) {
        let mut flows = [(u32::MAX - 500, 7_u16); 3];
        let mut sent = Vec::new();
        for (flow, kind, length, flags) in steps {
            let (sequence, id) = &mut flows[usize::from(flow)];
            let built = match kind {
                0 => v4(FAR, LAN).udp(flow.into(), 4_000, &vec![1; length]),
                1 => tcp(*sequence, length, flags),
                3 => tcp_with(*sequence, flags % 11, length, ACK),
                2 => tcp(*sequence, length, ACK | PSH),
                _ => tcp(*sequence, length, ACK),
            };
            if kind > 0 {
                *sequence = sequence.wrapping_add(length as u32);
            }
            // The flows share a port of TCP's: TTL distinguishes them.
            let mut octets = named(built, *id, flow == 1);
            octets[8] = 40 + flow;
            *id = id.wrapping_add(if flags % 7 == 0 { 5 } else { 1 });
            sent.push(sealed(octets));
        }
        let bare = |mut packet: Vec<u8>| {
            // With DF the Identification means nothing.
            if packet[6] & 0x40 != 0 {
                packet[4..6].fill(0);
            }
            sealed(packet)
        };
        let mut by_flow: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for packet in &sent {
            by_flow.entry(flow_of(packet)).or_default().push(bare(packet.clone()));
        }
        let mut left_by_flow: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for packet in wire(&sent) {
            left_by_flow.entry(flow_of(&packet)).or_default().push(bare(packet));
        }
        prop_assert_eq!(left_by_flow, by_flow);
    }
}
