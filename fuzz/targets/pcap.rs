//! Any octets are a pcap file or none; and what claims to be a GSO packet is refused, or cut into packets with right checksums.
//!
//! The file is read; then what it holds is cut and recorded, as frames that claim to be GSO packets, and read again.

#[path = "checksum.rs"]
mod checksum;

use checksum::State;
use sixway_dataplane::frame::MAX_PACKET;
use sixway_dataplane::{Checksum, Frame, Offload, SegmentKind, Segments, parse};
use sixway_link::LinkCounters;
use sixway_link::pcap::{Reader, Writer};
use sixway_link::segmentation::Plain;
use std::time::Duration;

pub fn run(octets: &[u8]) {
    let Ok(mut reader) = Reader::new(octets) else { return };
    let mut frame = Frame::with_capacity(MAX_PACKET);
    let mut plain = Plain::default();
    let mut counters = LinkCounters::default();
    let mut file = Vec::new();
    let Ok(mut writer) = Writer::new(&mut file) else { return };
    let mut octets_read = 0;
    let mut written = Vec::new();
    for index in 0.. {
        let Ok(Some(_)) = reader.next(&mut frame) else { break };
        octets_read += frame.len();
        frame.offload = offload(&frame, index);
        let was_cut = frame.offload.segments.is_some();
        let outcome = plain.each(&mut frame, &mut counters, |packet, _| {
            if was_cut {
                judge(packet);
            }
            written.push(packet.len());
            writer.write(packet.bytes(), Duration::from_nanos(written.len() as u64))
        });
        assert!(outcome.is_ok());
    }
    assert!(octets_read <= octets.len(), "more was read than there was");
    read_again(&file, &written);
}

fn judge(packet: &Frame) {
    let parsed =
        parse::parse(packet.bytes()).unwrap_or_else(|_| panic!("a segment is no packet: {packet:?}"));
    assert_eq!(parsed.length as usize, packet.len(), "{packet:?}");
    assert_eq!(packet.offload, Offload { transport: packet.offload.transport, ..Offload::default() });
    assert_eq!(checksum::complete(packet.bytes(), &parsed), State::Right, "{packet:?}");
}

fn read_again(file: &[u8], written: &[usize]) {
    let mut reader = Reader::new(file).unwrap();
    let mut frame = Frame::with_capacity(MAX_PACKET);
    for length in written {
        assert_eq!(reader.next(&mut frame).unwrap(), Some(*length));
        assert_eq!(frame.len(), *length);
    }
    assert_eq!(reader.next(&mut frame).unwrap(), None);
}

fn offload(frame: &Frame, index: usize) -> Offload {
    let transport = parse::parse(frame.bytes()).map_or(0, |packet| packet.transport_at);
    let size = u16::from(frame.bytes().last().copied().unwrap_or(1)).max(1);
    let kind = [SegmentKind::Tcp, SegmentKind::TcpEcn, SegmentKind::Udp][index % 3];
    let segments = frame.len().is_multiple_of(2).then_some(Segments { size, kind });
    let checksum =
        if segments.is_none() && index.is_multiple_of(2) { Checksum::Complete } else { Checksum::Partial };
    Offload { checksum, segments, transport }
}
