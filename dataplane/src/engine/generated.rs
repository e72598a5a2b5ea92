//! Packets that the gateway generates: probes of mechanisms, and ICMP errors about packets that were held.

use super::path::{Batch, Path};
use crate::drop_reason::DropReason;
use crate::effects::Generated;
use crate::frame::{Frame, Ingress};
use crate::parse;
use crate::rewrite::icmp_error::{DroppedPacket, IcmpDetail};

impl Path {
    /// Sends the packets that mechanisms generated.
    #[inline(always)]
    pub(super) fn send_generated(&mut self, batch: &mut Batch<'_>) {
        if self.effects.has_generated() {
            self.send_all(batch);
        }
    }

    #[cold]
    fn send_all(&mut self, batch: &mut Batch<'_>) {
        for generated in self.effects.take_generated() {
            match generated {
                // A probe that finds no room in the outbox is lost; the session then ends as if it was not answered.
                Generated::Probe(realm, packet) => {
                    if let Ok(frame) = batch.out.push(packet.len()) {
                        frame.ingress = Ingress::Device(realm);
                        frame.bytes_mut().copy_from_slice(&packet);
                        self.effects.counters.tcp_probes_made += 1;
                    }
                }
                Generated::Answer(reason, octets) => {
                    self.answer_later(reason, &as_long_as_it_says(octets), batch);
                }
            }
        }
    }

    /// Sends an ICMP error about a packet that was held and is dropped.
    pub(super) fn answer_later(&mut self, reason: DropReason, frame: &Frame, batch: &mut Batch<'_>) {
        if let Ok(packet) = parse::parse(frame.bytes()) {
            let counters = &mut self.effects.counters;
            let dropped = DroppedPacket { reason, frame, packet: Some(&packet), detail: IcmpDetail::None };
            let before = batch.out.len();
            self.errors.answer(dropped, batch.now, batch.out, counters);
            batch.out.follow(frame, before);
        }
    }
}

/// An IPv4 packet whose start alone was kept, with zeros for the rest: what an error quotes is its start.
fn as_long_as_it_says(octets: Box<[u8]>) -> Frame {
    let mut octets = octets.into_vec();
    if let Some(&[high, low]) = octets.get(2..4) {
        octets.resize(octets.len().max(u16::from_be_bytes([high, low]).into()), 0);
    }
    Frame::holding(&octets)
}
