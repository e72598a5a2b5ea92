//! Segments packets and finishes checksums, for links that support neither GSO packets nor unfinished checksums.

use crate::LinkCounters;
use crate::checksum::{Transport, finish};
use sixway_dataplane::fragment::GsoPacket;
use sixway_dataplane::frame::MAX_PACKET;
use sixway_dataplane::{Checksum, Frame, Offload};
use std::io;

/// Makes packets as a wire carries them, for links that take neither GSO packets nor unfinished checksums.
#[derive(Debug, Default)]
pub struct Plain {
    /// Where segments are made.
    segment: Option<Frame>,
}

impl Plain {
    /// Gives `send` the frame with its checksum finished, or the segments of a GSO packet; what it did is counted. A frame
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
        let Ok(gso_packet) = GsoPacket::read(frame.bytes(), segments) else {
            counters.refused += 1;
            return Ok(());
        };
        let segment = self.segment.get_or_insert_with(|| Frame::with_capacity(MAX_PACKET));
        for number in 0..gso_packet.count() {
            let Ok(length) = gso_packet.write(number, segment.space()) else {
                counters.refused += 1;
                return Ok(());
            };
            segment.received(length, Offload::default());
            send(segment, counters)?;
        }
        counters.gso_segmented += 1;
        Ok(())
    }
}

/// Finishes the checksum of the packet's own transport header.
fn finish_own(frame: &mut Frame) -> bool {
    let Some(transport) = Transport::of(frame.bytes()) else { return false };
    let Some(offset) = transport.checksum_offset() else { return false };
    frame.offload.checksum = Checksum::Complete;
    finish(frame.bytes_mut(), transport.at, offset)
}

#[cfg(test)]
pub(crate) mod tests;
