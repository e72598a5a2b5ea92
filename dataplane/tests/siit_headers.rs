//! Stateless translation at its edges: sizes and DF, padding, checksums of nothing, GSO packets, MSS; and when the sender gets
//! no error. Clause by clause it is tested in `rfc7915_section_4.rs` and `rfc7915_section_5.rs`.

use crate::support;
use crate::support::{Build, Gateway, checksum_is_right, eam, icmp4, icmp6, v4, v6};
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::{Checksum, DropReason, Limits, Offload, SegmentKind, Segments, Verdict};

const HOST4: &str = "198.51.100.9";
const HOST6: &str = "2001:db8:1::1";
const PEER4: &str = "203.0.113.2";
const PEER6: &str = "2001:db8:64::cb00:7102";
const SYN: u8 = 2;
const ACK: u8 = 16;

fn gateway() -> Gateway {
    between(1_500, 1_500)
}

/// A gateway between links of these MTUs.
fn between(mtu4: u16, mtu6: u16) -> Gateway {
    support::gateway(|config| {
        config.limits = Limits { mtu4, mtu6 };
        config.siit.push(SiitConfig {
            prefix: Some(support::prefix("2001:db8:64::/96")),
            eam: eam(&[("198.51.100.8/29", "2001:db8:1::/125")]),
            ..SiitConfig::default()
        });
    })
}

fn to_v6() -> Build {
    v4(PEER4, HOST4)
}

fn to_v4() -> Build {
    v6(HOST6, PEER6)
}

/// DF and identification of an IPv4 packet.
fn fragmentation(packet: &[u8]) -> (bool, u16) {
    (packet[6] & 0x40 != 0, u16::from_be_bytes([packet[4], packet[5]]))
}

#[test]
fn df_goes_by_the_size_that_the_packet_has_in_ipv4() {
    let padding = [0, 0, 1, 4, 0, 0, 0, 0];
    for (data, df) in [(1_231, false), (1_232, false), (1_233, true), (1_400, true)] {
        let mut gateway = gateway();
        gateway.receives(to_v4().udp(1, 2, &vec![0; data]));
        let (is_set, identification) = fragmentation(&gateway.sent());
        assert_eq!((is_set, identification == 0), (df, df), "{data}");
        // Eight octets of extension header do not cross, so they do not count.
        gateway.receives(to_v4().extension(60, &padding).udp(1, 2, &vec![0; data]));
        assert_eq!(fragmentation(&gateway.sent()).0, df, "{data}");
    }
}

#[test]
fn no_atomic_fragment_is_ever_made() {
    for data in [0, 8, 1_000, 1_232] {
        for packet in [to_v6(), to_v6().may_fragment().identification(7)] {
            let mut gateway = gateway();
            gateway.receives(packet.udp(1, 2, &vec![1; data]));
            assert_eq!(gateway.sent()[6], 17);
        }
    }
}

#[test]
fn an_atomic_fragment_is_translated_like_a_whole_packet_of_its_identification() {
    let mut gateway = gateway();
    gateway.receives(to_v4().fragment(0x1_0000 + 77, 0, false).tcp(1, 2, ACK, &[3; 1_300]));
    gateway.sends(v4(HOST4, PEER4).hops(63).may_fragment().identification(77).tcp(1, 2, ACK, &[3; 1_300]));
    gateway.receives(to_v4().fragment(5, 0, false).echo(1, 2, b"ping"));
    gateway.sends(v4(HOST4, PEER4).hops(63).may_fragment().identification(5).echo(1, 2, b"ping"));
}

#[test]
fn a_later_fragment_of_any_protocol_passes_with_its_octets_untouched() {
    for protocol in [6, 17, 33, 132, 136] {
        let mut gateway = gateway();
        let data: Vec<u8> = (0..40).collect();
        gateway.receives(to_v6().fragment(9, 640, true).protocol(protocol, &data, None));
        gateway.sends(v6(PEER6, HOST6).hops(63).fragment(9, 640, true).protocol(protocol, &data, None));
        gateway.receives(to_v4().fragment(9, 640, false).protocol(protocol, &data, None));
        gateway.sends(v4(HOST4, PEER4).hops(63).fragment(9, 640, false).protocol(protocol, &data, None));
    }
}

