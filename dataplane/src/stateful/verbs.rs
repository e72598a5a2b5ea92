//! The verbs of a translator of any kind: its NAT's, with inside endpoints as everything outside of the NAT knows them.

use super::contract::Stateful;
use super::translator::{AddressPolicy, Translator, host};
use super::without_ports::WithoutPorts;
use crate::counters::Counters;
use crate::identity::Identity;
use crate::instant::Instant;
use crate::nat::offload::{FastPath, FlowHandle, OffloadedFlow, Usage};
use crate::nat::{
    AddressBlocks, BindingRow, BlockCounts, BlockMove, Blocks, DrainingRow, Entry, EventSink, Inside,
    InsideKey, Named, NatProtocol, NotAdopted, Occupancy, Outside, PortLedger, SavedSession, Selection,
    SessionRow, StaticBinding, StaticBindingError, SubscriberRow,
};
use crate::tunnel::ends::Ends4;
use crate::verdict::WorkerId;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::{Endpoint4, Prefix4, Prefix6};

/// Places of open addresses are below this, those of sessions of protocols without ports from here on.
const PORTLESS: u32 = 1 << 31;

impl<I: InsideKey, P: AddressPolicy<I>> Stateful for Translator<I, P> {
    fn identity(&self) -> Identity {
        self.rules.identity()
    }

    fn owns_outside(&self, address: Ipv4Addr) -> bool {
        self.nat.owns_outside(address)
    }

    fn occupancy(&self) -> Occupancy {
        self.nat.occupancy()
    }

    fn sessions(
        &self,
        cursor: u32,
        slots: u32,
        selection: &Selection,
        now: Instant,
        rows: &mut Vec<SessionRow>,
    ) -> Option<u32> {
        let mut found = Vec::new();
        let next = match selection.of_kind::<I>() {
            Some(selection) => self.nat.sessions(cursor, slots, &selection, now, &mut found),
            None => None,
        };
        let names = self.nat.names();
        rows.extend(found.iter().map(|row| row.mapped(names)));
        next
    }

    fn bindings(
        &self,
        cursor: u32,
        slots: u32,
        selection: &Selection,
        rows: &mut Vec<BindingRow>,
    ) -> Option<u32> {
        let mut found = Vec::new();
        let next = match selection.of_kind::<I>() {
            Some(selection) => self.nat.bindings(cursor, slots, &selection, &mut found),
            None => None,
        };
        let names = self.nat.names();
        rows.extend(found.iter().filter_map(|row| row.mapped(names)));
        next
    }

    fn subscribers(
        &self,
        cursor: u32,
        slots: u32,
        inside: Option<Prefix6>,
        now: Instant,
        rows: &mut Vec<SubscriberRow>,
    ) -> Option<u32> {
        self.nat.subscribers(cursor, slots, inside, now, rows)
    }

    fn without_ports(&self) -> &dyn WithoutPorts {
        &self.without_ports
    }

    fn without_ports_mut(&mut self) -> &mut dyn WithoutPorts {
        &mut self.without_ports
    }

    fn end_session(
        &mut self,
        protocol: NatProtocol,
        named: Named,
        remote: Endpoint4,
        counters: &mut Counters,
    ) -> bool {
        I::find_named(named, self.nat.names())
            .is_some_and(|inside| self.nat.end_session(protocol, Inside(inside), remote, counters))
    }

    fn end_binding(
        &mut self,
        protocol: NatProtocol,
        outside: Outside<Endpoint4>,
        budget: usize,
        counters: &mut Counters,
    ) -> Option<bool> {
        self.nat.end_binding(protocol, outside, budget, counters)
    }

    fn add_static(&mut self, binding: &StaticBinding) -> Result<(), StaticBindingError> {
        let named = binding.named();
        let site = I::site_of(named.site()).ok_or(StaticBindingError::OtherFamily)?;
        let inside = I::of_named(named, self.nat.names_mut()).ok_or(StaticBindingError::OtherFamily)?;
        let added = if self.rules.is_host(inside.host()) && self.rules.takes_site(site) {
            self.nat.add_static(&binding.of_kind(inside))
        } else {
            Err(StaticBindingError::NotInside)
        };
        // Another worker has it.
        inside.forget_unused(self.nat.names_mut());
        added?;
        self.note_static(inside.host());
        Ok(())
    }

