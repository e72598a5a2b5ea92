//! The binding information bases (RFC 6146 §3.1): inside endpoint ⇄ outside endpoint, for each protocol.
//!
//! One mapping serves every remote (endpoint-independent mapping). A dynamic binding lives as long as it has a session; a
//! static one until the administrator removes it. All bindings of an inside host share an outside address as long as that
//! has ports (§3.5.2.3; RFC 4787 REQ-2). The table is bounded; when it is full new bindings are refused.

use super::index::Index;
use super::inside_key::{InsideHost, InsideKey, address_word};
use super::keyed::{Purpose, TupleHash};
use super::not_adopted::NotAdopted;
use super::pool::{Pool, PoolSlot};
use super::port_ledger::PortLedger;
use super::protocol::NatProtocol;
use super::quarantine::{MOST_QUARANTINED, Quarantine};
use super::session::NONE;
use super::sides::{Inside, Outside};
use super::slab::Slab;
use super::subscriber::Subscribers;
use crate::drop_reason::DropReason;
use core::fmt;
use core::net::Ipv4Addr;
use sixway_wire::{Endpoint4, Endpoint6};

/// A binding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding<I> {
    pub(crate) inside: Inside<I>,
    pub(crate) outside: Outside<Endpoint4>,
    pub(crate) protocol: NatProtocol,
    pub(crate) kind: BindingKind,
    pool_slot: PoolSlot,
    host: u32,
    /// Its sessions, a linked list.
    pub(super) first: u32,
    pub(crate) sessions: u32,
}

/// Who made a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BindingKind {
    /// The slot holds none.
    Free,
    /// A packet from inside; it ends with its last session.
    Dynamic,
    /// The administrator.
    Static,
}

/// An inside host that has bindings, and the outside address that they share.
#[derive(Clone, Copy, Debug)]
struct Host<H> {
    address: Inside<H>,
    paired: PoolSlot,
    /// Zero: the slot holds none.
    bindings: u32,
}

/// A binding that the administrator configures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticBinding<I = Endpoint6> {
    /// Which BIB.
    pub protocol: NatProtocol,
    /// The inside endpoint.
    pub inside: Inside<I>,
    /// The outside endpoint: an address of the pool, with any port.
    pub outside: Outside<Endpoint4>,
}

/// Why a static binding cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaticBindingError {
    /// The outside address is not one of the pool's.
    NotInPool,
    /// The inside endpoint has another binding in this BIB.
    InsideInUse,
    /// The outside endpoint has another binding in this BIB.
    OutsideInUse,
    /// The table of bindings is full.
    TableFull,
    /// The inside address is not one that the translator serves.
    NotInside,
    /// The inside endpoint is of the other family.
    OtherFamily,
}

impl fmt::Display for StaticBindingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotInPool => "the outside address is not in the pool",
            Self::InsideInUse => "the inside address and port already have another binding",
            Self::OutsideInUse => "the outside address and port already have another binding",
            Self::TableFull => "the table of bindings is full",
            Self::NotInside => "the inside address is not in the prefixes of `inside`",
            Self::OtherFamily => "the inside address is of the other address family",
        })
    }
}

impl core::error::Error for StaticBindingError {}

/// The table.
pub(crate) struct BindingTable<I: InsideKey> {
    bindings: Slab<Binding<I>>,
    hosts: Slab<Host<I::Host>>,
    by_inside: Index,
    by_outside: Index,
    by_host: Index,
    hash_inside: TupleHash,
    hash_outside: TupleHash,
    hash_host: TupleHash,
    subscribers: Subscribers<I::Host>,
    pool: Pool,
    quarantine: Quarantine,
    ledger: Option<Box<dyn PortLedger>>,
}

