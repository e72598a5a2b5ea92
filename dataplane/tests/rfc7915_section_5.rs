//! From IPv6 to IPv4, clause by clause (RFC 7915 §5), and the addresses of §6.

use crate::support;
use crate::support::{Gateway, checksum_is_right, eam, icmp4, icmp6, siit, v4, v6};
use sixway_dataplane::mechanism::siit::dynamic_pool::DynamicPoolConfig;
use sixway_dataplane::translate::HeaderByte;
use sixway_dataplane::{DropReason, Frame, Instant, Outbox, Verdict};
use std::collections::HashSet;

/// The IPv6 host as both sides see it, the IPv4 host as both sides see it, and the gateway.
const HOST4: &str = "198.51.100.9";
const HOST6: &str = "2001:db8:1::1";
const PEER4: &str = "203.0.113.2";
const PEER6: &str = "2001:db8:64::cb00:7102";
const GATEWAY6: &str = "2001:db8::fe";

fn gateway() -> Gateway {
    siit(|config| config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]))
}

/// The Identification of an IPv4 packet.
fn identification(packet: &[u8]) -> u32 {
    u32::from(u16::from_be_bytes([packet[4], packet[5]]))
}

/// The packet that leaves is this one, whatever its Identification.
#[track_caller]
fn sends(gateway: &mut Gateway, expected: support::Build) {
    let sent = gateway.sent();
    let expected = expected.identification(identification(&sent)).octets();
    assert_eq!(support::hex(&sent), support::hex(&expected), "\nleft: sent, right: expected");
}

#[test]
fn df_is_clear_up_to_1260_octets_and_set_above() {
    let mut gateway = gateway();
    gateway.receives(v6(HOST6, PEER6).udp(1, 2, &[0; 1_232]));
    sends(&mut gateway, v4(HOST4, PEER4).hops(63).may_fragment().udp(1, 2, &[0; 1_232]));
    gateway.receives(v6(HOST6, PEER6).udp(1, 2, &[0; 1_233]));
    sends(&mut gateway, v4(HOST4, PEER4).hops(63).udp(1, 2, &[0; 1_233]));
}

#[test]
fn packets_of_a_batch_leave_in_the_order_of_their_arrival() {
    let mut gateway = gateway();
    let packet = |n: u16| v6(HOST6, PEER6).udp(n, 2, b"data").octets();
    let mut frames: Vec<Frame> = (0..300).map(|n| Frame::holding(&packet(n))).collect();
    gateway.engine.process(&mut frames, Instant::from_secs(1), &mut Outbox::new(16));
    for (n, frame) in frames.iter().enumerate() {
        assert_eq!(frame.verdict, Verdict::Forward);
        assert_eq!(frame.bytes()[20..22], (n as u16).to_be_bytes());
    }
}

#[test]
fn header_fields_are_those_of_section_5_1() {
    let mut gateway = gateway();
    gateway.receives(v6(HOST6, PEER6).hops(17).tos(0xb9).udp(1, 2, b"12345"));
    let sent = gateway.sent();
    assert_eq!(sent[0..4], [0x45, 0xb9, 0, 33], "version, no options, TOS copied, total length");
    assert_eq!(sent[6..10], [0, 0, 16, 17], "no flags, no offset, TTL one less, protocol");
}

#[test]
fn packets_that_may_be_fragmented_have_different_identifications() {
    let mut gateway = gateway();
    let seen: HashSet<u32> = (0..1_000)
        .map(|_| {
            gateway.receives(v6(HOST6, PEER6).udp(1, 2, b"data"));
            identification(&gateway.sent())
        })
        .collect();
    assert_eq!(seen.len(), 1_000);
}

