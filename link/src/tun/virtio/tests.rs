//! Header ⇄ offload, with honest headers and lying ones.

use super::*;
use crate::segmentation::tests::{tcp, udp};
use sixway_wire::{Ipv4Header, protocol};

fn received(header: Header, packet: &mut [u8]) -> (Offload, LinkCounters) {
    let mut counters = LinkCounters::default();
    let offload = header.offload(packet, &mut counters);
    (offload, counters)
}

fn frame(packet: &[u8], offload: Offload) -> Frame {
    let mut frame = Frame::holding(packet);
    frame.offload = offload;
    frame
}

const fn gso_packet(gso_type: u8, csum_start: u16, csum_offset: u16) -> Header {
    Header { flags: NEEDS_CSUM, gso_type, hdr_len: 0, gso_size: 1_000, csum_start, csum_offset }
}

#[test]
fn octets_and_fields_are_the_same_thing() {
    let octets = [1, 4, 60, 0, 0xe8, 3, 40, 0, 16, 0];
    let header = Header::from_octets(&octets);
    assert_eq!(header.octets(), octets);
    if cfg!(target_endian = "little") {
        assert_eq!(
            (header.hdr_len, header.gso_size, header.csum_start, header.csum_offset),
            (60, 1_000, 40, 16)
        );
    }
}

#[test]
fn a_header_of_zeroes_is_a_plain_packet_both_ways() {
    let (offload, counters) = received(Header::default(), &mut tcp(4, 100));
    assert_eq!((offload, counters), (Offload::default(), LinkCounters::default()));
    assert_eq!(Header::describing(&mut frame(&tcp(4, 100), offload)), Some(Header::default()));
}

#[test]
fn gso_packets_of_every_kind_go_there_and_back() {
    let cases = [
        (tcp(4, 5_000), gso_packet(GSO_TCPV4, 20, 16), SegmentKind::Tcp, 40),
        (tcp(6, 5_000), gso_packet(GSO_TCPV6, 40, 16), SegmentKind::Tcp, 60),
        (tcp(6, 5_000), gso_packet(GSO_TCPV6 | GSO_ECN, 40, 16), SegmentKind::TcpEcn, 60),
        (udp(4, 5_000), gso_packet(GSO_UDP_L4, 20, 6), SegmentKind::Udp, 28),
        (udp(6, 5_000), gso_packet(GSO_UDP_L4, 40, 6), SegmentKind::Udp, 48),
    ];
    for (mut packet, header, kind, headers) in cases {
        let (offload, counters) = received(header, &mut packet);
        assert_eq!(offload.segments, Some(Segments { size: 1_000, kind }));
        assert_eq!((offload.checksum, offload.transport), (Checksum::Partial, header.csum_start));
        assert_eq!(counters, LinkCounters::default());
        let sent = Header::describing(&mut frame(&packet, offload));
        assert_eq!(sent, Some(Header { hdr_len: headers, ..header }));
    }
}

#[test]
fn an_unfinished_tcp_or_udp_checksum_stays_unfinished() {
    for (mut packet, csum_start, csum_offset) in [(tcp(4, 10), 20, 16), (udp(6, 10), 40, 6)] {
        let before = packet.clone();
        let header = Header { flags: NEEDS_CSUM, csum_start, csum_offset, ..Header::default() };
        let (offload, counters) = received(header, &mut packet);
        assert_eq!(offload, Offload { checksum: Checksum::Partial, segments: None, transport: csum_start });
        assert_eq!((packet.clone(), counters), (before, LinkCounters::default()));
        assert_eq!(Header::describing(&mut frame(&packet, offload)), Some(header));
    }
}

#[test]
fn an_unfinished_checksum_that_is_not_the_packets_own_is_finished() {
    // IPv4 in IPv4: the inner packet's checksum is the unfinished one.
    let inner = udp(4, 11);
    let mut packet = udp(4, 0)[..20].to_vec();
    packet[9] = 4;
    packet.extend_from_slice(&inner);
    let header = Header { flags: NEEDS_CSUM, csum_start: 40, csum_offset: 6, ..Header::default() };
    let (offload, counters) = received(header, &mut packet);
    assert_eq!((offload, counters.checksums_finished), (Offload::default(), 1));
    let inner = &packet[20..];
    let transport = Transport::of(inner).unwrap();
    assert_eq!(crate::checksum::pseudo_header(inner, transport).unwrap().bytes(&inner[20..]).fold(), 0xffff);
}

/// An IPv6 packet in IPv4.
fn in_ipv4(inner: &[u8]) -> Vec<u8> {
    let (source, destination) = ([192, 0, 2, 1].into(), [198, 51, 100, 2].into());
    let header = Ipv4Header::new(source, destination, protocol::IPV6, inner.len());
    [&header.octets()[..], inner].concat()
}

