//! Every row of the tables of RFC 7915 §4.2 and §5.2, the arithmetic of MTUs, quotes and extensions.

use super::*;
use crate::DropReason;
use crate::frame::{Frame, Offload};
use crate::limits::Limits;
use crate::parse::parse;
use crate::samples::{header_sealed, icmp, is_sound, seal, tcp, udp, v4, v6};
use crate::translate::{HeaderByte, Policy};
use crate::verdict::Quoted;
use proptest::prelude::*;
use sixway_wire::checksum::Sum;
use sixway_wire::{Endpoint4, Endpoint6, protocol};

/// The host that the error goes to, the one it is about, and the router that sent it, in both families.
const HOST4: &str = "198.51.100.1";
const PEER4: &str = "203.0.113.5";
const ROUTER4: &str = "192.0.2.9";
const HOST6: &str = "2001:db8::1";
const PEER6: &str = "2001:db8:64::203.0.113.5";
const ROUTER6: &str = "2001:db8:64::192.0.2.9";
/// The inside port or identifier, and the outside one.
const INSIDE: u16 = 4_000;
const OUTSIDE: u16 = 50_000;

fn quoted_v6(keep_ports: bool) -> Quoted {
    Quoted::V6 {
        source: Endpoint6::new(HOST6.parse().unwrap(), INSIDE),
        destination: Endpoint6::new(PEER6.parse().unwrap(), 53),
        keep_ports,
    }
}

fn quoted_v4(keep_ports: bool) -> Quoted {
    Quoted::V4 {
        source: Endpoint4::new(PEER4.parse().unwrap(), 53),
        destination: Endpoint4::new(HOST4.parse().unwrap(), OUTSIDE),
        keep_ports,
    }
}

/// Translates an error that reached us from IPv4, or says why not.
fn to_v6_with(
    octets: &[u8],
    keep_ports: bool,
    policy: &Policy,
    limits: Limits,
) -> Result<Vec<u8>, DropReason> {
    let mut frame = Frame::holding(octets);
    let packet = parse(octets).unwrap();
    let (source, destination) = (ROUTER6.parse().unwrap(), HOST6.parse().unwrap());
    let quoted = quoted_v6(keep_ports);
    let result = error_v4_to_v6(
        &mut frame,
        &packet,
        super::Envelope { source, destination, hops: packet.hops.saturating_sub(1) },
        quoted,
        policy,
        &limits,
    );
    if result.is_err() {
        assert_eq!(frame.bytes(), octets, "what is refused is left alone");
    }
    result.map(|()| {
        assert!(is_sound(frame.bytes()), "{frame:?}");
        assert_eq!(frame.offload, Offload { transport: 40, ..Offload::default() });
        assert!(frame.len() <= 1_280);
        frame.bytes().to_vec()
    })
}

fn to_v4_with(
    octets: &[u8],
    keep_ports: bool,
    policy: &Policy,
    limits: Limits,
) -> Result<Vec<u8>, DropReason> {
    let mut frame = Frame::holding(octets);
    let packet = parse(octets).unwrap();
    let (source, destination) = (ROUTER4.parse().unwrap(), PEER4.parse().unwrap());
    let quoted = quoted_v4(keep_ports);
    let result = error_v6_to_v4(
        &mut frame,
        &packet,
        super::Envelope { source, destination, hops: packet.hops.saturating_sub(1) },
        quoted,
        policy,
        &limits,
    );
    if result.is_err() {
        assert_eq!(frame.bytes(), octets, "what is refused is left alone");
    }
    result.map(|()| {
        assert!(is_sound(frame.bytes()), "{frame:?}");
        assert_eq!(frame.offload, Offload { transport: 20, ..Offload::default() });
        assert!(frame.len() <= 576);
        frame.bytes().to_vec()
    })
}

fn to_v6(octets: &[u8]) -> Result<Vec<u8>, DropReason> {
    to_v6_with(octets, true, &Policy::default(), Limits::default())
}