#[test]
fn the_tos_octet_can_be_set_to_a_value() {
    let mut gateway = siit(|config| {
        config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]);
        config.policy.tos = HeaderByte::Set(0x2e);
    });
    gateway.receives(v6(HOST6, PEER6).tos(0xff).udp(1, 2, b"data"));
    sends(&mut gateway, v4(HOST4, PEER4).hops(63).tos(0x2e).may_fragment().udp(1, 2, b"data"));
}

#[test]
fn a_hop_limit_that_runs_out_here_is_answered_with_time_exceeded() {
    for hops in [0, 1] {
        let mut gateway = gateway();
        let packet = v6(HOST6, PEER6).hops(hops).udp(1, 2, b"data").octets();
        gateway.receives(packet.clone());
        let sent = gateway.sent();
        assert_eq!((sent[6], sent[40], sent[41]), (58, 3, 0));
        assert_eq!(sent[8..24], GATEWAY6.parse::<std::net::Ipv6Addr>().unwrap().octets());
        assert_eq!(sent[48..], packet);
        assert!(checksum_is_right(&sent));
        gateway.counted([("HopLimitExceeded", 1), ("icmp_errors.made", 1)]);
    }
}

#[test]
fn an_illegal_source_is_dropped_silently() {
    for source in ["::", "::1", "ff02::1", "fe80::1"] {
        let mut gateway = gateway();
        gateway.receives(v6(source, PEER6).udp(1, 2, b"data"));
        gateway.sends_nothing();
        gateway.counted([("MartianSource", 1)]);
    }
}

#[test]
fn an_illegal_embedded_source_is_dropped_silently() {
    for source in ["2001:db8:64::7f00:1", "2001:db8:64::e000:1", "2001:db8:64::ffff:ffff"] {
        let mut gateway = gateway();
        gateway.receives(v6(source, PEER6).udp(1, 2, b"data"));
        gateway.sends_nothing();
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::MartianSource), "{source}");
    }
}

#[test]
fn extension_headers_are_skipped_and_the_length_follows() {
    let mut gateway = gateway();
    let padding = [0, 0, 1, 4, 0, 0, 0, 0];
    let arrived_route = [0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let packet =
        v6(HOST6, PEER6).extension(0, &padding).extension(43, &arrived_route).extension(60, &padding);
    gateway.receives(packet.udp(1, 2, b"data"));
    sends(&mut gateway, v4(HOST4, PEER4).hops(63).may_fragment().udp(1, 2, b"data"));
}

#[test]
fn a_routing_header_with_segments_left_is_refused_and_pointed_at() {
    let mut gateway = gateway();
    let padding = [0, 0, 1, 4, 0, 0, 0, 0];
    let route = [0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    gateway.receives(v6(HOST6, PEER6).extension(60, &padding).extension(43, &route).udp(1, 2, b"data"));
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41]), (4, 0));
    assert_eq!(sent[44..48], (40u32 + 8 + 3).to_be_bytes());
    gateway.counted([("RoutingHeader", 1), ("icmp_errors.made", 1)]);
}

#[test]
fn a_fragment_keeps_offset_flag_and_the_low_half_of_its_identification() {
    let mut gateway = gateway();
    let whole = v6(HOST6, PEER6).udp(1, 2, &[7; 40]);
    let translated = v4(HOST4, PEER4).hops(63).udp(1, 2, &[7; 40]);
    gateway.receives(whole.clone().fragment(0xdead_beef, 0, true).part(0, 24));
    gateway.sends(translated.clone().fragment(0xbeef, 0, true).part(0, 24));
    gateway.receives(whole.fragment(0xdead_beef, 24, false).part(24, 48));
    gateway.sends(translated.fragment(0xbeef, 24, false).part(24, 48));
}

#[test]
fn a_fragment_may_be_fragmented_further_however_large() {
    let mut gateway = gateway();
    let whole = v6(HOST6, PEER6).udp(1, 2, &[7; 2_000]);
    gateway.receives(whole.fragment(5, 0, true).part(0, 1_400));
    let sent = gateway.sent();
    assert_eq!((sent.len(), sent[6]), (1_420, 0x20), "more fragments, and DF clear");
}

