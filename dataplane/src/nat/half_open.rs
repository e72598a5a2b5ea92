//! TCP sessions whose SYN came from inside, and their SYN/ACK in the fast path.
//!
//! ```text
//!     SYN ──▶ engine: session in INSIDE INIT, half-open entry
//!     SYN/ACK ──▶ forwarded by the entry: the engine does not see it
//!     any other packet ──▶ engine: the entry has counted a packet? then the session is ESTABLISHED
//! ```
//!
//! So a connection waits for the engine once, and not twice. A half-open entry forwards SYN/ACKs from outside and nothing else; the state
//! machine passes what it has counted when the next packet comes, when the lifetime is over, and when the session is shown or saved.

use super::inside_key::InsideKey;
use super::offloading::last_of;
use super::protocol::NatProtocol;
use super::session::Session;
use super::session_state::SessionState;
use super::state_tables::StateTables;
use super::timeouts::Clock;
use crate::direction::Direction;
use crate::nat::offload::{OffloadedFlow, Usage};

/// The state of a session in this state whose entry was used like this.
pub(super) const fn state_after(state: SessionState, usage: &Usage) -> SessionState {
    match state {
        SessionState::InsideInit if usage[Direction::In as usize].packets > 0 => SessionState::Established,
        other => other,
    }
}

impl<I: InsideKey> StateTables<I> {
    /// A SYN from inside, the first of its session or a repeated one: has the fast path forward the SYN/ACK. Whether the session waits for one
    /// there, or had one.
    pub(crate) fn await_answer(&mut self, slot: u32) -> bool {
        let Session { inside, outside, remote, protocol, state, .. } = *self.sessions.get(slot);
        if state != SessionState::InsideInit || protocol != NatProtocol::Tcp {
            return false;
        }
        if self.sessions.links(slot).flow().is_some() {
            self.learn_answer(slot);
            return true;
        }
        if self.kept_here == Some(remote.port) {
            return false;
        }
        let Some(inside) = inside.0.mapped() else { return false };
        let Some(mechanism) = self.offloading.mechanism() else { return false };
        let flow = OffloadedFlow { mechanism, protocol, inside, outside, remote };
        let handle = self.offloading.half_open(&flow);
        self.sessions.links_mut(slot).set_flow(handle);
        handle.is_some()
    }

    /// The session waits for a SYN/ACK: if its entry has forwarded one, the session is established from then on.
    #[cold]
    pub(crate) fn learn_answer(&mut self, slot: u32) {
        if let Some(handle) = self.sessions.links(slot).flow() {
            self.apply_answer(slot, &self.offloading.usage(handle));
        }
    }

    /// The same, by what its entry has counted.
    pub(super) fn apply_answer(&mut self, slot: u32, usage: &Usage) {
        let before = self.sessions.get(slot).state;
        let state = state_after(before, usage);
        if state != before
            && let Some(last) = last_of(usage)
        {
            self.sessions.set_state(slot, state, Clock::at(last).ceil);
        }
    }
}
