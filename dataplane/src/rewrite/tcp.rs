//! A TCP segment whose payload and positions change before its headers are edited. The checksum follows (RFC 1624), so that one that was wrong
//! stays wrong.

use crate::drop_reason::DropReason;
use crate::frame::{Checksum, Frame, SegmentKind, Segments};
use crate::parse::{Addresses, Packet};
use crate::verdict::TcpRewrite;
use sixway_wire::checksum::{self, Sum, pseudo4, pseudo6};
use sixway_wire::protocol::TCP;
use sixway_wire::{IPV6_MIN_MTU, TCP_HEADER};

/// Where the checksum is, the flags, and the urgent pointer (RFC 9293 §3.1).
const CHECKSUM: core::ops::Range<usize> = 16..18;
const FLAGS: usize = 13;
const URGENT_POINTER: core::ops::Range<usize> = 18..20;
const URG: u8 = 0x20;
/// Where the Total Length of IPv4 is, and its header's checksum (RFC 791 §3.1); the Payload Length of IPv6 (RFC 8200 §3).
const TOTAL_LENGTH: core::ops::Range<usize> = 2..4;
const CHECKSUM4: core::ops::Range<usize> = 10..12;
const PAYLOAD_LENGTH: core::ops::Range<usize> = 4..6;

/// Rewrites the segment of a whole packet. What has become larger than one segment may be is a GSO packet from then on.
///
/// # Errors
/// The buffer has no room ([`DropReason::NoHeadroom`]), or the packet is cut short.
pub fn rewrite_tcp(frame: &mut Frame, packet: &Packet, rewrite: &TcpRewrite) -> Result<(), DropReason> {
    let at = usize::from(packet.transport_at);
    frame.truncate(packet.length as usize);
    let before = frame.bytes().get(at..).ok_or(DropReason::Truncated)?;
    let header = before.get(12).map_or(0, |octet| usize::from(octet >> 4) * 4);
    if header < TCP_HEADER || before.len() < header {
        return Err(DropReason::TransportTruncated);
    }
    let (old_length, old_payload) = (before.len(), before.len() - header);
    let old = Sum::ZERO.bytes(before).long(old_length as u32);
    if let Some(payload) = &rewrite.payload {
        let kept: Box<[u8]> = frame.bytes()[at + header..].into();
        frame.truncate(at + header);
        if !frame.extend(payload) {
            frame.extend(&kept);
            return Err(DropReason::NoHeadroom);
        }
        write_length(frame.bytes_mut(), packet)?;
    }
    let segment = frame.bytes_mut().get_mut(at..).ok_or(DropReason::Truncated)?;
    write_header(segment, rewrite)?;
    let (length, payload) = (segment.len(), segment.len() - header);
    let field = u16::from_be_bytes([segment[CHECKSUM.start], segment[CHECKSUM.start + 1]]);
    let after = match frame.offload.checksum {
        Checksum::Partial => {
            let [old, new] = [old_length, length].map(|length| Sum::ZERO.long(length as u32));
            checksum::update_partial(field, old, new)
        }
        Checksum::Complete => {
            let segment = &frame.bytes()[at..];
            checksum::update(field, old, Sum::ZERO.bytes(segment).long(length as u32))
        }
    };
    frame.bytes_mut()[at..][CHECKSUM].copy_from_slice(&after.to_be_bytes());
    match &mut frame.offload.segments {
        Some(segments) if payload <= usize::from(segments.size) => frame.offload.segments = None,
        None if payload > old_payload && at + length > IPV6_MIN_MTU => {
            cut_as_before(frame, packet, at, old_payload)
        }
        Some(_) | None => {}
    }
    Ok(())
}

/// Sequence and acknowledgment number, and edges. The urgent pointer has no meaning in a changed payload (RFC 6384 §5).
fn write_header(segment: &mut [u8], rewrite: &TcpRewrite) -> Result<(), DropReason> {
    let numbers = [(4, rewrite.sequence), (8, rewrite.acknowledgment)];
    for (place, number) in numbers.iter().chain(&rewrite.edges) {
        let place = usize::from(*place);
        let field = segment.get_mut(place..place + 4).ok_or(DropReason::TransportTruncated)?;
        field.copy_from_slice(&number.to_be_bytes());
    }
    if rewrite.payload.is_some() && segment[FLAGS] & URG != 0 {
        segment[FLAGS] &= !URG;
        segment[URGENT_POINTER].fill(0);
    }
    Ok(())
}

/// The length of the IP packet.
fn write_length(octets: &mut [u8], packet: &Packet) -> Result<(), DropReason> {
    let total = octets.len();
    match packet.addresses {
        Addresses::V4 { .. } => {
            let header = octets.first_chunk_mut::<20>().ok_or(DropReason::Truncated)?;
            let length = u16::try_from(total).map_err(|_| DropReason::NoHeadroom)?;
            let old = Sum::ZERO.bytes(&header[TOTAL_LENGTH]);
            let field = u16::from_be_bytes([header[CHECKSUM4.start], header[CHECKSUM4.start + 1]]);
            header[TOTAL_LENGTH].copy_from_slice(&length.to_be_bytes());
            let after = checksum::update(field, old, Sum::ZERO.word(length));
            header[CHECKSUM4].copy_from_slice(&after.to_be_bytes());
        }
        Addresses::V6 { .. } => {
            let header = octets.first_chunk_mut::<40>().ok_or(DropReason::Truncated)?;
            let length = u16::try_from(total - header.len()).map_err(|_| DropReason::NoHeadroom)?;
            header[PAYLOAD_LENGTH].copy_from_slice(&length.to_be_bytes());
        }
    }
    Ok(())
}

/// The packet becomes a GSO packet with segments of the size that the sender chose. Its checksum is finished later.
fn cut_as_before(frame: &mut Frame, packet: &Packet, at: usize, size: usize) {
    let octets = (frame.len() - at) as u32;
    let pseudo = match packet.addresses {
        Addresses::V4 { source, destination } => pseudo4(source, destination, TCP, octets),
        Addresses::V6 { source, destination } => pseudo6(source, destination, TCP, octets),
    };
    if let Some(field) = frame.bytes_mut()[at..].get_mut(CHECKSUM) {
        field.copy_from_slice(&pseudo.fold().to_be_bytes());
        frame.offload.checksum = Checksum::Partial;
        frame.offload.segments = Some(Segments { size: size as u16, kind: SegmentKind::Tcp });
    }
}
