//! The packet that an ICMP error quotes when a later pass fails.

use crate::drop_reason::DropReason;
use crate::fragment::GsoPacket;
use crate::frame::{Checksum, Frame, MAX_PACKET, Offload};
use crate::parse::Packet;

/// How many octets an ICMP error can quote at most (RFC 4443 §2.4 c).
const QUOTABLE: usize = 1_280;

/// A copy of the received packet, for when a second pass fails: the ICMP error quotes the original.
pub(super) struct Original {
    pub(super) frame: Frame,
    pub(super) packet: Option<Packet>,
    /// The packet inside, of one that came through a tunnel.
    pub(super) inner: Option<Packet>,
}

impl Default for Original {
    fn default() -> Self {
        Self { frame: Frame::with_capacity(MAX_PACKET), packet: None, inner: None }
    }
}

impl Original {
    /// Keeps what an error would quote: of a GSO packet the first segment, of a packet whose checksum is unfinished all of it.
    pub(super) fn keep(
        &mut self,
        frame: &Frame,
        (packet, inner): (&Packet, Option<&Packet>),
    ) -> Result<(), DropReason> {
        let mut kept = *packet;
        self.frame.ingress = frame.ingress;
        match frame.offload {
            Offload { segments: Some(segments), .. } => {
                let first = GsoPacket::of(frame.bytes(), packet, segments)?;
                let length = first.write(0, self.frame.space())?;
                self.frame.received(length, Offload::default());
                kept.length = length as u32;
            }
            Offload { checksum: Checksum::Partial, .. } => self.frame.fill(frame.bytes(), frame.offload),
            Offload { checksum: Checksum::Complete, .. } => {
                self.frame.fill(&frame.bytes()[..frame.len().min(QUOTABLE)], frame.offload);
            }
        }
        (self.packet, self.inner) = (Some(kept), inner.copied());
        Ok(())
    }
}
