//! NPTv6 (RFC 6296): packets of a site to the Internet, back, and to the site itself.

use crate::support::super_frame::{described, unfinished};
use crate::support::{Build, Gateway, checksum_is_right, gateway, icmp6, v6};
use proptest::prelude::*;
use sixway_dataplane::frame::{Ingress, Realm};
use sixway_dataplane::mechanism::npt66::{Npt66Config, Prefixes, PrefixesFault};
use sixway_dataplane::{Checksum, DropReason, Offload, SegmentKind, Verdict};
use sixway_wire::Prefix6;
use sixway_wire::checksum::Sum;
use std::net::Ipv6Addr;

/// RFC 6296 §3.6: a host of the site, and how the Internet sees it.
const HOST: &str = "fd01:203:405:1::1234";
const HOST_OUTSIDE: &str = "2001:db8:1:d550::1234";
/// Another host, of subnet 2.
const OTHER: &str = "fd01:203:405:2::5";
const OTHER_OUTSIDE: &str = "2001:db8:1:d551::5";
const PEER: &str = "2001:db8:ffff::9";

fn config(inside: &str, outside: &str) -> Npt66Config {
    let prefixes = Prefixes::new(inside.parse().unwrap(), outside.parse().unwrap()).unwrap();
    Npt66Config { prefixes, except: vec!["fd0e::/16".parse().unwrap()], ingress: None }
}

fn translator(inside: &str, outside: &str) -> Gateway {
    gateway(|engine| engine.others.push(config(inside, outside).into()))
}

/// The translator of figure 1.
fn figure_1() -> Gateway {
    translator("fd01:203:405::/48", "2001:db8:1::/48")
}

/// A packet comes in and is dropped for this reason; who is notified of it does not matter.
#[track_caller]
fn drops(gateway: &mut Gateway, packet: Build, reason: DropReason) {
    gateway.receives(packet);
    assert_eq!(gateway.last, Verdict::Dropped(reason));
    while gateway.waiting() > 0 {
        let _ = gateway.sent();
    }
}

#[test]
fn the_example_of_section_3_6_goes_out_and_comes_back() {
    let mut gateway = figure_1();
    gateway.receives(v6(HOST, PEER).udp(4000, 53, b"question"));
    gateway.sends(v6(HOST_OUTSIDE, PEER).hops(63).udp(4000, 53, b"question"));
    gateway.counted([("npt66.to_outside", 1)]);
    gateway.receives(v6(PEER, HOST_OUTSIDE).udp(53, 4000, b"answer"));
    gateway.sends(v6(PEER, HOST).hops(63).udp(53, 4000, b"answer"));
    gateway.counted([("npt66.to_inside", 1)]);
}

#[test]
fn a_connection_may_be_opened_from_outside_and_no_port_changes() {
    let mut gateway = figure_1();
    gateway.receives(v6(PEER, HOST_OUTSIDE).tcp(50_000, 22, 2, b""));
    gateway.sends(v6(PEER, HOST).hops(63).tcp(50_000, 22, 2, b""));
    gateway.receives(v6(HOST, PEER).tcp(22, 50_000, 0x12, b""));
    gateway.sends(v6(HOST_OUTSIDE, PEER).hops(63).tcp(22, 50_000, 0x12, b""));
}

#[test]
fn any_transport_passes_fragments_and_extension_headers_too() {
    let mut gateway = figure_1();
    let packets: [fn(&str, &str) -> Build; 6] = [
        |a, b| v6(a, b).echo(7, 1, b"ping"),
        |a, b| v6(a, b).protocol(132, &[9; 40], None),
        |a, b| v6(a, b).protocol(50, &[9; 40], None),
        |a, b| v6(a, b).extension(60, &[0, 0, 1, 4, 0, 0, 0, 0]).udp(1, 2, b"data"),
        |a, b| v6(a, b).udp(1, 2, &[7; 200]).fragment(99, 0, true).part(0, 64),
        |a, b| v6(a, b).udp(1, 2, &[7; 200]).fragment(99, 64, false).part(64, 208),
    ];
    for packet in packets {
        gateway.receives(packet(HOST, PEER));
        // The builder has computed the checksum of each again.
        gateway.sends(packet(HOST_OUTSIDE, PEER).hops(63));
    }
}

