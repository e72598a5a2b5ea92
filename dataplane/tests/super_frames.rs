//! GSO packets: what leaves for one is, on the wire, what would leave for each of its segments.

use crate::support;
use crate::support::super_frame::{described, on_the_wire, unfinished};
use crate::support::{Build, Gateway, checksum_is_right, eam, hex, icmp4, icmp6, prefix, v4, v6};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use sixway_dataplane::engine::EngineConfig;
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::nat::{Selection, SessionRow};
use sixway_dataplane::stateful::Stateful as _;
use sixway_dataplane::translate::UdpZeroChecksum;
use sixway_dataplane::{Checksum, DropReason, Frame, Limits, Offload, Outbox, SegmentKind, Verdict};
use sixway_trial::budget;

const HOST4: &str = "198.51.100.9";
const HOST6: &str = "2001:db8:1::1";
const PEER4: &str = "203.0.113.2";
const PEER6: &str = "2001:db8:64::203.0.113.2";
const PEER_NAT64: &str = "64:ff9b::203.0.113.2";

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

/// A stateless translator and a NAT64 next to one another.
fn gateway(limits: Limits, lowest_ipv6_mtu: u16) -> Gateway {
    support::gateway(|config: &mut EngineConfig| {
        config.limits = limits;
        let mut siit = SiitConfig {
            prefix: Some(prefix("2001:db8:64::/96")),
            eam: eam(&[("198.51.100.8/29", "2001:db8:1::/125")]),
            ..SiitConfig::default()
        };
        siit.policy.lowest_ipv6_mtu = lowest_ipv6_mtu;
        let mut nat64 = support::nat64();
        nat64.policy.lowest_ipv6_mtu = lowest_ipv6_mtu;
        (config.siit, config.nat64) = (vec![siit], vec![nat64]);
    })
}

/// Everything that was sent, as a wire carries it.
fn sent(gateway: &mut Gateway) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while gateway.waiting() > 0 {
        let (packet, offload) = gateway.sent_with();
        all.extend(on_the_wire(&packet, offload));
    }
    all
}

/// How the outside sees the host's port, once a session is there.
fn opened(gateway: &mut Gateway, protocol: SegmentKind) -> (String, u16) {
    let packet = match protocol {
        SegmentKind::Udp => v6(HOST6, PEER_NAT64).udp(4_000, 80, b"first"),
        SegmentKind::Tcp | SegmentKind::TcpEcn => v6(HOST6, PEER_NAT64).tcp(4_000, 80, SYN, b""),
    };
    gateway.receives(packet);
    let outside = gateway.sent();
    let address = std::net::Ipv4Addr::new(outside[12], outside[13], outside[14], outside[15]).to_string();
    let port = u16::from_be_bytes([outside[20], outside[21]]);
    if protocol != SegmentKind::Udp {
        gateway.receives(v4(PEER4, &address).tcp(80, port, SYN | ACK, b""));
        gateway.sent();
    }
    (address, port)
}

fn sessions(gateway: &mut Gateway) -> Vec<SessionRow> {
    let (mut rows, now) = (Vec::new(), gateway.now);
    assert!(gateway.engine.nat64()[0].sessions(0, 100, &Selection::default(), now, &mut rows).is_none());
    rows
}

/// Which way a GSO packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Siit4,
    Siit6,
    Nat64In,
    Nat64Out,
}

/// A GSO packet and what it meets.
#[derive(Clone, Debug)]
struct Case {
    way: Path,
    kind: SegmentKind,
    flags: u8,
    dont_fragment: bool,
    /// IPv4 options or an IPv6 extension header.
    long_header: bool,
    tcp_options: bool,
    identification: u16,
    payload: usize,
    size: u16,
    limits: Limits,
    lowest: u16,
}

