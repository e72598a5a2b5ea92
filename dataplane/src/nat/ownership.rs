//! Which worker owns an inside host, and which an outside endpoint, so that both directions of a flow meet at the worker that holds its
//! state.
//!
//! A subscriber belongs to a worker by its prefix ([`Spread`]). The ports of the outside addresses are cut into blocks; a worker's
//! allocator takes ports from its own blocks only. Blocks are dealt out in stripes and move between workers afterwards: each worker has a
//! table of its own, and learns of every move ([`BlockMove`]). A static binding belongs to the worker of its host, whatever block its
//! outside endpoint lies in.

use super::deterministic::Deterministic;
use super::inside_key::InsideHost;
use super::protocol::NatProtocol;
use super::sides::Outside;
use super::spread::Spread;
use crate::verdict::WorkerId;
use alloc::sync::Arc;
use core::net::Ipv6Addr;
use sixway_wire::Endpoint4;
use std::collections::BTreeMap;

/// Ports in a block, where subscribers have none of their own: small enough that sixteen workers have well-known ports too.
pub const PORTS_PER_BLOCK: u16 = 64;

/// Maximum number of hosts that belong to another worker than their prefix says.
const MOST_EXCEPTIONS: usize = 1 << 16;

/// A block has another owner from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockMove {
    /// The block: its first port, divided by [`Ownership::ports_per_block`].
    pub block: u16,
    /// Its owner.
    pub to: WorkerId,
    /// How often it has moved: of two messages that cross, the later one holds.
    pub times: u32,
}

/// The table, as one worker knows it.
#[derive(Clone, Debug)]
pub struct Ownership<H = Ipv6Addr> {
    workers: u8,
    spread: Spread,
    /// The binary logarithm of the number of ports in a block.
    block_bits: u32,
    blocks: Box<[(WorkerId, u32)]>,
    /// Outside endpoints of static bindings.
    outside: BTreeMap<(NatProtocol, Outside<Endpoint4>), WorkerId>,
    /// Hosts with sessions of an earlier process at another worker.
    exceptions: BTreeMap<H, WorkerId>,
    /// Which subscriber a port belongs to, whatever its block's worker.
    deterministic: Option<Arc<Deterministic>>,
}

impl<H: InsideHost> Ownership<H> {
    /// At the start: blocks dealt in stripes to `workers` workers (at least one), subscribers by this hash.
    pub fn striped(workers: u8, spread: Spread) -> Self {
        Self::in_blocks_of(PORTS_PER_BLOCK, workers, spread)
    }

    /// The same in blocks of this number of ports, a power of two.
    pub fn in_blocks_of(ports_per_block: u16, workers: u8, spread: Spread) -> Self {
        let workers = workers.max(1);
        let owner = |block: u32| (WorkerId((block % u32::from(workers)) as u8), 0);
        let blocks = (0..65_536 >> ports_per_block.ilog2()).map(owner).collect();
        let block_bits = ports_per_block.ilog2();
        Self {
            workers,
            spread,
            block_bits,
            blocks,
            outside: BTreeMap::new(),
            exceptions: BTreeMap::new(),
            deterministic: None,
        }
    }

    /// Ports of a block.
    pub const fn ports_per_block(&self) -> u16 {
        1 << self.block_bits
    }

    /// Blocks of an address.
    pub(super) fn blocks(&self) -> u16 {
        self.blocks.len() as u16
    }

    /// Number of workers.
    pub const fn workers(&self) -> u8 {
        self.workers
    }

    /// The worker that owns the sessions and bindings of an inside host.
    #[inline]
    pub fn worker_of_inside(&self, host: H) -> WorkerId {
        if self.workers == 1 {
            return WorkerId(0);
        }
        if !self.exceptions.is_empty()
            && let Some(worker) = self.exceptions.get(&host)
        {
            return *worker;
        }
        WorkerId(self.spread.worker(host.place(), self.workers))
    }

    /// The worker that owns an outside endpoint.
    #[inline]
    pub fn worker_of_outside(&self, protocol: NatProtocol, endpoint: Endpoint4) -> WorkerId {
        if self.workers == 1 {
            return WorkerId(0);
        }
        if !self.outside.is_empty()
            && let Some(worker) = self.outside.get(&(protocol, Outside(endpoint)))
        {
            return *worker;
        }
        if let Some(deterministic) = &self.deterministic {
            return self.worker_by(deterministic, endpoint);
        }
        self.worker_of_block(endpoint.port)
    }

    /// The worker of the subscriber whose port this is.
    #[cold]
    fn worker_by(&self, deterministic: &Deterministic, endpoint: Endpoint4) -> WorkerId {
        match deterministic.subscriber_of(endpoint) {
            Some((subscriber, _)) => {
                WorkerId(self.spread.worker(H::place_of_mapped(subscriber), self.workers))
            }
            None => self.worker_of_block(endpoint.port),
        }
    }

    /// The worker that may give an outside endpoint to its hosts.
    pub(super) fn giver(&self, endpoint: Endpoint4) -> WorkerId {
        match &self.deterministic {
            Some(deterministic) => self.worker_by(deterministic, endpoint),
            None => self.worker_of_block(endpoint.port),
        }
    }