#[test]
fn an_atomic_fragment_becomes_a_whole_packet() {
    let mut gateway = gateway();
    gateway.receives(v6(HOST6, PEER6).fragment(0xdead_beef, 0, false).udp(1, 2, b"data"));
    gateway.sends(v4(HOST4, PEER4).hops(63).identification(0xbeef).may_fragment().udp(1, 2, b"data"));
}

#[test]
fn an_extension_header_behind_the_fragment_header_is_dropped_and_counted() {
    for number in [0, 43, 51, 60, 135] {
        let mut gateway = gateway();
        let body = [17, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 8, 0, 0];
        gateway.receives(v6(HOST6, PEER6).fragment(5, 0, true).protocol(number, &body, None));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::ExtensionAfterFragment), "{number}");
    }
}

#[test]
fn esp_behind_the_fragment_header_passes() {
    let mut gateway = gateway();
    gateway.receives(v6(HOST6, PEER6).fragment(5, 0, true).protocol(50, &[9; 24], None));
    gateway.sends(v4(HOST4, PEER4).hops(63).fragment(5, 0, true).protocol(50, &[9; 24], None));
}

#[test]
fn a_fragmented_icmp_message_is_not_translated() {
    let mut gateway = gateway();
    gateway.receives(v6(HOST6, PEER6).echo(1, 1, &[0; 40]).fragment(5, 0, true).part(0, 24));
    gateway.receives(v6(HOST6, PEER6).echo(1, 1, &[0; 40]).fragment(5, 24, false).part(24, 48));
    gateway.sends_nothing();
    gateway.counted([("IcmpFragment", 2), ("siit.v6_to_v4", 2)]);
}

#[test]
fn a_packet_over_1280_octets_that_is_too_big_is_refused_with_the_mtu_that_would_fit() {
    let mut gateway = support::gateway(|config| {
        config.limits.mtu4 = 1_400;
        config.siit.push(sixway_dataplane::mechanism::siit::SiitConfig {
            prefix: Some(support::prefix("2001:db8:64::/96")),
            eam: eam(&[("198.51.100.8/29", "2001:db8:1::/125")]),
            ..Default::default()
        });
    });
    gateway.receives(v6(HOST6, PEER6).udp(1, 2, &[0; 1_372]));
    assert_eq!(gateway.sent().len(), 1_400);
    gateway.receives(v6(HOST6, PEER6).udp(1, 2, &[0; 1_373]));
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41]), (2, 0));
    assert_eq!(sent[44..48], 1_420u32.to_be_bytes());
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::PacketTooBig));
}

#[test]
fn icmpv6_types_without_counterpart_are_dropped_silently() {
    for kind in [5, 100, 127, 130, 131, 132, 133, 134, 135, 136, 137, 143, 200] {
        let mut gateway = gateway();
        let quote = v6(PEER6, HOST6).udp(1, 2, b"data").octets();
        gateway.receives(v6(HOST6, PEER6).icmp(icmp6(kind, 0, [0; 4], &quote)));
        gateway.sends_nothing();
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::IcmpUntranslatable), "{kind}");
    }
}

#[test]
fn an_icmpv6_error_is_translated_with_the_packet_that_it_quotes() {
    let mut gateway = gateway();
    let arrived = v6(PEER6, HOST6).hops(40).udp(53, 4000, b"question").octets();
    gateway.receives(v6(HOST6, PEER6).icmp(icmp6(1, 4, [0; 4], &arrived)));
    let sent = gateway.sent();
    let as_sent = v4(PEER4, HOST4).hops(40).may_fragment().identification(identification(&sent[28..]));
    let quote = as_sent.udp(53, 4000, b"question").octets();
    let expected = v4(HOST4, PEER4).hops(63).may_fragment().identification(identification(&sent));
    assert_eq!(support::hex(&sent), support::hex(&expected.icmp(icmp4(3, 3, [0; 4], &quote)).octets()));
}