#[test]
fn a_tunnel_packets_header_speaks_of_the_packet_inside() {
    let unfinished = Header { flags: NEEDS_CSUM, csum_start: 60, csum_offset: 6, ..Header::default() };
    let mut packet = in_ipv4(&udp(6, 100));
    let (offload, counters) = received(unfinished, &mut packet);
    assert_eq!(offload, Offload { checksum: Checksum::Partial, segments: None, transport: 60 });
    assert_eq!((packet.clone(), counters), (in_ipv4(&udp(6, 100)), LinkCounters::default()));
    assert_eq!(Header::describing(&mut frame(&packet, offload)), Some(unfinished));

    for (inner, header, kind) in [
        (tcp(6, 5_000), gso_packet(GSO_TCPV6, 60, 16), SegmentKind::Tcp),
        (udp(6, 5_000), gso_packet(GSO_UDP_L4, 60, 6), SegmentKind::Udp),
    ] {
        let (offload, counters) = received(header, &mut in_ipv4(&inner));
        let segments = Some(Segments { size: 1_000, kind });
        assert_eq!(offload, Offload { checksum: Checksum::Partial, segments, transport: 60 });
        assert_eq!(counters, LinkCounters::default());
        // The kernel has no word for it in the other direction: the engine cuts what it encapsulates.
        assert_eq!(Header::describing(&mut frame(&in_ipv4(&inner), offload)), None);
    }
}

#[test]
fn lies_are_counted_and_left_out() {
    let honest = gso_packet(GSO_TCPV4, 20, 16);
    let lies = [
        (Header { gso_size: 0, ..honest }, "a size of zero"),
        (Header { gso_type: GSO_TCPV6, ..honest }, "the other version"),
        (Header { gso_type: GSO_UDP_L4, ..honest }, "the other protocol"),
        (Header { gso_type: 77, ..honest }, "no kind at all"),
        (Header { csum_start: 20_000, ..honest }, "a checksum beyond the end"),
        (Header { csum_start: u16::MAX, csum_offset: u16::MAX, ..honest }, "a checksum far beyond"),
        (Header { csum_offset: 4, ..honest }, "a checksum where there is none"),
    ];
    for (lie, name) in lies {
        let (offload, counters) = received(lie, &mut tcp(4, 5_000));
        assert_eq!((offload.segments, counters.inconsistent_header), (None, 1), "{name}");
    }
}

#[test]
fn no_header_and_no_cut_makes_it_panic() {
    for packet in [tcp(6, 100), in_ipv4(&tcp(6, 60))] {
        no_header_makes_it_panic(&packet);
    }
}

fn no_header_makes_it_panic(packet: &[u8]) {
    for length in 0..packet.len() {
        for gso_type in [0, GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4, 0x85, 0xff] {
            for csum_start in [0, 20, 40, length as u16, u16::MAX] {
                for csum_offset in [0, 6, 16, u16::MAX] {
                    for gso_size in [0, 1, u16::MAX] {
                        let header = Header {
                            flags: 0xff,
                            gso_type,
                            hdr_len: u16::MAX,
                            gso_size,
                            csum_start,
                            csum_offset,
                        };
                        let mut cut = packet[..length].to_vec();
                        let (offload, _) = received(header, &mut cut);
                        let _ = Header::describing(&mut frame(&cut, offload));
                    }
                }
            }
        }
    }
}

#[test]
fn a_gso_packet_with_a_complete_checksum_gets_an_unfinished_one() {
    for mut packet in [tcp(4, 3_000), udp(6, 3_000)] {
        let transport = Transport::of(&packet).unwrap();
        let kind = if transport.protocol == 6 { SegmentKind::Tcp } else { SegmentKind::Udp };
        let partial = packet.clone();
        finish(&mut packet, transport.at, transport.checksum_offset().unwrap());
        assert_ne!(packet, partial);
        let segments = Some(Segments { size: 1_000, kind });
        let mut sent = frame(&packet, Offload { segments, ..Offload::default() });
        let header = Header::describing(&mut sent).unwrap();
        assert_eq!((header.flags, usize::from(header.csum_start)), (NEEDS_CSUM, transport.at));
        assert_eq!(sent.bytes(), partial);
        // And the same on receive, should a kernel hand one over.
        let header = Header { flags: 0, ..header };
        assert_eq!(received(header, &mut packet).0.checksum, Checksum::Partial);
        assert_eq!(packet, partial);
    }
}

#[test]
fn what_fits_into_one_segment_is_not_a_gso_packet() {
    let offload = Offload {
        checksum: Checksum::Partial,
        segments: Some(Segments { size: 1_000, kind: SegmentKind::Udp }),
        transport: 20,
    };
    let header = Header::describing(&mut frame(&udp(4, 1_000), offload)).unwrap();
    assert_eq!((header.gso_type, header.gso_size, header.flags), (GSO_NONE, 0, NEEDS_CSUM));
}

#[test]
fn a_gso_packet_that_is_none_cannot_be_described() {
    let segments = Some(Segments { size: 1_000, kind: SegmentKind::Tcp });
    let offload = Offload { checksum: Checksum::Partial, segments, transport: 20 };
    assert_eq!(Header::describing(&mut frame(&udp(4, 3_000), offload)), None);
    assert_eq!(Header::describing(&mut frame(&[], offload)), None);
    let mut short = tcp(4, 3_000);
    short[32] = 0x10; // Data Offset of 4 octets
    assert_eq!(Header::describing(&mut frame(&short, offload)), None);
}
