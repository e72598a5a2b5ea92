use super::*;
use crate::DropReason;
use crate::frame::{Frame, Offload, SegmentKind, Segments};
use crate::instant::Instant;
use crate::outbox::Outbox;
use crate::parse::parse;
use crate::samples::{header_sealed, is_sound, seal, tcp, udp, v4, v6};
use core::time::Duration;
use proptest::prelude::*;
use sixway_wire::protocol;

const A4: &str = "198.51.100.1";
const B4: &str = "203.0.113.5";
const A6: &str = "2001:db8::1";
const B6: &str = "2001:db8:64::1";
const START: Instant = Instant::from_secs(1_000);

fn udp4(data: usize) -> Vec<u8> {
    seal(v4(A4, B4, protocol::UDP, &udp(4_000, 53, data)))
}

fn udp6(data: usize) -> Vec<u8> {
    seal(v6(A6, B6, protocol::UDP, &udp(4_000, 53, data)))
}

/// An IPv4 fragment of a packet with this identification.
fn piece4(identification: u16, offset: u16, more: bool, data: &[u8]) -> Vec<u8> {
    let mut octets = v4(A4, B4, protocol::UDP, data);
    octets[4..6].copy_from_slice(&identification.to_be_bytes());
    octets[6..8].copy_from_slice(&((u16::from(more) << 13) | (offset / 8)).to_be_bytes());
    header_sealed(octets)
}

fn piece6(identification: u32, offset: u16, more: bool, data: &[u8]) -> Vec<u8> {
    let mut payload = vec![protocol::UDP, 0];
    payload.extend((offset | u16::from(more)).to_be_bytes());
    payload.extend(identification.to_be_bytes());
    payload.extend(data);
    v6(A6, B6, protocol::FRAGMENT, &payload)
}

fn table() -> Reassembly {
    Reassembly::new(FragmentLimits::default(), 7)
}

fn admit(table: &mut Reassembly, octets: &[u8]) -> Result<Option<Whole>, Refused> {
    admit_at(table, octets, START)
}

fn admit_at(table: &mut Reassembly, octets: &[u8], now: Instant) -> Result<Option<Whole>, Refused> {
    let packet = parse(octets).unwrap();
    table.admit(&Frame::holding(octets), &packet, now).map(|admission| match admission {
        Admission::Held => None,
        Admission::Whole(whole) => Some(whole),
    })
}

fn refused(reason: DropReason, released: u32) -> Refused {
    Refused { reason, released }
}

fn expired(table: &mut Reassembly, now: Instant, budget: usize) -> Vec<(u32, Option<Vec<u8>>)> {
    let mut all = Vec::new();
    table.expire(now, budget, |gone| {
        all.push((gone.fragments, gone.first.map(|first| first.bytes().to_vec())));
    });
    all
}

fn pieces(out: &mut Outbox) -> Vec<Vec<u8>> {
    out.frames().iter().map(|frame| frame.bytes().to_vec()).collect()
}

fn cut4(octets: &[u8], mtu: u16) -> Vec<Vec<u8>> {
    let mut out = Outbox::new(10_000);
    let made = fragment4(&Frame::holding(octets), mtu, &mut out).unwrap();
    assert_eq!(made as usize, out.len());
    pieces(&mut out)
}

fn cut6(octets: &[u8], mtu: u16) -> Vec<Vec<u8>> {
    let mut out = Outbox::new(10_000);
    let made = fragment6(&Frame::holding(octets), 0xdead_beef, mtu, &mut out).unwrap();
    assert_eq!(made as usize, out.len());
    pieces(&mut out)
}

/// Every order of four things.
fn permutations() -> Vec<[usize; 4]> {
    let mut all = Vec::new();
    for code in 0..256usize {
        let order = [code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6];
        if (0..4).all(|piece| order.contains(&piece)) {
            all.push(order);
        }
    }
    assert_eq!(all.len(), 24);
    all
}

