//! The engine and the fast path, which is set before the first packet and settled after each batch that was sent.

use super::Engine;
use crate::frame::Realm;
use crate::instant::Instant;
use crate::nat::offload::{FastPath, FlowHandle, OffloadedFlow, Usage};
use crate::nat::{NatProtocol, NotAdopted, Outside, PortLedger};
use sixway_wire::Endpoint4;

/// Packets of a direction after which a session is offloaded to the fast path.
pub const PACKETS_BEFORE_OFFLOAD: u32 = 8;

impl Engine {
    /// Offloads sessions to this fast path from now on, when a direction has had `packets` packets (rounded up to a power of two). A refused
    /// one is offered again when it has had twice as many, and so on. Entries of an earlier fast path are removed from it immediately.
    pub fn set_fast_path(&mut self, fast_path: Box<dyn FastPath>, packets: u32) {
        let first = self.config.nat64.len();
        for (index, one) in self.mechanisms.stateful().enumerate() {
            let nat44 = index.checked_sub(first).and_then(|index| self.config.nat44.get(index));
            // The fast path does not know which device a packet came from.
            if nat44.is_none_or(|nat44| nat44.realm == Realm(0)) {
                one.set_fast_path(Some(fast_path.handle()), packets);
            }
        }
    }

    /// Stops offloading sessions, and immediately withdraws those in the fast path.
    pub fn clear_fast_path(&mut self) {
        self.mechanisms.stateful().for_each(|one| one.set_fast_path(None, 0));
    }

    /// Records the ports of dynamic bindings in this ledger from now on.
    pub fn set_port_ledger(&mut self, ledger: Box<dyn PortLedger>) {
        self.mechanisms.stateful().for_each(|one| one.set_ledger(ledger.handle()));
    }

    /// No packet waits before the engine, and everything decided on so far has been sent. Call it whenever the queue was empty,
    /// before [`Self::settle`]. A session whose packets leave no marks moves to the fast path after such a moment alone, or after half a second.
    pub fn emptied(&mut self, now: Instant) {
        self.mechanisms.stateful().for_each(|one| one.emptied(now));
        self.caught_up();
    }

    /// Every queue was empty in the last turn, after what was taken out of it.
    pub fn caught_up(&mut self) {
        if let Some(shares) = &mut self.shares {
            shares.emptied();
        }
    }

    /// Everything decided on so far has been sent: sessions being moved to the fast path that have no packet in flight become active there.
    /// Call it after each batch was sent, and when idle.
    pub fn settle(&mut self, now: Instant) {
        let counters = &mut self.path.effects.counters;
        self.mechanisms.stateful().for_each(|one| one.settle_moving(now, counters));
    }

    /// Withdraws the sessions that are being moved to the fast path, so that they are exported: another process adopts only those
    /// that are active there.
    pub fn take_back_under_way(&mut self) {
        let counters = &mut self.path.effects.counters;
        self.mechanisms.stateful().for_each(|one| one.take_back_under_way(counters));
    }

    /// Creates the session of a flow that the fast path forwards without one. `usage` is that of its entry. On failure nothing is
    /// changed, and the caller removes the entry.
    pub fn adopt(
        &mut self,
        flow: &OffloadedFlow,
        handle: FlowHandle,
        usage: &Usage,
        now: Instant,
    ) -> Result<(), NotAdopted> {
        let (translator, counters) =
            self.stateful_of(flow.mechanism, flow.outside.0).ok_or(NotAdopted::NoTranslator)?;
        translator.adopt(flow, handle, usage, now, counters)
    }

    /// Quarantines an endpoint until `until`, as [`crate::stateful::Stateful::quarantine`] of the translator that it
    /// belongs to. Whether it was quarantined.
    pub fn quarantine(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>, until: Instant) -> bool {
        self.mechanisms.stateful().any(|translator| translator.quarantine(protocol, outside, until))
    }
}