#[test]
fn checksums_of_tcp_udp_udp_lite_and_dccp_follow_the_addresses() {
    let dccp = [0x12, 0x34, 0x43, 0x21, 4, 0, 0, 0, 0x40, 0, 0, 1, 0, 0, 0, 0];
    let udp_lite = [0x12, 0x34, 0x43, 0x21, 0, 0, 0, 0, 1, 2, 3, 4];
    let mut gateway = gateway();
    let (from, to) = (v6(HOST6, PEER6), v4(HOST4, PEER4).hops(63).may_fragment());
    gateway.receives(from.clone().tcp(1, 2, 0x10, b"data"));
    sends(&mut gateway, to.clone().tcp(1, 2, 0x10, b"data"));
    gateway.receives(from.clone().udp(1, 2, b"data"));
    sends(&mut gateway, to.clone().udp(1, 2, b"data"));
    gateway.receives(from.clone().protocol(33, &dccp, Some(6)));
    sends(&mut gateway, to.clone().protocol(33, &dccp, Some(6)));
    gateway.receives(from.protocol(136, &udp_lite, Some(6)));
    sends(&mut gateway, to.protocol(136, &udp_lite, Some(6)));
}

#[test]
fn every_other_protocol_passes_untouched() {
    for protocol in [4, 41, 47, 50, 51, 89, 132, 253] {
        let mut gateway = gateway();
        let body: Vec<u8> = (0..40).collect();
        gateway.receives(v6(HOST6, PEER6).protocol(protocol, &body, None));
        sends(&mut gateway, v4(HOST4, PEER4).hops(63).may_fragment().protocol(protocol, &body, None));
    }
}

/// Next header 1 is not ICMPv6, and as protocol 1 it would be read as ICMPv4.
#[test]
fn icmpv4_behind_an_ipv6_header_is_dropped() {
    let mut gateway = gateway();
    gateway.receives(v6(HOST6, PEER6).protocol(1, &[8, 0, 0, 0, 0, 1, 0, 1], None));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::ProtocolUntranslatable));
}

/// RFC 7915 §5.6.
#[test]
fn every_destination_under_the_prefix_is_translated_and_no_other() {
    for last in [1, 77, 254] {
        for first in ["1.0.0", "100.64.9", "172.16.3", "198.51.101", "223.255.255"] {
            let mut gateway = gateway();
            let four = format!("{first}.{last}");
            gateway.receives(v6(HOST6, &format!("2001:db8:64::{four}")).udp(1, 2, b"data"));
            sends(&mut gateway, v4(HOST4, &four).hops(63).may_fragment().udp(1, 2, b"data"));
        }
    }
    for other in ["2001:db8:64:0:0:1::1", "2001:db8:65::1.0.0.1", "2001:4860::8", "64:ff9b::1.0.0.1"] {
        let mut gateway = gateway();
        gateway.receives(v6(HOST6, other).udp(1, 2, b"data"));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoMechanism), "{other}");
    }
}

#[test]
fn a_discarded_packet_is_answered_with_administratively_prohibited_but_an_icmp_error_never() {
    let mut gateway = siit(|config| {
        config.prefix = Some(support::prefix("64:ff9b::/96"));
        config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]);
    });
    gateway.receives(v6(HOST6, "64:ff9b::10.0.0.1").udp(1, 2, b"data"));
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41]), (1, 1));
    gateway.counted([("NonGlobalWithWellKnownPrefix", 1), ("icmp_errors.made", 1)]);
    let quote = v6("64:ff9b::10.0.0.1", HOST6).udp(1, 2, b"data").octets();
    gateway.receives(v6(HOST6, "64:ff9b::10.0.0.1").icmp(icmp6(1, 0, [0; 4], &quote)));
    gateway.sends_nothing();
}