#[test]
fn four_fragments_in_every_order_make_the_packet() {
    for order in permutations() {
        for (whole, pieces, v4) in
            [(udp4(2_000), cut4(&udp4(2_000), 600), true), (udp6(2_000), cut6(&udp6(2_000), 600), false)]
        {
            assert_eq!(pieces.len(), 4);
            let mut table = table();
            for piece in &order[..3] {
                assert!(admit(&mut table, &pieces[*piece]).unwrap().is_none());
            }
            assert_eq!(table.fragments(), 3);
            let made = admit(&mut table, &pieces[order[3]]).unwrap().unwrap();
            assert_eq!(made.fragments, 4);
            assert_eq!((table.fragments(), table.memory()), (0, 0));
            assert!(is_sound(made.frame.bytes()));
            if v4 {
                assert_eq!(made.frame.bytes(), whole);
                assert_eq!(made.frame.offload, Offload { transport: 20, ..Offload::default() });
            } else {
                let packet = parse(made.frame.bytes()).unwrap();
                assert_eq!((packet.fragment, packet.fragment_header), (None, 40), "an atomic fragment");
                assert_eq!(made.frame.bytes()[40..48], [17, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef]);
                assert_eq!(made.frame.bytes()[48..], whole[40..]);
            }
        }
    }
}

#[test]
fn packets_are_distinguished_by_addresses_identification_and_in_ipv4_protocol() {
    let mut table = table();
    let datagram = udp(1, 2, 8);
    assert!(admit(&mut table, &piece4(1, 0, true, &datagram)).unwrap().is_none());
    assert!(admit(&mut table, &piece4(2, 16, false, &[7; 8])).unwrap().is_none());
    let mut other_protocol = piece4(1, 16, false, &[7; 8]);
    other_protocol[9] = protocol::UDP_LITE;
    assert!(admit(&mut table, &header_sealed(other_protocol)).unwrap().is_none());
    let mut other_source = piece4(1, 16, false, &[7; 8]);
    other_source[12..16].copy_from_slice(&[192, 0, 2, 1]);
    assert!(admit(&mut table, &header_sealed(other_source)).unwrap().is_none());
    assert!(admit(&mut table, &piece4(1, 16, false, &[7; 8])).unwrap().is_some());

    // RFC 8200 §4.5: the Next Header of a later fragment may differ and does not matter.
    assert!(admit(&mut table, &piece6(1, 0, true, &datagram)).unwrap().is_none());
    let mut later = piece6(1, 16, false, &[7; 8]);
    later[40] = protocol::TCP;
    let made = admit(&mut table, &later).unwrap().unwrap();
    assert_eq!(made.frame.bytes()[40], protocol::UDP);
}

#[test]
fn an_overlap_loses_the_packet_and_what_still_comes_of_it() {
    for overlapping in [
        piece4(9, 8, true, &[7; 16]),  // within the first
        piece4(9, 16, true, &[7; 24]), // into the next
        piece4(9, 32, true, &[8; 8]),  // another content
        piece4(9, 48, true, &[7; 8]),  // beyond the last
        piece4(9, 32, false, &[7; 8]), // a second end
        piece4(9, 24, false, &[7; 8]), // an end before what is there
    ] {
        let mut table = table();
        admit(&mut table, &piece4(9, 0, true, &udp(1, 2, 8))).unwrap();
        admit(&mut table, &piece4(9, 32, true, &[7; 8])).unwrap();
        admit(&mut table, &piece4(9, 40, false, &[7; 8])).unwrap();
        let lost = admit(&mut table, &overlapping).unwrap_err();
        assert_eq!(lost, refused(DropReason::FragmentOverlap, 3));
        assert_eq!(table.fragments(), 0);
        let late = admit(&mut table, &piece4(9, 16, true, &[7; 16])).unwrap_err();
        assert_eq!(late, refused(DropReason::FragmentOverlap, 0));
        assert_eq!(expired(&mut table, START + FRAGMENT_MIN, 10), []);
        assert_eq!(table.memory(), 0);
        assert!(admit_at(&mut table, &piece4(9, 16, true, &[7; 16]), START + FRAGMENT_MIN).is_ok());
    }
}