#[test]
fn prefixes_longer_than_48_bits_change_a_word_of_the_interface_identifier() {
    // §3.7: the /48 is extended with zeros. fd01 + 0203 + 0405 = 030a; 2001 + 0db8 + 0001 + aa00 = d7ba; 030a - d7ba = 2b4f.
    let mut gateway = translator("fd01:203:405::/48", "2001:db8:1:aa00::/56");
    gateway.receives(v6("fd01:203:405:7::1234", PEER).udp(1, 2, b"data"));
    gateway.sends(v6("2001:db8:1:aa07:2b4f::1234", PEER).hops(63).udp(1, 2, b"data"));
    gateway.receives(v6(PEER, "2001:db8:1:aa07:2b4f::1234").udp(1, 2, b"data"));
    gateway.sends(v6(PEER, "fd01:203:405:7::1234").hops(63).udp(1, 2, b"data"));
    // Subnets that the longer prefix has no bits for are not translated.
    drops(&mut gateway, v6("fd01:203:405:107::1234", PEER).udp(1, 2, b"data"), DropReason::NoMechanism);
}

#[test]
fn words_of_ones_are_passed_over_in_their_sequence() {
    let mut gateway = translator("fd01:203:405::/48", "2001:db8:1:aa00::/56");
    for (inside, outside) in [
        ("fd01:203:405:7:ffff::1234", "2001:db8:1:aa07:ffff:2b4f:0:1234"),
        ("fd01:203:405:7:ffff:ffff::1234", "2001:db8:1:aa07:ffff:ffff:2b4f:1234"),
        ("fd01:203:405:7:ffff:ffff:ffff:1234", "2001:db8:1:aa07:ffff:ffff:ffff:3d83"),
    ] {
        gateway.receives(v6(inside, PEER).udp(1, 2, b"data"));
        gateway.sends(v6(outside, PEER).hops(63).udp(1, 2, b"data"));
        gateway.receives(v6(PEER, outside).udp(1, 2, b"data"));
        gateway.sends(v6(PEER, inside).hops(63).udp(1, 2, b"data"));
    }
}

#[test]
fn a_sum_of_ones_becomes_zero() {
    let mut gateway = figure_1();
    // d54f + 2ab0 = ffff.
    gateway.receives(v6("fd01:203:405:2ab0::1", PEER).udp(1, 2, b"data"));
    gateway.sends(v6("2001:db8:1::1", PEER).hops(63).udp(1, 2, b"data"));
    gateway.receives(v6(PEER, "2001:db8:1::1").udp(1, 2, b"data"));
    gateway.sends(v6(PEER, "fd01:203:405:2ab0::1").hops(63).udp(1, 2, b"data"));
}

#[test]
fn subnet_ffff_is_refused_and_its_sender_told() {
    let mut gateway = figure_1();
    let out = v6("fd01:203:405:ffff::1", PEER).udp(1, 2, b"data").octets();
    gateway.receives(out.clone());
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::SourceUnmapped));
    gateway.sends(v6("2001:db8::fe", "fd01:203:405:ffff::1").icmp(icmp6(1, 1, [0; 4], &out)));
    let back = v6(PEER, "2001:db8:1:ffff::1").udp(1, 2, b"data").octets();
    gateway.receives(back.clone());
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::DestinationUnmapped));
    gateway.sends(v6("2001:db8::fe", PEER).icmp(icmp6(1, 3, [0; 4], &back)));
}

#[test]
fn an_interface_identifier_of_zeros_is_refused_where_it_would_have_to_change() {
    let mut gateway = translator("fd01:203:405::/48", "2001:db8:1:aa00::/56");
    let out = v6("fd01:203:405:7::", PEER).udp(1, 2, b"data").octets();
    gateway.receives(out.clone());
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::ZeroInterfaceIdentifier));
    gateway.sends(v6("2001:db8::fe", "fd01:203:405:7::").icmp(icmp6(4, 0, [0, 0, 0, 8], &out)));
    let back = v6(PEER, "2001:db8:1:aa07::").udp(1, 2, b"data").octets();
    gateway.receives(back.clone());
    gateway.sends(v6("2001:db8::fe", PEER).icmp(icmp6(4, 0, [0, 0, 0, 24], &back)));
    // One of ones has no word that could change.
    gateway.receives(v6("fd01:203:405:7:ffff:ffff:ffff:ffff", PEER).udp(1, 2, b"data"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::SourceUnmapped));
    // With a /48 the identifier is not touched, whatever it is.
    let mut gateway = figure_1();
    gateway.receives(v6("fd01:203:405:1::", PEER).udp(1, 2, b"data"));
    gateway.sends(v6("2001:db8:1:d550::", PEER).hops(63).udp(1, 2, b"data"));
}