fn to_v4(octets: &[u8]) -> Result<Vec<u8>, DropReason> {
    to_v4_with(octets, true, &Policy::default(), Limits::default())
}

/// A packet that HOST sent to PEER, as it looked in IPv4, and as it looked in IPv6 coming the other way.
fn sent4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    seal(v4(HOST4, PEER4, protocol, payload))
}

fn sent6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    v6(PEER6, HOST6, next_header, payload)
}

fn error4(kind: u8, code: u8, rest: [u8; 4], body: &[u8]) -> Vec<u8> {
    seal(v4(ROUTER4, HOST4, protocol::ICMPV4, &icmp(kind, code, rest, body)))
}

fn error6(kind: u8, code: u8, rest: [u8; 4], body: &[u8]) -> Vec<u8> {
    seal(v6(ROUTER6, PEER6, protocol::ICMPV6, &icmp(kind, code, rest, body)))
}

fn udp4() -> Vec<u8> {
    sent4(protocol::UDP, &udp(OUTSIDE, 53, 40))
}

fn udp6() -> Vec<u8> {
    seal(sent6(protocol::UDP, &udp(53, INSIDE, 40)))
}

#[test]
fn every_icmpv4_type_and_code_becomes_what_section_4_2_says() {
    for kind in 0..=255u8 {
        for code in 0..=255u8 {
            if matches!(kind, 0 | 8) {
                continue;
            }
            let expected = match (kind, code) {
                (3, 0 | 1 | 5 | 6 | 7 | 8 | 11 | 12) => Some((1, 0, [0; 4])),
                (3, 2) => Some((4, 1, [0, 0, 0, 6])),
                (3, 3) => Some((1, 4, [0; 4])),
                (3, 4) => Some((2, 0, [0, 0, 5, 0])), // MTU 0 and a small packet: 1,280
                (3, 9 | 10 | 13 | 15) => Some((1, 1, [0; 4])),
                (11, code) => Some((3, code, [0; 4])),
                (12, 0 | 2) => Some((4, 0, [0; 4])),
                _ => None,
            };
            let translated = to_v6(&error4(kind, code, [0; 4], &udp4()));
            match expected {
                Some((kind6, code6, rest)) => {
                    let translated = translated.unwrap();
                    assert_eq!(translated[40..42], [kind6, code6], "from {kind}/{code}");
                    assert_eq!(translated[44..48], rest, "from {kind}/{code}");
                }
                None => {
                    assert_eq!(translated, Err(DropReason::IcmpUntranslatable), "from {kind}/{code}")
                }
            }
        }
    }
}

#[test]
fn every_icmpv6_type_and_code_becomes_what_section_5_2_says() {
    for kind in 0..=255u8 {
        for code in 0..=255u8 {
            let expected = match (kind, code) {
                (1, 0 | 2 | 3) => Some((3, 1, [0; 4])),
                (1, 1) => Some((3, 10, [0; 4])),
                (1, 4) => Some((3, 3, [0; 4])),
                (2, _) => Some((3, 4, [0, 0, 0, 68])), // MTU 0: the least there is
                (3, code) => Some((11, code, [0; 4])),
                (4, 0) => Some((12, 0, [0; 4])),
                (4, 1) => Some((3, 2, [0; 4])),
                _ => None,
            };
            let translated = to_v4(&error6(kind, code, [0; 4], &udp6()));
            match expected {
                Some((kind4, code4, rest)) => {
                    let translated = translated.unwrap();
                    assert_eq!(translated[20..22], [kind4, code4], "from {kind}/{code}");
                    assert_eq!(translated[24..28], rest, "from {kind}/{code}");
                }
                None => {
                    assert_eq!(translated, Err(DropReason::IcmpUntranslatable), "from {kind}/{code}")
                }
            }
        }
    }
}