#[test]
fn an_exact_duplicate_is_dropped_and_does_no_harm() {
    let mut table = table();
    let (first, last) = (piece6(5, 0, true, &udp(1, 2, 8)), piece6(5, 16, false, &[7; 9]));
    admit(&mut table, &first).unwrap();
    let duplicate = admit(&mut table, &first).unwrap_err();
    assert_eq!(duplicate, refused(DropReason::FragmentDuplicate, 0));
    assert_eq!(admit(&mut table, &last).unwrap().unwrap().fragments, 2);
}

#[test]
fn fragments_that_no_packet_can_have_are_refused() {
    let mut table = table();
    let mut bad = |octets: Vec<u8>| {
        assert_eq!(admit(&mut table, &octets).unwrap_err(), refused(DropReason::BadFragment, 0));
    };
    bad(piece4(1, 8, true, &[]));
    bad(piece4(1, 8, true, &[7; 12]));
    bad(piece4(1, 65_512, false, &[7; 8]));
    bad(piece6(1, 8, true, &[]));
    bad(piece6(1, 8, true, &[7; 12]));
    bad(piece6(1, 65_520, false, &[7; 16]));
    let mut tiny = v4(A4, B4, protocol::TCP, &[0x55; 8]);
    tiny[6..8].copy_from_slice(&[0, 1]);
    bad(header_sealed(tiny));
    // A whole packet is not a fragment.
    bad(udp4(8));
}

#[test]
fn a_first_fragment_without_its_transport_header_is_refused() {
    let mut frame = Frame::holding(&piece4(1, 0, true, &tcp(1, 2, 0)[..16]));
    let mut packet = parse(&piece4(1, 0, true, &tcp(1, 2, 0)[..16])).unwrap();
    packet.protocol = protocol::TCP;
    let refusal = table().admit(&frame, &packet, START).unwrap_err();
    assert_eq!(refusal, refused(DropReason::BadFragment, 0));
    frame.truncate(30);
    assert_eq!(table().admit(&frame, &packet, START).unwrap_err(), refusal, "lengths are not believed");
}

#[test]
fn a_whole_that_is_too_long_with_its_header_is_lost() {
    let mut table = table();
    let mut first = v4(A4, B4, protocol::UDP, &[&[1; 8][..], &udp(1, 2, 8)].concat());
    first[0] = 0x47;
    first[20..28].fill(1);
    first[6] = 0x20;
    let first = header_sealed(first);
    admit(&mut table, &first).unwrap();
    for offset in (16..65_488).step_by(1_024) {
        let length = (65_488 - offset).min(1_024);
        assert!(admit(&mut table, &piece4(0x1234, offset, true, &vec![7; length.into()])).unwrap().is_none());
    }
    let held = table.fragments() as u32;
    let lost = admit(&mut table, &piece4(0x1234, 65_488, false, &[7; 27])).unwrap_err();
    assert_eq!(lost, refused(DropReason::BadFragment, held));
    assert_eq!(table.fragments(), 0);
}

#[test]
fn the_largest_packets_are_put_together() {
    for (mut pieces, length) in
        [(cut4(&udp4(65_507), 1_500), 65_535), (cut6(&udp6(65_527 - 8), 1_500), 40 + 65_535)]
    {
        let mut table = table();
        let last = pieces.pop().unwrap();
        for piece in &pieces {
            assert!(admit(&mut table, piece).unwrap().is_none());
        }
        let made = admit(&mut table, &last).unwrap().unwrap();
        assert_eq!(made.frame.len(), length);
        assert!(is_sound(made.frame.bytes()));
    }
}

#[test]
fn fragments_wait_for_two_seconds_from_the_first_to_arrive_and_are_counted() {
    let mut table = table();
    let first = piece4(1, 0, true, &udp(1, 2, 8));
    admit_at(&mut table, &piece4(1, 16, true, &[7; 8]), START).unwrap();
    admit_at(&mut table, &first, START + Duration::from_secs(1)).unwrap();
    admit_at(&mut table, &piece4(2, 16, true, &[7; 8]), START + Duration::from_secs(1)).unwrap();
    assert_eq!(expired(&mut table, START + Duration::from_millis(1_999), 10), []);
    assert_eq!(expired(&mut table, START + Duration::from_secs(2), 10), [(2, Some(first))]);
    assert_eq!(expired(&mut table, START + Duration::from_secs(3), 10), [(1, None)]);
    assert_eq!((table.fragments(), table.memory()), (0, 0));
}

