//! Fragments on their way to a stateful translator (RFC 6146 §3.4) or of tunnel packets (RFC 4213 §3.6): held until their packet is
//! complete, then walked as one. Each direction of a translator has a table of its own, tunnels have one, and their known
//! remote ends another one, so that a flood of one does not fill the other.

use super::Engine;
use super::bounds::EXPIRED_AT_ONCE;
use super::path::Batch;
use super::slot::Slot;
use crate::classify::{Owner, TunnelAddress};
use crate::drop_reason::DropReason;
use crate::fragment::{Admission, Displaced, Reassembly, Refused};
use crate::frame::{Frame, Ingress, Realm};
use crate::instant::Instant;
use crate::mechanism::contract::Mechanism as _;
use crate::mechanism::table::with_row_ref;
use crate::parse::{self, Addresses, Packet};
use crate::verdict::{MechanismId, Verdict};

impl Engine {
    /// Holds a fragment until its packet is complete, and then walks the whole packet, which leaves through the outbox.
    #[cold]
    pub(super) fn reassemble(
        &mut self,
        packet: &Packet,
        owner: Owner,
        frame: &mut Frame,
        batch: &mut Batch<'_>,
    ) -> Result<Verdict, DropReason> {
        if frame.offload.segments.is_some() {
            return Err(DropReason::BadGso);
        }
        let admitted = self.admit(frame, packet, owner, batch.now);
        self.go_on_with(admitted, frame, batch)
    }

    /// Goes on with a fragment that was taken: it waits, or completes its packet, which is walked.
    pub(super) fn go_on_with(
        &mut self,
        admitted: Result<Admission, Refused>,
        frame: &mut Frame,
        batch: &mut Batch<'_>,
    ) -> Result<Verdict, DropReason> {
        let mut whole = match admitted {
            Ok(Admission::Held) => return Ok(Verdict::Held),
            Ok(Admission::Whole(whole)) => whole,
            Err(refused) => {
                self.path.effects.counters.drop_held(refused.reason, refused.released.into());
                return Err(refused.reason);
            }
        };
        // All fragments but this one were held. From here on they share the verdict of their packet.
        let held = u64::from(whole.fragments) - 1;
        self.path.effects.counters.held -= held;
        self.path.effects.counters.reassembled += 1;
        (whole.frame.passes, whole.frame.ingress) = (frame.passes, frame.ingress);
        let before = batch.out.len();
        let mut slot = Slot::EMPTY;
        let parsed = parse::parse_into(whole.frame.bytes(), &mut slot.packet);
        let walked = parsed.and_then(|()| self.walk_whole(&mut slot, &mut whole.frame, batch));
        match walked {
            Ok(Verdict::Forward) => match batch.out.push(whole.frame.len()) {
                Ok(leaving) => {
                    leaving.bytes_mut().copy_from_slice(whole.frame.bytes());
                    (leaving.offload, leaving.ingress) = (whole.frame.offload, whole.frame.ingress);
                    self.path.conclude(Verdict::Forward, leaving);
                    self.path.effects.counters.forwarded += held;
                }
                Err(reason) => self.path.effects.counters.drop_frames(reason, held + 1),
            },
            Ok(verdict) => {
                self.path.effects.counters.merged += held;
                // The next owner needs the whole packet.
                if let Verdict::HandOver(_) | Verdict::Control | Verdict::Answered = verdict {
                    frame.adopt(whole.frame);
                    return Ok(verdict);
                }
                self.path.conclude(verdict, &mut whole.frame);
            }
            Err(reason) => {
                let packet = parsed.is_ok().then_some((&slot.packet, slot.inner.as_ref()));
                self.path.refuse_with(reason, &mut whole.frame, packet, batch);
                self.path.effects.counters.drop_frames(reason, held);
            }
        }
        frame.pieces = batch.out.since(before);
        Ok(Verdict::Merged)
    }

