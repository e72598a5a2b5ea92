//! Packets and GSO packets whose result is too large for the next link but may be cut: GSO packets into segments, and each of
//! them into fragments where it is too large itself (RFC 7915 §4.1, §5.1). This is rare, and off the path of all other packets.

use super::rewriter::HeaderWriter;
use super::transport;
use super::work::Executed;
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::fragment::{GsoPacket, fragment4, fragment6};
use crate::frame::{Checksum, Frame, MAX_PACKET, Offload, Segments};
use crate::outbox::Outbox;
use crate::parse::{Packet, parse};
use alloc::borrow::Cow;
use alloc::vec::Vec;

/// How a packet that is not a GSO packet is fragmented.
#[derive(Clone, Copy)]
pub(super) enum Family {
    /// IPv4, by the identification in its header.
    V4,
    /// IPv6, with this identification; segments count up from it, in 16 bits as IPv4 did where they come from.
    V6 { identification: u32 },
}

impl HeaderWriter {
    /// Cuts the finished packet or GSO packet in `frame` into pieces of at most `mtu` octets, at the end of `out`.
    ///
    /// Fails, leaving `out` as it was, with [`DropReason::OutboxFull`], and as [`GsoPacket::read`] and [`fragment6`] do.
    #[cold]
    pub(super) fn cut(
        &mut self,
        frame: &mut Frame,
        family: Family,
        mtu: u16,
        out: &mut Outbox,
        counters: &mut Counters,
    ) -> Result<Executed, DropReason> {
        let before = out.len();
        let made = match frame.offload.segments {
            Some(segments) => self.segment(frame, segments, family, mtu, out),
            None => {
                finish(frame);
                fragment(frame, family, mtu, out).map(|fragments| Made { segments: 0, fragments })
            }
        };
        let made = made.inspect_err(|_| out.shorten(before))?;
        Ok(made.into_pieces(frame, before, out, counters))
    }

    fn segment(
        &mut self,
        frame: &Frame,
        segments: Segments,
        family: Family,
        mtu: u16,
        out: &mut Outbox,
    ) -> Result<Made, DropReason> {
        let gso = GsoPacket::read(frame.bytes(), segments)?;
        let count = gso.count();
        if count > out.room() {
            return Err(DropReason::OutboxFull);
        }
        let mut fragments = 0;
        for number in 0..count {
            let length = gso.length(number);
            if length <= usize::from(mtu) {
                let piece = out.push(length)?;
                gso.write(number, piece.bytes_mut())?;
                piece.offload.transport = gso.transport_at() as u16;
                continue;
            }
            let segment = self.segment.get_or_insert_with(|| Frame::with_capacity(MAX_PACKET));
            let length = gso.write(number, segment.space())?;
            segment.received(length, Offload::default());
            fragments += fragment(segment, family.counted_up(number), mtu, out)?;
        }
        Ok(Made { segments: count as u64, fragments })
    }
}

/// Pieces of a packet.
#[derive(Clone, Copy)]
pub(super) struct Made {
    pub segments: u64,
    pub fragments: u64,
}

impl Made {
    /// Counts the pieces that `frame` became: those in the outbox after the first `before` frames.
    pub(super) fn into_pieces(
        self,
        frame: &mut Frame,
        before: usize,
        out: &mut Outbox,
        counters: &mut Counters,
    ) -> Executed {
        counters.segments_made += self.segments;
        counters.fragments_made += self.fragments;
        for piece in &out.frames()[before..] {
            counters.packets += 1;
            counters.octets += piece.len() as u64;
        }
        frame.pieces = out.since(before);
        Executed::InPieces
    }
}

impl Family {
    const fn counted_up(self, number: usize) -> Self {
        match self {
            Self::V4 => Self::V4,
            Self::V6 { identification } => {
                Self::V6 { identification: (identification as u16).wrapping_add(number as u16) as u32 }
            }
        }
    }
}

pub(super) fn fragment(frame: &Frame, family: Family, mtu: u16, out: &mut Outbox) -> Result<u64, DropReason> {
    let made = match family {
        Family::V4 => fragment4(frame, mtu, out),
        Family::V6 { identification } => fragment6(frame, identification, mtu, out),
    };
    made.map(u64::from)
}

/// Finishes the checksum, because no fragment holds all octets that it covers.
#[inline(always)]
pub(super) fn finish(frame: &mut Frame) {
    if frame.offload.checksum != Checksum::Complete {
        finish_partial(frame);
    }
}

#[cold]
fn finish_partial(frame: &mut Frame) {
    frame.offload.checksum = Checksum::Complete;
    if let Ok(Packet { transport_at, protocol, fragment: None, .. }) = parse(frame.bytes()) {
        transport::finish(&mut frame.bytes_mut()[usize::from(transport_at)..], protocol);
    }
}

/// The packet as it would have been on the wire: of a GSO packet its first segment, with its checksum finished. A
/// GSO packet with an invalid description is returned as it is.
pub(super) fn on_the_wire<'a>(frame: &'a Frame, packet: &Packet) -> Cow<'a, [u8]> {
    let octets = frame.bytes();
    let octets = &octets[..octets.len().min(packet.length as usize)];
    let transport_at = usize::from(packet.transport_at);
    match frame.offload {
        Offload { segments: Some(segments), .. } => {
            let mut segment = Vec::new();
            let written = GsoPacket::of(octets, packet, segments).and_then(|gso| {
                segment.resize(gso.length(0), 0);
                gso.write(0, &mut segment)
            });
            if written.is_ok() { segment.into() } else { octets.into() }
        }
        Offload { checksum: Checksum::Partial, .. }
            if packet.fragment.is_none() && octets.len() >= transport_at =>
        {
            let mut whole = octets.to_vec();
            transport::finish(&mut whole[transport_at..], packet.protocol);
            whole.into()
        }
        Offload { checksum: Checksum::Partial | Checksum::Complete, .. } => octets.into(),
    }
}
