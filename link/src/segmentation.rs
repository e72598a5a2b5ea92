//! Cutting super-frames into the packets they stand for, where the kernel cannot.
//!
//! Each segment gets a copy of the headers. IPv4: Total Length, an Identification that counts up, the header checksum. IPv6:
//! Payload Length. TCP: the sequence number; CWR on the first segment only (RFC 3168 §6.1.2), FIN and PSH on the last
//! only. UDP: Length. Checksums are complete.

use crate::LinkCounters;
use crate::checksum::{Transport, finish, pseudo_header};
use sixway_dataplane::frame::MAX_PACKET;
use sixway_dataplane::{Checksum, Frame, Offload, SegmentKind, Segments};
use sixway_wire::checksum::Sum;
use sixway_wire::protocol;
use std::io;

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Makes packets as a wire carries them, for links that take neither super-frames nor unfinished checksums.
#[derive(Debug, Default)]
pub struct Plain {
    /// Where segments are made.
    segment: Option<Frame>,
}

impl Plain {
    /// Gives `send` the frame with its checksum finished, or the segments of a super-frame; what it did is counted. A frame
    /// that is not what its offload state says is counted as refused.
    ///
    /// # Errors
    /// The first that `send` returned; nothing is sent after it.
    pub fn each(
        &mut self,
        frame: &mut Frame,
        counters: &mut LinkCounters,
        mut send: impl FnMut(&mut Frame, &mut LinkCounters) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(segments) = frame.offload.segments else {
            if frame.offload.checksum == Checksum::Partial {
                if !finish_own(frame) {
                    counters.refused += 1;
                    return Ok(());
                }
                counters.checksums_finished += 1;
            }
            return send(frame, counters);
        };
        let segment = self.segment.get_or_insert_with(|| Frame::with_capacity(MAX_PACKET));
        let mut result = Ok(());
        let cut = cut(frame.bytes(), segments, segment, |packet| {
            if result.is_ok() {
                result = send(packet, counters);
            }
        });
        match cut {
            Some(_) => counters.super_frames_cut += 1,
            None => counters.refused += 1,
        }
        result
    }
}

/// Finishes the checksum of the packet's own transport header.
fn finish_own(frame: &mut Frame) -> bool {
    let Some(transport) = Transport::of(frame.bytes()) else { return false };
    let Some(offset) = transport.checksum_offset() else { return false };
    frame.offload.checksum = Checksum::Complete;
    finish(frame.bytes_mut(), transport.at, offset)
}

/// Cuts the super-frame `packet` and gives each segment to `send`, in order; they are made in `buffer`, which must have room
/// for one. Returns how many there were; `None` when the packet is not what `segments` says, and nothing was sent.
pub fn cut(
    packet: &[u8],
    segments: Segments,
    buffer: &mut Frame,
    mut send: impl FnMut(&mut Frame),
) -> Option<usize> {
    let transport = Transport::of(packet)?;
    let headers = transport.at + transport.header_length(packet, segments.kind)?;
    let size = usize::from(segments.size);
    if size == 0 {
        return None;
    }
    let (headers, payload) = packet.split_at(headers);
    let count = payload.len().div_ceil(size).max(1);
    for number in 0..count {
        let data = &payload[number * size..payload.len().min((number + 1) * size)];
        let space = buffer.space();
        space.get_mut(..headers.len())?.copy_from_slice(headers);
        space.get_mut(headers.len()..headers.len() + data.len())?.copy_from_slice(data);
        buffer.received(headers.len() + data.len(), Offload::default());
        let segment = buffer.bytes_mut();
        number_ip(segment, transport.at, number);
        match segments.kind {
            SegmentKind::Udp => {
                let length = (segment.len() - transport.at) as u16;
                segment[transport.at + 4..transport.at + 6].copy_from_slice(&length.to_be_bytes());
            }
            SegmentKind::Tcp | SegmentKind::TcpEcn => {
                number_tcp(&mut segment[transport.at..], number * size, number == 0, number + 1 == count);
            }
        }
        complete(segment, transport)?;
        send(buffer);
    }
    Some(count)
}

/// The fields of the IP header that differ from segment to segment.
fn number_ip(packet: &mut [u8], transport_at: usize, number: usize) {
    if packet[0] >> 4 == 6 {
        let length = (packet.len() - 40) as u16;
        packet[4..6].copy_from_slice(&length.to_be_bytes());
        return;
    }
    let length = packet.len() as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    let identification = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(number as u16);
    packet[4..6].copy_from_slice(&identification.to_be_bytes());
    packet[10..12].fill(0);
    let checksum = Sum::ZERO.bytes(&packet[..transport_at]).checksum();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// The fields of the TCP header that differ from segment to segment.
fn number_tcp(header: &mut [u8], offset: usize, first: bool, last: bool) {
    let sequence =
        u32::from_be_bytes([header[4], header[5], header[6], header[7]]).wrapping_add(offset as u32);
    header[4..8].copy_from_slice(&sequence.to_be_bytes());
    if !first {
        header[13] &= !CWR;
    }
    if !last {
        header[13] &= !(FIN | PSH);
    }
}

/// Writes the transport checksum from scratch.
fn complete(packet: &mut [u8], transport: Transport) -> Option<()> {
    let at = transport.at + transport.checksum_offset()?;
    packet[at..at + 2].fill(0);
    let sum = pseudo_header(packet, transport)?.bytes(&packet[transport.at..]);
    let checksum = if transport.protocol == protocol::UDP { sum.checksum_nonzero() } else { sum.checksum() };
    packet[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

#[cfg(test)]
pub(crate) mod tests;