impl Case {
    fn packet(&self, outside: &(String, u16)) -> Vec<u8> {
        let data: Vec<u8> = (0..self.payload).map(|at| (at * 7 + at / 251) as u8).collect();
        let (build, ports) = match self.way {
            Path::Siit4 => (v4(PEER4, HOST4), (80, 4_000)),
            Path::Siit6 => (v6(HOST6, PEER6), (4_000, 80)),
            Path::Nat64In => (v4(PEER4, &outside.0), (80, outside.1)),
            Path::Nat64Out => (v6(HOST6, PEER_NAT64), (4_000, 80)),
        };
        let build = match (self.way, self.long_header) {
            (Path::Siit4 | Path::Nat64In, true) => build.options(&[1, 1, 1, 0]),
            (Path::Siit6 | Path::Nat64Out, true) => build.extension(60, &[0, 0, 1, 4, 0, 0, 0, 0]),
            (_, false) => build,
        };
        let build = if self.dont_fragment { build } else { build.may_fragment() };
        let build = build.identification(self.identification.into());
        let options: &[u8] = if self.tcp_options { &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2] } else { &[] };
        unfinished(match self.kind {
            SegmentKind::Udp => build.udp(ports.0, ports.1, &data),
            SegmentKind::Tcp | SegmentKind::TcpEcn => {
                build.tcp_with(ports.0, ports.1, self.flags, options, &data)
            }
        })
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let kinds = vec![SegmentKind::Tcp, SegmentKind::TcpEcn, SegmentKind::Udp];
    let sizes = prop_oneof![
        select(vec![1_460_u16, 1_440, 1_448, 1_240, 1_232, 1_220, 1_200, 1_472, 1_452, 536]),
        1..200_u16,
        200..9_000_u16,
    ];
    let payload = prop_oneof![(1..6_usize, 0..1usize), (0..12_usize, 0..9_000_usize)];
    let mtus = (select(vec![576_u16, 1_100, 1_280, 1_500, 9_000]), select(vec![1_280_u16, 1_500, 9_000]));
    let flags = subsequence(vec![FIN, PSH, ECE, CWR], 0..=4);
    (
        (select(vec![Path::Siit4, Path::Siit6, Path::Nat64In, Path::Nat64Out]), select(kinds)),
        (flags, any::<[bool; 3]>(), any::<u16>()),
        (sizes, payload),
        (mtus, select(vec![1_280_u16, 1_400, 1_500])),
    )
        .prop_map(|((way, kind), (flags, shape, identification), (size, payload), (mtus, lowest))| {
            let flags = flags.into_iter().fold(ACK, |all, flag| all | flag);
            let kind = match kind {
                SegmentKind::TcpEcn if flags & CWR == 0 => SegmentKind::Tcp,
                other => other,
            };
            let [dont_fragment, long_header, tcp_options] = shape;
            let payload = (payload.0 * usize::from(size) + payload.1 % usize::from(size)).min(60_000);
            let limits = Limits { mtu4: mtus.0, mtu6: mtus.1 };
            Case {
                way,
                kind,
                flags,
                dont_fragment,
                long_header,
                tcp_options,
                identification,
                payload,
                size,
                limits,
                lowest,
            }
        })
}

