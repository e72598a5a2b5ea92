//! Sessions and the fast path: which ones are offloaded, their usage, and when they are withdrawn.
//!
//! The usage of an entry is read on demand: when the session's lifetime seems to be over, when it is shown, when it ends. An entry is
//! removed before its session leaves the states in which packets change nothing, and before its binding and its port are freed.

use super::half_open::state_after;
use super::inside_key::InsideKey;
use super::offloading::last_of;
use super::protocol::NatProtocol;
use super::session::{Session, lived};
use super::session_state::SessionState;
use super::state_tables::StateTables;
use super::timeouts::Clock;
use crate::counters::Counters;
use crate::direction::Direction;
use crate::identity::Identity;
use crate::instant::Instant;
use crate::nat::offload::{FastPath, FlowHandle, OffloadedFlow, Usage};

/// Halves that waited and are examined after one batch: more than a batch of 256 packets can leave behind.
const WAITS_ENDED_AT_ONCE: usize = 640;

/// The current state of a session, the traffic in the fast path included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CurrentSession<I: InsideKey> {
    /// With the times as they are; its own counts lack what is below.
    pub(crate) session: Session<I>,
    /// Packets out and in.
    pub(crate) packets: [u64; 2],
    /// Octets out and in.
    pub(crate) octets: [u64; 2],
    /// Its entry in the fast path; a half-open one does not count.
    pub(crate) flow: Option<FlowHandle>,
}

impl<I: InsideKey> StateTables<I> {
    /// Offloads this translator's sessions to this fast path, or to none, when a direction has had `packets` packets.
    /// Sessions in an earlier fast path are removed from it.
    pub(crate) fn set_fast_path(
        &mut self,
        fast_path: Option<Box<dyn FastPath>>,
        mechanism: Identity,
        packets: u32,
    ) {
        if self.offloading.is_on() {
            for slot in 0..self.sessions.slots() {
                self.take_back(slot);
            }
        }
        self.sessions.note_ripe(fast_path.is_some().then_some(packets));
        self.offloading.set(fast_path, mechanism);
    }

    /// Whether the session is being moved to the fast path. If so, this packet is the last of its direction that was decided on.
    pub(crate) fn moves(
        &mut self,
        slot: u32,
        direction: Direction,
        mark: impl FnOnce() -> u32,
        now: Instant,
    ) -> bool {
        self.offloading.is_moving(slot) && self.offloading.sees(slot, direction, mark(), now)
    }

    /// Offloads a session if it is eligible, and due with these segments.
    pub(crate) fn offload(
        &mut self,
        slot: u32,
        (direction, segments): (Direction, u32),
        now: Instant,
        counters: &mut Counters,
    ) {
        if !self.sessions.is_ripe(slot, direction, segments) {
            return;
        }
        let Session { inside, outside, remote, protocol, state, .. } = *self.sessions.get(slot);
        if protocol == NatProtocol::Tcp && self.kept_here == Some(remote.port) {
            return;
        }
        let links = self.sessions.links(slot);
        let is_open = matches!(state, SessionState::Udp | SessionState::Established | SessionState::Icmp);
        if !is_open || links.flow().is_some() || links.stored().is_some() {
            // A reset just before this packet.
            if state == SessionState::Trans {
                self.sessions.bound_wait(slot);
            }
            return;
        }
        // The packet filter has to have seen a packet from outside. It does not see a SYN/ACK in the fast path.
        if protocol == NatProtocol::Tcp && !self.sessions.has_received(slot) {
            return;
        }
        let Some(inside) = inside.0.mapped() else { return };
        let Some(mechanism) = self.offloading.mechanism() else { return };
        let flow = OffloadedFlow { mechanism, protocol, inside, outside, remote };
        let Some(handle) = self.offloading.arm(slot, &flow, now) else {
            counters.flows_offload_refused += 1;
            return;
        };
        counters.flows_offloaded += 1;
        self.sessions.links_mut(slot).set_flow(Some(handle));
        self.sessions.note_moving(self.offloading.is_any_moving());
    }

    /// No packet waits before the engine, and everything decided on has been sent.
    pub(crate) const fn emptied(&mut self, now: Instant) {
        self.offloading.emptied(now);
    }

    /// Everything decided on has been sent.
    pub(crate) fn settle_moving(&mut self, now: Instant, counters: &mut Counters) {
        self.make_half_open(now);
        let (moving, waiting) = (self.offloading.is_any_moving(), self.offloading.is_any_waiting());
        if !moving && !waiting {
            return;
        }
        // First those that move: they may leave their slots to those that wait.
        if moving {
            counters.flows_moved_busy += self.offloading.settle(now).unquietly;
        }
        if waiting {
            self.end_waits(now, counters);
        }
        self.sessions.note_moving(self.offloading.is_any_moving());
    }

