use super::*;
use crate::frame::{Offload, SegmentKind, Segments};
use crate::parse::parse;
use crate::samples::{header_sealed, icmp, is_sound, seal, tcp, udp, v4, v6};
use core::time::Duration;
use proptest::prelude::*;
use sixway_wire::checksum::Sum;

const OWN4: &str = "192.0.2.254";
const OWN6: &str = "2001:db8::fe";
const A4: &str = "198.51.100.1";
const B4: &str = "203.0.113.5";
const A6: &str = "2001:db8::1";
const B6: &str = "2001:db8:64::1";

/// What the gateway makes of drops, and its counters.
struct HeaderWriter {
    errors: IcmpErrors,
    out: Outbox,
    counters: Counters,
    now: Instant,
}

impl HeaderWriter {
    fn with(per_second: u32) -> Self {
        let errors = IcmpErrors::new(per_second, Some(OWN4.parse().unwrap()), Some(OWN6.parse().unwrap()), 7);
        Self { errors, out: Outbox::new(10_000), counters: Counters::default(), now: Instant(5) }
    }

    fn drop_frame(&mut self, reason: DropReason, frame: &Frame, detail: IcmpDetail) -> Option<Vec<u8>> {
        let (packet, before) = (parse(frame.bytes()).ok(), self.out.len());
        let Self { errors, out, counters, now } = self;
        let dropped = DroppedPacket { reason, frame, packet: packet.as_ref(), detail };
        errors.answer(dropped, *now, out, counters);
        let made = self.out.frames().get(before).map(|frame| frame.bytes().to_vec());
        if let Some(made) = &made {
            assert!(is_sound(made), "{made:02x?}");
        }
        made
    }

    fn drop(&mut self, reason: DropReason, octets: &[u8], detail: IcmpDetail) -> Option<Vec<u8>> {
        self.drop_frame(reason, &Frame::holding(octets), detail)
    }
}

fn udp4(data: usize) -> Vec<u8> {
    seal(v4(A4, B4, protocol::UDP, &udp(4_000, 53, data)))
}

fn udp6(data: usize) -> Vec<u8> {
    seal(v6(A6, B6, protocol::UDP, &udp(4_000, 53, data)))
}

#[test]
fn an_ipv4_sender_is_reported_with_576_octets_at_most() {
    let dropped = udp4(1_000);
    let made =
        HeaderWriter::with(100).drop(DropReason::HopLimitExceeded, &dropped, IcmpDetail::None).unwrap();
    assert_eq!(made.len(), 576);
    assert_eq!(made[..4], [0x45, 0xc0, 0x02, 0x40]);
    assert_eq!(made[6..10], [0, 0, 64, protocol::ICMPV4]);
    assert_eq!(made[12..16], OWN4.parse::<Ipv4Addr>().unwrap().octets());
    assert_eq!(made[16..20], A4.parse::<Ipv4Addr>().unwrap().octets());
    assert_eq!(made[20..22], [11, 0]);
    assert_eq!(made[24..28], [0; 4]);
    assert_eq!(made[28..], dropped[..548]);
}

#[test]
fn an_ipv6_sender_is_reported_with_1280_octets_at_most() {
    let dropped = udp6(1_400);
    let made = HeaderWriter::with(100).drop(DropReason::NoMechanism, &dropped, IcmpDetail::None).unwrap();
    assert_eq!(made.len(), 1_280);
    assert_eq!(made[..8], [0x60, 0, 0, 0, 0x04, 0xd8, protocol::ICMPV6, 64]);
    assert_eq!(made[8..24], OWN6.parse::<Ipv6Addr>().unwrap().octets());
    assert_eq!(made[24..40], A6.parse::<Ipv6Addr>().unwrap().octets());
    assert_eq!(made[40..42], [1, 0]);
    assert_eq!(made[48..], dropped[..1_232]);
}

#[test]
fn every_reason_with_an_answer_is_told_and_every_other_is_silent() {
    let mut bench = HeaderWriter::with(1_000_000);
    for &reason in DropReason::ALL {
        let detail = match reason {
            DropReason::RoutingHeader | DropReason::EncapsulationLimit => IcmpDetail::Pointer(43),
            DropReason::ZeroInterfaceIdentifier => IcmpDetail::Pointer(24),
            DropReason::ProtocolUnknown => IcmpDetail::None,
            _ => IcmpDetail::Mtu(1_400),
        };
        let made = bench.drop(reason, &udp4(0), detail).map(|made| (made[20], made[21]));
        assert_eq!(made, reason.answer().icmpv4, "{}", reason.name());
        let made = bench.drop(reason, &udp6(0), detail).map(|made| (made[40], made[41]));
        assert_eq!(made, reason.answer().icmpv6, "{}", reason.name());
    }
}