#[test]
fn a_fragment_with_options_leaves_them_behind() {
    let mut gateway = gateway();
    let whole = to_v6().options(&[148, 4, 0, 0]).udp(1, 2, &[5; 40]);
    gateway.receives(whole.fragment(9, 0, true).part(0, 24));
    gateway.sends(v6(PEER6, HOST6).hops(63).udp(1, 2, &[5; 40]).fragment(9, 0, true).part(0, 24));
}

#[test]
fn padding_behind_the_packet_is_not_sent_on() {
    let pad = |packet: Build| [packet.octets(), vec![0xee; 18]].concat();
    let mut gateway = gateway();
    gateway.receives(pad(to_v6().udp(1, 2, b"data")));
    gateway.sends(v6(PEER6, HOST6).hops(63).udp(1, 2, b"data"));
    gateway.receives(pad(to_v6().udp(1, 2, b"data").without_checksum()));
    gateway.sends(v6(PEER6, HOST6).hops(63).udp(1, 2, b"data"));
    gateway.receives(pad(to_v6().echo(1, 2, b"ping")));
    gateway.sends(v6(PEER6, HOST6).hops(63).echo(1, 2, b"ping"));
    gateway.receives(pad(to_v4().fragment(3, 0, false).udp(1, 2, b"data")));
    gateway.sends(v4(HOST4, PEER4).hops(63).may_fragment().identification(3).udp(1, 2, b"data"));
    let quote = v4(HOST4, PEER4).udp(2, 1, b"question");
    gateway.receives(pad(to_v6().icmp(icmp4(3, 3, [0; 4], &quote.octets()))));
    let image = v6(HOST6, PEER6).udp(2, 1, b"question").octets();
    gateway.sends(v6(PEER6, HOST6).hops(63).icmp(icmp6(1, 4, [0; 4], &image)));
}

#[test]
fn a_computed_udp_checksum_of_zero_is_written_as_all_ones() {
    // One word of data makes the sum what it must be.
    let reference = v6(PEER6, HOST6).udp(1, 2, &[0, 0]).octets();
    let word = [reference[46], reference[47]];
    let mut gateway = gateway();
    gateway.receives(to_v6().udp(1, 2, &word).without_checksum());
    let sent = gateway.sent();
    assert_eq!(sent[46..48], [0xff, 0xff]);
    assert!(checksum_is_right(&sent));
}

#[test]
fn a_datagram_shorter_than_its_packet_is_summed_as_far_as_it_goes() {
    let mut body = v4(PEER4, HOST4).udp(1, 2, b"data").without_checksum().octets()[20..].to_vec();
    body.extend([9; 7]);
    let mut gateway = gateway();
    gateway.receives(to_v6().protocol(17, &body, None));
    let sent = gateway.sent();
    let datagram = v6(PEER6, HOST6).hops(63).udp(1, 2, b"data").octets();
    assert_eq!((sent.len(), &sent[40..52]), (59, &datagram[40..52]));
}

#[test]
fn a_udp_length_beyond_the_packet_makes_the_checksum_unknowable() {
    let mut body = v4(PEER4, HOST4).udp(1, 2, b"data").without_checksum().octets()[20..].to_vec();
    body[5] += 1;
    let mut gateway = gateway();
    gateway.receives(to_v6().protocol(17, &body, None));
    gateway.sends_nothing();
    gateway.counted([("siit.v4_to_v6", 1), ("BadUdpLength", 1)]);
}

