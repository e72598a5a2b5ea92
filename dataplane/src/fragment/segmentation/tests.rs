//! Segments against a slow recomputation of every field.

use super::*;
use proptest::prelude::*;

/// A TCP packet with CWR, ACK, PSH and FIN set, a timestamp option and no checksum.
fn tcp(version: u8, payload: usize) -> Vec<u8> {
    let mut segment = vec![0x30, 0x39, 0, 80, 0xff, 0xff, 0xf0, 0, 0, 0, 0, 9, 0x50, 0x99, 1, 0, 0, 0, 0, 0];
    segment.extend((0..payload).map(|n| (n % 251) as u8));
    ip(version, 6, &segment)
}

/// A UDP packet without checksum.
fn udp(version: u8, payload: usize) -> Vec<u8> {
    let length = (8 + payload) as u16;
    let mut datagram = vec![0x30, 0x39, 0, 53, (length >> 8) as u8, length as u8, 0, 0];
    datagram.extend((0..payload).map(|n| (n % 251) as u8));
    ip(version, 17, &datagram)
}

fn ip(version: u8, protocol: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = if version == 4 {
        let length = ((20 + body.len()) as u16).to_be_bytes();
        let mut header = vec![
            0x45, 0, length[0], length[1], 0xff, 0xff, 0x40, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 198, 51,
            100, 2,
        ];
        let sum = Sum::ZERO.bytes(&header).checksum();
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header
    } else {
        let length = (body.len() as u16).to_be_bytes();
        let mut header = vec![0x60, 0, 0, 0, length[0], length[1], protocol, 64];
        header.extend("2001:db8::1".parse::<core::net::Ipv6Addr>().unwrap().octets());
        header.extend("2001:db8:1::2".parse::<core::net::Ipv6Addr>().unwrap().octets());
        header
    };
    packet.extend_from_slice(body);
    packet
}

fn cut_all(packet: &[u8], size: u16, kind: SegmentKind) -> Result<Vec<Vec<u8>>, DropReason> {
    let frame = GsoPacket::read(packet, Segments { size, kind })?;
    let write = |number| {
        let mut space = vec![0xee; frame.length(number) + 3];
        assert_eq!(frame.write(number, &mut space)?, frame.length(number));
        assert_eq!(space.split_off(frame.length(number)), [0xee; 3]);
        assert_eq!(frame.write(number, &mut space[1..]), Err(DropReason::BadGso));
        Ok(space)
    };
    (0..frame.count()).map(write).collect()
}