#[test]
fn an_octet_u_that_is_not_zero_is_refused() {
    let mut gateway = siit(|config| config.prefix = Some(support::prefix("2001:db8:122:344::/64")));
    gateway
        .receives(v6("2001:db8:122:344:c6:3364:900::", "2001:db8:122:344:1cb:71:200::").udp(1, 2, b"data"));
    gateway.sends_nothing();
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::OctetUNotZero));
}

#[test]
fn an_error_from_an_address_without_mapping_comes_from_the_pool_of_rfc_6791() {
    let pool = ["192.0.2.100", "192.0.2.101"];
    let mut gateway = siit(|config| {
        config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]);
        config.icmp_source_pool = pool.map(|address| address.parse().unwrap()).to_vec();
    });
    let arrived = v6(PEER6, HOST6).udp(53, 4000, b"question").octets();
    let mut sources = HashSet::from([]);
    for router in 1..20 {
        let router = format!("2001:db8:ffff::{router}");
        gateway.receives(v6(&router, PEER6).icmp(icmp6(3, 0, [0; 4], &arrived)));
        let sent = gateway.sent();
        assert_eq!((sent[20], sent[21]), (11, 0));
        sources.insert(std::net::Ipv4Addr::new(sent[12], sent[13], sent[14], sent[15]).to_string());
    }
    assert_eq!(sources, HashSet::from(pool.map(str::to_owned)));
}

#[test]
fn any_other_packet_from_an_address_without_mapping_is_refused() {
    let mut gateway = gateway();
    gateway.receives(v6("2001:db8:ffff::1", PEER6).udp(1, 2, b"data"));
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41]), (1, 1));
    gateway.counted([("SourceUnmapped", 1), ("icmp_errors.made", 1)]);
}

#[test]
fn a_host_without_mapping_gets_an_address_from_the_dynamic_pool_and_is_reached_by_it() {
    let mut gateway =
        siit(|config| config.dynamic_pool = Some(DynamicPoolConfig::new("172.16.0.0/12".parse().unwrap())));
    gateway.receives(v6("2001:db8:ffff::1", PEER6).udp(1, 2, b"data"));
    let sent = gateway.sent();
    let address = std::net::Ipv4Addr::new(sent[12], sent[13], sent[14], sent[15]).to_string();
    assert!(address.starts_with("172."));
    gateway.receives(v4(PEER4, &address).udp(2, 1, b"answer"));
    gateway.sends(v6(PEER6, "2001:db8:ffff::1").hops(63).udp(2, 1, b"answer"));
}

#[test]
fn an_address_of_the_dynamic_pool_is_released_when_its_host_is_silent_however_much_it_is_sent() {
    let mut gateway =
        siit(|config| config.dynamic_pool = Some(DynamicPoolConfig::new("172.16.0.0/12".parse().unwrap())));
    let host = v6("2001:db8:ffff::1", PEER6).udp(1, 2, b"data");
    gateway.receives(host.clone());
    let sent = gateway.sent();
    let address = std::net::Ipv4Addr::new(sent[12], sent[13], sent[14], sent[15]).to_string();
    for minute in 0..125 {
        gateway.receives(v4(PEER4, &address).udp(2, 1, b"data"));
        assert_eq!(gateway.last == Verdict::Forward, minute < 124, "minute {minute}");
        gateway.waits(std::time::Duration::from_secs(60));
    }
    gateway.receives(host);
    assert_eq!(gateway.last, Verdict::Forward);
    gateway.receives(v4(PEER4, &address).udp(2, 1, b"data"));
    assert_eq!(gateway.last, Verdict::Forward, "the host has its address back");
}