    /// Halves that had no packet for long enough, a bounded number of them.
    fn end_waits(&mut self, now: Instant, counters: &mut Counters) {
        for _ in 0..WAITS_ENDED_AT_ONCE {
            let Some(waiting) = self.offloading.next_silent(now) else { break };
            // The session may have ended, and its slot and its entry may be another's.
            if self.sessions.links(waiting.slot).flow() == Some(waiting.handle) {
                let moved = self.offloading.end_wait(waiting, now);
                counters.flows_moved_busy += moved.unquietly;
                if moved.stays {
                    counters.flows_withdrawn += u64::from(self.take_back(waiting.slot));
                }
            }
        }
    }

    /// Removes a session's entry from the fast path and adds its usage to the session. Whether the session was offloaded.
    pub(super) fn take_back(&mut self, slot: u32) -> bool {
        let Some(handle) = self.sessions.links(slot).flow() else { return false };
        let was_half_open = self.offloading.is_half_open(handle);
        self.sessions.links_mut(slot).set_flow(None);
        let usage = self.offloading.remove(slot, handle);
        self.apply_answer(slot, &usage);
        self.sessions.absorb(slot, &usage);
        self.sessions.note_moving(self.offloading.is_any_moving());
        !was_half_open
    }

    /// Removes a session's entry if it is half-open: another process could not adopt it.
    pub(super) fn take_back_half_open(&mut self, slot: u32) {
        if self.sessions.links(slot).flow().is_some_and(|handle| self.offloading.is_half_open(handle)) {
            self.take_back(slot);
        }
    }

    /// Withdraws the sessions that are being moved to the fast path: another process could not adopt them from there.
    pub(crate) fn take_back_under_way(&mut self, counters: &mut Counters) {
        for (slot, handle) in self.offloading.under_way() {
            if self.sessions.links(slot).flow() == Some(handle) {
                counters.flows_withdrawn += u64::from(self.take_back(slot));
            }
        }
    }

    /// A SYN, FIN or RST has come: from now on the state machine decides.
    #[cold]
    pub(crate) fn reclaim(&mut self, slot: u32, counters: &mut Counters) {
        self.forget_opening(slot);
        if self.take_back(slot) {
            counters.flows_withdrawn += 1;
            self.sessions.bound_wait(slot);
        }
    }

    /// Whether a session whose lifetime seems to be over had packets in the fast path since. If not, it is withdrawn.
    pub(super) fn lives_elsewhere(&mut self, slot: u32, clock: Clock, counters: &mut Counters) -> bool {
        let Some(handle) = self.sessions.links(slot).flow() else { return false };
        if let Some(last) = last_of(&self.offloading.usage(handle)) {
            self.sessions.lived(slot, last);
        }
        if !self.sessions.is_overdue(slot, clock) {
            return true;
        }
        // What went by in between is seen here.
        counters.flows_withdrawn += u64::from(self.take_back(slot));
        !self.sessions.is_overdue(slot, clock)
    }

    /// The engine had the session's packets, if it had any: who adopts its entry is to know, and so are the programs, which leave to the engine
    /// what was idle for its lifetime.
    pub(super) fn touch(&mut self, slot: u32) {
        if let Some(handle) = self.sessions.links(slot).flow() {
            let last = self.sessions.get(slot).last_packet;
            self.offloading.touch(handle, Instant::from_secs(last.into()));
        }
    }

    /// A session as it is.
    pub(crate) fn present(&self, slot: u32) -> CurrentSession<I> {
        let flow = self.sessions.links(slot).flow();
        let usage = flow.map_or_else(Usage::default, |handle| self.offloading.usage(handle));
        let mut session = *self.sessions.get(slot);
        session.state = state_after(session.state, &usage);
        if let Some(last) = last_of(&usage) {
            lived(&mut session, last);
        }
        let (packets, octets) = (self.sessions.packets(slot), self.sessions.octets(slot));
        CurrentSession {
            session,
            packets: [0, 1].map(|direction| packets[direction].wrapping_add(usage[direction].packets)),
            octets: [0, 1].map(|direction| octets[direction].wrapping_add(usage[direction].octets)),
            flow: flow.filter(|handle| !self.offloading.is_half_open(*handle)),
        }
    }
}