#[test]
fn every_pointer_becomes_what_figure_3_says() {
    let listed = [(0, 0), (1, 1), (2, 4), (3, 4), (8, 7), (9, 6), (12, 8), (13, 8), (14, 8), (15, 8)];
    let listed: Vec<(u8, u8)> = listed.into_iter().chain((16..20).map(|at| (at, 24))).collect();
    for pointer in 0..=255u8 {
        for code in [0, 2] {
            let translated = to_v6(&error4(12, code, [pointer, 0, 0, 0], &udp4()));
            match listed.iter().find(|(from, _)| *from == pointer) {
                Some((_, to)) => assert_eq!(translated.unwrap()[40..48][4..], [0, 0, 0, *to]),
                None => assert_eq!(translated, Err(DropReason::IcmpUntranslatable)),
            }
        }
    }
}

#[test]
fn every_pointer_becomes_what_figure_6_says() {
    let listed = [(0, 0), (1, 1), (4, 2), (5, 2), (6, 9), (7, 8)];
    let listed: Vec<(u32, u8)> =
        listed.into_iter().chain((8..24).map(|at| (at, 12))).chain((24..40).map(|at| (at, 16))).collect();
    for pointer in (0..100).chain([256, 0x0100_0000, u32::MAX]) {
        let translated = to_v4(&error6(4, 0, pointer.to_be_bytes(), &udp6()));
        match listed.iter().find(|(from, _)| *from == pointer) {
            Some((_, to)) => assert_eq!(translated.unwrap()[24..28], [*to, 0, 0, 0]),
            None => assert_eq!(translated, Err(DropReason::IcmpUntranslatable)),
        }
    }
}

#[test]
fn fragmentation_needed_is_bounded_by_both_links_and_never_below_1280() {
    for (mtu, mtu4, mtu6, expected) in [
        (1_400u16, 1_500, 1_500, 1_420u32),
        (1_500, 1_500, 1_500, 1_500),
        (1_500, 1_400, 1_500, 1_420),
        (1_260, 1_500, 1_500, 1_280),
        (1, 1_500, 1_500, 1_280),
        (576, 1_500, 1_500, 1_280),
        (65_535, 65_535, 65_535, 65_535),
        (65_535, 68, 65_535, 1_280),
    ] {
        let [high, low] = mtu.to_be_bytes();
        let error = error4(3, 4, [0, 0, high, low], &udp4());
        let translated = to_v6_with(&error, true, &Policy::default(), Limits { mtu4, mtu6 }).unwrap();
        assert_eq!(translated[44..48], expected.to_be_bytes(), "MTU {mtu}, links {mtu4} and {mtu6}");
    }
}

#[test]
fn without_an_mtu_the_plateau_below_the_quoted_length_is_reported() {
    let limits = Limits { mtu4: 65_535, mtu6: 65_535 };
    for (length, expected) in [
        (65_535u16, 32_020u32),
        (32_001, 32_020),
        (32_000, 17_934),
        (9_000, 8_186),
        (8_166, 4_372),
        (2_003, 2_022),
        (1_500, 1_512),
        (1_493, 1_512),
        (1_492, 1_280),
        (60, 1_280),
    ] {
        let mut quote = udp4();
        quote[2..4].copy_from_slice(&length.to_be_bytes());
        let error = error4(3, 4, [0; 4], &quote);
        let translated = to_v6_with(&error, true, &Policy::default(), limits).unwrap();
        assert_eq!(translated[44..48], expected.to_be_bytes(), "quoted length {length}");
    }
}

