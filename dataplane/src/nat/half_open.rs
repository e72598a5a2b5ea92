//! TCP sessions whose SYN came from inside, and their SYN/ACK in the fast path.
//!
//! ```text
//!     SYN ──▶ engine: session in INSIDE INIT, half-open entry
//!     SYN/ACK ──▶ forwarded by the entry: the engine does not see it
//!     any other packet ──▶ engine: has the entry counted a packet? then the session is ESTABLISHED, and the entry is withdrawn
//! ```
//!
//! So a connection waits for the engine once, and not twice. What a half-open entry has counted is applied to the state machine when the next
//! packet comes, when the lifetime is over, when the session is shown, and when it is saved. An entry without a SYN/ACK is withdrawn after a few
//! seconds.

use super::inside_key::InsideKey;
use super::offloading::{HalfOpen, last_of};
use super::protocol::NatProtocol;
use super::session::Session;
use super::session_state::SessionState;
use super::state_tables::StateTables;
use super::timeouts::Clock;
use crate::direction::Direction;
use crate::instant::Instant;
use crate::nat::offload::{OffloadedFlow, Usage};

/// Old entries that are looked at with each new one, and with each tick.
const WITH_NEW: usize = 2;
const WITH_TICK: usize = 64;

/// The state of a session in this state whose entry was used like this.
pub(super) const fn state_after(state: SessionState, usage: &Usage) -> SessionState {
    match state {
        SessionState::InsideInit if usage[Direction::In as usize].packets > 0 => SessionState::Established,
        other => other,
    }
}

impl<I: InsideKey> StateTables<I> {
    /// A SYN from inside, the first of its session or a repeated one: has the fast path forward the SYN/ACK, if it can. The entry of a batch's
    /// last SYN is made after the batch was sent, so that this SYN is not delayed; those of the SYNs before it are made first. `false`: the session
    /// does not wait for a SYN/ACK.
    pub(crate) fn await_answer(&mut self, slot: u32, now: Instant) -> bool {
        let Session { remote, protocol, state, .. } = *self.sessions.get(slot);
        if state != SessionState::InsideInit || protocol != NatProtocol::Tcp {
            return false;
        }
        if self.sessions.links(slot).flow().is_some() {
            self.learn_answer(slot);
            return true;
        }
        if self.kept_here != Some(remote.port) && self.offloading.is_on() {
            self.make_half_open(now);
            self.offloading.opening = Some(slot);
        }
        true
    }

    /// Makes the half-open entry of the SYN that was decided on last.
    #[inline]
    pub(super) fn make_half_open(&mut self, now: Instant) {
        if let Some(slot) = self.offloading.opening.take() {
            self.half_open(slot, now);
        }
    }

    /// Makes a half-open entry for this session if it still waits for its SYN/ACK.
    #[inline(never)]
    fn half_open(&mut self, slot: u32, now: Instant) {
        let Session { inside, outside, remote, protocol, state, .. } = *self.sessions.get(slot);
        if state != SessionState::InsideInit || self.sessions.links(slot).flow().is_some() {
            return;
        }
        self.withdraw_unanswered(now, WITH_NEW);
        let Some(inside) = inside.0.mapped() else { return };
        let Some(mechanism) = self.offloading.mechanism() else { return };
        let flow = OffloadedFlow { mechanism, protocol, inside, outside, remote };
        let handle = self.offloading.half_open(slot, &flow, now);
        self.sessions.links_mut(slot).set_flow(handle);
    }

    /// This session ends, or a FIN or RST of it has come: if its SYN has no entry yet, it gets none.
    pub(super) fn forget_opening(&mut self, slot: u32) {
        self.offloading.opening.take_if(|opening| *opening == slot);
    }

    /// If the session's entry is half-open and has forwarded a SYN/ACK, withdraws it: the session is established since then. Whether it was so.
    #[cold]
    pub(crate) fn learn_answer(&mut self, slot: u32) -> bool {
        let before = self.sessions.get(slot).state;
        if before != SessionState::InsideInit {
            return false;
        }
        let Some(handle) = self.sessions.links(slot).flow() else { return false };
        let is_answered = state_after(before, &self.offloading.usage(handle)) != before;
        if is_answered {
            self.take_back(slot);
        }
        is_answered
    }

    /// The session's entry was withdrawn, and had counted this.
    pub(super) fn apply_answer(&mut self, slot: u32, usage: &Usage) {
        let before = self.sessions.get(slot).state;
        let state = state_after(before, usage);
        if state != before
            && let Some(last) = last_of(usage)
        {
            self.sessions.set_state(slot, state, Clock::at(last).ceil);
        }
    }

    /// Withdraws half-open entries that have waited for long enough: other engines share the fast path, and may have use for the room.
    #[inline]
    pub(crate) fn tick_half_open(&mut self, now: Instant) {
        if self.offloading.has_half_open() {
            self.withdraw_unanswered(now, WITH_TICK);
        }
    }

    #[inline(never)]
    fn withdraw_unanswered(&mut self, now: Instant, most: usize) {
        for _ in 0..most {
            let Some(HalfOpen { slot, handle, .. }) = self.offloading.next_unanswered(now) else { break };
            if self.sessions.links(slot).flow() == Some(handle) {
                self.take_back_half_open(slot);
            }
        }
    }
}