#[test]
fn a_packet_too_big_tells_the_mtu() {
    let mut bench = HeaderWriter::with(100);
    let made = bench.drop(DropReason::PacketTooBig, &udp4(1_400), IcmpDetail::Mtu(1_400)).unwrap();
    assert_eq!(made[20..22], [3, 4]);
    assert_eq!(made[24..28], [0, 0, 0x05, 0x78]);
    let made = bench.drop(DropReason::PacketTooBig, &udp6(1_400), IcmpDetail::Mtu(1_400)).unwrap();
    assert_eq!(made[44..48], [0, 0, 0x05, 0x78]);
    let made = bench.drop(DropReason::PacketTooBig, &udp6(1_400), IcmpDetail::Mtu(1_000)).unwrap();
    assert_eq!(made[44..48], [0, 0, 0x05, 0x00], "no IPv6 link has less than 1,280");
    assert_eq!(bench.drop(DropReason::PacketTooBig, &udp6(1_400), IcmpDetail::None), None);
}

#[test]
fn a_routing_header_with_segments_left_is_pointed_at() {
    let routing = [protocol::UDP, 0, 0, 1, 0, 0, 0, 0];
    let packet = v6(A6, B6, protocol::ROUTING, &[&routing[..], &udp(1, 2, 3)].concat());
    let made = HeaderWriter::with(100).drop(DropReason::RoutingHeader, &packet, IcmpDetail::None).unwrap();
    assert_eq!(made[40..42], [4, 0]);
    assert_eq!(made[44..48], [0, 0, 0, 43]);
}

#[test]
fn nobody_is_told_about_errors_redirects_later_fragments_or_what_no_single_host_sent() {
    let mut bench = HeaderWriter::with(100);
    let mut silent = |octets: Vec<u8>| {
        assert_eq!(bench.drop(DropReason::HopLimitExceeded, &octets, IcmpDetail::None), None);
    };
    silent(seal(v4(A4, B4, protocol::ICMPV4, &icmp(3, 1, [0; 4], &udp4(0)))));
    silent(seal(v6(A6, B6, protocol::ICMPV6, &icmp(1, 1, [0; 4], &udp6(0)))));
    silent(seal(v6(A6, B6, protocol::ICMPV6, &icmp(137, 0, [0; 4], &[0; 32]))));
    let mut later = udp4(40);
    later[7] = 1;
    silent(header_sealed(later));
    for address in ["0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"] {
        silent(seal(v4(address, B4, protocol::UDP, &udp(1, 2, 0))));
        silent(seal(v4(A4, address, protocol::UDP, &udp(1, 2, 0))));
    }
    for address in ["::", "::1", "ff02::1", "fe80::1"] {
        silent(seal(v6(address, B6, protocol::UDP, &udp(1, 2, 0))));
        silent(seal(v6(A6, address, protocol::UDP, &udp(1, 2, 0))));
    }
    silent(vec![0x45; 7]);
    assert_eq!(bench.counters, Counters::default(), "silence is not limitation");
    // An echo request and a first fragment are answered.
    let echo = seal(v6(A6, B6, protocol::ICMPV6, &icmp(128, 0, [0; 4], &[])));
    assert!(bench.drop(DropReason::HopLimitExceeded, &echo, IcmpDetail::None).is_some());
    let mut first = udp4(40);
    first[6] = 0x20;
    assert!(bench.drop(DropReason::HopLimitExceeded, &header_sealed(first), IcmpDetail::None).is_some());
    assert_eq!(bench.counters.icmp_errors_made, 2);
}

#[test]
fn without_an_own_address_the_family_is_told_nothing() {
    let mut bench = HeaderWriter::with(100);
    bench.errors = IcmpErrors::new(100, Some(OWN4.parse().unwrap()), None, 7);
    assert!(bench.drop(DropReason::NoMechanism, &udp4(0), IcmpDetail::None).is_some());
    assert!(bench.drop(DropReason::NoMechanism, &udp6(0), IcmpDetail::None).is_none());
    assert_eq!(bench.counters.icmp_errors_no_source, 1);
}

#[test]
fn a_rate_of_zero_is_silence() {
    let mut bench = HeaderWriter::with(0);
    assert!(bench.drop(DropReason::NoMechanism, &udp4(0), IcmpDetail::None).is_none());
    assert_eq!(bench.counters.icmp_errors_limited, 1);
}