#[test]
fn expiry_does_a_bounded_amount_of_work_oldest_first() {
    let mut table = table();
    for identification in 0..10 {
        admit(&mut table, &piece4(identification, 16 + 8 * identification, true, &[7; 8])).unwrap();
    }
    assert_eq!(expired(&mut table, START + FRAGMENT_MIN, 4).len(), 4);
    assert_eq!(table.fragments(), 6);
    let more = admit(&mut table, &piece4(9, 8, true, &[7; 8])).unwrap();
    assert!(more.is_none());
    assert_eq!(expired(&mut table, START + FRAGMENT_MIN, 100).last(), Some(&(2, None)));
}

#[test]
fn a_shorter_time_than_fragment_min_is_not_to_be_had() {
    let limits = FragmentLimits { timeout: Duration::from_millis(10), ..FragmentLimits::default() };
    let mut table = Reassembly::new(limits, 7);
    admit(&mut table, &piece4(1, 8, true, &[7; 8])).unwrap();
    assert_eq!(expired(&mut table, START + Duration::from_secs(1), 10), []);
    assert_eq!(expired(&mut table, START + Duration::from_secs(2), 10).len(), 1);
}

#[test]
fn a_source_has_its_share_of_packets_and_no_more() {
    let limits = FragmentLimits { packets: 5, packets_per_source: 3, ..FragmentLimits::default() };
    let mut table = Reassembly::new(limits, 7);
    for identification in 0..3 {
        admit(&mut table, &piece4(identification, 8, true, &[7; 8])).unwrap();
    }
    let [has_share, full] =
        [DropReason::FragmentShare, DropReason::FragmentMemory].map(|reason| refused(reason, 0));
    assert_eq!(admit(&mut table, &piece4(3, 8, true, &[7; 8])).unwrap_err(), has_share);
    assert!(admit(&mut table, &piece4(2, 16, true, &[7; 8])).is_ok(), "a packet that waits goes on");
    for identification in 0..2 {
        admit(&mut table, &piece6(identification, 8, true, &[7; 8])).unwrap();
    }
    assert_eq!(admit(&mut table, &piece6(2, 8, true, &[7; 8])).unwrap_err(), full, "the table is full");
    expired(&mut table, START + FRAGMENT_MIN, 100);
    assert!(admit(&mut table, &piece4(3, 8, true, &[7; 8])).is_ok());
}

#[test]
fn by_destination_what_is_new_replaces_what_waited_longest() {
    let limits = FragmentLimits { packets: 40, packets_per_source: 3, ..FragmentLimits::default() };
    let mut table = Reassembly::by_destination(limits, 7);
    for identification in 0..5 {
        admit(&mut table, &piece4(identification, 8, true, &[7; 8])).unwrap();
    }
    assert_eq!(table.take_displaced(), Displaced { of_share: 2, of_table: 0 }, "of one source");
    assert_eq!(table.fragments(), 3);
    // The second fragment of the oldest that is left, and of one that was replaced.
    assert!(admit(&mut table, &piece4(2, 16, true, &[7; 8])).is_ok());
    assert_eq!(table.take_displaced(), Displaced::default());
    assert!(admit(&mut table, &piece4(0, 16, true, &[7; 8])).is_ok());
    assert_eq!(table.take_displaced(), Displaced { of_share: 2, of_table: 0 }, "with its second fragment");
    // To other destinations, until the table is full.
    let to = |destination: u8, number: u16| {
        let mut octets = piece4(number, 8, true, &[7; 8]);
        octets[12..16].copy_from_slice(&[198, 51, number as u8, 1]);
        octets[16..20].copy_from_slice(&[203, 0, 113, 100 + destination]);
        header_sealed(octets)
    };
    for number in 0..60 {
        for destination in 0..60 {
            admit(&mut table, &to(destination, number)).unwrap();
        }
    }
    let Displaced { of_share, of_table } = table.take_displaced();
    assert!(of_table > 1_000 && of_share < 100, "{of_share}, {of_table}");
    expired(&mut table, START + FRAGMENT_MIN, 10_000);
    assert!(table.is_empty() && table.memory() == 0 && table.fragments() == 0);
    // What one destination has leaves others room.
    for number in 0..200 {
        admit(&mut table, &to(1, number)).unwrap();
    }
    assert_eq!(table.fragments(), 16, "the least that a destination may have");
    assert_eq!(table.take_displaced().of_table, 0);
}