impl<I: InsideKey> BindingTable<I> {
    /// For `most` bindings, and `most_of_each` dynamic ones of each subscriber, who has a prefix of `bits`; 0: as many as there may be.
    pub(super) fn new(most: u32, (most_of_each, bits): (u32, u8), pool: Pool, seed: [u64; 2]) -> Self {
        Self {
            bindings: Slab::new(most),
            hosts: Slab::new(most),
            by_inside: Index::roomy(most),
            by_outside: Index::roomy(most),
            by_host: Index::roomy(most),
            hash_inside: TupleHash::new(seed, Purpose::BindingsInside),
            hash_outside: TupleHash::new(seed, Purpose::BindingsOutside),
            hash_host: TupleHash::new(seed, Purpose::Hosts),
            subscribers: Subscribers::new(bits, most_of_each, most, seed),
            pool,
            quarantine: Quarantine::new(MOST_QUARANTINED),
            ledger: None,
        }
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

    /// The entry of an outside endpoint, to prefetch it.
    #[inline]
    pub(crate) fn touch_outside(&self, protocol: NatProtocol, outside: Outside<Endpoint4>) -> u64 {
        self.by_outside.touch(self.tag_outside(protocol, outside))
    }

    pub(crate) fn find_inside(&self, protocol: NatProtocol, inside: Inside<I>) -> Option<u32> {
        self.by_inside.find(self.tag_inside(protocol, inside), |slot| {
            self.bindings[slot].inside == inside && self.bindings[slot].protocol == protocol
        })
    }

    pub(crate) fn find_outside(&self, protocol: NatProtocol, outside: Outside<Endpoint4>) -> Option<u32> {
        self.by_outside.find(self.tag_outside(protocol, outside), |slot| {
            self.bindings[slot].outside == outside && self.bindings[slot].protocol == protocol
        })
    }

    fn find_host(&self, address: Inside<I::Host>) -> Option<u32> {
        self.by_host.find(self.tag_host(address), |slot| self.hosts[slot].address == address)
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
        self.find_host(address).map(|host| self.pool.address_of(self.hosts[host].paired))
    }

    /// Creates a dynamic binding for an inside endpoint without one.
    pub(super) fn bind(&mut self, protocol: NatProtocol, inside: Inside<I>) -> Result<u32, DropReason> {
        if self.bindings.is_full() {
            return Err(DropReason::BindingTableFull);
        }
        if !self.subscribers.may_have_more(inside.0.host()) {
            return Err(DropReason::SubscriberLimit);
        }
        let host = self.find_host(Inside(inside.0.host()));
        let paired = host.map(|host| self.hosts[host].paired);
        let (slot, outside) =
            self.pool.allocate(paired, protocol, inside.0.port()).ok_or(DropReason::PortPoolEmpty)?;
        let binding = self
            .insert(protocol, inside, outside, BindingKind::Dynamic, (slot, host))
            .ok_or(DropReason::BindingTableFull)?;
        self.subscribers.has_more(inside.0.host());
        self.given(protocol, outside);
        Ok(binding)
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
        if !self.subscribers.may_have_more(inside.0.host()) {
            return Err(NotAdopted::SubscriberLimit);
        }
        self.leave_quarantine(protocol, outside);
        let slot = self.pool.take(protocol, outside).ok_or(NotAdopted::PortNotGiven)?;
        let host = self.find_host(Inside(inside.0.host()));
        let binding = self.insert(protocol, inside, outside, BindingKind::Dynamic, (slot, host));
        self.subscribers.has_more(inside.0.host());
        self.given(protocol, outside);
        binding.ok_or(NotAdopted::TableFull)
    }

    /// Quarantines a free endpoint of the pool until this second. Whether it was quarantined.
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
        self.quarantine.insert((protocol, outside), slot, until);
        self.given(protocol, outside);
        true
    }

    /// Endpoints in quarantine.
    pub(crate) fn quarantined(&self) -> usize {
        self.quarantine.len()
    }

    /// Frees the next endpoint whose quarantine ends in this second or before; whether there was one.
    pub(super) fn end_quarantine(&mut self, second: u32) -> bool {
        let Some(((protocol, outside), slot)) = self.quarantine.pop(second) else { return false };
        self.pool.release(slot, protocol, outside.0.port);
        self.is_free_again(protocol, outside);
        true
    }

    /// Ends the quarantine of an endpoint early: its owner is known.
    fn leave_quarantine(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>) {
        if let Some(slot) = self.quarantine.remove((protocol, outside)) {
            self.pool.release(slot, protocol, outside.0.port);
            self.is_free_again(protocol, outside);
        }
    }

    /// Creates a static binding.
    pub(super) fn bind_static(&mut self, new: &StaticBinding<I>) -> Result<u32, StaticBindingError> {
        let StaticBinding { protocol, inside, outside } = *new;
        if self.find_inside(protocol, inside).is_some() {
            return Err(StaticBindingError::InsideInUse);
        }
        if self.bindings.is_full() {
            return Err(StaticBindingError::TableFull);
        }
        let slot = self.reserve(protocol, outside)?;
        let host = self.find_host(Inside(inside.0.host()));
        self.insert(protocol, inside, outside, BindingKind::Static, (slot, host))
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
        self.pool.reserve(protocol, outside).ok_or(StaticBindingError::NotInPool)
    }

    /// Undoes [`BindingTable::reserve`].
    pub(super) fn release(&mut self, slot: PoolSlot, protocol: NatProtocol, port: u16) {
        self.pool.release(slot, protocol, port);
    }

    fn insert(
        &mut self,
        protocol: NatProtocol,
        inside: Inside<I>,
        outside: Outside<Endpoint4>,
        kind: BindingKind,
        (pool_slot, host): (PoolSlot, Option<u32>),
    ) -> Option<u32> {
        let host = match host {
            Some(host) => host,
            None => {
                let address = Inside(inside.0.host());
                let host = self.hosts.insert(Host { address, paired: pool_slot, bindings: 0 })?;
                self.by_host.insert(self.tag_host(address), host);
                host
            }
        };
        self.hosts[host].bindings += 1;
        let binding = Binding { inside, outside, protocol, kind, pool_slot, host, first: NONE, sessions: 0 };
        let slot = self.bindings.insert(binding)?;
        self.by_inside.insert(self.tag_inside(protocol, inside), slot);
        self.by_outside.insert_late(self.tag_outside(protocol, outside), slot);
        Some(slot)
    }