#[test]
fn a_packet_to_the_sites_outside_address_is_turned_around() {
    let mut gateway = figure_1();
    gateway.receives(v6(HOST, OTHER_OUTSIDE).udp(4000, 53, b"question"));
    gateway.sends(v6(HOST_OUTSIDE, OTHER).hops(63).udp(4000, 53, b"question"));
    gateway.counted([("npt66.to_outside", 1), ("npt66.to_inside", 1)]);
    gateway.receives(v6(OTHER, HOST_OUTSIDE).udp(53, 4000, b"answer"));
    gateway.sends(v6(OTHER_OUTSIDE, HOST).hops(63).udp(53, 4000, b"answer"));
    // The error of the one that was asked tells the one that has asked.
    let arrived = v6(HOST_OUTSIDE, OTHER).hops(63).udp(4000, 53, b"question").octets();
    let as_sent = v6(HOST, OTHER_OUTSIDE).hops(63).udp(4000, 53, b"question").octets();
    gateway.receives(v6(OTHER, HOST_OUTSIDE).icmp(icmp6(1, 4, [0; 4], &arrived)));
    gateway.sends(v6(OTHER_OUTSIDE, HOST).hops(63).icmp(icmp6(1, 4, [0; 4], &as_sent)));
}

#[test]
fn an_error_and_what_it_quotes_are_renumbered() {
    let mut gateway = figure_1();
    let outside = v6(HOST_OUTSIDE, PEER).hops(60).udp(4000, 53, &[3; 100]).octets();
    let inside = v6(HOST, PEER).hops(60).udp(4000, 53, &[3; 100]).octets();
    gateway.receives(v6("2001:db8:aaaa::1", HOST_OUTSIDE).icmp(icmp6(2, 0, [0, 0, 5, 0], &outside)));
    gateway.sends(v6("2001:db8:aaaa::1", HOST).hops(63).icmp(icmp6(2, 0, [0, 0, 5, 0], &inside)));
    // A router of the site tells a host outside.
    let outside = v6(PEER, HOST_OUTSIDE).hops(60).udp(53, 4000, b"answer").octets();
    let inside = v6(PEER, HOST).hops(60).udp(53, 4000, b"answer").octets();
    gateway.receives(v6(OTHER, PEER).icmp(icmp6(1, 0, [0; 4], &inside)));
    gateway.sends(v6(OTHER_OUTSIDE, PEER).hops(63).icmp(icmp6(1, 0, [0; 4], &outside)));
    // The site gets no error of what it has not sent.
    let foreign = v6(PEER, "2001:db8:bbbb::1").udp(1, 2, b"data").octets();
    gateway.receives(v6("2001:db8:aaaa::1", HOST_OUTSIDE).icmp(icmp6(1, 0, [0; 4], &foreign)));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::QuoteUnusable));
}

#[test]
fn the_sites_own_destinations_and_foreign_sources_are_not_claimed() {
    let mut gateway = figure_1();
    drops(&mut gateway, v6(HOST, "fd0e::1").udp(1, 2, b"data"), DropReason::NoMechanism);
    drops(&mut gateway, v6(HOST, OTHER).udp(1, 2, b"data"), DropReason::NoMechanism);
    drops(&mut gateway, v6("fd99::1", PEER).udp(1, 2, b"data"), DropReason::NoMechanism);
    // The gateway's own address is the gateway's.
    gateway.receives(v6(HOST, "2001:db8::fe").echo(1, 1, b"ping"));
    gateway.sends(v6("2001:db8::fe", HOST).hops(64).echo_reply(1, 1, b"ping"));
}

#[test]
fn nobody_outside_has_an_outside_address() {
    let mut gateway = figure_1();
    drops(&mut gateway, v6(OTHER_OUTSIDE, HOST_OUTSIDE).udp(1, 2, b"data"), DropReason::SourceUnmapped);
}

#[test]
fn inside_sources_count_only_where_they_come_in() {
    let only = Npt66Config {
        ingress: Some(Ingress::Device(Realm(3))),
        ..config("fd01:203:405::/48", "2001:db8:1::/48")
    };
    let mut gateway = gateway(|engine| engine.others.push(only.into()));
    drops(&mut gateway, v6(HOST, PEER).udp(1, 2, b"data"), DropReason::NoMechanism);
    drops(&mut gateway, v6(HOST, OTHER_OUTSIDE).udp(1, 2, b"data"), DropReason::SourceUnmapped);
}

#[test]
fn of_two_sites_the_longer_prefix_has_the_packet() {
    let mut gateway = gateway(|engine| {
        engine.others.push(config("fd01:203::/32", "3fff:5::/32").into());
        engine.others.push(config("fd01:203:405::/48", "2001:db8:1::/48").into());
    });
    gateway.receives(v6(HOST, PEER).udp(1, 2, b"data"));
    gateway.sends(v6(HOST_OUTSIDE, PEER).hops(63).udp(1, 2, b"data"));
}

