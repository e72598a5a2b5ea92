//! Packets as a kernel gives them: whole GSO packets, their checksums unfinished.

use super::*;
use crate::checksum::unfinish;
use sixway_dataplane::{SegmentKind, Segments};
use sixway_wire::{Ipv4Header, Ipv6Header, TcpHeader, UdpHeader, protocol, tcp};

/// A TCP packet with CWR, ACK, PSH and FIN set, a timestamp option, and an unfinished checksum.
pub(crate) fn tcp(version: u8, payload: usize) -> Vec<u8> {
    let flags = tcp::CWR | tcp::ACK | tcp::PSH | tcp::FIN;
    let header = TcpHeader::new(12_345, 80, flags);
    let header = TcpHeader { sequence: 0xffff_f000, acknowledgment: 9, window: 256, ..header };
    let mut segment = header.octets().to_vec();
    segment.extend((0..payload).map(|n| (n % 251) as u8));
    ip(version, protocol::TCP, &segment)
}

/// A UDP packet with an unfinished checksum.
pub(crate) fn udp(version: u8, payload: usize) -> Vec<u8> {
    let mut datagram = UdpHeader::new(12_345, 53, payload).octets().to_vec();
    datagram.extend((0..payload).map(|n| (n % 251) as u8));
    ip(version, protocol::UDP, &datagram)
}

fn ip(version: u8, protocol: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = if version == 4 {
        let (source, destination) = ([192, 0, 2, 1].into(), [198, 51, 100, 2].into());
        let header = Ipv4Header::new(source, destination, protocol, body.len());
        Ipv4Header { identification: 0xffff, ..header }.octets().to_vec()
    } else {
        let [source, destination] = ["2001:db8::1", "2001:db8:1::2"].map(|text| text.parse().unwrap());
        Ipv6Header::new(source, destination, protocol, body.len()).octets().to_vec()
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
fn a_gso_packet_leaves_as_its_segments_and_another_packet_with_its_checksum_finished() {
    let partial = Offload { checksum: Checksum::Partial, ..Offload::default() };
    let (whole, counters) = plain(&udp(6, 1_000), partial);
    assert_eq!((whole.len(), counters.checksums_finished), (1, 1));
    let size = Some(Segments { size: 300, kind: SegmentKind::Udp });
    let (cut, counters) = plain(&udp(6, 1_000), Offload { segments: size, ..partial });
    assert_eq!(cut.iter().map(Vec::len).collect::<Vec<_>>(), [348, 348, 348, 148]);
    assert_eq!(counters.gso_segmented, 1);
    for packet in whole.iter().chain(&cut) {
        let transport = Transport::of(packet).unwrap();
        let sum = crate::checksum::pseudo_header(packet, transport).unwrap();
        assert_eq!(sum.bytes(&packet[transport.at..]).fold(), 0xffff);
    }
}

#[test]
fn a_gso_packet_that_is_not_what_it_says_is_refused() {
    let offload = Offload {
        checksum: Checksum::Partial,
        segments: Some(Segments { size: 300, kind: SegmentKind::Tcp }),
        ..Offload::default()
    };
    let (cut, counters) = plain(&udp(4, 1_000), offload);
    assert_eq!((cut.len(), counters.refused), (0, 1));
}
