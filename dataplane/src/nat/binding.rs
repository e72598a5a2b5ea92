//! The binding information bases (RFC 6146 §3.1): inside endpoint ⇄ outside endpoint, for each protocol.
//!
//! One mapping serves every remote (endpoint-independent mapping). A dynamic binding lives as long as it has a session that a packet from
//! inside created or answered; a static one until the administrator removes it. All bindings of an inside host share an outside address as long as that
//! has ports (§3.5.2.3; RFC 4787 REQ-2). The table is bounded; when it is full new bindings are refused.
//!
//! The port of a binding that has ended is quarantined (RFC 6888 REQ-8), unless packets from outside are filtered, which keeps late answers
//! from the next host; TCP's are not, since sessions track the connection.

use super::binding_kind::BindingKind;
use super::binding_marks::BindingMarks;
use super::companions::Companions;
use super::config::Config;
use super::deterministic::Deterministic;
use super::draining::DrainingRow;
use super::growing_index::GrowingIndex;
use super::inside_key::{HostKey as _, InsideKey, address_word};
use super::keyed::{Purpose, TupleHash};
use super::not_adopted::NotAdopted;
use super::permit::Filtering;
use super::pool::{Pool, PoolSlot};
use super::port_blocks::{BlockNews, PortBlocks};
use super::port_ledger::PortLedger;
use super::port_plane::PortRange;
use super::protocol::NatProtocol;
use super::quarantine::{FormerOwner, Quarantine, Released, Wanted};
use super::sides::{Inside, Outside};
use super::slab::{NONE, Slab};
use super::softwires::MOST_OF_SUBSCRIBER;
use super::state_limits::StateLimits;
use super::static_binding::{StaticBinding, StaticBindingError};
use super::subscriber_table::{Left, SubscriberRow, SubscriberTable};
use super::timeouts::Clock;
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use alloc::sync::Arc;
use core::net::Ipv4Addr;
use sixway_wire::{Endpoint4, Prefix4};

/// A binding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding<I> {
    pub(crate) inside: Inside<I>,
    pub(crate) outside: Outside<Endpoint4>,
    pub(super) marks: BindingMarks,
    host: u32,
    /// Its sessions, a linked list.
    pub(super) first: u32,
    pub(crate) sessions: u32,
    /// Those that keep it: sessions from inside, and those that a packet from inside has answered (RFC 7857 §7).
    pub(super) keeping: u32,
}

/// Addresses and port blocks that are examined in a step of counting what is left, and a few more.
const LOOKED_AT: u32 = 2_048;

const _: () = assert!(size_of::<Binding<Endpoint4>>() == 32);

impl<I> Binding<I> {
    /// Its protocol.
    #[inline]
    pub(crate) const fn protocol(&self) -> NatProtocol {
        self.marks.protocol()
    }

    /// Its origin.
    #[inline]
    pub(crate) const fn kind(&self) -> BindingKind {
        self.marks.kind()
    }

    /// Whether it is kept by request.
    #[inline]
    pub(crate) const fn is_explicit(&self) -> bool {
        self.marks.is_explicit()
    }

    /// Sets whether it is kept by request. Whether it was.
    pub(super) const fn set_explicit(&mut self, is_explicit: bool) -> bool {
        self.marks.set_explicit(is_explicit)
    }

    /// Sets whether none keeps it, and the rest of its sessions waits to be ended. Whether that was so.
    pub(super) const fn set_ending(&mut self, is_ending: bool) -> bool {
        self.marks.set_ending(is_ending)
    }
}

/// An inside host that has bindings, and the outside address that they share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host<H> {
    address: Inside<H>,
    pub(super) paired: PoolSlot,
    /// Its subscriber.
    subscriber: u32,
    /// Zero: the slot holds none.
    bindings: u32,
}