/// While forged fragments to all addresses of a /20 fill the table, those of a packet to one address are joined if they arrive within the time in which
/// the flood replaces the table once, though 14 other packets and one of the flood to this address wait.
#[test]
fn while_a_flood_covers_a_whole_pool_a_destination_has_sixteen_packets() {
    let limits = FragmentLimits::default();
    let mut table = Reassembly::by_destination(limits, 7);
    let mut count = 0_u32;
    let mut flood = |table: &mut Reassembly, packets: usize| {
        for _ in 0..packets {
            let mut octets = piece4((count >> 12) as u16, 8, true, &[7; 8]);
            octets[12..16].copy_from_slice(&(0x0a00_0000 | count).to_be_bytes());
            octets[16..20].copy_from_slice(&(0xcb00_0000 | (count % 4_096)).to_be_bytes());
            count += 1;
            admit(table, &header_sealed(octets)).unwrap();
        }
    };
    flood(&mut table, 3 * limits.packets);
    table.take_displaced();
    let whole: Vec<Vec<u8>> = (0..15)
        .map(|number: u8| {
            let source = format!("198.51.100.{number}");
            let mut octets = seal(v4(&source, "203.0.1.0", protocol::UDP, &udp(4_000, 53, 2_000)));
            octets[4..6].copy_from_slice(&[0x57, number]);
            header_sealed(octets)
        })
        .collect();
    let cut: Vec<Vec<Vec<u8>>> = whole.iter().map(|octets| cut4(octets, 1_500)).collect();
    for first in cut.iter().map(|pieces| &pieces[0]) {
        assert!(admit(&mut table, first).unwrap().is_none());
        flood(&mut table, 200);
    }
    // Their second fragments, in the same order.
    for (number, last) in cut.iter().map(|pieces| &pieces[1]).enumerate() {
        assert!(admit(&mut table, last).unwrap().is_some(), "{number}");
    }
    assert_eq!(table.take_displaced().of_share, 0);
}

/// The other side: what a flood of more than the whole table between two fragments costs.
#[test]
fn a_packet_is_lost_if_a_flood_replaces_the_whole_table_between_its_fragments() {
    let limits = FragmentLimits::default();
    let mut table = Reassembly::by_destination(limits, 7);
    let pieces = cut4(&udp4(2_000), 1_500);
    admit(&mut table, &pieces[0]).unwrap();
    for count in 0..=limits.packets as u32 {
        let mut octets = piece4(1, 8, true, &[7; 8]);
        octets[16..20].copy_from_slice(&(0xcc00_0000 | count).to_be_bytes());
        admit(&mut table, &header_sealed(octets)).unwrap();
    }
    assert!(admit(&mut table, &pieces[1]).unwrap().is_none());
    assert_eq!(table.take_displaced().of_share, 0);
}

#[test]
fn memory_is_bounded_and_a_packet_that_finds_none_is_lost() {
    let limits = FragmentLimits { memory: 4_000, ..FragmentLimits::default() };
    let mut table = Reassembly::new(limits, 7);
    admit(&mut table, &piece4(1, 8, true, &[7; 1_400])).unwrap();
    admit(&mut table, &piece4(2, 8, true, &[7; 1_400])).unwrap();
    let none = admit(&mut table, &piece4(3, 8, true, &[7; 1_400])).unwrap_err();
    assert_eq!(none, refused(DropReason::FragmentMemory, 0));
    let lost = admit(&mut table, &piece4(2, 1_408, true, &[7; 1_400])).unwrap_err();
    assert_eq!(lost, refused(DropReason::FragmentMemory, 1));
    assert!(admit(&mut table, &piece4(1, 1_408, true, &[7; 1_400])).is_ok());
    assert!(table.memory() <= 4_000);
}