#[test]
fn a_full_dynamic_pool_refuses_a_new_host_and_tells_it() {
    let mut gateway =
        siit(|config| config.dynamic_pool = Some(DynamicPoolConfig::new("172.16.0.0/30".parse().unwrap())));
    for host in ["2001:db8:ffff::1", "2001:db8:ffff::2"] {
        gateway.receives(v6(host, PEER6).udp(1, 2, b"data"));
        gateway.sent();
    }
    gateway.receives(v6("2001:db8:ffff::3", PEER6).udp(1, 2, b"data"));
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41]), (1, 3));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::DynamicPoolEmpty));
}

#[test]
fn a_packet_of_1280_octets_at_most_is_fragmented_for_a_smaller_ipv4_link() {
    let mut gateway = support::gateway(|config| {
        config.limits.mtu4 = 1_000;
        config.siit.push(sixway_dataplane::mechanism::siit::SiitConfig {
            prefix: Some(support::prefix("2001:db8:64::/96")),
            eam: eam(&[("198.51.100.8/29", "2001:db8:1::/125")]),
            ..Default::default()
        });
    });
    let data: Vec<u8> = (0..1_232u32).map(|n| n as u8).collect();
    gateway.receives(v6(HOST6, PEER6).udp(1, 2, &data));
    let (first, second) = (gateway.sent(), gateway.sent());
    assert_eq!((first[6..8].to_vec(), first.len()), (vec![0x20, 0], 996));
    assert_eq!((second[6..8].to_vec(), second.len()), (vec![0, 122], 20 + 1_240 - 976));
    assert_eq!(first[4..6], second[4..6]);
    let octets = [&first[20..], &second[20..]].concat();
    assert_eq!(octets, v4(HOST4, PEER4).udp(1, 2, &data).octets()[20..]);
    gateway.receives(v6(HOST6, PEER6).udp(1, 2, &[0; 1_233]));
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41]), (2, 0), "a larger one is refused");
    assert_eq!(sent[44..48], 1_280u32.to_be_bytes());
}

/// A datagram of IPv6 without checksum, which only a tunnel may send (RFC 6935).
#[test]
fn a_udp_datagram_without_checksum_gets_one_or_is_dropped() {
    let datagram = || v6(HOST6, PEER6).hops(9).udp(1, 2, b"odd");
    let mut gateway = gateway();
    gateway.receives(datagram().without_checksum());
    let sent = gateway.sent();
    gateway.receives(datagram());
    assert_eq!(sent[20..], gateway.sent()[20..], "as if it had had one");
    // Of a fragment the sum is not known; IPv4 needs none.
    let first = v6(HOST6, PEER6).udp(1, 2, &[7; 40]).without_checksum().fragment(5, 0, true).part(0, 24);
    gateway.receives(first);
    assert_eq!(gateway.sent()[26..28], [0, 0]);
    let mut strict = crate::support::siit(|config| {
        config.eam = crate::support::eam(&[("198.51.100.8/29", "2001:db8:1::/125")]);
        config.policy.udp_zero_checksum = sixway_dataplane::translate::UdpZeroChecksum::Drop;
    });
    strict.receives(datagram().without_checksum());
    assert_eq!(strict.last, Verdict::Dropped(DropReason::UdpChecksumZero));
    strict.sends_nothing();
    strict.receives(datagram());
    assert_eq!(strict.last, Verdict::Forward);
}

/// RFC 6864 §7: a host that compares the identifications of its own packets learns nothing of other hosts' traffic.
#[test]
fn packets_to_others_do_not_move_the_identifications_that_a_destination_gets() {
    let mut gateway = support::siit(|_| {});
    let mut identification = |destination: &str| {
        gateway.receives(v6("2001:db8:64::198.51.100.1", destination).udp(1, 2, b"data"));
        let sent = gateway.sent();
        u16::from_be_bytes([sent[4], sent[5]])
    };
    let before = identification("2001:db8:64::203.0.113.2");
    for other in 0..200 {
        identification(&format!("2001:db8:64::198.51.{other}.7"));
    }
    let moved = identification("2001:db8:64::203.0.113.2").wrapping_sub(before);
    assert!(moved < 6, "{moved}");
}