#[test]
fn packet_too_big_loses_20_octets_or_28_with_a_fragment_header_and_never_underflows() {
    let header = [protocol::UDP, 0, 0, 1, 0, 0, 0, 9];
    let fragment = sent6(protocol::FRAGMENT, &[&header[..], &udp(53, INSIDE, 40)].concat());
    for (mtu, mtu4, mtu6, plain, with_header) in [
        (1_500u32, 1_500, 1_500, 1_480u16, 1_472u16),
        (1_280, 1_500, 1_500, 1_260, 1_252),
        (1_500, 1_400, 1_500, 1_400, 1_400),
        (9_000, 9_000, 1_400, 1_380, 1_372),
        (0, 1_500, 1_500, 68, 68),
        (19, 1_500, 1_500, 68, 68),
        (20, 1_500, 1_500, 68, 68),
        (u32::MAX, 65_535, 65_535, 65_515, 65_507),
    ] {
        for (quote, expected) in [(&udp6(), plain), (&fragment, with_header)] {
            let error = error6(2, 0, mtu.to_be_bytes(), quote);
            let translated = to_v4_with(&error, true, &Policy::default(), Limits { mtu4, mtu6 }).unwrap();
            let [high, low] = expected.to_be_bytes();
            assert_eq!(translated[24..28], [0, 0, high, low], "MTU {mtu}, links {mtu4} and {mtu6}");
        }
    }
}

#[test]
fn the_outer_header_follows_the_policy_and_the_hop_limit_is_one_less() {
    let mut error = error4(11, 0, [0; 4], &udp4());
    (error[1], error[8]) = (0xb8, 17);
    let error = header_sealed(error);
    let translated = to_v6(&error).unwrap();
    assert_eq!(translated[..4], [0x6b, 0x80, 0, 0]);
    assert_eq!(translated[6..8], [protocol::ICMPV6, 16]);
    let set =
        Policy { traffic_class: HeaderByte::Set(0x20), tos: HeaderByte::Set(0x40), ..Policy::default() };
    let translated = to_v6_with(&error, true, &set, Limits::default()).unwrap();
    assert_eq!(translated[..4], [0x62, 0, 0, 0]);

    let mut error = error6(3, 0, [0; 4], &udp6());
    (error[0], error[1], error[7]) = (0x6b, 0x81, 17);
    let translated = to_v4(&error).unwrap();
    assert_eq!(translated[..2], [0x45, 0xb8]);
    assert_eq!(translated[6..10], [0, 0, 16, protocol::ICMPV4], "DF is clear");
    assert_eq!(to_v4_with(&error, true, &set, Limits::default()).unwrap()[1], 0x40);
}

#[test]
fn an_error_at_its_last_hop_is_not_forwarded() {
    let mut error = error4(11, 0, [0; 4], &udp4());
    error[8] = 1;
    assert_eq!(to_v6(&header_sealed(error)), Err(DropReason::HopLimitExceeded));
    let mut error = error6(3, 0, [0; 4], &udp6());
    error[7] = 1;
    assert_eq!(to_v4(&error), Err(DropReason::HopLimitExceeded));
}

#[test]
fn the_quoted_packet_is_the_very_packet_that_was_sent() {
    for (protocol, data) in [
        (protocol::UDP, udp(OUTSIDE, 53, 40)),
        (protocol::TCP, tcp(OUTSIDE, 53, 40)),
        (protocol::UDP_LITE, udp(OUTSIDE, 53, 40)),
        (protocol::ICMPV4, icmp(8, 0, [0xc3, 0x50, 0, 1], b"data")),
    ] {
        let translated = to_v6_with(
            &error4(11, 0, [0; 4], &sent4(protocol, &data)),
            false,
            &Policy::default(),
            Limits::default(),
        )
        .unwrap();
        assert!(is_sound(&translated[48..]), "protocol {protocol}");
        let quoted = parse(&translated[48..]).unwrap();
        assert_eq!(quoted.hops, 64, "the quoted hop limit stays");
        let at = 48 + usize::from(quoted.transport_at);
        if protocol == protocol::ICMPV4 {
            assert_eq!(translated[at], 128);
            assert_eq!(translated[at + 4..at + 6], INSIDE.to_be_bytes());
        } else {
            assert_eq!(translated[at..at + 4], [&INSIDE.to_be_bytes()[..], &[0, 53]].concat());
        }
    }
    for (next_header, data) in [
        (protocol::UDP, udp(53, INSIDE, 40)),
        (protocol::TCP, tcp(53, INSIDE, 40)),
        (protocol::UDP_LITE, udp(53, INSIDE, 40)),
        (protocol::ICMPV6, icmp(129, 0, [0x0f, 0xa0, 0, 1], b"data")),
    ] {
        let error = error6(1, 4, [0; 4], &seal(sent6(next_header, &data)));
        let translated = to_v4_with(&error, false, &Policy::default(), Limits::default()).unwrap();
        assert!(is_sound(&translated[28..]), "next header {next_header}");
        if next_header == protocol::ICMPV6 {
            assert_eq!(translated[48], 0);
            assert_eq!(translated[52..54], OUTSIDE.to_be_bytes());
        } else {
            assert_eq!(translated[48..52], [&[0, 53], &OUTSIDE.to_be_bytes()[..]].concat());
        }
    }
}