/// Without what may differ: of an IPv4 packet with DF set the identification, which is not read (RFC 6864 §4). And DF, where
/// `df` says so: a GSO packet has one for all of its segments, that of its full ones (RFC 7915 §5.1 would clear it on a last
/// segment that is short).
fn comparable(mut packet: Vec<u8>, df: bool) -> Vec<u8> {
    if packet[0] >> 4 == 4 && (packet[6] & 0x40 != 0 || df) {
        packet[4..6].fill(0);
        packet[6] &= 0xbf;
        packet[10..12].fill(0);
    }
    packet
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(budget(500)))]
    #[test]
    fn a_gso_packet_leaves_as_each_of_its_segments_would(case in cases()) {
        let mut whole = gateway(case.limits, case.lowest);
        let mut single = gateway(case.limits, case.lowest);
        let outside = opened(&mut whole, case.kind);
        prop_assert_eq!(&outside, &opened(&mut single, case.kind));
        let packet = case.packet(&outside);
        let offload = described(case.kind, case.size);
        let before = whole.engine.counters().clone();

        whole.receives_with(packet.clone(), offload);
        let together = sent(&mut whole);
        let segments = on_the_wire(&packet, offload);
        let mut each = Vec::new();
        let mut last = Vec::new();
        for segment in &segments {
            single.receives(segment.clone());
            last.push(single.last);
            each.extend(sent(&mut single));
        }

        for packet in together.iter().chain(&each) {
            let mtu = if packet[0] >> 4 == 4 { case.limits.mtu4 } else { case.limits.mtu6 };
            prop_assert!(packet.len() <= usize::from(mtu), "{} octets on {mtu}", packet.len());
        }
        if let Verdict::Dropped(reason) = whole.last {
            prop_assert_eq!(reason, DropReason::PacketTooBig);
            prop_assert_eq!(last[0], Verdict::Dropped(reason), "and so is its first segment");
            prop_assert_eq!(together.len(), 1);
            prop_assert_eq!(hex(&together[0]), hex(&each[0]), "the errors differ");
            return Ok(());
        }
        prop_assert!(last.iter().all(|last| matches!(last, Verdict::Forward | Verdict::InPieces)), "{last:?}");
        let full_has_df = together[0][0] >> 4 == 4 && together[0][6] & 0x40 != 0;
        if full_has_df {
            prop_assert!(together.iter().all(|packet| packet[6] & 0x40 != 0));
        }
        let clean = |all: &[Vec<u8>]| -> Vec<String> {
            all.iter().map(|packet| hex(&comparable(packet.clone(), full_has_df))).collect()
        };
        prop_assert_eq!(clean(&together), clean(&each));

        let counters = whole.engine.counters();
        prop_assert_eq!(counters.packets - before.packets, together.len() as u64);
        if whole.last == Verdict::InPieces {
            prop_assert_eq!(counters.segments_made, segments.len() as u64);
        } else {
            prop_assert_eq!(counters.segments_made, 0);
        }
        let (rows, others) = (sessions(&mut whole), sessions(&mut single));
        prop_assert_eq!(rows.len(), others.len());
        for (row, other) in rows.iter().zip(&others) {
            prop_assert_eq!(row.state, other.state);
            prop_assert_eq!((row.packets_out, row.packets_in), (other.packets_out, other.packets_in));
        }
    }

    #[test]
    fn a_description_that_lies_is_refused_or_harmless(
        case in cases(), kind in select(vec![SegmentKind::Tcp, SegmentKind::TcpEcn, SegmentKind::Udp]), size: u16,
        partial: bool, cut in 0..200_usize, padding in 0..200_usize, at in 0..80_usize, octet: u8,
    ) {
        let mut gateway = gateway(case.limits, case.lowest);
        let mut packet = case.packet(&opened(&mut gateway, case.kind));
        packet.truncate(packet.len().saturating_sub(cut));
        packet.extend(vec![0xee; padding]);
        if let Some(place) = packet.get_mut(at) {
            *place = octet;
        }
        let checksum = if partial { Checksum::Partial } else { Checksum::Complete };
        gateway.receives_with(packet, Offload { checksum, ..described(kind, size) });
    }
}

const LIMITS: Limits = Limits { mtu4: 1_500, mtu6: 1_500 };

fn tcp_field(packet: &[u8], at: usize) -> (usize, u32, u8) {
    let sequence = u32::from_be_bytes(packet[at + 4..at + 8].try_into().unwrap());
    (packet.len(), sequence, packet[at + 13])
}