/// The table.
pub(crate) struct BindingTable<I: InsideKey> {
    pub(super) bindings: Slab<Binding<I>>,
    pub(super) hosts: Slab<Host<I::Host>>,
    by_inside: GrowingIndex,
    by_outside: GrowingIndex,
    by_host: GrowingIndex,
    hash_inside: TupleHash,
    hash_outside: TupleHash,
    hash_host: TupleHash,
    pub(super) subscribers: SubscriberTable<I::Site>,
    /// The names of hosts.
    pub(super) names: I::Names,
    /// Hosts whose subscribers no limit holds for.
    exempt: Vec<I::Network>,
    pub(super) pool: Pool,
    pub(super) quarantine: Quarantine,
    /// Seconds that a port is quarantined.
    quarantined_for: u32,
    ledger: Option<Box<dyn PortLedger>>,
    /// The port blocks of subscribers, where they have such.
    pub(super) blocks: Option<Box<PortBlocks>>,
    /// Ports that are kept for hosts with the same port of the other protocol.
    pub(super) companions: Companions,
    /// Which block each subscriber has.
    pub(super) deterministic: Option<Arc<Deterministic>>,
    /// Blocks that were given or returned and are not in the log yet.
    pub(super) block_news: Vec<BlockNews>,
}

impl<I: InsideKey> BindingTable<I> {
    /// Of this configuration, with this pool.
    pub(super) fn new(config: &Config<I>, pool: Pool, seed: [u64; 2]) -> Self {
        let StateLimits { bindings: most, of_subscriber, quarantined_ports, .. } = config.limits;
        let is_quarantined = config.filtering == Filtering::EndpointIndependent;
        // A subscriber without hosts may have blocks.
        let subscribers = if config.subscribers.blocks.is_some() { most.saturating_mul(2) } else { most };
        let mut table = Self {
            bindings: Slab::new(most),
            hosts: Slab::new(most),
            by_inside: GrowingIndex::new(most),
            by_outside: GrowingIndex::new(most),
            by_host: GrowingIndex::new(most),
            hash_inside: TupleHash::new(seed, Purpose::BindingsInside),
            hash_outside: TupleHash::new(seed, Purpose::BindingsOutside),
            hash_host: TupleHash::new(seed, Purpose::Hosts),
            subscribers: SubscriberTable::new(config.subscribers.bits, of_subscriber, subscribers, seed),
            names: I::Names::default(),
            exempt: config.subscribers.exempt.clone(),
            pool,
            quarantine: Quarantine::new(quarantined_ports, seed),
            quarantined_for: if is_quarantined { config.timeouts.quarantine_seconds() } else { 0 },
            ledger: None,
            blocks: None,
            companions: Companions::default(),
            deterministic: None,
            block_news: Vec::new(),
        };
        table.set_up_blocks(config.subscribers.blocks, config.subscribers.deterministic.clone(), most);
        table
    }

    /// Records bindings in this ledger from now on.
    pub(crate) fn set_ledger(&mut self, ledger: Box<dyn PortLedger>) {
        self.ledger = Some(ledger);
    }

    fn tag_inside(&self, protocol: NatProtocol, inside: Inside<I>) -> u32 {
        inside.0.binding_tag(&self.hash_inside, protocol)
    }

    fn tag_outside(&self, protocol: NatProtocol, outside: Outside<Endpoint4>) -> u32 {
        self.hash_outside
            .pair(address_word(outside.0.address), u64::from(outside.0.port) << 8 | protocol as u64)
    }

    fn tag_host(&self, host: Inside<I::Host>) -> u32 {
        host.0.tag(&self.hash_host)
    }

    /// Prefetches the slots for a new binding.
    #[inline]
    pub(super) fn touch_next(&self) {
        let binding = self.bindings.next().map(|slot| slot.sessions);
        let host = self.hosts.next().map(|slot| slot.bindings);
        core::hint::black_box((binding, host));
    }

    /// Prefetches the entries that a new binding of this inside endpoint needs.
    #[inline]
    pub(crate) fn touch_inside(&self, protocol: NatProtocol, inside: Inside<I>) {
        let binding = self.by_inside.touch(self.tag_inside(protocol, inside));
        let host = self.by_host.touch(self.tag_host(Inside(inside.0.host())));
        core::hint::black_box(binding ^ host);
    }