#[test]
fn a_truncated_quote_keeps_the_length_and_checksum_of_the_whole() {
    let whole = sent4(protocol::UDP, &udp(OUTSIDE, 53, 1_000));
    let full = to_v6(&error4(3, 3, [0; 4], &whole)).unwrap();
    let cut = to_v6(&error4(3, 3, [0; 4], &whole[..28])).unwrap();
    assert_eq!(cut.len(), 48 + 48);
    assert_eq!(cut[48..], full[48..96]);
    assert_eq!(cut[52..54], 1_008u16.to_be_bytes());

    let whole = seal(sent6(protocol::TCP, &tcp(53, INSIDE, 1_000)));
    let full = to_v4(&error6(1, 4, [0; 4], &whole)).unwrap();
    let cut = to_v4(&error6(1, 4, [0; 4], &whole[..60])).unwrap();
    assert_eq!(cut[28..], full[28..68]);
    assert_eq!(cut[30..32], 1_040u16.to_be_bytes());
}

#[test]
fn a_quoted_fragment_keeps_its_place_and_identification() {
    let mut fragment = v4(HOST4, PEER4, protocol::UDP, &[7; 80]);
    fragment[6..8].copy_from_slice(&[0x20, 0xb9]);
    let error = error4(11, 1, [0; 4], &fragment);
    let translated = to_v6(&error).unwrap();
    assert_eq!(translated[52..55], [0, 88, protocol::FRAGMENT]);
    assert_eq!(translated[88..96], [protocol::UDP, 0, 0x05, 0xc9, 0, 0, 0x12, 0x34]);
    assert_eq!(translated[96..], [7; 80]);
    let natted = to_v6_with(&error, false, &Policy::default(), Limits::default());
    assert_eq!(natted, Err(DropReason::QuoteUnusable), "a NAT has no port to go by");

    let header = [protocol::TCP, 0, 0x05, 0xc9, 0xaa, 0xbb, 0x12, 0x34];
    let error = error6(3, 1, [0; 4], &sent6(protocol::FRAGMENT, &[&header[..], &[7; 80]].concat()));
    let translated = to_v4(&error).unwrap();
    assert_eq!(translated[30..36], [0, 100, 0x12, 0x34, 0x20, 0xb9]);
    assert_eq!(translated[48..], [7; 80]);
}

#[test]
fn a_quoted_packet_over_1260_octets_has_df_set_as_it_was_sent() {
    for (data, flags) in [(1_232, 0x00), (1_233, 0x40)] {
        let error = error6(1, 0, [0; 4], &seal(sent6(protocol::UDP, &udp(53, INSIDE, data)))[..100]);
        assert_eq!(to_v4(&error).unwrap()[34], flags);
    }
}

