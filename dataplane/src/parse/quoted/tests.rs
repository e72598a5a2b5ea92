use super::*;
use crate::samples::{icmp, seal, tcp, udp, v4, v6};
use proptest::prelude::*;

const A4: &str = "192.0.2.1";
const B4: &str = "198.51.100.2";
const A6: &str = "2001:db8::1";
const B6: &str = "2001:db8::2";

fn tuple4(from: u16, to: u16, protocol: u8) -> QuotedTuple {
    QuotedTuple::V4 {
        source: Endpoint4::new(A4.parse().unwrap(), from),
        destination: Endpoint4::new(B4.parse().unwrap(), to),
        protocol,
    }
}

fn tuple6(from: u16, to: u16, protocol: u8) -> QuotedTuple {
    QuotedTuple::V6 {
        source: Endpoint6::new(A6.parse().unwrap(), from),
        destination: Endpoint6::new(B6.parse().unwrap(), to),
        protocol,
    }
}

#[test]
fn a_quote_of_eight_octets_of_transport_yields_the_ports() {
    let tcp4 = seal(v4(A4, B4, protocol::TCP, &tcp(1_024, 80, 100)));
    assert_eq!(quoted(&tcp4[..28], true), Ok(tuple4(1_024, 80, protocol::TCP)));
    let udp6 = seal(v6(A6, B6, protocol::UDP, &udp(53, 4_000, 100)));
    assert_eq!(quoted(&udp6[..48], false), Ok(tuple6(53, 4_000, protocol::UDP)));
}

#[test]
fn an_echo_message_has_its_identifier_in_both_ports() {
    let echo4 = v4(A4, B4, protocol::ICMPV4, &icmp(8, 0, [0xab, 0xcd, 0, 1], b"ping"));
    assert_eq!(quoted(&echo4, true), Ok(tuple4(0xabcd, 0xabcd, protocol::ICMPV4)));
    let reply6 = v6(A6, B6, protocol::ICMPV6, &icmp(129, 0, [0xab, 0xcd, 0, 1], b"ping"));
    assert_eq!(quoted(&reply6, false), Ok(tuple6(0xabcd, 0xabcd, protocol::ICMPV6)));
}

#[test]
fn an_icmp_error_inside_the_quote_is_told_from_other_messages() {
    for kind in [3, 4, 5, 11, 12] {
        let error = v4(A4, B4, protocol::ICMPV4, &icmp(kind, 0, [0; 4], &[]));
        assert_eq!(quoted(&error, true), Err(DropReason::QuoteIsIcmpError));
        assert_eq!(quoted_stateless(&error, true), Err(DropReason::QuoteIsIcmpError));
    }
    for kind in [1, 2, 3, 4, 100, 127] {
        let error = v6(A6, B6, protocol::ICMPV6, &icmp(kind, 0, [0; 4], &[]));
        assert_eq!(quoted(&error, false), Err(DropReason::QuoteIsIcmpError));
    }
    let mask = v4(A4, B4, protocol::ICMPV4, &icmp(17, 0, [0; 4], &[]));
    assert_eq!(quoted(&mask, true), Err(DropReason::QuoteUnusable));
    let timestamp = v4(A4, B4, protocol::ICMPV4, &icmp(13, 0, [0, 7, 0, 0], &[]));
    assert_eq!(quoted(&timestamp, true), Ok(tuple4(7, 7, protocol::ICMPV4)));
    let solicitation = v6(A6, B6, protocol::ICMPV6, &icmp(135, 0, [0; 4], &[]));
    assert_eq!(quoted(&solicitation, false), Err(DropReason::QuoteUnusable));
}

#[test]
fn a_later_fragment_has_addresses_but_no_ports() {
    let mut later = v4(A4, B4, protocol::UDP, &[0x55; 64]);
    later[6..8].copy_from_slice(&[0x20, 10]);
    assert_eq!(quoted(&later, true), Err(DropReason::QuoteUnusable));
    assert_eq!(quoted_stateless(&later, true), Ok(tuple4(0, 0, protocol::UDP)));
    let header = [protocol::UDP, 0, 0, 80 | 1, 0, 0, 0, 7];
    let later = v6(A6, B6, protocol::FRAGMENT, &[&header[..], &[0x55; 64]].concat());
    assert_eq!(quoted(&later, false), Err(DropReason::QuoteUnusable));
    assert_eq!(quoted_stateless(&later, false), Ok(tuple6(0, 0, protocol::UDP)));
}

#[test]
fn extension_headers_are_walked_to_the_transport_header() {
    let mut payload = vec![60, 0, 5, 2, 0, 0, 0, 0]; // hop-by-hop
    payload.extend([43, 1, 1, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]); // destination options
    payload.extend([44, 0, 0, 0, 0, 0, 0, 0]); // routing, no segments left
    payload.extend([17, 0, 0, 1, 0xde, 0xad, 0xbe, 0xef]); // first fragment
    payload.extend(udp(7, 9, 16));
    let packet = v6(A6, B6, protocol::HOP_BY_HOP, &payload);
    assert_eq!(quoted(&packet, false), Ok(tuple6(7, 9, protocol::UDP)));
    let read = QuotedPacket::v6(&packet).unwrap();
    assert_eq!(read.transport_at, 80);
    assert_eq!(read.upper_length(), 24);
    assert_eq!(read.fragment_header, Some(Fragment { offset: 0, more: true, identification: 0xdead_beef }));
    for cut in 41..80 {
        assert_eq!(quoted(&packet[..cut], false), Err(DropReason::QuoteUnusable), "cut at {cut}");
    }
}

#[test]
fn what_is_never_translated_is_not_quoted_either() {
    let segments_left = v6(A6, B6, protocol::ROUTING, &[17, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(quoted_stateless(&segments_left, false), Err(DropReason::QuoteUnusable));
    let behind_fragment = v6(A6, B6, protocol::FRAGMENT, &[60, 0, 0, 1, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(quoted_stateless(&behind_fragment, false), Err(DropReason::QuoteUnusable));
}

#[test]
fn headers_that_are_cut_short_or_contradict_themselves_are_unusable() {
    let packet = v4(A4, B4, protocol::UDP, &udp(1, 2, 8));
    for cut in 0..20 {
        assert_eq!(quoted_stateless(&packet[..cut], true), Err(DropReason::QuoteUnusable));
    }
    for (at, value) in [(0, 0x44), (0, 0x65), (0, 0x4f), (3, 19)] {
        let mut broken = packet.clone();
        broken[at] = value;
        assert_eq!(quoted_stateless(&broken, true), Err(DropReason::QuoteUnusable));
    }
    for cut in 20..24 {
        assert_eq!(quoted(&packet[..cut], true), Err(DropReason::QuoteUnusable));
        assert_eq!(quoted_stateless(&packet[..cut], true), Ok(tuple4(0, 0, protocol::UDP)));
    }
}

proptest! {
    #[test]
    fn octets_of_any_kind_are_read_without_panic(mut octets in prop::collection::vec(any::<u8>(), 0..200), v4: bool, shaped: bool) {
        if let (Some(first), true) = (octets.first_mut(), shaped) {
            *first = if v4 { 0x45 } else { 0x60 };
        }
        let _ = quoted(&octets, v4);
        if quoted_stateless(&octets, v4).is_ok() {
            let packet = if v4 { QuotedPacket::v4(&octets) } else { QuotedPacket::v6(&octets) }.unwrap();
            prop_assert!(packet.transport_at <= packet.transport_end);
            prop_assert!(packet.transport_end <= octets.len());
            prop_assert!(packet.length as usize >= packet.transport_end);
        }
    }
}
