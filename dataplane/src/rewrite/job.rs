//! One packet on its way through an edit, and the sizes that it must fit.

use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::fragment::GsoPacket;
use crate::frame::Frame;
use crate::limits::Limits;
use crate::outbox::Outbox;
use crate::parse::Packet;
use crate::verdict::Quoted;

/// One packet on its way through an edit.
pub(super) struct Job<'a> {
    pub(super) frame: &'a mut Frame,
    pub(super) packet: &'a Packet,
    /// Of an ICMP error: what the packet becomes that it quotes.
    pub(super) quoted: Option<Quoted>,
    /// The MTUs that the result must fit.
    pub(super) limits: Limits,
    pub(super) hops: u8,
    /// The result leaves: its size matters.
    pub(super) last: bool,
    pub(super) reassembled: bool,
    pub(super) out: &'a mut Outbox,
    pub(super) counters: &'a mut Counters,
}

/// Octets of one packet on the wire behind the IP headers: those of the whole packet, or of a GSO packet's first segment.
#[inline(always)]
pub(super) fn segment_payload(frame: &Frame, packet: &Packet, payload: usize) -> Result<usize, DropReason> {
    match frame.offload.segments {
        None => Ok(payload),
        Some(segments) => {
            let first = GsoPacket::of(frame.bytes(), packet, segments)?;
            Ok(first.length(0) - first.transport_at())
        }
    }
}