#[test]
fn extension_headers_of_a_quote_are_left_out_and_its_length_follows() {
    let options = [protocol::UDP, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let quote = sent6(protocol::DESTINATION_OPTIONS, &[&options[..], &udp(53, INSIDE, 4)].concat());
    let translated = to_v4(&error6(1, 0, [0; 4], &quote)).unwrap();
    assert_eq!(translated[28..32], [0x45, 0, 0, 32]);
    assert_eq!(translated[37], protocol::UDP);
}

#[test]
fn an_atomic_fragment_header_of_the_error_gives_the_identification() {
    let message = icmp(1, 0, [0; 4], &udp6());
    let header = [protocol::ICMPV6, 0, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd];
    let error = seal(v6(ROUTER6, PEER6, protocol::FRAGMENT, &[&header[..], &message].concat()));
    assert_eq!(to_v4(&error).unwrap()[4..8], [0xcc, 0xdd, 0, 0]);
}

#[test]
fn what_cannot_be_translated_says_why() {
    let mut wrong = error4(3, 1, [0; 4], &udp4());
    wrong[22] ^= 1;
    assert_eq!(to_v6(&wrong), Err(DropReason::BadIcmpChecksum));
    let mut wrong = error6(1, 1, [0; 4], &udp6());
    wrong[42] ^= 1;
    assert_eq!(to_v4(&wrong), Err(DropReason::BadIcmpChecksum));

    let mut fragment = error4(3, 1, [0; 4], &udp4());
    fragment[6] = 0x20;
    assert_eq!(to_v6(&header_sealed(fragment)), Err(DropReason::IcmpFragment));

    assert_eq!(to_v6(&error4(3, 1, [0; 4], &udp4()[..19])), Err(DropReason::QuoteUnusable));
    assert_eq!(to_v4(&error6(1, 1, [0; 4], &udp6()[..39])), Err(DropReason::QuoteUnusable));
    let inner = sent4(protocol::ICMPV4, &icmp(3, 1, [0; 4], &udp4()));
    assert_eq!(to_v6(&error4(3, 1, [0; 4], &inner)), Err(DropReason::QuoteIsIcmpError));
    let inner = seal(sent6(protocol::ICMPV6, &icmp(3, 1, [0; 4], &udp6())));
    assert_eq!(to_v4(&error6(1, 1, [0; 4], &inner)), Err(DropReason::QuoteIsIcmpError));
    let mut long = udp6();
    long[4..6].copy_from_slice(&[0xff, 0xff]);
    assert_eq!(to_v4(&error6(1, 1, [0; 4], &long)), Err(DropReason::TooLongForIpv4));

    let mut frame = Frame::with_capacity(60);
    let error = error4(3, 1, [0; 4], &sent4(protocol::UDP, &udp(1, 2, 4)));
    frame.fill(&error, Offload::default());
    let (packet, quoted) = (parse(&error).unwrap(), quoted_v6(true));
    let (source, destination) = (ROUTER6.parse().unwrap(), HOST6.parse().unwrap());
    let (policy, limits) = (Policy::default(), Limits::default());
    let result = error_v4_to_v6(
        &mut frame,
        &packet,
        super::Envelope { source, destination, hops: packet.hops.saturating_sub(1) },
        quoted,
        &policy,
        &limits,
    );
    assert_eq!(result, Err(DropReason::NoHeadroom));
}

/// An extension structure (RFC 4884 §7): version 2, and one MPLS object (RFC 4950).
const EXTENSION: [u8; 12] = [0x20, 0, 0x9c, 0x4f, 0, 8, 1, 1, 0, 0, 1, 1];

#[test]
fn an_extension_moves_behind_the_longer_quote_and_the_attribute_counts_units_of_8() {
    // 136 octets of quote become 156, padded to 160: 20 units.
    let quote = sent4(protocol::UDP, &udp(OUTSIDE, 53, 108));
    let error = error4(11, 0, [0, 34, 0, 0], &[&quote[..], &EXTENSION].concat());
    let translated = to_v6(&error).unwrap();
    assert_eq!(translated[44..48], [20, 0, 0, 0]);
    assert_eq!(translated.len(), 48 + 160 + 12);
    assert_eq!(translated[48 + 156..48 + 160], [0; 4]);
    assert_eq!(translated[48 + 160..], EXTENSION);
}

#[test]
fn a_short_quote_before_an_extension_is_padded_to_128_octets() {
    let mut body = udp4(); // 68 octets
    body.resize(128, 0);
    body.extend(EXTENSION);
    let translated = to_v6(&error4(3, 1, [0, 32, 0, 0], &body)).unwrap();
    assert_eq!(translated[44], 16);
    assert_eq!(translated[48 + 128..], EXTENSION);

    let mut body = udp6();
    body.resize(128, 0);
    body.extend(EXTENSION);
    let translated = to_v4(&error6(1, 3, [16, 0, 0, 0], &body)).unwrap();
    assert_eq!(translated[24..28], [0, 32, 0, 0]);
    assert_eq!(translated[28 + 128..], EXTENSION);
}

#[test]
fn a_quote_is_shortened_so_that_the_extension_fits_the_largest_error() {
    let mut quote = sent4(protocol::UDP, &udp(OUTSIDE, 53, 1_400));
    quote.truncate(1_020);
    let extension = [0x77; 300];
    let translated = to_v6(&error4(11, 0, [0, 255, 0, 0], &[&quote[..], &extension].concat())).unwrap();
    assert_eq!(translated.len(), 48 + 928 + 300);
    assert_eq!(translated[44], 116);
    assert_eq!(translated[48 + 928..], extension);

    let quote = seal(sent6(protocol::UDP, &udp(53, INSIDE, 952)));
    let translated = to_v4(&error6(3, 0, [125, 0, 0, 0], &[&quote[..], &extension[..21]].concat())).unwrap();
    assert_eq!(translated.len(), 28 + 524 + 21);
    assert_eq!(translated[25], 131);
}

#[test]
fn an_extension_that_leaves_no_128_octets_to_the_quote_is_left_off() {
    let quote = seal(sent6(protocol::UDP, &udp(53, INSIDE, 80)));
    let body = [&quote[..], &[0x77; 440]].concat();
    let translated = to_v4(&error6(3, 0, [16, 0, 0, 0], &body)).unwrap();
    assert_eq!(translated[24..28], [0; 4]);
    assert_eq!(translated.len(), 28 + 108);
}

#[test]
fn messages_without_extensions_in_icmpv6_lose_theirs() {
    let mut body = udp4();
    body.resize(128, 0);
    body.extend(EXTENSION);
    let translated = to_v6(&error4(3, 4, [0, 32, 5, 0xdc], &body)).unwrap();
    assert_eq!(translated[44..48], [0, 0, 5, 0xdc]);
    assert_eq!(translated.len(), 48 + 88);
    let translated = to_v6(&error4(12, 0, [8, 32, 0, 0], &body)).unwrap();
    assert_eq!(translated[44..48], [0, 0, 0, 7]);
    assert_eq!(translated.len(), 48 + 88);
}

#[test]
fn an_extension_is_found_although_the_length_attribute_is_wrong() {
    let extension = true_extension();
    let mut body = udp6();
    body.resize(128, 0);
    body.extend(extension);
    // None at all, in units of 4 octets instead of 8, too short, and too long.
    for attribute in [0, 32, 1, 255] {
        let translated = to_v4(&error6(3, 0, [attribute, 0, 0, 0], &body)).unwrap();
        assert_eq!(translated[24..28], [0, 32, 0, 0], "{attribute}");
        assert_eq!(translated[28 + 128..], extension, "{attribute}");
    }
    // The quote is longer than 128 octets: its end is known by half the unit alone.
    let mut body = seal(sent6(protocol::UDP, &udp(53, INSIDE, 136)));
    assert_eq!(body.len(), 184);
    body.extend(extension);
    let translated = to_v4(&error6(1, 0, [184 / 4, 0, 0, 0], &body)).unwrap();
    assert_eq!(translated[28 + 164..], extension);
    assert_eq!(translated[24..28], [0, 164 / 4, 0, 0]);

    let mut body = udp4();
    body.resize(128, 0);
    body.extend(extension);
    for attribute in [0, 1, 255] {
        let translated = to_v6(&error4(11, 0, [0, attribute, 0, 0], &body)).unwrap();
        assert_eq!(translated[44], 16, "{attribute}");
        assert_eq!(translated[48 + 128..], extension, "{attribute}");
    }
}

#[test]
fn what_only_looks_like_an_extension_stays_quote() {
    let extension = true_extension();
    let edits: [fn(&mut Vec<u8>); 5] = [
        |octets| octets[0] = 0x10,     // another version
        |octets| octets[2] ^= 1,       // a wrong checksum
        |octets| octets[2..4].fill(0), // none
        |octets| octets[5] = 9,        // an object that is longer than the structure
        |octets| octets.truncate(4),   // no object
    ];
    for (number, edit) in edits.into_iter().enumerate() {
        let mut octets = extension.to_vec();
        edit(&mut octets);
        if number != 1 && number != 2 {
            octets[2..4].fill(0);
            let checksum = Sum::ZERO.bytes(&octets).checksum();
            octets[2..4].copy_from_slice(&checksum.to_be_bytes());
        }
        let mut body = udp4();
        body.resize(128, 0);
        body.extend(octets);
        let translated = to_v6(&error4(11, 0, [0; 4], &body)).unwrap();
        assert_eq!(translated[44], 0, "{number}");
    }
}

/// [`EXTENSION`] with the checksum that belongs to it.
fn true_extension() -> [u8; 12] {
    let mut octets = EXTENSION;
    octets[2..4].fill(0);
    let checksum = Sum::ZERO.bytes(&octets).checksum();
    octets[2..4].copy_from_slice(&checksum.to_be_bytes());
    octets
}

#[test]
fn a_wrong_length_attribute_is_not_accepted() {
    for attribute in [1, 31, 255] {
        let error = error4(11, 0, [0, attribute, 0, 0], &sent4(protocol::UDP, &udp(OUTSIDE, 53, 200)));
        let translated = to_v6(&error).unwrap();
        assert_eq!(translated[44..48], [0; 4]);
        assert_eq!(translated.len(), 48 + 248);
    }
}

#[test]
fn only_echo_has_a_counterpart_among_the_queries() {
    for kind in 0..=255 {
        let expected = match kind {
            8 => Ok((128, 3)),
            0 => Ok((129, 3)),
            _ => Err(DropReason::IcmpUntranslatable),
        };
        assert_eq!(query_v4_to_v6(kind, 3), expected);
        let expected = match kind {
            128 => Ok((8, 3)),
            129 => Ok((0, 3)),
            _ => Err(DropReason::IcmpUntranslatable),
        };
        assert_eq!(query_v6_to_v4(kind, 3), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn whatever_is_quoted_the_result_is_sound_or_refused(
        kind in prop::sample::select(vec![3u8, 11, 12, 1, 2, 4]),
        code in 0u8..16,
        rest: [u8; 4],
        protocol in prop::sample::select(vec![1u8, 6, 17, 58, 132, 50, 44, 0]),
        mut quote in prop::collection::vec(any::<u8>(), 0..1_300),
        honest: bool,
        keep_ports: bool,
    ) {
        for v4 in [true, false] {
            if let (Some(header), true) = (quote.first_chunk_mut::<20>(), v4) {
                header[0] = 0x45;
                header[9] = protocol;
                if honest {
                    header[6..8].fill(0);
                }
            }
            if let (Some(header), false) = (quote.first_chunk_mut::<40>(), v4) {
                header[0] = 0x60;
                header[6] = protocol;
            }
            let policy = Policy::default();
            let limits = Limits::default();
            if v4 {
                let _ = to_v6_with(&error4(kind, code, rest, &quote), keep_ports, &policy, limits);
            } else {
                let _ = to_v4_with(&error6(kind, code, rest, &quote), keep_ports, &policy, limits);
            }
        }
    }
}