/// The one's complement sum of 16-bit words, octet by octet.
fn slow_sum(octets: impl Iterator<Item = u8>) -> u32 {
    let mut sum = 0_u32;
    for (index, octet) in octets.enumerate() {
        sum += u32::from(octet) << if index % 2 == 0 { 8 } else { 0 };
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

fn assert_true(packet: &[u8]) {
    let (at, addresses, length) = if packet[0] >> 4 == 4 {
        assert_eq!(slow_sum(packet[..20].iter().copied()), 0xffff, "IPv4 header checksum");
        (20, &packet[12..20], u16::from_be_bytes([packet[2], packet[3]]))
    } else {
        (40, &packet[8..40], u16::from_be_bytes([packet[4], packet[5]]) + 40)
    };
    assert_eq!(usize::from(length), packet.len());
    let protocol = packet[if at == 20 { 9 } else { 6 }];
    let body = &packet[at..];
    if protocol == 17 {
        assert_eq!(usize::from(u16::from_be_bytes([body[4], body[5]])), body.len());
        assert_ne!(&body[6..8], [0, 0]);
    }
    let length = (body.len() as u16).to_be_bytes();
    let pseudo = addresses.iter().copied().chain([0, protocol]).chain(length);
    assert_eq!(slow_sum(pseudo.chain(body.iter().copied())), 0xffff, "transport checksum");
}

#[test]
fn tcp_segments_have_their_own_numbers_and_flags() {
    let segments = cut_all(&tcp(4, 2_500), 1_000, SegmentKind::TcpEcn).unwrap();
    let fields: Vec<_> = segments
        .iter()
        .map(|s| {
            let id = u16::from_be_bytes([s[4], s[5]]);
            let sequence = u32::from_be_bytes([s[24], s[25], s[26], s[27]]);
            (s.len(), id, sequence, s[33])
        })
        .collect();
    assert_eq!(
        fields,
        [
            (1_040, 0xffff, 0xffff_f000, 0x90), // CWR, ACK
            (1_040, 0, 0xffff_f3e8, 0x10),      // ACK
            (540, 1, 0xffff_f7d0, 0x19),        // ACK, PSH, FIN
        ]
    );
}

#[test]
fn a_gso_packet_that_is_not_what_it_says_is_not_cut() {
    let refused = Err(DropReason::BadGso);
    assert_eq!(cut_all(&tcp(4, 2_500), 1_000, SegmentKind::Udp), refused);
    assert_eq!(cut_all(&udp(6, 2_500), 1_000, SegmentKind::Tcp), refused);
    assert_eq!(cut_all(&udp(6, 2_500), 0, SegmentKind::Udp), refused);
    for length in 0..140 {
        assert!(cut_all(&tcp(4, 100)[..length], 1_000, SegmentKind::Tcp).is_err());
    }
    let mut header_beyond_the_end = tcp(6, 8);
    header_beyond_the_end[40 + 12] = 0x80;
    assert_eq!(cut_all(&header_beyond_the_end, 1_000, SegmentKind::Tcp), refused);
}

#[test]
fn padding_behind_the_packet_is_not_a_payload() {
    let padded = [udp(4, 600), vec![0xff; 400]].concat();
    assert_eq!(cut_all(&padded, 300, SegmentKind::Udp), cut_all(&udp(4, 600), 300, SegmentKind::Udp));
}

#[test]
fn extension_headers_and_options_are_in_every_segment_and_a_fragment_header_is_refused() {
    let mut with_options = udp(6, 1_000);
    with_options[6] = 60;
    with_options[4..6].copy_from_slice(&1_016_u16.to_be_bytes());
    with_options.splice(40..40, [17, 0, 1, 4, 0, 0, 0, 0]);
    let segments = cut_all(&with_options, 600, SegmentKind::Udp).unwrap();
    assert_eq!(segments.iter().map(Vec::len).collect::<Vec<_>>(), [656, 456]);
    for segment in segments {
        assert_eq!(segment[40..48], with_options[40..48]);
        let pseudo = segment[8..40].iter().copied().chain([0, 17]).chain(segment[52..54].iter().copied());
        assert_eq!(slow_sum(pseudo.chain(segment[48..].iter().copied())), 0xffff);
    }
    with_options[6] = 44;
    with_options[42..48].fill(0);
    assert_eq!(cut_all(&with_options, 600, SegmentKind::Udp), Err(DropReason::BadGso));
}

proptest! {
    #[test]
    fn segments_are_true_and_carry_the_payload_whole(
        six in any::<bool>(), datagrams in any::<bool>(), payload in 0_usize..20_000, size in 1_u16..9_000,
    ) {
        let size = size.max((payload / 100) as u16).max(1);
        let version = if six { 6 } else { 4 };
        let (packet, kind) =
            if datagrams { (udp(version, payload), SegmentKind::Udp) } else { (tcp(version, payload), SegmentKind::Tcp) };
        let headers = packet.len() - payload;
        let segments = cut_all(&packet, size, kind).unwrap();
        let mut carried = Vec::new();
        for segment in &segments {
            assert_true(segment);
            carried.extend_from_slice(&segment[headers..]);
            prop_assert!(segment.len() - headers <= usize::from(size));
        }
        prop_assert_eq!(&carried, &packet[headers..]);
        prop_assert_eq!(segments.len(), payload.div_ceil(usize::from(size)).max(1));
    }
}
