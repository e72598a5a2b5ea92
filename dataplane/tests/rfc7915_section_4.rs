//! From IPv4 to IPv6, clause by clause (RFC 7915 §4).

use crate::support;
use crate::support::{Gateway, checksum_is_right, eam, icmp4, icmp6, siit, v4, v6};
use sixway_dataplane::translate::{HeaderByte, UdpZeroChecksum};
use sixway_dataplane::{DropReason, Frame, Instant, Outbox, Verdict};

/// The IPv6 host as both sides see it, the IPv4 host as both sides see it, and the gateway.
const HOST4: &str = "198.51.100.9";
const HOST6: &str = "2001:db8:1::1";
const PEER4: &str = "203.0.113.2";
const PEER6: &str = "2001:db8:64::cb00:7102";
const GATEWAY4: &str = "192.0.2.254";

fn gateway() -> Gateway {
    siit(|config| config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]))
}

#[test]
fn a_packet_without_df_that_fits_gets_no_fragment_header() {
    let mut gateway = gateway();
    gateway.receives(v4(PEER4, HOST4).may_fragment().identification(77).udp(1, 2, &[0; 1_232]));
    let sent = gateway.sent();
    assert_eq!((sent.len(), sent[6]), (1_280, 17));
    assert_eq!(sent, v6(PEER6, HOST6).hops(63).udp(1, 2, &[0; 1_232]).octets());
}

#[test]
fn packets_of_a_batch_leave_in_the_order_of_their_arrival() {
    let mut gateway = gateway();
    let packet = |n: u16| v4(PEER4, HOST4).udp(n, 2, b"data").octets();
    let mut frames: Vec<Frame> = (0..300).map(|n| Frame::holding(&packet(n))).collect();
    let mut out = Outbox::new(16);
    gateway.engine.process(&mut frames, Instant::from_secs(1), &mut out);
    for (n, frame) in frames.iter().enumerate() {
        assert_eq!(frame.verdict, Verdict::Forward);
        assert_eq!(frame.bytes()[40..42], (n as u16).to_be_bytes());
    }
}

#[test]
fn a_packet_with_df_that_is_too_big_is_refused_with_the_mtu_that_would_fit() {
    let mut gateway = gateway();
    let fits = v4(PEER4, HOST4).udp(1, 2, &[0; 1_452]);
    gateway.receives(fits);
    assert_eq!(gateway.sent().len(), 1_500);
    gateway.counted([("siit.v4_to_v6", 1)]);
    let too_big = v4(PEER4, HOST4).udp(1, 2, &[0; 1_453]).octets();
    gateway.receives(too_big.clone());
    let sent = gateway.sent();
    assert_eq!(sent[12..20], [[192, 0, 2, 254], [203, 0, 113, 2]].concat());
    assert_eq!((sent[20], sent[21]), (3, 4));
    assert_eq!(sent[26..28], 1_480u16.to_be_bytes());
    assert_eq!(sent[28..28 + 40], too_big[..40]);
    assert!(checksum_is_right(&sent));
    gateway.counted([("PacketTooBig", 1), ("siit.v4_to_v6", 1), ("icmp_errors.made", 1)]);
}

#[test]
fn header_fields_are_those_of_section_4_1() {
    let mut gateway = gateway();
    gateway.receives(v4(PEER4, HOST4).hops(17).tos(0xb9).identification(0x1234).udp(1, 2, b"12345"));
    let sent = gateway.sent();
    assert_eq!(sent[0..4], [0x6b, 0x90, 0, 0], "version, traffic class copied, flow label zero");
    assert_eq!(sent[4..8], [0, 13, 17, 16], "payload length, next header, hop limit one less");
}

#[test]
fn the_traffic_class_can_be_set_to_zero() {
    let mut gateway = siit(|config| {
        config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]);
        config.policy.traffic_class = HeaderByte::Set(0);
    });
    gateway.receives(v4(PEER4, HOST4).tos(0xff).udp(1, 2, b"data"));
    gateway.sends(v6(PEER6, HOST6).hops(63).tos(0).udp(1, 2, b"data"));
}

#[test]
fn a_ttl_that_runs_out_here_is_answered_with_time_exceeded() {
    for ttl in [0, 1] {
        let mut gateway = gateway();
        let packet = v4(PEER4, HOST4).hops(ttl).udp(1, 2, b"data").octets();
        gateway.receives(packet.clone());
        let sent = gateway.sent();
        assert_eq!((sent[20], sent[21]), (11, 0));
        assert_eq!(sent[28..], packet);
        gateway.counted([("HopLimitExceeded", 1), ("icmp_errors.made", 1)]);
    }
}