    /// The tag of an outside endpoint, whose entry is prefetched.
    #[inline]
    pub(crate) fn touch_outside(&self, protocol: NatProtocol, outside: Outside<Endpoint4>) -> u32 {
        let tag = self.tag_outside(protocol, outside);
        core::hint::black_box(self.by_outside.touch(tag));
        tag
    }

    pub(crate) fn find_inside(&self, protocol: NatProtocol, inside: Inside<I>) -> Option<u32> {
        self.by_inside.find(self.tag_inside(protocol, inside), |slot| {
            self.bindings[slot].inside == inside && self.bindings[slot].protocol() == protocol
        })
    }

    pub(crate) fn find_outside(&self, protocol: NatProtocol, outside: Outside<Endpoint4>) -> Option<u32> {
        self.find_tagged(self.tag_outside(protocol, outside), protocol, outside)
    }

    /// The same, where the tag is known.
    pub(crate) fn find_tagged(
        &self,
        tag: u32,
        protocol: NatProtocol,
        outside: Outside<Endpoint4>,
    ) -> Option<u32> {
        self.by_outside.find(tag, |slot| {
            self.bindings[slot].outside == outside && self.bindings[slot].protocol() == protocol
        })
    }

    /// Puts the bindings that were inserted late into their places.
    pub(super) fn settle(&mut self) {
        self.by_outside.settle();
    }

    fn find_host(&self, address: Inside<I::Host>) -> Option<u32> {
        self.by_host.find(self.tag_host(address), |slot| self.hosts[slot].address == address)
    }

    /// The site of a host.
    fn site(&self, host: I::Host) -> I::Site {
        I::site(host, &self.names)
    }

    /// The subscriber of a host.
    pub(crate) fn subscriber_of_host(&self, host: I::Host) -> Option<u32> {
        self.subscribers.find(self.site(host))
    }

    /// Whether a host's subscriber may have the host's softwire, if that has no hosts yet.
    fn may_have_softwire(
        &self,
        (host, known): (I::Host, Option<u32>),
        subscriber: Option<u32>,
    ) -> Result<(), DropReason> {
        let is_refused = known.is_none()
            && I::is_first_of_softwire(host, &self.names)
            && subscriber.is_some_and(|slot| self.subscribers.softwires(slot) >= MOST_OF_SUBSCRIBER);
        if is_refused { Err(DropReason::SubscriberLimit) } else { Ok(()) }
    }

