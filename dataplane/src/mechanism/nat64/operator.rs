//! What an operator, the fast path and another process see of a NAT64 and do with it: the NAT's own verbs.

use super::Nat64;
use crate::counters::Counters;
use crate::instant::Instant;
use crate::nat::offload::{FastPath, FlowHandle, OffloadedFlow, Usage};
use crate::nat::{
    BindingRow, BlockMove, Blocks, Entry, Inside, NatProtocol, NotAdopted, Outside, PortLedger, SavedSession,
    Selection, SessionRow, StaticBinding, StaticBindingError,
};
use crate::verdict::WorkerId;
use sixway_wire::{Endpoint4, Endpoint6};

impl Nat64 {
    /// See [`crate::nat::Engine::sessions`].
    pub fn sessions(
        &self,
        cursor: u32,
        slots: u32,
        selection: &Selection,
        now: Instant,
        rows: &mut Vec<SessionRow>,
    ) -> Option<u32> {
        self.nat.sessions(cursor, slots, selection, now, rows)
    }

    /// See [`crate::nat::Engine::bindings`].
    pub fn bindings(
        &self,
        cursor: u32,
        slots: u32,
        selection: &Selection,
        rows: &mut Vec<BindingRow>,
    ) -> Option<u32> {
        self.nat.bindings(cursor, slots, selection, rows)
    }

    /// See [`crate::nat::Engine::end_session`].
    pub fn end_session(
        &mut self,
        protocol: NatProtocol,
        inside: Inside<Endpoint6>,
        remote: Endpoint4,
        counters: &mut Counters,
    ) -> bool {
        self.nat.end_session(protocol, inside, remote, counters)
    }

    /// See [`crate::nat::Engine::end_binding`].
    pub fn end_binding(
        &mut self,
        protocol: NatProtocol,
        outside: Outside<Endpoint4>,
        budget: usize,
        counters: &mut Counters,
    ) -> Option<bool> {
        self.nat.end_binding(protocol, outside, budget, counters)
    }

    /// See [`crate::nat::Engine::add_static`].
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn add_static(&mut self, binding: &StaticBinding) -> Result<(), StaticBindingError> {
        self.nat.add_static(binding)?;
        self.note_static(binding);
        Ok(())
    }

    /// See [`crate::nat::Engine::remove_static`].
    pub fn remove_static(
        &mut self,
        binding: &StaticBinding,
        budget: usize,
        counters: &mut Counters,
    ) -> Option<bool> {
        let removed = self.nat.remove_static(binding, budget, counters);
        let host = binding.inside.0.address;
        if removed == Some(true)
            && let Some(count) = self.static_hosts.get_mut(&host)
        {
            *count -= 1;
            if *count == 0 {
                self.static_hosts.remove(&host);
            }
        }
        removed
    }

    /// See [`crate::nat::Engine::wants_blocks`].
    pub fn wants_blocks(&mut self) -> bool {
        self.nat.wants_blocks()
    }

    /// See [`crate::nat::Engine::blocks`].
    pub fn blocks(&self) -> Blocks {
        self.nat.blocks()
    }

    /// See [`crate::nat::Engine::give_blocks`].
    pub fn give_blocks(&mut self, to: WorkerId, owned: u32) -> Vec<BlockMove> {
        self.nat.give_blocks(to, owned)
    }

    /// See [`crate::nat::Engine::block_moved`].
    pub fn block_moved(&mut self, moved: BlockMove) -> bool {
        self.nat.block_moved(moved)
    }

    /// See [`crate::nat::Engine::give_spare`].
    pub(crate) fn give_spare(&mut self, port: u16, to: WorkerId) -> Option<BlockMove> {
        self.nat.give_spare(port, to)
    }

    /// See [`crate::nat::Engine::has_host`].
    pub(crate) fn has_host(&self, host: core::net::Ipv6Addr) -> bool {
        self.nat.has_host(host)
    }

    /// See [`crate::nat::Engine::except`].
    pub(crate) fn except(&mut self, host: core::net::Ipv6Addr, worker: WorkerId) {
        self.nat.except(host, worker);
    }

    /// See [`crate::nat::Engine::gives`].
    pub(crate) fn gives(&self, protocol: NatProtocol, outside: Outside<Endpoint4>) -> bool {
        self.nat.gives(protocol, outside)
    }

    /// See [`crate::nat::Engine::is_spare`].
    pub(crate) fn is_spare(&self, port: u16) -> bool {
        self.nat.is_spare(port)
    }

    /// Offloads sessions to this fast path from now on, or to none.
    pub(crate) fn set_fast_path(&mut self, fast_path: Option<Box<dyn FastPath>>, packets: u32) {
        self.nat.set_fast_path(fast_path, self.identity(), packets);
    }

    /// Records the ports that are bound in this ledger from now on.
    pub(crate) fn set_ledger(&mut self, ledger: Box<dyn PortLedger>) {
        self.nat.set_ledger(ledger);
    }

    /// See [`crate::nat::Engine::take_back_under_way`].
    pub(crate) fn take_back_under_way(&mut self, counters: &mut Counters) {
        self.nat.take_back_under_way(counters);
    }

    /// See [`crate::nat::Engine::emptied`].
    pub(crate) const fn emptied(&mut self, now: Instant) {
        self.nat.emptied(now);
    }

    /// See [`crate::nat::Engine::settle_moving`].
    pub(crate) fn settle_moving(&mut self, now: Instant, counters: &mut Counters) {
        self.nat.settle_moving(now, counters);
    }

    /// See [`crate::nat::Engine::adopt`].
    pub(crate) fn adopt(
        &mut self,
        flow: &OffloadedFlow,
        handle: FlowHandle,
        usage: &Usage,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<(), NotAdopted> {
        self.nat.adopt(&Entry { handle, flow, usage }, &self.rules, now, counters)
    }

    /// See [`crate::nat::Engine::restore`].
    ///
    /// # Errors
    /// Why it is not restored; nothing is changed.
    pub fn restore(
        &mut self,
        saved: &SavedSession,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<(), NotAdopted> {
        self.nat.restore(saved, &self.rules, now, counters)
    }

    /// See [`crate::nat::Engine::export`].
    pub fn export(
        &mut self,
        cursor: u32,
        slots: u32,
        now: Instant,
        saved: &mut Vec<SavedSession>,
    ) -> Option<u32> {
        self.nat.export(cursor, slots, now, saved)
    }

    /// See [`crate::nat::Engine::quarantine`].
    pub fn quarantine(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>, until: Instant) -> bool {
        self.nat.quarantine(protocol, outside, until)
    }

    /// Endpoints in quarantine.
    pub fn quarantined(&self) -> usize {
        self.nat.quarantined()
    }
}