#[test]
fn an_illegal_source_is_dropped_silently() {
    for source in ["0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1"] {
        let mut gateway = gateway();
        gateway.receives(v4(source, HOST4).udp(1, 2, b"data"));
        gateway.sends_nothing();
        gateway.counted([("MartianSource", 1)]);
    }
}

#[test]
fn the_illegal_source_of_an_icmp_error_is_translated() {
    let mut gateway = gateway();
    let quote = v4(HOST4, PEER4).udp(1, 2, b"data").octets();
    gateway.receives(v4("127.0.0.1", HOST4).icmp(icmp4(3, 1, [0; 4], &quote)));
    let inner = v6(HOST6, PEER6).udp(1, 2, b"data").octets();
    gateway.sends(v6("2001:db8:64::7f00:1", HOST6).hops(63).icmp(icmp6(1, 0, [0; 4], &inner)));
}

#[test]
fn options_are_left_out() {
    let mut gateway = gateway();
    gateway.receives(v4(PEER4, HOST4).options(&[7, 7, 4, 0, 0, 0, 0, 0]).udp(1, 2, b"data"));
    gateway.sends(v6(PEER6, HOST6).hops(63).udp(1, 2, b"data"));
}

#[test]
fn an_expired_source_route_is_left_out_like_any_option() {
    for kind in [131, 137] {
        let mut gateway = gateway();
        let expired = [kind, 7, 8, 192, 0, 2, 1, 0];
        gateway.receives(v4(PEER4, HOST4).options(&expired).udp(1, 2, b"data"));
        gateway.sends(v6(PEER6, HOST6).hops(63).udp(1, 2, b"data"));
    }
}

#[test]
fn an_unexpired_source_route_is_refused_with_source_route_failed() {
    for kind in [131, 137] {
        let mut gateway = gateway();
        let unexpired = [kind, 7, 4, 192, 0, 2, 1, 0];
        let packet = v4(PEER4, HOST4).options(&unexpired).udp(1, 2, b"data").octets();
        gateway.receives(packet.clone());
        let sent = gateway.sent();
        assert_eq!((sent[20], sent[21]), (3, 5));
        assert_eq!(sent[28..], packet);
        gateway.counted([("SourceRoute", 1), ("icmp_errors.made", 1)]);
    }
}

#[test]
fn a_fragment_gets_a_fragment_header_with_its_offset_flag_and_identification() {
    let mut gateway = gateway();
    let whole = v4(PEER4, HOST4).udp(1, 2, &[7; 40]);
    let translated = v6(PEER6, HOST6).hops(63).udp(1, 2, &[7; 40]);
    gateway.receives(whole.clone().fragment(0xbeef, 0, true).part(0, 24));
    gateway.sends(translated.clone().fragment(0xbeef, 0, true).part(0, 24));
    gateway.receives(whole.fragment(0xbeef, 24, false).part(24, 48));
    gateway.sends(translated.fragment(0xbeef, 24, false).part(24, 48));
    gateway.counted([("siit.v4_to_v6", 2)]);
}

#[test]
fn a_fragmented_icmp_message_is_not_translated() {
    let mut gateway = gateway();
    gateway.receives(v4(PEER4, HOST4).echo(1, 1, &[0; 40]).fragment(5, 0, true).part(0, 24));
    gateway.receives(v4(PEER4, HOST4).echo(1, 1, &[0; 40]).fragment(5, 24, false).part(24, 48));
    gateway.sends_nothing();
    gateway.counted([("IcmpFragment", 2), ("siit.v4_to_v6", 2)]);
}

#[test]
fn icmp_types_without_counterpart_are_dropped_silently() {
    for kind in [4, 5, 6, 9, 10, 13, 14, 15, 16, 17, 18, 40] {
        let mut gateway = gateway();
        let quote = v4(HOST4, PEER4).udp(1, 2, b"data").octets();
        gateway.receives(v4(PEER4, HOST4).icmp(icmp4(kind, 0, [0; 4], &quote)));
        gateway.sends_nothing();
        assert_eq!(
            gateway.last,
            Verdict::Dropped(sixway_dataplane::DropReason::IcmpUntranslatable),
            "{kind}"
        );
    }
}

#[test]
fn igmp_is_dropped_silently() {
    let mut gateway = gateway();
    gateway.receives(v4(PEER4, HOST4).protocol(2, &[0x16, 0, 0, 0, 0, 0, 0, 0], None));
    gateway.sends_nothing();
    gateway.counted([("Igmp", 1)]);
}

