//! Packets as a kernel gives them: whole super-frames, their checksums unfinished.

use super::*;
use crate::checksum::unfinish;
use sixway_dataplane::{SegmentKind, Segments};
use sixway_wire::checksum::Sum;

/// A TCP packet with CWR, ACK, PSH and FIN set, a timestamp option, and an unfinished checksum.
pub(crate) fn tcp(version: u8, payload: usize) -> Vec<u8> {
    let mut segment = vec![0x30, 0x39, 0, 80, 0xff, 0xff, 0xf0, 0, 0, 0, 0, 9, 0x50, 0x99, 1, 0, 0, 0, 0, 0];
    segment.extend((0..payload).map(|n| (n % 251) as u8));
    ip(version, 6, &segment)
}

/// A UDP packet with an unfinished checksum.
pub(crate) fn udp(version: u8, payload: usize) -> Vec<u8> {
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
        header.extend("2001:db8::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
        header.extend("2001:db8:1::2".parse::<std::net::Ipv6Addr>().unwrap().octets());
        header
    };
    packet.extend_from_slice(body);
    let transport = Transport::of(&packet).unwrap();
    assert!(unfinish(&mut packet, transport));
    packet
}

fn plain(packet: &[u8], offload: Offload) -> (Vec<Vec<u8>>, LinkCounters) {
    let (mut all, mut counters) = (Vec::new(), LinkCounters::default());
    let mut frame = Frame::holding(packet);
    frame.offload = offload;
    let keep = |frame: &mut Frame, _: &mut LinkCounters| {
        assert_eq!(frame.offload.checksum, Checksum::Complete);
        all.push(frame.bytes().to_vec());
        Ok(())
    };
    Plain::default().each(&mut frame, &mut counters, keep).unwrap();
    (all, counters)
}

#[test]
fn a_super_frame_leaves_as_its_segments_and_another_packet_with_its_checksum_finished() {
    let partial = Offload { checksum: Checksum::Partial, ..Offload::default() };
    let (whole, counters) = plain(&udp(6, 1_000), partial);
    assert_eq!((whole.len(), counters.checksums_finished), (1, 1));
    let size = Some(Segments { size: 300, kind: SegmentKind::Udp });
    let (cut, counters) = plain(&udp(6, 1_000), Offload { segments: size, ..partial });
    assert_eq!(cut.iter().map(Vec::len).collect::<Vec<_>>(), [348, 348, 348, 148]);
    assert_eq!(counters.super_frames_cut, 1);
    for packet in whole.iter().chain(&cut) {
        let transport = Transport::of(packet).unwrap();
        let sum = crate::checksum::pseudo_header(packet, transport).unwrap();
        assert_eq!(sum.bytes(&packet[transport.at..]).fold(), 0xffff);
    }
}

#[test]
fn a_super_frame_that_is_not_what_it_says_is_refused() {
    let offload = Offload {
        checksum: Checksum::Partial,
        segments: Some(Segments { size: 300, kind: SegmentKind::Tcp }),
        ..Offload::default()
    };
    let (cut, counters) = plain(&udp(4, 1_000), offload);
    assert_eq!((cut.len(), counters.refused), (0, 1));
}
