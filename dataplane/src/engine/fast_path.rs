//! The engine and the fast path: given before the first packet, settled after each batch that was sent.

use super::Engine;
use crate::instant::Instant;
use crate::nat::offload::{FastPath, FlowHandle, OffloadedFlow, Usage};
use crate::nat::{NatProtocol, NotAdopted, Outside, PortLedger};
use sixway_wire::Endpoint4;

/// Packets of a direction after which a session is given to the fast path.
pub const PACKETS_BEFORE_OFFLOAD: u32 = 8;

impl Engine {
    /// Offloads sessions to this fast path from now on, when a direction has had `packets` packets (rounded up to a power of two). A refused
    /// one is offered again when it has had twice as many, and so on. Entries of an earlier fast path are taken out of it, in one go.
    pub fn set_fast_path(&mut self, fast_path: Box<dyn FastPath>, packets: u32) {
        for nat64 in &mut self.mechanisms.nat64.all {
            nat64.set_fast_path(Some(fast_path.handle()), packets);
        }
    }

    /// Stops offloading sessions, and withdraws those in the fast path, at once.
    pub fn clear_fast_path(&mut self) {
        for nat64 in &mut self.mechanisms.nat64.all {
            nat64.set_fast_path(None, 0);
        }
    }

    /// Tells this ledger from now on of the ports that dynamic bindings have.
    pub fn set_port_ledger(&mut self, ledger: Box<dyn PortLedger>) {
        for nat64 in &mut self.mechanisms.nat64.all {
            nat64.set_ledger(ledger.handle());
        }
    }

    /// Nothing waits before the engine, and what was decided on so far has been sent: to be told whenever whoever brings packets had none,
    /// before [`Self::settle`]. A session whose packets leave no marks moves to the fast path after such a moment alone, or after half a second.
    pub fn emptied(&mut self, now: Instant) {
        for nat64 in &mut self.mechanisms.nat64.all {
            nat64.emptied(now);
        }
    }

    /// What was decided on so far has been sent: sessions on their way to the fast path that have no packet under way arrive there. To be
    /// called after each batch was sent, and when nothing comes.
    pub fn settle(&mut self, now: Instant) {
        for nat64 in &mut self.mechanisms.nat64.all {
            nat64.settle_moving(now, &mut self.path.effects.counters);
        }
    }

    /// Takes back the sessions that are on their way to the fast path, so that they are among those that are exported: another process
    /// adopts only those that have arrived there.
    pub fn take_back_under_way(&mut self) {
        for nat64 in &mut self.mechanisms.nat64.all {
            nat64.take_back_under_way(&mut self.path.effects.counters);
        }
    }

    /// Makes a session of a flow that the fast path carries without a session. `usage` is what its entry has seen. On failure nothing is
    /// changed, and the caller takes the entry out.
    pub fn adopt(
        &mut self,
        flow: &OffloadedFlow,
        handle: FlowHandle,
        usage: &Usage,
        now: Instant,
    ) -> Result<(), NotAdopted> {
        let mut all = self.mechanisms.nat64.all.iter_mut();
        let nat64 = all.find(|nat64| nat64.identity() == flow.mechanism).ok_or(NotAdopted::NoTranslator)?;
        nat64.adopt(flow, handle, usage, now, &mut self.path.effects.counters)
    }

    /// Keeps an endpoint from being given before `until`, as [`crate::mechanism::nat64::Nat64::quarantine`] of the translator that it
    /// belongs to; whether it is kept.
    pub fn quarantine(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>, until: Instant) -> bool {
        self.mechanisms.nat64.all.iter_mut().any(|nat64| nat64.quarantine(protocol, outside, until))
    }
}