#[test]
fn a_packet_has_a_bounded_number_of_fragments() {
    let limits = FragmentLimits { fragments_per_packet: 3, ..FragmentLimits::default() };
    let mut table = Reassembly::new(limits, 7);
    for number in 1..4 {
        admit(&mut table, &piece4(1, 8 * number, true, &[7; 8])).unwrap();
    }
    let lost = admit(&mut table, &piece4(1, 64, true, &[7; 8])).unwrap_err();
    assert_eq!(lost, refused(DropReason::FragmentMemory, 3));
}

#[test]
fn congestion_that_a_fragment_met_is_the_packets() {
    let mut table = table();
    let mut first = piece4(1, 0, true, &udp(1, 2, 8));
    first[1] = 0xb9;
    let mut last = piece4(1, 16, false, &[7; 8]);
    last[1] = 0xbb;
    admit(&mut table, &header_sealed(first)).unwrap();
    let made = admit(&mut table, &header_sealed(last)).unwrap().unwrap();
    assert_eq!(made.frame.bytes()[1], 0xbb);

    let mut first = piece6(1, 0, true, &udp(1, 2, 8));
    (first[0], first[1]) = (0x6b, 0xa0);
    let mut last = piece6(1, 16, false, &[7; 8]);
    (last[0], last[1]) = (0x6b, 0xb0);
    admit(&mut table, &first).unwrap();
    let made = admit(&mut table, &last).unwrap().unwrap();
    assert_eq!(made.frame.bytes()[..2], [0x6b, 0xb0]);
}

#[test]
fn a_packet_that_fits_is_not_cut() {
    assert_eq!(cut4(&udp4(100), 128), [udp4(100)]);
    assert_eq!(cut6(&udp6(100), 148), [udp6(100)]);
}

#[test]
fn an_ipv4_packet_is_cut_at_multiples_of_eight_octets() {
    let pieces = cut4(&udp4(1_472), 577);
    let shape: Vec<_> = pieces
        .iter()
        .map(|piece| {
            let place = parse(piece).unwrap().fragment.unwrap();
            assert_eq!(place.identification, 0x1234);
            (place.offset, place.more, piece.len())
        })
        .collect();
    assert_eq!(shape, [(0, true, 572), (552, true, 572), (1_104, false, 396)]);
}

#[test]
fn a_fragment_of_a_fragment_keeps_its_place() {
    let data: Vec<u8> = (0..1_200u32).map(|i| i as u8).collect();
    let places = |pieces: &[Vec<u8>]| -> Vec<_> {
        let place = |piece: &Vec<u8>| parse(piece).unwrap().fragment.unwrap();
        pieces.iter().map(place).map(|place| (place.offset, place.more, place.identification)).collect()
    };
    let middle = cut4(&piece4(7, 2_400, true, &data), 620);
    assert_eq!(places(&middle), [(2_400, true, 7), (3_000, true, 7)]);
    let last = cut6(&piece6(7, 2_400, false, &data), 648);
    assert_eq!(places(&last), [(2_400, true, 7), (3_000, false, 7)]);
    assert_eq!(last[1][48..], data[600..]);
    let mut out = Outbox::new(9);
    let beyond = Frame::holding(&piece4(7, 65_000, false, &data));
    assert_eq!(fragment4(&beyond, 600, &mut out), Err(DropReason::BadFragment));
}