    /// To the table that holds an owner's fragments.
    fn admit(
        &mut self,
        frame: &Frame,
        packet: &Packet,
        owner: Owner,
        now: Instant,
    ) -> Result<Admission, Refused> {
        if let Some(table) = self.realms.fragments_from(frame.realm()) {
            return table.admit(frame, packet, now);
        }
        match (owner, packet.addresses) {
            (Owner::TunnelAddress(TunnelAddress(number)), Addresses::V4 { source, .. })
                if self.tunnel_addresses.only_to(number, source).is_some() =>
            {
                self.peer_reassembly.admit_of_peer(frame, packet, now)
            }
            (Owner::TunnelAddress(_), outer) if self.pair_ends.may_come(outer) => {
                self.peer_reassembly.admit_of_peer(frame, packet, now)
            }
            (Owner::TunnelAddress(_), outer) => match self.path.softwires.sharing(outer, false) {
                Some(sharing) => self.softwire_reassembly.admit_shared(sharing, frame, packet, now),
                None => self.outer_reassembly.admit(frame, packet, now),
            },
            (Owner::Mechanism(id), _) if self.is_from_inside(id, packet) => {
                self.reassembly.admit(frame, packet, now)
            }
            (Owner::Gateway, Addresses::V6 { .. }) => self.reassembly.admit(frame, packet, now),
            (Owner::Gateway | Owner::Mechanism(_), _) => {
                let admitted = self.outside_reassembly.admit(frame, packet, now);
                let Displaced { of_share, of_table } = self.outside_reassembly.take_displaced();
                let counters = &mut self.path.effects.counters;
                counters.drop_held(DropReason::FragmentShare, of_share.into());
                counters.drop_held(DropReason::FragmentMemory, of_table.into());
                admitted
            }
        }
    }

    fn is_from_inside(&self, id: MechanismId, packet: &Packet) -> bool {
        with_row_ref!(self.mechanisms, id.kind, row => row.all[usize::from(id.index)].is_from_inside(packet))
    }

    /// The tables of held fragments.
    #[inline]
    pub(super) const fn fragment_tables(&self) -> [&Reassembly; 6] {
        [
            &self.reassembly,
            &self.outside_reassembly,
            &self.outer_reassembly,
            &self.peer_reassembly,
            &self.softwire_reassembly,
            &self.inner_reassembly,
        ]
    }

    /// Whether a fragment waits in any table. Where there are no softwires none waits in theirs.
    #[inline]
    pub(super) fn hold_fragments(&self) -> bool {
        let [inside, outside, outer, peer, of_softwires @ ..] = self.fragment_tables();
        [inside, outside, outer, peer].iter().any(|table| !table.is_empty())
            || !self.path.softwires.is_empty() && of_softwires.iter().any(|table| !table.is_empty())
            || self.realms.hold_fragments()
    }

    /// Drops fragments whose reassembly timed out, a bounded number of them.
    #[cold]
    pub(super) fn expire_fragments(&mut self, batch: &mut Batch<'_>) {
        let path = &mut self.path;
        let tables = [&mut self.reassembly, &mut self.outside_reassembly].map(|table| (Realm(0), table));
        for (realm, table) in tables.into_iter().chain(self.realms.fragment_tables()) {
            table.expire(batch.now, EXPIRED_AT_ONCE, |expired| {
                let counters = &mut path.effects.counters;
                counters.drop_held(DropReason::FragmentTimeout, expired.fragments.into());
                if let Some(mut first) = expired.first {
                    first.ingress = Ingress::Device(realm);
                    path.answer_later(DropReason::FragmentTimeout, &first, batch);
                }
            });
        }
        // No ICMP error: the outer source may be spoofed, and the inner packet is beyond what the error would quote.
        let counters = &mut self.path.effects.counters;
        let (outer, peer) = (&mut self.outer_reassembly, &mut self.peer_reassembly);
        for table in [outer, peer, &mut self.softwire_reassembly, &mut self.inner_reassembly] {
            table.expire(batch.now, EXPIRED_AT_ONCE, |expired| {
                counters.drop_held(DropReason::FragmentTimeout, expired.fragments.into());
            });
        }
    }
}