#[test]
fn checksums_of_tcp_udp_udp_lite_and_dccp_follow_the_addresses() {
    let dccp = [0x12, 0x34, 0x43, 0x21, 4, 0, 0, 0, 0x40, 0, 0, 1, 0, 0, 0, 0];
    let udp_lite = [0x12, 0x34, 0x43, 0x21, 0, 0, 0, 0, 1, 2, 3, 4];
    let mut gateway = gateway();
    gateway.receives(v4(PEER4, HOST4).tcp(1, 2, 0x10, b"data"));
    gateway.sends(v6(PEER6, HOST6).hops(63).tcp(1, 2, 0x10, b"data"));
    gateway.receives(v4(PEER4, HOST4).udp(1, 2, b"data"));
    gateway.sends(v6(PEER6, HOST6).hops(63).udp(1, 2, b"data"));
    gateway.receives(v4(PEER4, HOST4).protocol(33, &dccp, Some(6)));
    gateway.sends(v6(PEER6, HOST6).hops(63).protocol(33, &dccp, Some(6)));
    gateway.receives(v4(PEER4, HOST4).protocol(136, &udp_lite, Some(6)));
    gateway.sends(v6(PEER6, HOST6).hops(63).protocol(136, &udp_lite, Some(6)));
}

#[test]
fn a_wrong_checksum_stays_wrong() {
    let mut gateway = gateway();
    let mut packet = v4(PEER4, HOST4).udp(1, 2, b"data").octets();
    *packet.last_mut().unwrap() ^= 1;
    gateway.receives(packet);
    assert!(!checksum_is_right(&gateway.sent()));
}

#[test]
fn a_missing_udp_checksum_is_computed() {
    let mut gateway = gateway();
    gateway.receives(v4(PEER4, HOST4).udp(1, 2, b"odd").without_checksum());
    gateway.sends(v6(PEER6, HOST6).hops(63).udp(1, 2, b"odd"));
}

#[test]
fn a_packet_without_udp_checksum_is_dropped_if_the_policy_says_so() {
    let mut gateway = siit(|config| {
        config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]);
        config.policy.udp_zero_checksum = UdpZeroChecksum::Drop;
    });
    gateway.receives(v4(PEER4, HOST4).udp(1, 2, b"data").without_checksum());
    assert_eq!(gateway.last, Verdict::Dropped(sixway_dataplane::DropReason::UdpChecksumZero));
    gateway.receives(v4(PEER4, HOST4).udp(1, 2, b"data"));
    assert_eq!(gateway.last, Verdict::Forward);
}

#[test]
fn a_first_fragment_without_udp_checksum_is_dropped_and_counted() {
    let mut gateway = gateway();
    gateway
        .receives(v4(PEER4, HOST4).udp(1, 2, &[0; 40]).without_checksum().fragment(5, 0, true).part(0, 24));
    assert_eq!(gateway.last, Verdict::Dropped(sixway_dataplane::DropReason::UdpChecksumZeroFragment));
}

#[test]
fn every_other_protocol_passes_untouched() {
    for protocol in [4, 41, 47, 50, 51, 89, 132, 253] {
        let mut gateway = gateway();
        let body: Vec<u8> = (0..40).collect();
        gateway.receives(v4(PEER4, HOST4).protocol(protocol, &body, None));
        gateway.sends(v6(PEER6, HOST6).hops(63).protocol(protocol, &body, None));
        gateway.counted([("siit.v4_to_v6", 1)]);
    }
}

/// A packet whose protocol IPv6 would read as a header of its own is not a packet of that protocol in IPv6.
#[test]
fn protocols_that_ipv6_would_read_as_its_own_headers_are_dropped() {
    for protocol in [0, 43, 44, 58, 60] {
        let mut gateway = gateway();
        let body: Vec<u8> = (0..40).collect();
        gateway.receives(v4(PEER4, HOST4).protocol(protocol, &body, None));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::ProtocolUntranslatable), "{protocol}");
    }
}

/// What such an error is about was not forwarded: it is copied as it is.
#[test]
fn the_protocol_of_a_quoted_packet_is_copied_whatever_it_is() {
    for protocol in [0, 43, 44, 60, 132] {
        let mut gateway = gateway();
        let body: Vec<u8> = (0..40).collect();
        let quote = v4(HOST4, PEER4).protocol(protocol, &body, None).octets();
        gateway.receives(v4(PEER4, HOST4).icmp(icmp4(3, 3, [0; 4], &quote)));
        let sent = gateway.sent();
        assert_eq!((sent[40], sent[48 + 6]), (1, protocol));
        assert_eq!(sent[88..], body);
    }
}

