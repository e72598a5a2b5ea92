//! The packets of tunnels in a stride: those that stand together go through together, and what comes out is joined.

use super::{Engine, Slot};
use crate::classify::Owner;
use crate::frame::Frame;
use crate::instant::Instant;
use crate::verdict::{Outbox, Verdict};

impl Engine {
    /// The packets of tunnels up to the next that is none, which is the first of those given back. They have a loop of their own, or
    /// translation would be slower for what it never runs.
    #[inline(never)]
    pub(super) fn through_tunnels<'a>(
        &mut self,
        stride: &mut [Frame],
        slots: &'a [Slot],
        now: Instant,
        out: &mut Outbox,
    ) -> &'a [Slot] {
        let mut rest = slots;
        while let [slot, behind @ ..] = rest
            && slot.owner.is_tunnel()
        {
            rest = behind;
            let frame = &mut stride[slot.frame as usize];
            match self.walk_tunnel(frame, &slot.packet, slot.owner, now, out) {
                Ok(verdict) => self.conclude(verdict, frame),
                Err(reason) => self.refuse(reason, frame, Some(&slot.packet), now, out),
            }
        }
        rest
    }

    /// Joins the segments of a stride that came out of tunnels.
    pub(super) fn join_decapsulated(&mut self, stride: &mut [Frame], slots: &[Slot]) {
        let mut candidates = 0;
        for slot in slots.iter().filter(|slot| matches!(slot.owner, Owner::Endpoint(_))) {
            let frame = &stride[slot.frame as usize];
            candidates |= u64::from(frame.verdict == Verdict::Forward) << slot.frame;
            // A packet that came in fragments leaves here, and nothing behind it may leave before it.
            if !frame.pieces.is_empty() {
                self.joining.join(stride, core::mem::take(&mut candidates), &mut self.counters);
            }
        }
        self.joining.join(stride, candidates, &mut self.counters);
    }
}