#[test]
fn segments_too_large_for_ipv6_become_fragments_each_with_its_own_identification() {
    let mut gateway = gateway(LIMITS, 1_280);
    let data = vec![7; 3 * 1_460 + 100];
    let packet =
        v4(PEER4, HOST4).may_fragment().identification(0xffff).tcp(80, 4_000, CWR | ACK | FIN, &data);
    gateway.receives_with(unfinished(packet), described(SegmentKind::TcpEcn, 1_460));
    assert_eq!(gateway.last, Verdict::InPieces);
    let sent = sent(&mut gateway);
    let lengths: Vec<usize> = sent.iter().map(Vec::len).collect();
    assert_eq!(lengths, [1_280, 296, 1_280, 296, 1_280, 296, 160]);
    let identifications: Vec<_> = sent[..6].iter().map(|packet| packet[44..48].to_vec()).collect();
    let [first, second, third] = [[0, 0, 0xff, 0xff], [0, 0, 0, 0], [0, 0, 0, 1]];
    assert_eq!(identifications, [first, first, second, second, third, third]);
    assert_eq!(tcp_field(&sent[0][48..], 0).2, CWR | ACK);
    assert_eq!(tcp_field(&sent[2][48..], 0).1, 1 + 1_460);
    assert_eq!(tcp_field(&sent[6], 40), (160, 1 + 3 * 1_460, ACK | FIN));
    gateway.counted([("siit.v4_to_v6", 1), ("segments.made", 4), ("fragments.made", 6)]);
}

/// RFC 6864 §4.3: a host or router further on may fragment each of the segments.
#[test]
fn every_segment_that_may_be_fragmented_has_an_identification_of_its_own() {
    let mut gateway = gateway(Limits::default(), 1_280);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let packet = unfinished(v6(HOST6, PEER6).udp(4_000, 80, &[7; 1_000]));
        gateway.receives_with(packet, Offload { transport: 40, ..described(SegmentKind::Udp, 100) });
        let segments = sent(&mut gateway);
        assert_eq!(segments.len(), 10);
        assert!(segments.iter().all(|segment| segment[6] & 0x40 == 0), "DF is clear");
        seen.extend(segments.iter().map(|segment| [segment[4], segment[5]]));
    }
    assert_eq!(seen.len(), 30);
}

#[test]
fn a_gso_packet_that_the_outbox_cannot_hold_leaves_nothing_in_it() {
    let mut gateway = gateway(LIMITS, 1_280);
    let packet = v4(PEER4, HOST4).may_fragment().udp(80, 4_000, &vec![1; 6_000]);
    for room in [0, 4, 5, 7] {
        let mut frame = Frame::holding(&unfinished(packet.clone()));
        frame.offload = described(SegmentKind::Udp, 1_472);
        let mut out = Outbox::new(room);
        gateway.engine.process(std::slice::from_mut(&mut frame), gateway.now, &mut out);
        assert_eq!(frame.verdict, Verdict::Dropped(DropReason::OutboxFull));
        assert!(out.is_empty());
    }
    gateway.counted([("siit.v4_to_v6", 4), ("OutboxFull", 4)]);
}

#[test]
fn a_fin_inside_a_gso_packet_ends_the_session_as_any_fin_does() {
    let mut gateway = gateway(LIMITS, 1_280);
    let (address, port) = opened(&mut gateway, SegmentKind::Tcp);
    let data = vec![0; 4_000];
    let out = v6(HOST6, PEER_NAT64).tcp(4_000, 80, ACK | PSH | FIN, &data);
    gateway.receives_with(unfinished(out), described(SegmentKind::Tcp, 1_440));
    assert_eq!(sessions(&mut gateway)[0].packets_out, 1 + 3);
    assert_eq!(sessions(&mut gateway)[0].state, "fin from inside");
    let back = v4(PEER4, &address).tcp(80, port, ACK | FIN, &data);
    gateway.receives_with(unfinished(back), described(SegmentKind::Tcp, 1_440));
    assert_eq!(sessions(&mut gateway)[0].state, "fin from both");
    let segments = sent(&mut gateway);
    assert_eq!(segments.iter().filter(|packet| packet[0] >> 4 == 4).count(), 3);
    assert!(segments.iter().all(|packet| checksum_is_right(packet)));
}