#[test]
fn an_echo_reply_of_zeros_alone_has_a_checksum_of_all_ones() {
    let mut gateway = gateway();
    gateway.receives(to_v4().echo_reply(0, 0, &[0; 8]));
    let sent = gateway.sent();
    assert_eq!(sent[20..], [0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    gateway.receives(sent);
    gateway.sends(v6(HOST6, PEER6).hops(62).echo_reply(0, 0, &[0; 8]));
}

#[test]
fn packets_too_big_are_answered_with_the_senders_own_measure() {
    for (mtu4, mtu6, told4, told6) in
        [(1_500, 1_500, 1_480u16, 1_520u16), (1_400, 1_500, 1_480, 1_420), (1_500, 1_300, 1_280, 1_520)]
    {
        let mut gateway = between(mtu4, mtu6);
        gateway.receives(to_v6().udp(1, 2, &vec![0; usize::from(told4) - 28]));
        assert_eq!(gateway.sent().len(), usize::from(mtu6));
        gateway.receives(to_v6().udp(1, 2, &vec![0; usize::from(told4) - 27]));
        let sent = gateway.sent();
        assert_eq!((sent[20], sent[21], &sent[26..28]), (3, 4, &u16::to_be_bytes(told4)[..]));
        gateway.receives(to_v4().udp(1, 2, &vec![0; usize::from(told6) - 48]));
        assert_eq!(gateway.sent().len(), usize::from(mtu4));
        gateway.receives(to_v4().udp(1, 2, &vec![0; usize::from(told6) - 47]));
        let sent = gateway.sent();
        assert_eq!((sent[40], sent[41], &sent[44..48]), (2, 0, &u32::from(told6).to_be_bytes()[..]));
    }
}

#[test]
fn an_ipv6_sender_is_never_told_less_than_1280() {
    let mut gateway = between(576, 1_500);
    gateway.receives(to_v4().udp(1, 2, &[0; 1_300]));
    let sent = gateway.sent();
    assert_eq!((sent[40], &sent[44..48]), (2, &1_280u32.to_be_bytes()[..]));
}

#[test]
fn nobody_is_told_about_errors_later_fragments_and_multicast() {
    let quote = v4(HOST4, PEER4).udp(2, 1, b"question").octets();
    let quote6 = v6(PEER6, HOST6).udp(2, 1, b"question").octets();
    let untold = [
        to_v6().hops(1).icmp(icmp4(3, 3, [0; 4], &quote)),
        to_v6().hops(1).fragment(1, 8, true).protocol(17, &[0; 16], None),
        v4(PEER4, "224.0.0.5").hops(1).udp(1, 2, b"data"),
        v4("0.0.0.0", HOST4).hops(1).udp(1, 2, b"data"),
        to_v4().hops(1).icmp(icmp6(1, 0, [0; 4], &quote6)),
        v6("2001:db8:1::2", "ff0e::1").hops(1).udp(1, 2, b"data"),
        v6("::", PEER6).hops(1).udp(1, 2, b"data"),
    ];
    for packet in untold {
        let mut gateway = gateway();
        gateway.receives(packet);
        assert!(matches!(gateway.last, Verdict::Dropped(_)));
        gateway.sends_nothing();
        assert_eq!(gateway.engine.counters().icmp_errors_made, 0);
    }
}

#[test]
fn a_sender_is_told_so_often_and_no_more() {
    let mut gateway = support::gateway(|config| config.icmp_errors_per_second = 80);
    for _ in 0..100 {
        gateway.receives(to_v6().udp(1, 2, b"data"));
    }
    // One source has an eighth of the rate.
    gateway.counted([("NoMechanism", 100), ("icmp_errors.made", 10), ("icmp_errors.limited", 90)]);
}

#[test]
fn without_an_address_of_its_own_the_gateway_is_silent_and_counts_it() {
    let mut gateway = support::gateway(|config| (config.own4, config.own6) = (None, None));
    gateway.receives(to_v6().udp(1, 2, b"data"));
    gateway.receives(to_v4().udp(1, 2, b"data"));
    gateway.sends_nothing();
    gateway.counted([("NoMechanism", 2), ("icmp_errors.no_source", 2)]);
}

#[test]
fn the_mss_of_a_syn_is_lowered_to_what_the_path_carries() {
    let mss = |value: u16| [&[2, 4][..], &value.to_be_bytes()].concat();
    for (asked, mtu4, mtu6, given) in [
        (1_460, 1_500, 1_500, 1_440),
        (1_440, 1_500, 1_500, 1_440),
        (1_300, 1_500, 1_500, 1_300),
        (1_460, 1_400, 1_500, 1_360),
        (9_000, 1_500, 1_280, 1_220),
    ] {
        let mut gateway = between(mtu4, mtu6);
        for flags in [SYN, SYN | ACK] {
            gateway.receives(to_v6().tcp_with(1, 2, flags, &mss(asked), b""));
            gateway.sends(v6(PEER6, HOST6).hops(63).tcp_with(1, 2, flags, &mss(given), b""));
            gateway.receives(to_v4().fragment(3, 0, false).tcp_with(1, 2, flags, &mss(asked), b""));
            let expected = v4(HOST4, PEER4).hops(63).may_fragment().identification(3);
            gateway.sends(expected.tcp_with(1, 2, flags, &mss(given), b""));
        }
        gateway.receives(to_v6().tcp_with(1, 2, ACK, &mss(asked), b""));
        gateway.sends(v6(PEER6, HOST6).hops(63).tcp_with(1, 2, ACK, &mss(asked), b""));
    }
}

/// A TCP GSO packet of segments of `size` octets.
fn super_frame(size: u16) -> Offload {
    let segments = Some(Segments { size, kind: SegmentKind::Tcp });
    Offload { segments, checksum: Checksum::Partial, ..Offload::default() }
}

/// A packet whose transport checksum holds the sum of its pseudo-header alone.
fn unfinished(packet: &Build, checksum_at: usize) -> Vec<u8> {
    let octets = packet.octets();
    let (addresses, at) = if octets[0] >> 4 == 4 { (12..20, 20) } else { (8..40, 40) };
    let mut sum = (octets.len() - at) as u32 + u32::from(if checksum_at == 6 { 17u8 } else { 6 });
    sum += octets[addresses].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let mut octets = octets;
    octets[at + checksum_at..at + checksum_at + 2].copy_from_slice(&(sum as u16).to_be_bytes());
    octets
}

#[test]
fn a_gso_packet_whose_segments_fit_passes_whole_both_ways() {
    let data: Vec<u8> = (0..20_000u32).map(|n| n as u8).collect();
    let mut gateway = gateway();
    gateway.receives_with(unfinished(&to_v6().tcp(1, 2, ACK, &data), 16), super_frame(1_440));
    let (sent, offload) = gateway.sent_with();
    assert_eq!(sent, unfinished(&v6(PEER6, HOST6).hops(63).tcp(1, 2, ACK, &data), 16));
    assert_eq!(offload, Offload { transport: 40, ..super_frame(1_440) });
    gateway.receives_with(unfinished(&to_v4().tcp(1, 2, ACK, &data), 16), super_frame(1_440));
    let (sent, offload) = gateway.sent_with();
    let expected = v4(HOST4, PEER4).hops(63).tcp(1, 2, ACK, &data);
    assert_eq!(sent, unfinished(&expected, 16));
    assert_eq!(offload, Offload { transport: 20, ..super_frame(1_440) });
    assert_eq!(gateway.engine.counters().packets, 2 * 14, "counted as a wire would carry them");
}

#[test]
fn a_gso_packet_is_judged_by_its_segments() {
    let data = vec![7; 20_000];
    let mut gateway = gateway();
    gateway.receives_with(unfinished(&to_v6().tcp(1, 2, ACK, &data), 16), super_frame(1_441));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::PacketTooBig));
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21], &sent[26..28]), (3, 4, &1_480u16.to_be_bytes()[..]));
    // What is quoted is the first segment as it would have been on the wire.
    assert_eq!(sent[30..32], (20 + 20 + 1_441u16).to_be_bytes());
    // Its segments decide on DF too, not its own size.
    gateway.receives_with(unfinished(&to_v4().tcp(1, 2, ACK, &data), 16), super_frame(1_220));
    assert!(!fragmentation(&gateway.sent()).0);
}

#[test]
fn an_unfinished_checksum_stays_unfinished_and_right() {
    let mut gateway = gateway();
    let partial = Offload { checksum: Checksum::Partial, ..Offload::default() };
    gateway.receives_with(unfinished(&to_v6().udp(1, 2, b"data"), 6), partial);
    let (sent, offload) = gateway.sent_with();
    assert_eq!(sent, unfinished(&v6(PEER6, HOST6).hops(63).udp(1, 2, b"data"), 6));
    assert_eq!(offload.checksum, Checksum::Partial);
    // The checksum of a packet is finished before the packet is cut.
    gateway.receives_with(
        unfinished(&to_v6().may_fragment().identification(9).udp(1, 2, &[7; 1_400]), 6),
        partial,
    );
    let (first, second) = (gateway.sent(), gateway.sent());
    let whole = v6(PEER6, HOST6).udp(1, 2, &[7; 1_400]).octets();
    assert_eq!([&first[48..], &second[48..]].concat(), whole[40..]);
}