    /// Records in the ledger that an endpoint is bound.
    fn given(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>) {
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

    /// Removes a binding without sessions; its port is free again.
    pub(super) fn remove(&mut self, slot: u32) {
        let binding = self.bindings[slot];
        self.by_inside.remove(self.tag_inside(binding.protocol, binding.inside), slot);
        self.by_outside.remove(self.tag_outside(binding.protocol, binding.outside), slot);
        if binding.kind == BindingKind::Dynamic {
            self.subscribers.has_fewer(binding.inside.0.host());
            self.is_free_again(binding.protocol, binding.outside);
        }
        self.bindings[slot].kind = BindingKind::Free;
        self.bindings.release(slot);
        self.pool.release(binding.pool_slot, binding.protocol, binding.outside.0.port);
        let host = &mut self.hosts[binding.host];
        host.bindings -= 1;
        if host.bindings == 0 {
            let address = host.address;
            self.by_host.remove(self.tag_host(address), binding.host);
            self.hosts.release(binding.host);
        }
    }

    /// Memory in octets.
    pub(crate) fn memory(&self) -> usize {
        self.bindings.memory()
            + self.hosts.memory()
            + self.by_inside.memory()
            + self.by_outside.memory()
            + self.by_host.memory()
            + self.subscribers.memory()
            + self.pool.memory()
            + self.quarantine.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nat::ownership::Ownership;
    use crate::nat::pool::PoolConfig;
    use crate::verdict::WorkerId;
    use core::net::Ipv6Addr;

    fn table(most: u32) -> BindingTable<Endpoint6> {
        let config =
            PoolConfig { addresses: vec!["192.0.2.0/28".parse().unwrap()], ports: vec![1_024..=65_535] };
        BindingTable::new(
            most,
            (0, 64),
            Pool::new(
                &config,
                &Ownership::<Ipv6Addr>::striped(1, crate::nat::Spread::new([1, 2], 64)),
                WorkerId(0),
                [1, 2],
            ),
            [1, 2],
        )
    }

    fn inside(host: u16, port: u16) -> Inside<Endpoint6> {
        Inside(Endpoint6::new(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host), port))
    }

    #[test]
    fn a_host_keeps_its_outside_address_in_every_bib_as_long_as_it_has_bindings() {
        let mut table = table(100);
        let slots: Vec<u32> = (0..30)
            .map(|n| table.bind(NatProtocol::ALL[usize::from(n % 3)], inside(1, 5_000 + n)).unwrap())
            .collect();
        let address = table.get(slots[0]).outside.0.address;
        assert!(slots.iter().all(|slot| table.get(*slot).outside.0.address == address));
        for slot in slots {
            table.remove(slot);
        }
        assert_eq!((table.len(), table.hosts.len()), (0, 0));
    }

    #[test]
    fn a_full_table_refuses_and_forgets_nothing() {
        let mut table = table(2);
        let one = table.bind(NatProtocol::Udp, inside(1, 1)).unwrap();
        table.bind(NatProtocol::Udp, inside(2, 1)).unwrap();
        assert_eq!(table.bind(NatProtocol::Udp, inside(3, 1)), Err(DropReason::BindingTableFull));
        assert_eq!(table.find_inside(NatProtocol::Udp, inside(1, 1)), Some(one));
        assert_eq!(table.find_outside(NatProtocol::Udp, table.get(one).outside), Some(one));
    }

    #[test]
    fn a_static_binding_says_why_it_cannot_be_made() {
        let mut table = table(2);
        let at = |address: &str, port| Outside(Endpoint4::new(address.parse().unwrap(), port));
        let new =
            |host, outside| StaticBinding { protocol: NatProtocol::Tcp, inside: inside(host, 80), outside };
        table.bind_static(&new(1, at("192.0.2.1", 80))).unwrap();
        let refused = |table: &mut BindingTable<Endpoint6>, new| table.bind_static(&new).unwrap_err();
        assert_eq!(refused(&mut table, new(1, at("192.0.2.1", 81))), StaticBindingError::InsideInUse);
        assert_eq!(refused(&mut table, new(2, at("192.0.2.1", 80))), StaticBindingError::OutsideInUse);
        assert_eq!(refused(&mut table, new(2, at("198.51.100.1", 80))), StaticBindingError::NotInPool);
        table.bind_static(&new(2, at("192.0.2.2", 80))).unwrap();
        assert_eq!(refused(&mut table, new(3, at("192.0.2.3", 80))), StaticBindingError::TableFull);
    }
}
