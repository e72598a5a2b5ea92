//! Fragments inside softwires, of softwires' packets, and from outside (RFC 6333 §5.3, §6.3; RFC 6908 §2.2; RFC 2473 §7.2).

use super::*;
use sixway_dataplane::{DropReason, Verdict};
use std::time::Duration;

/// A datagram of the host as IPv4 fragments of at most this much data.
fn inner_fragments(port: u16, identification: u32, octets: usize, each: usize) -> Vec<Build> {
    let whole = v4(HOST, SERVER).may_fragment().udp(port, 53, &vec![7; octets]);
    let length = octets + 8;
    let cuts = (0..length).step_by(each);
    cuts.map(|from| {
        let to = (from + each).min(length);
        whole.clone().fragment(identification, from as u16, to < length).part(from, to)
    })
    .collect()
}

/// A tunnel packet as IPv6 fragments.
fn outer_fragments(whole: &Build, identification: u32, each: usize) -> Vec<Build> {
    let octets = whole.octets();
    let body = &octets[40..];
    let cuts = (0..body.len()).step_by(each);
    cuts.map(|from| {
        let to = (from + each).min(body.len());
        v6(B4, AFTR)
            .protocol(4, body, None)
            .fragment(identification, from as u16, to < body.len())
            .part(from, to)
    })
    .collect()
}

/// The data behind the Fragment headers of IPv6 fragments, in order.
#[track_caller]
fn joined(fragments: &[Vec<u8>]) -> Vec<u8> {
    let mut data = Vec::new();
    for (number, fragment) in fragments.iter().enumerate() {
        assert_eq!((fragment[6], fragment[40]), (44, 4), "an IPv6 fragment of IPv4");
        let place = u16::from_be_bytes([fragment[42], fragment[43]]);
        assert_eq!(usize::from(place & 0xfff8), data.len());
        assert_eq!(place & 1 == 0, number + 1 == fragments.len());
        data.extend(&fragment[48..]);
    }
    data
}

#[test]
fn fragments_inside_a_softwire_are_joined_in_any_order() {
    let mut gateway = gateway(|_| {});
    for (identification, order) in [(1, [0, 1, 2]), (2, [2, 1, 0]), (3, [1, 2, 0])] {
        let fragments = inner_fragments(4_001, identification, 2_000, 800);
        assert_eq!(fragments.len(), 3);
        for (place, number) in order.into_iter().enumerate() {
            gateway.receives(up(B4, fragments[number].clone()));
            assert_eq!(gateway.last == Verdict::Held, place < 2);
        }
        assert_eq!(gateway.last, Verdict::Merged);
        // The link carries 1,500 octets.
        let (first, second) = (gateway.sent(), gateway.sent());
        assert_eq!(first.len() + second.len(), 2_008 + 40);
        gateway.sends_nothing();
    }
    gateway.counted_before();
    assert_eq!(gateway.engine.counters().held, 0);
}

#[test]
fn fragments_of_two_softwires_with_the_same_addresses_and_number_are_not_mixed() {
    let mut gateway = gateway(|_| {});
    let fragments = inner_fragments(4_001, 7, 1_000, 800);
    gateway.receives(up(B4, fragments[0].clone()));
    gateway.receives(up(NEIGHBOUR, fragments[1].clone()));
    assert_eq!(gateway.last, Verdict::Held);
    // A neighbour that overlaps loses its own packet.
    gateway.receives(up(NEIGHBOUR, fragments[1].clone().fragment(7, 792, false)));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::FragmentOverlap));
    gateway.receives(up(B4, fragments[1].clone()));
    let sent = gateway.sent();
    assert_eq!((sent.len(), gateway.last), (1_028, Verdict::Merged));
    gateway.sends_nothing();
}

#[test]
fn fragments_of_two_softwires_of_one_subscriber_are_not_mixed() {
    // They share the subscriber's memory, and no more: in the same /64, and in two of its /56.
    for other in ["2001:db8:b4:100::2", "2001:db8:b4:101::1"] {
        let mut gateway = gateway(|_| {});
        let fragments = inner_fragments(4_001, 7, 1_000, 800);
        gateway.receives(up(B4, fragments[0].clone()));
        gateway.receives(up(other, fragments[1].clone()));
        assert_eq!(gateway.last, Verdict::Held, "{other}");
        gateway.sends_nothing();
        gateway.receives(up(other, fragments[0].clone()));
        assert_eq!((gateway.sent().len(), gateway.last), (1_028, Verdict::Merged));
        gateway.receives(up(B4, fragments[1].clone()));
        assert_eq!((gateway.sent().len(), gateway.last), (1_028, Verdict::Merged));
        gateway.sends_nothing();
        assert_eq!(gateway.engine.ds_lite()[0].softwires().len(), 2);
    }
}