#[test]
fn only_copied_options_go_into_later_fragments() {
    // No-operation, a security option (copied), record route (not copied), end.
    let options = [1, 0x82, 3, 9, 7, 7, 4, 0, 0, 0, 0, 0];
    let mut packet = v4(A4, B4, protocol::UDP, &[&options[..], &udp(1, 2, 92)].concat());
    packet[0] = 0x48;
    let pieces = cut4(&header_sealed(packet), 80);
    assert_eq!(pieces[0][..32][20..], options);
    assert_eq!(pieces[0].len(), 80);
    assert_eq!(pieces[1][0], 0x46);
    assert_eq!(pieces[1][20..24], [0x82, 3, 9, 0]);
    assert_eq!(pieces.iter().map(|piece| parse(piece).unwrap().length as usize).sum::<usize>(), 80 + 24 + 52);
}

#[test]
fn the_fragment_header_stands_behind_the_headers_that_every_router_reads() {
    let hop_by_hop = [60, 0, 1, 4, 0, 0, 0, 0];
    let options = [43, 0, 1, 4, 0, 0, 0, 0];
    let routing = [60, 0, 4, 0, 0, 0, 0, 0];
    let last_options = [17, 0, 1, 4, 0, 0, 0, 0];
    let payload = [&hop_by_hop[..], &options, &routing, &last_options, &udp(1, 2, 1_400)].concat();
    for piece in cut6(&v6(A6, B6, protocol::HOP_BY_HOP, &payload), 1_280) {
        assert_eq!(piece[6], protocol::HOP_BY_HOP);
        assert_eq!(piece[56], protocol::FRAGMENT);
        assert_eq!(piece[64], 60);
        assert_eq!(parse(&piece).unwrap().fragment_header, 64);
    }
}

#[test]
fn what_may_not_or_cannot_be_cut_is_refused_and_nothing_is_sent() {
    let mut out = Outbox::new(2);
    let mut whole = udp4(1_400);
    let refusal = fragment4(&Frame::holding(&whole), 576, &mut out);
    assert_eq!((refusal, out.len()), (Err(DropReason::OutboxFull), 0));
    let refusal = fragment6(&Frame::holding(&udp6(1_400)), 1, 600, &mut out);
    assert_eq!((refusal, out.len()), (Err(DropReason::OutboxFull), 0));
    assert_eq!(fragment4(&Frame::holding(&whole), 27, &mut out), Err(DropReason::PacketTooBig));
    assert_eq!(fragment6(&Frame::holding(&udp6(9)), 1, 55, &mut out), Err(DropReason::PacketTooBig));
    let mut frame = Frame::holding(&whole);
    frame.offload.segments = Some(Segments { size: 500, kind: SegmentKind::Udp });
    assert_eq!(fragment4(&frame, 576, &mut out), Err(DropReason::BadGso));
    whole[6] = 0x40;
    let whole = header_sealed(whole);
    assert_eq!(fragment4(&Frame::holding(&whole), 576, &mut out), Err(DropReason::PacketTooBig));
    assert!(out.is_empty());
}