#[test]
fn a_discarded_packet_is_answered_with_administratively_prohibited_but_an_icmp_error_never() {
    let mut gateway = siit(|config| {
        config.prefix = Some(support::prefix("64:ff9b::/96"));
        config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]);
    });
    gateway.receives(v4("10.0.0.1", HOST4).udp(1, 2, b"data"));
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21]), (3, 13));
    assert_eq!(sent[12..16], GATEWAY4.parse::<std::net::Ipv4Addr>().unwrap().octets());
    gateway.counted([("NonGlobalWithWellKnownPrefix", 1), ("icmp_errors.made", 1)]);
    let quote = v4(HOST4, "10.0.0.1").udp(1, 2, b"data").octets();
    gateway.receives(v4("10.0.0.1", HOST4).icmp(icmp4(3, 1, [0; 4], &quote)));
    gateway.sends_nothing();
}

#[test]
fn every_address_of_the_prefix_is_translated() {
    let mut gateway = siit(|_| {});
    for four in
        ["1.0.0.1", "8.8.8.8", "10.77.0.9", "100.64.0.1", "172.31.255.254", "198.51.100.9", "223.255.255.254"]
    {
        let six = format!("2001:db8:64::{four}");
        gateway.receives(v4(PEER4, four).udp(1, 2, b"data"));
        gateway.sends(v6(PEER6, &six).hops(63).udp(1, 2, b"data"));
        gateway.receives(v4(four, PEER4).udp(1, 2, b"data"));
        gateway.sends(v6(&six, PEER6).hops(63).udp(1, 2, b"data"));
    }
}

/// What fragments carry, put together; each of them is as a fragment must be.
fn put_together(gateway: &mut Gateway, largest: usize, identification: u32) -> Vec<u8> {
    let mut octets = Vec::new();
    loop {
        let sent = gateway.sent();
        assert!(sent.len() <= largest, "{} octets", sent.len());
        assert_eq!((sent[6], sent[7], sent[40]), (44, 63, 17));
        assert_eq!(sent[44..48], identification.to_be_bytes());
        let place = u16::from_be_bytes([sent[42], sent[43]]);
        assert_eq!(usize::from(place & 0xfff8), octets.len());
        octets.extend(&sent[48..]);
        if place & 1 == 0 {
            gateway.sends_nothing();
            return octets;
        }
    }
}

#[test]
fn a_packet_without_df_over_1280_octets_is_fragmented() {
    let mut gateway = gateway();
    let data: Vec<u8> = (0..1_233u32).map(|n| n as u8).collect();
    gateway.receives(v4(PEER4, HOST4).may_fragment().identification(0xbeef).udp(1, 2, &data));
    let octets = put_together(&mut gateway, 1_280, 0xbeef);
    assert_eq!(octets, v6(PEER6, HOST6).udp(1, 2, &data).octets()[40..]);
    gateway.counted([("siit.v4_to_v6", 1), ("fragments.made", 2)]);
}

#[test]
fn the_threshold_of_fragmentation_can_be_raised() {
    let mut gateway = siit(|config| {
        config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]);
        config.policy.lowest_ipv6_mtu = 1_500;
    });
    gateway.receives(v4(PEER4, HOST4).may_fragment().identification(9).udp(1, 2, &[1; 1_452]));
    gateway.sends(v6(PEER6, HOST6).hops(63).udp(1, 2, &[1; 1_452]));
    gateway.receives(v4(PEER4, HOST4).may_fragment().identification(9).udp(1, 2, &[1; 1_453]));
    let octets = put_together(&mut gateway, 1_500, 9);
    assert_eq!(octets, v6(PEER6, HOST6).udp(1, 2, &[1; 1_453]).octets()[40..]);
}

#[test]
fn a_large_fragment_is_fragmented_further() {
    let mut gateway = gateway();
    let whole = v4(PEER4, HOST4).udp(1, 2, &[7; 3_000]);
    gateway.receives(whole.fragment(0xbeef, 0, true).part(0, 1_480));
    let (first, second) = (gateway.sent(), gateway.sent());
    assert_eq!((first[42..44].to_vec(), first.len()), (vec![0, 1], 1_280));
    assert_eq!(u16::from_be_bytes([second[42], second[43]]), 1_232 | 1, "more fragments follow the last");
    assert_eq!(second.len(), 48 + 1_480 - 1_232);
    gateway.sends_nothing();
}