#[test]
fn overlapping_and_tiny_fragments_inside_a_softwire_are_dropped() {
    let mut gateway = gateway(|_| {});
    let fragments = inner_fragments(4_001, 7, 1_000, 800);
    gateway.receives(up(B4, fragments[0].clone()));
    gateway.receives(up(B4, fragments[1].clone().fragment(7, 792, false)));
    gateway.sends_nothing();
    assert_eq!(gateway.engine.counters().dropped[DropReason::FragmentOverlap as usize], 2);
    let tiny = v4(HOST, SERVER).tcp(1, 2, SYN, b"").fragment(8, 0, true).part(0, 8);
    gateway.refuses(up(B4, tiny), DropReason::TransportTruncated);
    // RFC 1858 §3: one that begins within TCP's header.
    let within = v4(HOST, SERVER).tcp(1, 2, SYN, b"").fragment(8, 8, false).part(8, 20);
    gateway.refuses(up(B4, within), DropReason::BadFragment);
    // A packet that stays incomplete is dropped silently.
    gateway.receives(up(B4, inner_fragments(4_001, 9, 1_000, 800)[0].clone()));
    gateway.waits(Duration::from_secs(10));
    gateway.sends_nothing();
    assert_eq!(gateway.engine.counters().dropped[DropReason::FragmentTimeout as usize], 1);
}

#[test]
fn fragments_of_tunnel_packets_are_joined_if_they_come_from_a_client() {
    let mut gateway = gateway(|_| {});
    let inner = v4(HOST, SERVER).udp(4_001, 53, &[7; 1_400]);
    for fragment in outer_fragments(&up(B4, inner), 5, 1_000) {
        gateway.receives(fragment);
    }
    let sent = gateway.sent();
    assert_eq!((sent.len(), gateway.last), (1_428, Verdict::Merged));
    let stranger = v6("2001:db8:b5::1", AFTR).protocol(4, &[7; 1_000], None).fragment(5, 0, true);
    gateway.refuses(stranger, DropReason::NoTunnel);
}

#[test]
fn fragments_in_fragments_are_joined_twice_and_every_frame_is_accounted_for() {
    let mut gateway = gateway(|_| {});
    let inner = inner_fragments(4_001, 7, 3_000, 1_600);
    for (number, inner) in inner.iter().enumerate() {
        for outer in outer_fragments(&up(B4, inner.clone()), 100 + number as u32, 1_000) {
            gateway.receives(outer);
        }
    }
    let pieces: Vec<Vec<u8>> = (0..gateway.waiting()).map(|_| gateway.sent()).collect();
    assert_eq!(pieces.iter().map(|piece| piece.len() - 20).sum::<usize>(), 3_008);
    assert_eq!((gateway.engine.counters().held, gateway.engine.counters().dropped_total()), (0, 0));
}

#[test]
fn a_packet_from_outside_that_may_be_fragmented_is_not_but_its_tunnel_packet_is() {
    // RFC 6333 §6.3: fragmentation happens after the encapsulation, on the IPv6 packet.
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway, B4);
    let from_outside = v4(SERVER, &outside).may_fragment().identification(77);
    gateway.receives(from_outside.udp(53, port, &[7; 1_472]));
    assert_eq!(gateway.last, Verdict::InPieces);
    let fragments = [gateway.sent(), gateway.sent()];
    assert!(fragments.iter().all(|fragment| fragment.len() <= 1_500));
    let inner = v4(SERVER, HOST).may_fragment().hops(63).udp(53, 4_001, &[7; 1_472]);
    let mut inner = inner.octets();
    let joined = joined(&fragments);
    inner[4..6].copy_from_slice(&joined[4..6]);
    inner[10..12].copy_from_slice(&joined[10..12]);
    assert_eq!(support::hex(&joined), support::hex(&inner));
    gateway.sends_nothing();
}

#[test]
fn a_packet_from_outside_with_df_that_does_not_fit_is_answered_with_what_the_tunnel_carries() {
    // RFC 2473 §7.2 a.
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway, B4);
    let large = v4(SERVER, &outside).udp(53, port, &[7; 1_433]);
    gateway.receives(large.clone());
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21], u16::from_be_bytes([sent[26], sent[27]])), (3, 4, 1_460));
    assert_eq!(sent[16..20], large.octets()[12..16]);
    assert_eq!(support::hex(&sent[28..]), support::hex(&large.octets()[..sent.len() - 28]), "as it was sent");
    gateway.receives(v4(SERVER, &outside).udp(53, port, &[7; 1_432]));
    assert_eq!(gateway.sent().len(), 1_500);
}