#[test]
fn the_hop_limit_and_the_links_mtu_are_judged() {
    let mut gateway = gateway(|engine| {
        engine.limits.mtu6 = 1_400;
        engine.others.push(config("fd01:203:405::/48", "2001:db8:1::/48").into());
    });
    drops(&mut gateway, v6(HOST, PEER).hops(1).udp(1, 2, b"data"), DropReason::HopLimitExceeded);
    gateway.receives(v6(HOST, PEER).udp(1, 2, &[0; 1_352]));
    gateway.sends(v6(HOST_OUTSIDE, PEER).hops(63).udp(1, 2, &[0; 1_352]));
    let large = v6(HOST, PEER).udp(1, 2, &[0; 1_353]).octets();
    gateway.receives(large.clone());
    let told = v6("2001:db8::fe", HOST).icmp(icmp6(2, 0, 1_400_u32.to_be_bytes(), &large[..1_232]));
    gateway.sends(told);
}

#[test]
fn a_gso_packet_passes_whole_with_its_checksum_unfinished() {
    let mut gateway = figure_1();
    let frame = described(SegmentKind::Tcp, 1_200);
    gateway.receives_with(unfinished(v6(HOST, PEER).tcp(1, 2, 0x10, &[5; 6_000])), frame);
    let (sent, offload) = gateway.sent_with();
    assert_eq!(sent, unfinished(v6(HOST_OUTSIDE, PEER).hops(63).tcp(1, 2, 0x10, &[5; 6_000])));
    assert_eq!(offload, Offload { transport: 40, ..frame });
    assert_eq!(offload.checksum, Checksum::Partial);
}

#[test]
fn prefixes_that_cannot_be_translated_are_reported() {
    let new = |inside: &str, outside: &str| Prefixes::new(inside.parse().unwrap(), outside.parse().unwrap());
    let long: Prefix6 = "2001:db8::/65".parse().unwrap();
    assert_eq!(new("fd00::/48", "2001:db8::/65"), Err(PrefixesFault::TooLong(long)));
    assert_eq!(new("fd00::/48", "fd00::/40"), Err(PrefixesFault::Overlap));
    let multicast: Prefix6 = "ff00::/48".parse().unwrap();
    assert_eq!(new("ff00::/48", "2001:db8::/48"), Err(PrefixesFault::NotUnicast(multicast)));
    let both = new("fd01:203:405::/48", "2001:db8:1:aa00::/56").unwrap();
    assert_eq!((both.inside().to_string(), both.outside().length()), ("fd01:203:405::/56".into(), 56));
}

/// Two prefixes that can be translated to one another.
fn two_prefixes() -> impl Strategy<Value = (Prefix6, Prefix6)> {
    let prefix = |top: u128| {
        (any::<u128>(), 8_u8..=64).prop_map(move |(bits, length)| {
            Prefix6::holding(Ipv6Addr::from_bits(top << 120 | bits >> 8), length)
        })
    };
    (prefix(0xfd), prefix(0x24))
}

proptest! {
    #[test]
    fn what_goes_out_comes_back_and_no_sum_changes((inside, outside) in two_prefixes(), host: u128, ones in 0_u32..=4) {
        let prefixes = Prefixes::new(inside, outside).unwrap();
        let bits = host & !prefixes.inside().mask() | prefixes.inside().address().to_bits();
        // Words of ones are as likely as others.
        let source = Ipv6Addr::from_bits(bits | (u128::from(u64::MAX) & !(u128::from(u64::MAX) >> (16 * ones))));
        let except = Vec::new();
        let mut gateway = gateway(|engine| engine.others.push(Npt66Config { prefixes, except, ingress: None }.into()));
        let text = source.to_string();
        gateway.receives(v6(&text, PEER).udp(1, 2, b"data"));
        if let Verdict::Dropped(reason) = gateway.last {
            let ones = if prefixes.inside().length() <= 48 { source.segments()[3] == 0xffff } else { ones == 4 };
            prop_assert!(ones || reason == DropReason::ZeroInterfaceIdentifier, "{source}: {reason:?}");
            return Ok(());
        }
        let sent = gateway.sent();
        prop_assert!(checksum_is_right(&sent));
        let image = Ipv6Addr::from_bits(u128::from_be_bytes(*sent[8..].first_chunk().unwrap()));
        prop_assert!(prefixes.outside().contains(image));
        prop_assert_eq!(Sum::ZERO.ipv6(source).fold() % 0xffff, Sum::ZERO.ipv6(image).fold() % 0xffff);
        // §3.7: an identifier that has become all zeros is refused on the way back.
        if prefixes.inside().length() <= 48 || image.to_bits() as u64 != 0 {
            gateway.receives(v6(PEER, &image.to_string()).udp(2, 1, b"data"));
            let expected = v6(PEER, &text).hops(63).udp(2, 1, b"data").octets();
            prop_assert_eq!(gateway.sent(), expected);
        }
    }
}
