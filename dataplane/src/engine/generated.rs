//! Packets that the gateway generates: probes of mechanisms, and ICMP errors about packets that were held.

use super::path::{Batch, Path};
use crate::drop_reason::DropReason;
use crate::effects::{Generated, HeldPacket};
use crate::frame::{Frame, Ingress};
use crate::kind::Kind;
use crate::parse;
use crate::rewrite::icmp_error::{DroppedPacket, IcmpDetail};
use crate::rewrite::{Pass, Work};
use crate::verdict::{Decision, Outer, PolicyId, Verdict};
use sixway_wire::IPV6_HEADER;

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
                // One that finds no room in the outbox is lost, as datagrams may be.
                Generated::Datagram(source, destination, payload) => {
                    self.rewriter.datagram(source, destination, &payload, batch.out);
                }
                Generated::Released(packet, outer, policy) => {
                    self.release(&packet, outer, policy, batch);
                }
            }
        }
    }

    /// Sends a packet that was held.
    fn release(&mut self, held: &HeldPacket, outer: Outer, policy: PolicyId, batch: &mut Batch<'_>) {
        let mut frame = Frame::holding(&held.octets);
        frame.offload = held.offload;
        self.effects.counters.held = self.effects.counters.held.saturating_sub(1);
        let packet = match parse::parse(frame.bytes()) {
            Ok(packet) => packet,
            Err(reason) => return self.refuse(reason, &mut frame, None, batch),
        };
        let decision = Decision::encap(self.effects.outer(outer), policy);
        let pass = Pass { decrement: false, reassembled: false };
        let work = Work { decision: &decision, packet: &packet, inner: None, pass };
        match self.execute_alone(Kind::Teredo, &work, &mut frame, batch) {
            Ok(Verdict::Forward) => match batch.out.push(frame.len()) {
                Ok(sent) => {
                    sent.bytes_mut().copy_from_slice(frame.bytes());
                    (sent.offload, sent.by_socket) = (frame.offload, frame.by_socket);
                    self.conclude(Verdict::Forward, &mut frame);
                }
                Err(reason) => self.refuse(reason, &mut frame, None, batch),
            },
            Ok(verdict) => self.conclude(verdict, &mut frame),
            Err(reason) => self.refuse(reason, &mut frame, Some(&packet), batch),
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

/// A packet whose start alone was kept, with zeros for the rest: what an error quotes is its start.
fn as_long_as_it_says(octets: Box<[u8]>) -> Frame {
    let mut octets = octets.into_vec();
    let length = match octets[..] {
        [first, _, _, _, high, low, ..] if first >> 4 == 6 => {
            IPV6_HEADER + usize::from(u16::from_be_bytes([high, low]))
        }
        [_, _, high, low, ..] => u16::from_be_bytes([high, low]).into(),
        [..] => 0,
    };
    octets.resize(octets.len().max(length), 0);
    Frame::holding(&octets)
}