/// Shuffles by sorting along random keys.
fn shuffled(mut pieces: Vec<Vec<u8>>, keys: &[u8]) -> Vec<Vec<u8>> {
    let mut index = 0;
    pieces.sort_by_cached_key(|_| {
        index += 1;
        keys.get(index).copied().unwrap_or_default()
    });
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn there_and_back_is_the_original(
        data in 0usize..8_000,
        mtu in 68u16..1_600,
        again in 68u16..1_600,
        order in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        let limits = FragmentLimits { fragments_per_packet: 1_000, ..FragmentLimits::default() };
        let mut table = Reassembly::new(limits, 7);
        let pieces: Vec<_> = cut4(&udp4(data), mtu).iter().flat_map(|piece| cut4(piece, again)).collect();
        prop_assert!(pieces.iter().all(|piece| is_sound(piece) && piece.len() <= mtu.min(again).into()));
        let (count, mut whole) = (pieces.len() as u32, None);
        if count > 1 {
            for piece in shuffled(pieces, &order) {
                whole = admit(&mut table, &piece).unwrap();
            }
            let whole = whole.unwrap();
            prop_assert_eq!(whole.fragments, count);
            prop_assert_eq!(whole.frame.bytes(), udp4(data));
        }
        prop_assert_eq!((table.memory(), table.fragments()), (0, 0));

        let (mtu, again) = (mtu + 20, again + 20);
        let pieces: Vec<_> = cut6(&udp6(data), mtu).iter().flat_map(|piece| cut6(piece, again)).collect();
        prop_assert!(pieces.iter().all(|piece| is_sound(piece) && piece.len() <= mtu.min(again).into()));
        let (count, mut whole) = (pieces.len() as u32, None);
        if count > 1 {
            for piece in shuffled(pieces, &order) {
                whole = admit(&mut table, &piece).unwrap();
            }
            let whole = whole.unwrap();
            prop_assert_eq!(whole.fragments, count);
            prop_assert_eq!(&whole.frame.bytes()[48..], &udp6(data)[40..]);
            prop_assert!(is_sound(whole.frame.bytes()));
        }
    }

    #[test]
    fn every_fragment_is_counted_once_whatever_comes(
        stream in prop::collection::vec((0u16..4, 0u16..12, 1usize..5, any::<bool>(), any::<bool>(), 0u64..600), 1..150),
    ) {
        let limits = FragmentLimits { memory: 3_000, packets: 5, packets_per_source: 3, fragments_per_packet: 6, ..FragmentLimits::default() };
        let mut table = Reassembly::new(limits, 7);
        let (mut received, mut merged, mut dropped, mut now) = (0u32, 0u32, 0u32, START);
        for (identification, place, units, more, v4, later) in stream {
            now = now + Duration::from_millis(later);
            let data = vec![place as u8; units * 8];
            let octets = if v4 {
                piece4(identification, place * 8, more, &data)
            } else {
                piece6(identification.into(), place * 8, more, &data)
            };
            if parse(&octets).unwrap().fragment.is_none() {
                continue;
            }
            received += 1;
            match admit_at(&mut table, &octets, now) {
                Ok(None) => {}
                Ok(Some(whole)) => {
                    merged += whole.fragments;
                    prop_assert!(parse(whole.frame.bytes()).unwrap().fragment.is_none());
                }
                Err(refused) => dropped += 1 + refused.released,
            }
            if later % 3 == 0 {
                dropped += expired(&mut table, now, 2).iter().map(|(fragments, _)| fragments).sum::<u32>();
            }
            prop_assert!(table.memory() <= 3_000);
            prop_assert_eq!(received, merged + dropped + table.fragments() as u32);
        }
        dropped += expired(&mut table, now + Duration::from_secs(9), 1_000).iter().map(|(fragments, _)| fragments).sum::<u32>();
        prop_assert_eq!(received, merged + dropped);
        prop_assert_eq!((table.memory(), table.fragments()), (0, 0));
    }

    #[test]
    fn octets_of_any_kind_are_cut_or_refused(mut octets in prop::collection::vec(any::<u8>(), 1..3_000), v4: bool, mtu: u16) {
        if v4 && octets.len() >= 60 {
            let length = octets.len() as u16;
            octets[0] = 0x45 + octets[0] % 11;
            octets[2..4].copy_from_slice(&length.to_be_bytes());
            octets = header_sealed(octets);
        } else if octets.len() >= 40 {
            let length = octets.len() as u16 - 40;
            octets[0] = 0x60;
            octets[4..6].copy_from_slice(&length.to_be_bytes());
            octets[6] = [0, 43, 44, 60, 17, 6][usize::from(octets[6]) % 6];
        }
        let frame = Frame::holding(&octets);
        let mut out = Outbox::new(100);
        let cut = if v4 { fragment4(&frame, mtu, &mut out) } else { fragment6(&frame, 1, mtu, &mut out) };
        prop_assert_eq!(cut.unwrap_or(0) as usize, out.len());
        if mtu as usize >= octets.len() {
            return Ok(());
        }
        let mut table = table();
        for piece in pieces(&mut out) {
            prop_assert!(piece.len() <= mtu.into());
            if let Ok(packet) = parse(&piece) {
                prop_assert_eq!(packet.length as usize, piece.len());
                let _ = table.admit(&Frame::holding(&piece), &packet, START);
            }
        }
    }
}
