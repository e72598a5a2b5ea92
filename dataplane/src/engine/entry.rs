//! The interface of the engine to its worker: frames, time, counters and tables.

use super::assembly::Engine;
use super::bounds::EXPIRED_AT_ONCE;
use super::path::Batch;
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::frame::{Frame, Realm};
use crate::identity::Identity;
use crate::instant::Instant;
use crate::mechanism::ds_lite::DsLite;
use crate::mechanism::four_over_six::FourOverSix;
use crate::mechanism::nat44::Nat44;
use crate::mechanism::nat46::Nat46;
use crate::mechanism::nat64::Nat64;
use crate::mechanism::siit::Siit;
use crate::mechanism::teredo::{Teredo, TeredoChange};
use crate::outbox::Outbox;
use crate::stateful::Stateful;
use crate::verdict::{Verdict, WorkerId};
use sixway_wire::Endpoint4;

impl Engine {
    /// The counters since the start.
    pub const fn counters(&self) -> &Counters {
        &self.path.effects.counters
    }

    /// The stateful translators: NAT64s, NAT44s, AFTRs, each in the order of the configuration.
    pub fn stateful(&mut self) -> impl Iterator<Item = &mut dyn Stateful> {
        self.mechanisms.stateful()
    }

    /// The stateful translator of this index, and the counters that an operator's changes to it move.
    pub fn stateful_at(&mut self, index: usize) -> Option<(&mut dyn Stateful, &mut Counters)> {
        Some((self.mechanisms.stateful().nth(index)?, &mut self.path.effects.counters))
    }

    /// The stateful translator with this identity, of several the one whose pool has the outside endpoint; and the counters.
    pub fn stateful_of(
        &mut self,
        identity: Identity,
        outside: Endpoint4,
    ) -> Option<(&mut dyn Stateful, &mut Counters)> {
        let index = self.stateful_index(identity, outside)?;
        self.stateful_at(index)
    }

    /// The index of [`Engine::stateful_of`]. Several may have the address, each with other ports.
    pub(super) fn stateful_index(&mut self, identity: Identity, outside: Endpoint4) -> Option<usize> {
        let mut found: Option<(usize, (bool, bool))> = None;
        for (index, one) in
            self.mechanisms.stateful().enumerate().filter(|(_, one)| one.identity() == identity)
        {
            let has = one.owns_outside(outside.address);
            let owns = (has, has && one.gives_port(outside.port));
            if found.is_none_or(|(_, best)| owns > best) {
                found = Some((index, owns));
            }
        }
        found.map(|(index, _)| index)
    }

    /// The index of the stateful translator whose block of this port says which worker's queue packets are steered to: the first one, unless
    /// only others give ports of the block. Their blocks have to be as large.
    pub fn steering_index(&mut self, port: u16) -> usize {
        let Some(size) = self.mechanisms.stateful().next().map(|one| one.ports_per_block()) else { return 0 };
        let first = port - port % size;
        let gives = |one: &mut dyn Stateful| {
            one.ports_per_block() == size && (first..=first + (size - 1)).any(|port| one.gives_port(port))
        };
        self.mechanisms.stateful().position(gives).unwrap_or(0)
    }

    /// The NAT64s, in the order of the configuration.
    pub fn nat64(&mut self) -> &mut [Nat64] {
        &mut self.mechanisms.nat64.all
    }

    /// The NAT64s, and the counters that an operator's changes to them move.
    pub fn nat64_and_counters(&mut self) -> (&mut [Nat64], &mut Counters) {
        (&mut self.mechanisms.nat64.all, &mut self.path.effects.counters)
    }

    /// The NAT44s, in the order of the configuration.
    pub fn nat44(&mut self) -> &mut [Nat44] {
        &mut self.mechanisms.nat44.all
    }

    /// The AFTRs, in the order of the configuration.
    pub fn ds_lite(&mut self) -> &mut [DsLite] {
        &mut self.mechanisms.ds_lite.all
    }

    /// The stateless translators, in the order of the configuration.
    pub fn siit(&mut self) -> &mut [Siit] {
        &mut self.mechanisms.siit.all
    }

    /// Which worker this engine belongs to.
    pub const fn worker(&self) -> WorkerId {
        self.config.worker
    }

    /// The NAT46s, in the order of the configuration.
    pub fn nat46(&mut self) -> &mut [Nat46] {
        &mut self.mechanisms.nat46.all
    }

    /// The ends of 4over6 tunnels, in the order of the configuration.
    pub fn four_over_six(&mut self) -> &mut [FourOverSix] {
        &mut self.mechanisms.four_over_six.all
    }

    /// Teredo's relays and clients, in the order of the configuration.
    pub fn teredo(&self) -> &[Teredo] {
        &self.mechanisms.teredo.all
    }

    /// Changes a relay or a client of Teredo. Without effect if the index has no relay or client.
    pub fn change_teredo(&mut self, index: u16, change: &TeredoChange, now: Instant) {
        if let Some(teredo) = self.mechanisms.teredo.all.get_mut(usize::from(index)) {
            teredo.change(change, now, &mut self.path.effects);
            self.set_udp_ends();
        }
    }

    /// Writes the verdict of every frame received from a link. The caller sends in the order of the frames: those that leave, and at
    /// the place of each the frames of `out` up to the end of its [`Frame::pieces`]; then what else is in `out`.
    /// All of them came by the same link.
    pub fn process(&mut self, frames: &mut [Frame], now: Instant, out: &mut Outbox) {
        self.path.effects.counters.received += frames.len() as u64;
        // Behind a single packet there is no queue.
        if frames.len() > 1 && self.shares.is_some() {
            return self.process_in_shares(frames, now, out, false);
        }
        if frames.first().is_some_and(|frame| frame.realm() != Realm(0)) {
            return self.go_in_realms(frames, Batch { now, out });
        }
        self.go(frames, Batch { now, out });
    }

    /// As [`Self::process`], for frames that another worker handed over.
    pub fn take_over(&mut self, frames: &mut [Frame], now: Instant, out: &mut Outbox) {
        self.path.effects.counters.taken_over += frames.len() as u64;
        if frames.len() > 1 && self.shares.is_some() {
            return self.process_in_shares(frames, now, out, true);
        }
        self.process_counted(frames, now, out);
    }

    /// As [`Self::process`], for frames that have been counted and are in their senders' shares.
    #[inline(never)]
    pub(super) fn process_counted(&mut self, frames: &mut [Frame], now: Instant, out: &mut Outbox) {
        if frames.iter().any(|frame| frame.realm() != Realm(0)) {
            return self.go_in_realms(frames, Batch { now, out });
        }
        self.go(frames, Batch { now, out });
    }

    /// A frame could not be handed over because the ring is full: it is dropped.
    pub fn refused_handover(&mut self, frame: &mut Frame) {
        frame.verdict = Verdict::Dropped(DropReason::HandoverFull);
        let counters = &mut self.path.effects.counters;
        counters.handed_over -= 1;
        counters.drop_frames(DropReason::HandoverFull, 1);
    }

    /// Ends what has expired, a bounded amount of it. Call it after each batch and when idle.
    pub fn tick(&mut self, now: Instant, out: &mut Outbox) {
        self.turn_shares(now);
        self.mechanisms.expire(now, EXPIRED_AT_ONCE, &mut self.path.effects);
        let mut batch = Batch { now, out };
        self.path.send_generated(&mut batch);
        if self.hold_fragments() {
            self.expire_fragments(&mut batch);
        }
    }
}