/// Two hosts behind one NAT64 have a connection: the second listens, and talks to the first's outside endpoint.
fn neighbours() -> (Gateway, String, u16) {
    let mut gateway = gateway(Limits { mtu4: 1_500, mtu6: 1_400 }, 1_280);
    let (address, port) = opened(&mut gateway, SegmentKind::Udp);
    gateway.counted([("nat64.v6_to_v4", 1), ("nat.bindings.made", 1), ("nat.sessions.made", 1)]);
    (gateway, format!("64:ff9b::{address}"), port)
}

#[test]
fn a_hairpinned_gso_packet_stays_whole() {
    let (mut gateway, outside, port) = neighbours();
    let data: Vec<u8> = (0..=255).cycle().take(10_001).collect();
    let packet = unfinished(v6("2001:db8:1::2", &outside).hops(9).udp(53, port, &data));
    let offload = described(SegmentKind::Udp, 1_352);
    gateway.receives_with(packet.clone(), offload);
    assert_eq!((gateway.last, gateway.waiting()), (Verdict::Forward, 1));
    let (whole, described) = gateway.sent_with();
    assert_eq!((described.segments, described.transport), (offload.segments, 40));
    for (segment, original) in on_the_wire(&whole, described).iter().zip(on_the_wire(&packet, offload)) {
        assert!(checksum_is_right(segment));
        assert_eq!((segment.len(), segment[7]), (original.len(), 8));
        assert_eq!(segment[48..], original[48..]);
    }
    assert_eq!(gateway.engine.counters().packets, 1 + 8);
}

#[test]
fn an_error_about_a_hairpinned_gso_packet_quotes_its_first_segment() {
    let (mut gateway, outside, port) = neighbours();
    let packet = unfinished(v6("2001:db8:1::2", &outside).udp(53, port, &[7; 10_001]));
    let offload = described(SegmentKind::Udp, 1_353);
    gateway.receives_with(packet.clone(), offload);
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::PacketTooBig));
    let first = &on_the_wire(&packet, offload)[0];
    gateway.sends(v6("2001:db8::fe", "2001:db8:1::2").icmp(icmp6(
        2,
        0,
        1_400_u32.to_be_bytes(),
        &first[..1_232],
    )));
}

#[test]
fn an_error_quotes_a_checksum_that_is_finished() {
    let mut gateway = gateway(LIMITS, 1_280);
    let packet = v6(HOST6, PEER6).hops(1).udp(1, 2, b"late");
    let offload = Offload { checksum: Checksum::Partial, ..Offload::default() };
    gateway.receives_with(unfinished(packet.clone()), offload);
    gateway.sends(v6("2001:db8::fe", HOST6).icmp(icmp6(3, 0, [0; 4], &packet.octets())));
}

#[test]
fn the_mss_of_a_syn_with_unfinished_checksum_is_lowered() {
    let mut gateway = support::siit(|siit| {
        siit.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]);
        siit.policy.clamp_mss = true;
    });
    let offload = Offload { checksum: Checksum::Partial, ..Offload::default() };
    let syn = |mss: u16| [&[1, 2, 4][..], &mss.to_be_bytes(), &[1, 1, 1]].concat();
    gateway.receives_with(unfinished(v6(HOST6, PEER6).tcp_with(1, 2, SYN, &syn(8_940), b"")), offload);
    let [packet] = &sent(&mut gateway)[..] else { panic!("one packet") };
    assert!(checksum_is_right(packet));
    assert_eq!(packet[40..], syn(1_440));
    gateway.receives_with(unfinished(v4(PEER4, HOST4).tcp_with(1, 2, SYN, &syn(8_960), b"")), offload);
    let expected = v6(PEER6, HOST6).hops(63).tcp_with(1, 2, SYN, &syn(1_440), b"").octets();
    assert_eq!(sent(&mut gateway), [expected]);
}