#[test]
fn fragments_from_outside_are_joined_before_they_enter_the_softwire() {
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway, B4);
    let whole = v4(SERVER, &outside).may_fragment().udp(53, port, &[7; 1_000]);
    gateway.receives(whole.clone().fragment(9, 0, true).part(0, 800));
    gateway.receives(whole.fragment(9, 800, false).part(800, 1_008));
    let sent = gateway.sent();
    assert_eq!((sent.len(), sent[6]), (40 + 1_028, 4));
    assert!(support::checksum_is_right(&sent[40..]));
    // To an address without bindings nothing is held.
    let none = v4(SERVER, "192.0.2.3").may_fragment().udp(53, port, &[7; 1_000]);
    gateway.receives(none.fragment(9, 0, true).part(0, 800));
    assert_ne!(gateway.last, Verdict::Held);
}

#[test]
fn a_congestion_mark_on_one_fragment_is_on_the_whole() {
    let mut gateway = gateway(|_| {});
    let fragments = inner_fragments(4_001, 7, 1_000, 800);
    gateway.receives(up(B4, fragments[0].clone().tos(2)).tos(2));
    gateway.receives(up(B4, fragments[1].clone().tos(2)).tos(3));
    assert_eq!(gateway.sent()[1] & 3, 3);
}

#[test]
fn without_outer_fragments_the_error_quotes_what_was_sent_and_no_host_inside() {
    use sixway_dataplane::tunnel::OuterFragments;
    let mut gateway = gateway(|aftr| aftr.tunnel.outer_fragments = OuterFragments::Never);
    let (outside, port) = opened(&mut gateway, B4);
    let from_outside = v4(SERVER, &outside).may_fragment().identification(77);
    let large = from_outside.clone().udp(53, port, &[7; 1_433]);
    gateway.receives(large.clone());
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::OuterTooBig));
    let sent = gateway.sent();
    assert_eq!((sent[20], &sent[16..20]), (3, &large.octets()[12..16]));
    assert_eq!(support::hex(&sent[28..]), support::hex(&large.octets()[..sent.len() - 28]), "as it was sent");
    // In fragments it is as large.
    for (from, to) in [(0, 800), (800, 1_441)] {
        gateway.receives(large.clone().fragment(78, from, to < 1_441).part(from.into(), to));
    }
    let sent = gateway.sent();
    assert_eq!(
        (sent[20], &sent[16..20], &sent[44..48]),
        (3, &large.octets()[12..16], &large.octets()[16..20])
    );
    gateway.receives(from_outside.udp(53, port, &[7; 1_432]));
    assert_eq!(gateway.sent().len(), 1_500);
}

/// The MTU that an error inside a softwire tells, and what it quotes.
#[track_caller]
fn too_big_inside(sent: &[u8]) -> (u16, &[u8]) {
    assert_eq!((sent[6], sent[60], sent[61]), (4, 3, 4), "{}", support::hex(sent));
    (u16::from_be_bytes([sent[66], sent[67]]), &sent[68..])
}

#[test]
fn a_packet_with_df_in_a_fragmented_tunnel_packet_is_refused_as_it_was_sent() {
    let mut gateway = support::gateway(|config| {
        config.limits.mtu4 = 1_400;
        config.others.push(aftr().into());
    });
    let inner = v4(HOST, SERVER).udp(4_001, 53, &[7; 1_400]);
    for fragment in outer_fragments(&up(B4, inner.clone()), 5, 1_000) {
        gateway.receives(fragment);
    }
    let sent = gateway.sent();
    let (mtu, quote) = too_big_inside(&sent);
    assert_eq!((mtu, support::hex(quote)), (1_400, support::hex(&inner.octets()[..quote.len()])));
    gateway.sends_nothing();
}

#[test]
fn a_hairpin_with_df_in_a_fragmented_tunnel_packet_is_told_what_the_softwire_carries() {
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway, NEIGHBOUR);
    let inner = v4(HOST, &outside).udp(4_001, port, &[7; 1_472]);
    for fragment in outer_fragments(&up(B4, inner.clone()), 5, 1_000) {
        gateway.receives(fragment);
    }
    let sent = gateway.sent();
    let (mtu, quote) = too_big_inside(&sent);
    assert_eq!((mtu, support::hex(quote)), (1_460, support::hex(&inner.octets()[..quote.len()])));
    gateway.sends_nothing();
}