    /// Lets ports belong to the workers of their subscribers.
    pub(super) fn set_deterministic(&mut self, deterministic: Arc<Deterministic>) {
        self.deterministic = Some(deterministic);
    }

    /// Whether ports belong to the workers of their subscribers.
    pub(super) const fn is_deterministic(&self) -> bool {
        self.deterministic.is_some()
    }

    /// Whether blocks move between workers.
    pub(super) const fn moves(&self) -> bool {
        self.workers > 1 && self.deterministic.is_none()
    }

    /// Whether a worker gives ports of a block.
    pub(super) fn gives(&self, block: u16, worker: WorkerId) -> bool {
        self.deterministic.is_some() || self.blocks[usize::from(block)].0 == worker
    }

    /// The worker in whose blocks the port lies, static bindings left aside.
    #[inline]
    pub fn worker_of_block(&self, port: u16) -> WorkerId {
        self.blocks[usize::from(port >> self.block_bits)].0
    }

    /// Gives a block to another worker; returns the message for the others.
    pub(super) fn give(&mut self, block: u16, to: WorkerId) -> BlockMove {
        let moved = BlockMove { block, to, times: self.blocks[usize::from(block)].1 + 1 };
        self.moved(moved);
        moved
    }

    /// A block has moved. Whether that was not known.
    pub(super) fn moved(&mut self, moved: BlockMove) -> bool {
        let Some(known) = self.blocks.get_mut(usize::from(moved.block)) else { return false };
        if moved.times <= known.1 {
            return false;
        }
        *known = (moved.to, moved.times);
        true
    }

    /// Gives the outside endpoint of a static binding to its host's worker.
    pub(super) fn add_static(
        &mut self,
        protocol: NatProtocol,
        outside: Outside<Endpoint4>,
        worker: WorkerId,
    ) {
        self.outside.insert((protocol, outside), worker);
    }

    /// Whether an outside endpoint is a static binding's.
    pub(super) fn is_static(&self, protocol: NatProtocol, outside: Outside<Endpoint4>) -> bool {
        self.outside.contains_key(&(protocol, outside))
    }

    /// The outside endpoints of a protocol's static bindings.
    pub(super) fn statics(&self, protocol: NatProtocol) -> impl Iterator<Item = Outside<Endpoint4>> {
        let all = self.outside.keys().filter(move |(other, _)| *other == protocol);
        all.map(|(_, outside)| *outside)
    }

    /// Removes a static binding: its port belongs to its block's worker again.
    pub(super) fn remove_static(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>) {
        self.outside.remove(&(protocol, outside));
    }

    /// Lets a host belong to another worker than its prefix says, until the process ends; whether there was room.
    pub(super) fn except(&mut self, host: H, worker: WorkerId) -> bool {
        if self.exceptions.len() >= MOST_EXCEPTIONS {
            return false;
        }
        self.exceptions.insert(host, worker);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(workers: u8) -> Ownership {
        Ownership::striped(workers, Spread::new([1, 2], 64))
    }

    #[test]
    fn blocks_are_striped_and_every_worker_has_ports_of_both_ranges_and_parities() {
        assert_eq!(table(4).worker_of_block(0), WorkerId(0));
        assert_eq!(table(4).worker_of_block(63), WorkerId(0));
        assert_eq!(table(4).worker_of_block(64), WorkerId(1));
        assert_eq!(table(4).worker_of_block(65_535), WorkerId(3));
        for worker in 0..16 {
            assert!((0..1_024).any(|port| table(16).worker_of_block(port) == WorkerId(worker)));
        }
    }

    #[test]
    fn of_two_messages_about_a_block_the_later_one_holds_in_whatever_order_they_come() {
        let mut owner = table(4);
        let first = owner.give(1, WorkerId(2));
        let second = owner.give(1, WorkerId(3));
        for order in [[first, second], [second, first]] {
            let mut other = table(4);
            for moved in order {
                other.moved(moved);
            }
            assert_eq!(other.worker_of_block(64), WorkerId(3));
            assert!(!other.moved(first) && !other.moved(second));
        }
    }

    #[test]
    fn a_static_binding_belongs_to_the_worker_of_its_host_until_it_is_removed() {
        let mut table = table(4);
        let at = |port| Endpoint4::new("192.0.2.1".parse().unwrap(), port);
        table.add_static(NatProtocol::Tcp, Outside(at(64)), WorkerId(3));
        assert_eq!(table.worker_of_outside(NatProtocol::Tcp, at(64)), WorkerId(3));
        assert_eq!(table.worker_of_outside(NatProtocol::Udp, at(64)), WorkerId(1));
        table.remove_static(NatProtocol::Tcp, Outside(at(64)));
        assert_eq!(table.worker_of_outside(NatProtocol::Tcp, at(64)), WorkerId(1));
    }

    #[test]
    fn a_host_may_stay_with_another_worker_than_its_prefix_says() {
        let mut table = table(4);
        let host: Ipv6Addr = "2001:db8::1".parse().unwrap();
        let other = WorkerId((table.worker_of_inside(host).0 + 1) % 4);
        assert!(table.except(host, other));
        assert_eq!(table.worker_of_inside(host), other);
        assert_ne!(table.worker_of_inside("2001:db8::2".parse().unwrap()), other);
    }
}