/// Where the sum of the pseudo-header is 0xffff or the field holds a zero, the datagram has a checksum all the same: it is unfinished.
#[test]
fn an_unfinished_checksum_is_not_a_missing_one() {
    let mut gateway = support::siit(|siit| {
        siit.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]);
        siit.policy.udp_zero_checksum = UdpZeroChecksum::Drop;
    });
    let offload = Offload { checksum: Checksum::Partial, ..Offload::default() };
    // The source's second and third octet make up what is missing.
    let packet =
        |low: u8, high: u8| unfinished(v4(&format!("203.{low}.{high}.2"), HOST4).udp(53, 4_000, b"data"));
    let [high, low] = packet(0, 0)[26..28].try_into().map(|[high, low]: [u8; 2]| [!high, !low]).unwrap();
    let mut packet = packet(low, high);
    assert_eq!(packet[26..28], [0xff, 0xff]);
    for field in [[0xff, 0xff], [0, 0]] {
        packet[26..28].copy_from_slice(&field);
        gateway.receives_with(packet.clone(), offload);
        let [sent] = &sent(&mut gateway)[..] else { panic!("one packet") };
        assert!(checksum_is_right(sent) && sent[46..48] != [0, 0]);
    }
}

#[test]
fn what_cannot_be_a_gso_packet_is_refused() {
    let mut gateway = gateway(LIMITS, 1_280);
    let udp = || v6(HOST6, PEER6).udp(4_000, 80, &[0; 3_000]);
    let quote = v6(HOST6, PEER6).udp(1, 2, b"data").octets();
    let refused: Vec<(Build, SegmentKind, u16)> = vec![
        (udp(), SegmentKind::Tcp, 1_000),
        (udp(), SegmentKind::Udp, 0),
        (udp().fragment(7, 0, false), SegmentKind::Udp, 1_000),
        (udp().fragment(7, 0, true), SegmentKind::Udp, 1_000),
        (v6(HOST6, PEER_NAT64).udp(4_000, 80, &[0; 3_000]).fragment(7, 0, true), SegmentKind::Udp, 1_000),
        (v6(HOST6, PEER6).tcp(4_000, 80, ACK, &[0; 3_000]), SegmentKind::Udp, 1_000),
        (v6(HOST6, PEER6).echo(1, 2, &[0; 3_000]), SegmentKind::Udp, 1_000),
        (v6(HOST6, "2001:db8::fe").echo(1, 2, &[0; 3_000]), SegmentKind::Udp, 1_000),
        (v6(HOST6, PEER6).icmp(icmp6(1, 4, [0; 4], &quote)), SegmentKind::Udp, 1_000),
        (v4(PEER4, "192.0.2.1").icmp(icmp4(3, 3, [0; 4], &[0x45; 60])), SegmentKind::Tcp, 1_000),
        (v6(HOST6, PEER6).protocol(132, &[0; 3_000], None), SegmentKind::Tcp, 1_000),
    ];
    for (packet, kind, size) in refused {
        gateway.receives_with(packet.octets(), described(kind, size));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::BadGso), "{packet:?}");
        gateway.sends_nothing();
    }
    let mut offset_beyond_the_end = v4(PEER4, HOST4).tcp(80, 4_000, ACK, b"data").octets();
    offset_beyond_the_end[32] = 0xf0;
    gateway.receives_with(offset_beyond_the_end, described(SegmentKind::Tcp, 2));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::BadGso));
}

#[test]
fn padding_behind_a_gso_packet_is_cut_off() {
    let mut gateway = gateway(LIMITS, 1_280);
    let packet = unfinished(v6(HOST6, PEER6).udp(4_000, 80, &[5; 3_000]));
    let padded = [packet.clone(), vec![0xee; 900]].concat();
    gateway.receives_with(padded, described(SegmentKind::Udp, 1_000));
    let segments = sent(&mut gateway);
    assert_eq!(segments.iter().map(Vec::len).collect::<Vec<_>>(), [1_028; 3]);
    assert!(segments.iter().all(|packet| checksum_is_right(packet)));
    assert_eq!(gateway.engine.counters().packets, 3);
}