    fn remove_static(
        &mut self,
        binding: &StaticBinding,
        budget: usize,
        counters: &mut Counters,
    ) -> Option<bool> {
        let inside = I::of_named(binding.named(), self.nat.names_mut())?;
        let removed = self.nat.remove_static(&binding.of_kind(inside), budget, counters);
        inside.forget_unused(self.nat.names_mut());
        let host = inside.host();
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

    fn drain(&mut self, prefix: Prefix4, drains: bool) {
        self.nat.drain(prefix, drains);
        self.without_ports.drain(self.nat.draining());
    }

    fn draining_rows(&self, from: u32, now: Instant) -> (Vec<DrainingRow>, Option<u32>) {
        let (mut rows, next) = if let Some(slot) = from.checked_sub(PORTLESS) {
            let (counts, next) = self.without_ports.sessions_at(self.nat.draining(), slot, now);
            let prefixes = self.nat.draining().prefixes().iter().zip(counts);
            let row = |(prefix, portless): (&Prefix4, u64)| DrainingRow {
                prefix: *prefix,
                bindings: 0,
                hosts: 0,
                portless,
            };
            (prefixes.map(row).collect(), next.map(|slot| slot.saturating_add(PORTLESS)))
        } else {
            let (rows, next) = self.nat.draining_rows(from);
            let next = next.or((!rows.is_empty()).then_some(PORTLESS));
            (rows, next)
        };
        if from > 0 {
            rows.retain(|row| !row.is_empty());
        }
        (rows, next)
    }

    fn wants_blocks(&mut self) -> bool {
        self.nat.wants_blocks()
    }

    fn blocks(&self) -> Blocks {
        self.nat.blocks()
    }

    fn give_blocks(&mut self, to: WorkerId, owned: u32) -> Vec<BlockMove> {
        self.nat.give_blocks(to, owned)
    }

    fn block_moved(&mut self, moved: BlockMove) -> bool {
        self.nat.block_moved(moved)
    }

    fn give_spare(&mut self, port: u16, to: WorkerId) -> Option<BlockMove> {
        self.nat.give_spare(port, to)
    }

    fn is_spare(&self, port: u16) -> bool {
        self.nat.is_spare(port)
    }

    fn gives(&self, protocol: NatProtocol, outside: Outside<Endpoint4>) -> bool {
        self.nat.gives(protocol, outside)
    }

    fn worker_of_inside(&self, address: Ipv6Addr) -> WorkerId {
        I::site_of(address).map_or_else(WorkerId::default, |site| self.ownership().worker_of_inside(site))
    }

    fn blocks_move(&self) -> bool {
        self.nat.blocks_move()
    }

    fn ports_per_block(&self) -> u16 {
        self.ownership().ports_per_block()
    }

    fn block_counts(&self) -> Option<BlockCounts> {
        self.nat.block_counts()
    }

    fn address_blocks(&self, from: u32, most: u32) -> (Vec<AddressBlocks>, Option<u32>) {
        self.nat.address_blocks(from, most)
    }

    fn worker_of_block(&self, port: u16) -> WorkerId {
        self.ownership().worker_of_block(port)
    }

    fn has_host(&self, address: Ipv6Addr) -> bool {
        host::<I>(address).is_some_and(|host| self.nat.has_host(host)) || self.nat.names_site(address)
    }

    fn except(&mut self, address: Ipv6Addr, worker: WorkerId) {
        if let Some(site) = I::site_of(address) {
            self.nat.except(site, worker);
        }
    }

    fn set_fast_path(&mut self, fast_path: Option<Box<dyn FastPath>>, packets: u32) {
        self.nat.set_fast_path(fast_path, self.rules.identity(), packets);
    }

    fn set_ledger(&mut self, ledger: Box<dyn PortLedger>) {
        self.nat.set_ledger(ledger);
    }

    fn set_event_sink(&mut self, sink: Box<dyn EventSink>) {
        self.without_ports.keep_events();
        self.nat.set_event_sink(sink);
    }

    fn take_back_under_way(&mut self, counters: &mut Counters) {
        self.nat.take_back_under_way(counters);
    }

    fn emptied(&mut self, now: Instant) {
        self.nat.emptied(now);
    }

    fn settle_moving(&mut self, now: Instant, counters: &mut Counters) {
        self.nat.settle_moving(now, counters);
    }

    fn adopt(
        &mut self,
        flow: &OffloadedFlow,
        handle: FlowHandle,
        usage: &Usage,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<(), NotAdopted> {
        self.nat.adopt(&Entry { handle, flow, usage }, &self.rules, now, counters)
    }

    fn restore(
        &mut self,
        saved: &SavedSession,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<(), NotAdopted> {
        let named = saved.named();
        let site = I::site_of(named.site()).filter(|site| self.rules.takes_site(*site));
        if site.is_none() {
            return Err(NotAdopted::AddressRefused);
        }
        let inside = I::of_named(named, self.nat.names_mut()).ok_or(NotAdopted::AddressRefused)?;
        let restored = self.nat.restore(&saved.of_kind(inside), &self.rules, now, counters);
        inside.forget_unused(self.nat.names_mut());
        restored
    }

    fn export(
        &mut self,
        cursor: u32,
        slots: u32,
        now: Instant,
        saved: &mut Vec<SavedSession>,
    ) -> Option<u32> {
        let mut all = Vec::new();
        let next = self.nat.export(cursor, slots, now, &mut all);
        let names = self.nat.names();
        saved.extend(all.iter().filter_map(|session| session.mapped(names)));
        next
    }

    fn quarantine(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>, until: Instant) -> bool {
        self.nat.quarantine(protocol, outside, until)
    }

    fn quarantined(&self) -> usize {
        self.nat.quarantined()
    }

    fn set_host4(&mut self, host4: &[Ipv4Addr]) {
        self.rules.set_host4(host4);
    }

    fn set_tunnel_ends(&mut self, ends: &Ends4) {
        self.rules.set_tunnel_ends(ends);
    }
}