#[test]
fn who_floods_uses_up_his_own_share() {
    let mut bench = HeaderWriter::with(80);
    for _ in 0..200 {
        bench.drop(DropReason::NoMechanism, &udp6(0), IcmpDetail::None);
    }
    assert_eq!((bench.counters.icmp_errors_made, bench.counters.icmp_errors_limited), (10, 190));
    // The same /64 shares his bucket, another network does not.
    let neighbour = seal(v6("2001:db8::77", B6, protocol::UDP, &udp(1, 2, 0)));
    assert!(bench.drop(DropReason::NoMechanism, &neighbour, IcmpDetail::None).is_none());
    let stranger = seal(v6("2001:db8:7::1", B6, protocol::UDP, &udp(1, 2, 0)));
    assert!(bench.drop(DropReason::NoMechanism, &stranger, IcmpDetail::None).is_some());
    bench.now = bench.now + Duration::from_millis(100);
    assert!(bench.drop(DropReason::NoMechanism, &udp6(0), IcmpDetail::None).is_some());
    assert!(bench.drop(DropReason::NoMechanism, &udp6(0), IcmpDetail::None).is_none());
}

#[test]
fn all_sources_together_stay_below_the_rate() {
    let mut bench = HeaderWriter::with(80);
    for tenth in 0..50 {
        bench.now = Instant(tenth * 100_000_000);
        for host in 0..100 {
            let source = format!("198.51.{tenth}.{host}");
            let packet = seal(v4(&source, B4, protocol::UDP, &udp(1, 2, 0)));
            bench.drop(DropReason::NoMechanism, &packet, IcmpDetail::None);
        }
    }
    // A second's worth as burst, then eight in each tenth of a second.
    assert!((80 + 49 * 8 - 1..=80 + 49 * 8).contains(&bench.counters.icmp_errors_made));
}

#[test]
fn a_full_outbox_counts_as_limited() {
    let mut bench = HeaderWriter::with(100);
    bench.out = Outbox::new(0);
    assert!(bench.drop(DropReason::NoMechanism, &udp4(0), IcmpDetail::None).is_none());
    assert_eq!(bench.counters.icmp_errors_limited, 1);
}

#[test]
fn of_a_gso_packet_the_first_segment_is_quoted() {
    let mut bench = HeaderWriter::with(100);
    let segments = |size, kind| Offload { segments: Some(Segments { size, kind }), ..Offload::default() };
    let octets = seal(v4(A4, B4, protocol::TCP, &tcp(1, 2, 3_000)));
    let mut frame = Frame::holding(&octets);
    frame.offload = segments(1_460, SegmentKind::Tcp);
    let made = bench.drop_frame(DropReason::PacketTooBig, &frame, IcmpDetail::Mtu(1_400)).unwrap();
    assert_eq!(made[28 + 2..28 + 4], 1_500u16.to_be_bytes());
    assert_eq!(Sum::ZERO.bytes(&made[28..48]).checksum(), 0);
    assert_eq!(made.len(), 576);

    let mut frame = Frame::holding(&udp6(900));
    frame.offload = segments(300, SegmentKind::Udp);
    let made = bench.drop_frame(DropReason::PacketTooBig, &frame, IcmpDetail::Mtu(1_400)).unwrap();
    assert_eq!(made.len(), 48 + 348);
    assert_eq!(made[48 + 4..48 + 6], 308u16.to_be_bytes());
    assert_eq!(made[48 + 44..48 + 46], 308u16.to_be_bytes());
}

proptest! {
    #[test]
    fn any_octets_are_answered_soundly_or_not_at_all(
        mut octets in prop::collection::vec(any::<u8>(), 20..1_500),
        v4: bool,
        size: u16,
        kind in prop::sample::select(vec![None, Some(SegmentKind::Tcp), Some(SegmentKind::Udp)]),
        reason in prop::sample::select(DropReason::ALL),
    ) {
        if v4 {
            let length = octets.len() as u16;
            octets[..4].copy_from_slice(&[0x45, 0, (length >> 8) as u8, length as u8]);
            octets = header_sealed(octets);
        } else if octets.len() > 40 {
            let length = octets.len() as u16 - 40;
            octets[0] = 0x60;
            octets[4..6].copy_from_slice(&length.to_be_bytes());
        }
        let mut frame = Frame::holding(&octets);
        frame.offload.segments = kind.map(|kind| Segments { size: size.max(1), kind });
        HeaderWriter::with(100).drop_frame(reason, &frame, IcmpDetail::Mtu(size.into()));
    }
}