    pub(crate) fn get(&self, slot: u32) -> &Binding<I> {
        &self.bindings[slot]
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Binding<I> {
        &mut self.bindings[slot]
    }

    pub(crate) fn len(&self) -> u32 {
        self.bindings.len()
    }

    /// Slots that were ever used: dumps run from zero to here.
    pub(crate) fn slots(&self) -> u32 {
        self.bindings.slots()
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(super) fn pool_mut(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// Whether a host has bindings.
    pub(crate) fn has_host(&self, address: Inside<I::Host>) -> bool {
        self.find_host(address).is_some()
    }

    /// The outside address that the bindings of a host have.
    pub(crate) fn paired_address(&self, address: Inside<I::Host>) -> Option<Ipv4Addr> {
        let paired = self.find_host(address).map(|host| self.pool.address_of(self.hosts[host].paired));
        paired.or_else(|| self.block_address(address.0))
    }

    /// Creates a dynamic binding for an inside endpoint without one.
    #[inline(always)] // Requests create bindings, too: a packet would pay for a call.
    pub(super) fn bind(
        &mut self,
        protocol: NatProtocol,
        inside: Inside<I>,
        clock: Clock,
        counters: &mut Counters,
    ) -> Result<u32, DropReason> {
        if self.bindings.is_full() {
            return Err(DropReason::BindingTableFull);
        }
        let host = self.find_host(Inside(inside.0.host()));
        let subscriber = match host {
            Some(host) => Some(self.hosts[host].subscriber),
            None => self.subscriber_of_host(inside.0.host()),
        };
        self.may_have_softwire((inside.0.host(), host), subscriber)?;
        if self.blocks.is_some() {
            return self.bind_in_block(protocol, inside, (host, subscriber), clock);
        }
        let paired = host.map(|host| self.hosts[host].paired);
        if let Some(subscriber) = subscriber {
            let left = Left {
                ports: self.ports_left(paired, protocol, inside.0.port()),
                bindings: self.bindings.most() - self.bindings.len(),
            };
            if self.subscribers.is_near_share(subscriber, protocol, left.ports) {
                self.pool.want();
            }
            self.subscribers.may_bind(subscriber, protocol, left, clock)?;
        }
        let (slot, outside) = match self.pool.allocate(paired, protocol, inside.0.port()) {
            Some(free) => free,
            None => self.give_early(paired, protocol, inside, counters).ok_or(DropReason::PortPoolEmpty)?,
        };
        let binding = self
            .insert(protocol, inside, outside, BindingKind::Dynamic, (slot, host, subscriber))
            .ok_or(DropReason::BindingTableFull)?;
        self.given(protocol, outside);
        Ok(binding)
    }

    /// Ports of a protocol that an inside port may get at an outside address, or at any; those in quarantine included.
    fn ports_left(&self, paired: Option<PoolSlot>, protocol: NatProtocol, inside_port: u16) -> u32 {
        let ranges = PortRange::preference(protocol, inside_port);
        match paired {
            Some(slot) => {
                self.pool.free_at(slot, protocol, ranges) + self.quarantine.at(slot, protocol, ranges)
            }
            None => {
                let free = self.pool.free_anywhere(protocol, ranges);
                free.saturating_add(self.quarantine.of(protocol, ranges))
            }
        }
    }

    /// Ports of a protocol that an inside endpoint may get; those in quarantine included.
    pub(super) fn ports_left_to(&self, protocol: NatProtocol, inside: Inside<I>) -> u32 {
        let host = self.find_host(Inside(inside.0.host()));
        self.ports_left(host.map(|host| self.hosts[host].paired), protocol, inside.0.port())
    }

    /// Whether an inside endpoint's subscriber may have one more session, from inside; `left`: sessions that are left for all. The answer is
    /// whether the subscriber is known; one that is not may, and then [`Self::begin`] counts.
    pub(super) fn may_open(
        &mut self,
        inside: Inside<I>,
        (left, is_free): (u32, bool),
        clock: Clock,
    ) -> Result<bool, DropReason> {
        match self.subscriber_of_host(inside.0.host()) {
            Some(subscriber) => self.subscribers.may_open(subscriber, (left, is_free), clock).map(|()| true),
            None => Ok(false),
        }
    }

    /// A subscriber begins with a binding, and a session.
    pub(super) fn begin(&mut self, slot: u32, is_free: bool, clock: Clock) {
        self.subscribers.begin(self.subscriber_of(slot), is_free, clock);
    }

    /// Whether packets from outside may create one more session of a binding.
    pub(super) fn may_open_from_outside(&self, slot: u32, left: (u32, u32)) -> Result<(), DropReason> {
        self.subscribers.may_open_from_outside(self.subscriber_of(slot), left)
    }

    /// The subscribers, to count what a binding's has.
    pub(super) fn subscribers_mut(&mut self, slot: u32) -> (&mut SubscriberTable<I::Site>, u32) {
        let subscriber = self.subscriber_of(slot);
        (&mut self.subscribers, subscriber)
    }

    /// An inside endpoint was refused a session or binding because of its subscriber.
    pub(super) fn was_refused(&mut self, inside: Inside<I>) {
        self.subscribers.was_refused(self.site(inside.0.host()));
    }

    pub(super) fn subscriber_of(&self, slot: u32) -> u32 {
        self.hosts[self.bindings[slot].host].subscriber
    }

    /// Slots of subscribers that were ever used: dumps run from zero to here.
    pub(crate) fn subscriber_slots(&self) -> u32 {
        self.subscribers.slots()
    }

    /// A subscriber, for display; `None`: the slot holds none.
    pub(crate) fn subscriber(&self, slot: u32, second: u32) -> Option<SubscriberRow> {
        let (place, row) = self.subscribers.row(slot, second)?;
        let address = I::mapped_prefix(place, row.bits)?;
        Some(SubscriberRow { address, blocks: self.blocks_of(slot), ..row })
    }

    /// No port is free: a quarantined one is given.
    #[cold]
    fn give_early(
        &mut self,
        paired: Option<PoolSlot>,
        protocol: NatProtocol,
        inside: Inside<I>,
        counters: &mut Counters,
    ) -> Option<(PoolSlot, Outside<Endpoint4>)> {
        let owner = FormerOwner::hashed(self.subscribers.tag_of(self.site(inside.0.host())));
        let wanted = Wanted { protocol, inside_port: inside.0.port(), owner, at: paired };
        let pool = &self.pool;
        let early = self.quarantine.give(wanted, |slot| paired.is_none() && pool.is_draining(slot))?;
        counters.quarantines_cut_short += u64::from(!early.was_own);
        Some((early.slot, early.outside))
    }

    /// Restores a dynamic binding of another process; neither endpoint has a binding.
    pub(super) fn rebind(
        &mut self,
        protocol: NatProtocol,
        inside: Inside<I>,
        outside: Outside<Endpoint4>,
    ) -> Result<u32, NotAdopted> {
        if self.bindings.is_full() {
            return Err(NotAdopted::TableFull);
        }
        let subscriber = self.subscriber_of_host(inside.0.host());
        if subscriber.is_some_and(|subscriber| self.subscribers.is_at_limit(subscriber, protocol)) {
            return Err(NotAdopted::SubscriberLimit);
        }
        let host = self.find_host(Inside(inside.0.host()));
        if self.may_have_softwire((inside.0.host(), host), subscriber).is_err() {
            return Err(NotAdopted::SubscriberLimit);
        }
        if self.blocks.is_some() {
            return self.rebind_in_block(protocol, inside, outside, (host, subscriber));
        }
        self.leave_quarantine(protocol, outside);
        let slot = self.pool.take(protocol, outside).ok_or(NotAdopted::PortNotGiven)?;
        let binding = self.insert(protocol, inside, outside, BindingKind::Dynamic, (slot, host, subscriber));
        self.given(protocol, outside);
        binding.ok_or(NotAdopted::TableFull)
    }

    /// Quarantines a free endpoint of the pool, of an earlier process, until this second. Whether it was quarantined.
    pub(crate) fn quarantine(
        &mut self,
        protocol: NatProtocol,
        outside: Outside<Endpoint4>,
        until: u32,
    ) -> bool {
        if self.quarantine.is_full() {
            return false;
        }
        let Some(slot) = self.pool.take(protocol, outside) else { return false };
        self.quarantine.insert((protocol, outside), slot, FormerOwner::UNKNOWN, until);
        self.given(protocol, outside);
        true
    }

    /// The remaining use of addresses that are being drained, of open addresses from a place on; and where to continue. Of each prefix
    /// there is a row. `not_bound`: endpoints at an address that others count.
    pub(crate) fn draining_rows(
        &self,
        from: u32,
        not_bound: impl Fn(Ipv4Addr, NatProtocol) -> u32,
    ) -> (Vec<DrainingRow>, Option<u32>) {
        let empty = |prefix: &Prefix4| DrainingRow { prefix: *prefix, bindings: 0, hosts: 0, portless: 0 };
        let mut rows: Vec<_> = self.pool.draining().prefixes().iter().map(empty).collect();
        let open = if rows.is_empty() { 0 } else { self.pool.open_addresses() };
        let (mut slot, mut looked_at) = (from, 0);
        while slot < open && looked_at < LOOKED_AT {
            let at = PoolSlot(slot);
            let not_bound = |address, protocol| {
                self.quarantine.at(at, protocol, &PortRange::ALL) + not_bound(address, protocol)
            };
            looked_at += 1;
            if let Some(row) = self.pool.count_draining(at, not_bound, &mut rows) {
                let (blocks, without_hosts) = self.without_hosts(at);
                row.hosts += u64::from(without_hosts);
                looked_at += blocks;
            }
            slot += 1;
        }
        (rows, (slot < open).then_some(slot))
    }

    /// Endpoints in quarantine.
    pub(crate) fn quarantined(&self) -> usize {
        self.quarantine.len()
    }

    /// Frees the next endpoint whose quarantine ends in this second or before; whether there was one.
    pub(super) fn end_quarantine(&mut self, second: u32) -> bool {
        if let Some(blocks) = &mut self.blocks {
            blocks.set_second(second);
        }
        let Some(released) = self.quarantine.pop(second) else { return false };
        self.quarantine_ended(released);
        true
    }

    /// Ends the quarantine of an endpoint early: its owner is known.
    pub(super) fn leave_quarantine(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>) {
        if let Some(released) = self.quarantine.remove((protocol, outside)) {
            self.quarantine_ended(released);
        }
    }

    /// A port has left the quarantine and is free.
    fn quarantine_ended(&mut self, Released { key: (protocol, outside), slot, owner }: Released) {
        self.pool.release(slot, protocol, outside.0.port);
        self.is_free_again(protocol, outside);
        // What an earlier process left is part of no block.
        if owner != FormerOwner::UNKNOWN {
            self.left_block(slot, protocol, outside.0.port);
        }
        self.keep_if_companion((protocol, outside));
    }

    /// Creates a static binding.
    pub(super) fn bind_static(&mut self, new: &StaticBinding<I>) -> Result<u32, StaticBindingError> {
        let StaticBinding { protocol, inside, outside, .. } = *new;
        if self.find_inside(protocol, inside).is_some() {
            return Err(StaticBindingError::InsideInUse);
        }
        if self.bindings.is_full() {
            return Err(StaticBindingError::TableFull);
        }
        let slot = self.reserve(protocol, outside)?;
        let host = self.find_host(Inside(inside.0.host()));
        let subscriber = self.subscriber_of_host(inside.0.host());
        self.insert(protocol, inside, outside, BindingKind::Static, (slot, host, subscriber))
            .ok_or(StaticBindingError::TableFull)
    }

    /// Keeps an outside endpoint from being allocated: it belongs to a static binding, here or at another worker.
    pub(super) fn reserve(
        &mut self,
        protocol: NatProtocol,
        outside: Outside<Endpoint4>,
    ) -> Result<PoolSlot, StaticBindingError> {
        if self.find_outside(protocol, outside).is_some() {
            return Err(StaticBindingError::OutsideInUse);
        }
        self.leave_quarantine(protocol, outside);
        self.give_up_companion((protocol, outside));
        self.pool.reserve(protocol, outside).ok_or(StaticBindingError::NotInPool)
    }

    /// Undoes [`BindingTable::reserve`].
    pub(super) fn release(&mut self, slot: PoolSlot, protocol: NatProtocol, port: u16) {
        self.pool.release(slot, protocol, port);
    }

    pub(super) fn insert(
        &mut self,
        protocol: NatProtocol,
        inside: Inside<I>,
        outside: Outside<Endpoint4>,
        kind: BindingKind,
        (pool_slot, host, subscriber): (PoolSlot, Option<u32>, Option<u32>),
    ) -> Option<u32> {
        let host = match host {
            Some(host) => host,
            None => {
                let address = Inside(inside.0.host());
                let is_exempt = self.exempt.iter().any(|network| inside.0.is_in(*network, &self.names));
                let site = self.site(address.0);
                let subscriber = self.subscribers.join(site, subscriber, is_exempt)?;
                let host = self.hosts.insert(Host { address, paired: pool_slot, subscriber, bindings: 0 })?;
                self.by_host.insert(self.tag_host(address), host);
                self.pool.paired(pool_slot, true);
                if I::joined(address.0, &mut self.names) {
                    self.subscribers.has_softwire(subscriber, true);
                }
                host
            }
        };
        self.hosts[host].bindings += 1;
        let binding = Binding {
            inside,
            outside,
            marks: BindingMarks::new(protocol, kind, pool_slot),
            host,
            first: NONE,
            sessions: 0,
            keeping: 0,
        };
        let slot = self.bindings.insert(binding)?;
        self.by_inside.insert(self.tag_inside(protocol, inside), slot);
        self.by_outside.insert_late(self.tag_outside(protocol, outside), slot);
        if kind == BindingKind::Dynamic {
            self.subscribers.has_bound(self.hosts[host].subscriber, protocol);
        }
        Some(slot)
    }

    /// Records in the ledger that an endpoint is bound.
    pub(super) fn given(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>) {
        if let Some(ledger) = &mut self.ledger {
            ledger.bound(protocol, outside);
        }
    }

    /// Records in the ledger that an endpoint is free again.
    fn is_free_again(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>) {
        if let Some(ledger) = &mut self.ledger {
            ledger.released(protocol, outside);
        }
    }

    /// Removes a binding without sessions. Its port is free again, or quarantined from this second on.
    pub(super) fn remove(&mut self, slot: u32, second: u32, counters: &mut Counters) {
        if let Some(blocks) = &mut self.blocks {
            blocks.set_second(second);
        }
        // Its softwire may end with it.
        let site = self.site(self.bindings[slot].inside.0.host());
        let binding = self.take_out(slot);
        let (protocol, outside) = (binding.protocol(), binding.outside);
        self.release_companion(protocol, outside);
        // Sessions do not tell a host that asked for a port from the next one that does (RFC 6887 §15).
        let is_tracked = protocol == NatProtocol::Tcp && !binding.marks.was_published();
        let is_exempt = binding.kind() != BindingKind::Dynamic || is_tracked;
        if is_exempt || self.quarantined_for == 0 {
            return self.free(&binding);
        }
        if self.quarantine.is_full()
            && let Some(released) = self.quarantine.pop_first()
        {
            counters.quarantines_cut_short += 1;
            self.quarantine_ended(released);
        }
        let owner = FormerOwner::hashed(self.subscribers.tag_of(site));
        let until = second.saturating_add(self.quarantined_for);
        if !self.quarantine.insert((protocol, outside), binding.marks.pool_slot(), owner, until) {
            self.free(&binding);
        }
    }

    /// The port of a binding that is no longer in the table may be given to anyone.
    fn free(&mut self, binding: &Binding<I>) {
        self.pool.release(binding.marks.pool_slot(), binding.protocol(), binding.outside.0.port);
        if binding.kind() == BindingKind::Dynamic {
            self.is_free_again(binding.protocol(), binding.outside);
            self.left_block(binding.marks.pool_slot(), binding.protocol(), binding.outside.0.port);
        }
        self.keep_if_companion((binding.protocol(), binding.outside));
    }

    /// Takes a binding out of the table. Its port stays taken.
    fn take_out(&mut self, slot: u32) -> Binding<I> {
        let binding = self.bindings[slot];
        self.by_inside.remove(self.tag_inside(binding.protocol(), binding.inside), slot);
        self.by_outside.remove(self.tag_outside(binding.protocol(), binding.outside), slot);
        let subscriber = self.hosts[binding.host].subscriber;
        if binding.kind() == BindingKind::Dynamic {
            self.subscribers.has_unbound(subscriber, binding.protocol());
        }
        self.bindings[slot].marks.set_free();
        self.bindings.release(slot);
        let host = &mut self.hosts[binding.host];
        host.bindings -= 1;
        if host.bindings == 0 {
            let (address, paired) = (host.address, host.paired);
            self.pool.paired(paired, false);
            self.by_host.remove(self.tag_host(address), binding.host);
            self.hosts.release(binding.host);
            if I::left(address.0, &mut self.names) {
                self.subscribers.has_softwire(subscriber, false);
            }
            self.subscribers.leave(subscriber);
        }
        binding
    }

    /// Memory in octets.
    pub(crate) fn memory(&self) -> usize {
        self.bindings.memory()
            + self.hosts.memory()
            + self.by_inside.memory()
            + self.by_outside.memory()
            + self.by_host.memory()
            + I::names_memory(&self.names)
            + self.subscribers.memory()
            + self.pool.memory()
            + self.quarantine.memory()
            + self.blocks.as_ref().map_or(0, |blocks| blocks.memory())
    }
}

#[cfg(test)]
mod tests;
