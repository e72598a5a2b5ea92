//! The operations of a translator of any kind: those of its NAT, with inside endpoints in the form that is used outside the NAT.

use super::contract::Stateful;
use super::translator::{AddressPolicy, Translator, host};
use super::without_ports::WithoutPorts;
use crate::counters::Counters;
use crate::identity::Identity;
use crate::instant::Instant;
use crate::nat::offload::{FastPath, FlowHandle, OffloadedFlow, Usage};
use crate::nat::{
    AddressBlocks, BindingRow, BlockCounts, BlockMove, Blocks, BoundEndpoint, DrainingRow, Entry, EventSink,
    ExplicitBinding, Inside, InsideKey, Named, NatProtocol, NotAdopted, NotBound, Occupancy, Outside,
    PortLedger, SavedSession, Selection, SessionRow, StaticBinding, StaticBindingError, SubscriberRow,
    WantedOutside,
};
use crate::tunnel::ends::Ends4;
use crate::verdict::WorkerId;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::{Endpoint4, Prefix4, Prefix6};

/// Places of open addresses are below this, those of sessions of protocols without ports from here on.
const PORTLESS: u32 = 1 << 31;

/// Slots that are looked at for the bindings of a host between two batches, and sessions of it that are ended.
const ENDED_AT_ONCE: (u32, u32) = (4_096, 64);

impl<I: InsideKey, P: AddressPolicy<I>> Stateful for Translator<I, P> {
    fn identity(&self) -> Identity {
        self.rules.identity()
    }

    fn owns_outside(&self, address: Ipv4Addr) -> bool {
        self.nat.owns_outside(address)
    }

    fn gives_port(&self, port: u16) -> bool {
        self.nat.gives_port(port)
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
        let elsewhere = I::of_elsewhere(named).ok_or(StaticBindingError::OtherFamily)?;
        if !self.rules.is_host(elsewhere.host()) || !self.rules.takes_site(site) {
            return Err(StaticBindingError::NotInside);
        }
        let owner = self.ownership().worker_of_inside(site);
        if !self.nat.is_worker(owner) {
            self.nat.add_static_of(owner, &binding.of_kind(elsewhere))?;
            self.note_static(elsewhere.host());
            return Ok(());
        }
        let inside = I::of_named(named, self.nat.names_mut()).ok_or(StaticBindingError::SoftwireTableFull)?;
        let added = self.nat.add_static_of(owner, &binding.of_kind(inside));
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
        let named = binding.named();
        let owner = self.ownership().worker_of_inside(I::site_of(named.site())?);
        let inside = if self.nat.is_worker(owner) {
            I::find_named(named, self.nat.names())?
        } else {
            I::of_elsewhere(named)?
        };
        let removed = self.nat.remove_static_of(owner, &binding.of_kind(inside), (budget, counters));
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

    fn keep_explicit(
        &mut self,
        binding: &ExplicitBinding,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<BoundEndpoint, NotBound> {
        let wanted = self.wanted(binding)?;
        let bound = self.nat.keep_explicit(&wanted, now, counters);
        if bound.is_ok() {
            self.is_requested(&wanted);
        }
        wanted.inside.0.forget_unused(self.nat.names_mut());
        bound
    }

    fn keep_with_companion(
        &mut self,
        binding: &ExplicitBinding,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<BoundEndpoint, NotBound> {
        let wanted = self.wanted(binding)?;
        let bound = self.nat.keep_with_companion(&wanted, now, counters);
        if bound.is_ok() {
            self.is_requested(&wanted);
        }
        wanted.inside.0.forget_unused(self.nat.names_mut());
        bound
    }

    fn has_static_binding(&self, protocol: NatProtocol, address: Ipv6Addr) -> bool {
        // Most hosts have none, and nothing is looked through for them.
        host::<I>(address).is_some_and(|host| self.has_static(host) && self.nat.has_static(protocol, host))
    }

    fn release_explicit(
        &mut self,
        protocol: NatProtocol,
        named: Named,
        now: Instant,
        counters: &mut Counters,
    ) -> Option<u32> {
        let inside = I::find_named(named, self.nat.names())?;
        self.nat.release_explicit(protocol, Inside(inside), now, counters)
    }

    fn end_bindings_of(
        &mut self,
        address: Ipv6Addr,
        from: u32,
        now: Instant,
        counters: &mut Counters,
    ) -> Option<u32> {
        let Some(slot) = from.checked_sub(PORTLESS) else {
            let host = host::<I>(address)?;
            let next = self.nat.end_bindings_of(host, from, ENDED_AT_ONCE, now, counters);
            let (portless, _) = self.without_ports.occupancy();
            return next.or_else(|| (portless > 0).then_some(PORTLESS));
        };
        let (mut rows, (slots, _)) = (Vec::new(), ENDED_AT_ONCE);
        let next = self.without_ports.sessions(slot, slots, now, &mut rows);
        for row in rows.iter().filter(|row| row.inside.to_ipv6_mapped() == address) {
            self.without_ports.end(row.protocol, row.inside, row.remote, counters);
        }
        next.map(|slot| slot.saturating_add(PORTLESS))
    }

    fn bound_endpoint(&self, protocol: NatProtocol, named: Named) -> Option<BoundEndpoint> {
        let inside = I::find_named(named, self.nat.names())?;
        self.nat.bound_endpoint(protocol, Inside(inside))
    }

    fn outside_address(&self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        self.nat.outside_address(host::<I>(address)?)
    }

    fn open_by_request(
        &mut self,
        (protocol, named, remote): (NatProtocol, Named, Endpoint4),
        wanted: WantedOutside,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<(Outside<Endpoint4>, u32), NotBound> {
        self.is_own_host(named)?;
        let inside = I::of_named(named, self.nat.names_mut()).ok_or(NotBound::Full)?;
        let ends = (protocol, Inside(inside), remote);
        let opened = self.nat.open_by_request(ends, wanted, &self.rules, now, counters);
        inside.forget_unused(self.nat.names_mut());
        opened
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

    fn give_wanted(&mut self, port: u16, to: WorkerId) -> Option<BlockMove> {
        self.nat.give_wanted(port, to)
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
        let is_known = self.nat.names_site(named.site());
        let inside = I::of_named(named, self.nat.names_mut()).ok_or(NotAdopted::AddressRefused)?;
        let restored = self.nat.restore(&saved.of_kind(inside), &self.rules, now, counters);
        // What it has sent here already is newer than what is saved.
        if let (Some(local), Ok(()), false) = (saved.local, restored, is_known) {
            self.rules.set_local_end(inside, local, self.nat.names_mut());
        }
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
        saved.extend(all.iter().filter_map(|session| {
            let local = self.rules.local_end(session.inside.0, names);
            Some(SavedSession { local, ..session.mapped(names)? })
        }));
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
