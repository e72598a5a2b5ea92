//! The outside addresses and ports that a NAT may give to inside hosts, and the choice of one (RFC 6146 §3.5.1.1).
//!
//! A choice costs the same however full the pool is: for each protocol and port range a [`FreeSet`] of the addresses that
//! have a port left is searched from a random place, and so is the address's [`PortPlane`].
//!
//! An address costs memory (8 KiB a protocol) only once it is open. All of a small pool is open; of a large one the first
//! [`OPEN_AT_START`], and one more whenever the open ones hold more than [`BINDINGS_PER_OPEN_ADDRESS`] bindings on
//! average, so that a /16 costs what its bindings need.

mod draining;

use super::addresses_in_use::AddressesInUse;
use super::draining::Draining;
use super::free_set::FreeSet;
use super::inside_key::InsideHost;
use super::keyed::{Purpose, Unpredictable, scale};
use super::ownership::{Ownership, PORTS_PER_BLOCK};
use super::port_plane::{PortPlane, PortRange};
use super::protocol::NatProtocol;
use super::sides::Outside;
use crate::verdict::WorkerId;
use alloc::sync::Arc;
use core::net::Ipv4Addr;
use core::ops::RangeInclusive;
use sixway_wire::{Endpoint4, Prefix4};
use std::collections::{BTreeMap, BTreeSet};

/// Addresses that are open from the start, at most.
pub const OPEN_AT_START: u64 = 64;

/// Bindings that the open addresses hold on average before one more is opened.
pub const BINDINGS_PER_OPEN_ADDRESS: u64 = 1_024;

/// Up to this many prefixes are searched linearly, more by bisection.
const FEW_PREFIXES: usize = 8;

/// Free ports of an address at which another block is requested: more than a batch of packets needs.
const RUNNING_OUT: u32 = 2 * PORTS_PER_BLOCK as u32;

/// Ports of a block at all open addresses of a pool whose blocks move, at most: all of them are examined.
const MOST_PORTS_TO_MOVE: usize = 1 << 20;

/// Open addresses of a pool whose blocks move, at most.
const MOST_OPEN_TO_MOVE: usize = 1_024;

/// The parts of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolConfig {
    /// The addresses.
    pub addresses: Vec<Prefix4>,
    /// The ports of each address that may be given to hosts. Port 0 is never given.
    pub ports: Vec<RangeInclusive<u16>>,
}

/// Addresses that one worker opens at most: no more would have numbers.
pub(super) const MOST_OPEN: u32 = 1 << 24;

/// Number of an open address, below [`MOST_OPEN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSlot(pub u32);

#[derive(Clone, Debug)]
pub(super) struct OpenAddress {
    pub(super) address: Ipv4Addr,
    planes: [Option<Box<PortPlane>>; 3],
    /// Endpoints of each protocol and range that are taken here.
    taken: [[u32; 2]; 3],
    /// Inside hosts that are paired with it.
    hosts: u32,
    /// No further host gets it.
    is_draining: bool,
}

impl OpenAddress {
    /// Endpoints of a protocol that are taken here.
    const fn taken_of(&self, protocol: NatProtocol) -> u32 {
        let [one, other] = self.taken[protocol as usize];
        one + other
    }
}

/// What a pool has at addresses that are being drained.
#[derive(Clone, Copy, Debug, Default)]
struct Drained {
    addresses: u64,
    /// Those that are open.
    open: u64,
    /// Endpoints that are taken there, by protocol and range.
    taken: [[u64; 2]; 3],
}

/// The pool, as one worker sees it: only the ports of its own blocks are ever free.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Sorted, without overlaps; with the number of addresses before each.
    prefixes: Vec<(u64, Prefix4)>,
    total: u64,
    /// The ports that may be given, by any worker.
    ports: PortPlane,
    /// Ports of a block.
    pub(super) ports_per_block: u16,
    /// Endpoints of each block that are taken, at any address and of any protocol, and subscribers that have it.
    taken: Box<[u32]>,
    /// Blocks of this worker, and those of them without a taken endpoint. Only blocks with ports that may be given count.
    pub(super) owned: u32,
    spare: u32,
    /// The address of a host has run out of ports, or nearly.
    wants: bool,
    /// The plane of an address that no host uses.
    untouched: PortPlane,
    pub(super) open: Vec<OpenAddress>,
    slots: BTreeMap<Ipv4Addr, PoolSlot>,
    /// Endpoints that static bindings have reserved in blocks of other workers, which may become this worker's.
    strange: BTreeSet<(u16, u32, NatProtocol)>,
    /// By protocol and range: the open addresses that have a free port.
    pub(super) available: [[FreeSet; 2]; 3],
    /// Addresses are opened in the order `origin + n * stride`, which visits each once.
    origin: u64,
    stride: u64,
    visited: u64,
    bindings: u64,
    /// Endpoints that are taken, by protocol and range.
    taken_of: [[u64; 2]; 3],
    pub(super) random: Unpredictable,
    worker: WorkerId,
    pub(super) workers: u8,
    /// The addresses that any worker has bindings at.
    in_use: Option<Arc<AddressesInUse>>,
    draining: Draining,
    drained: Drained,
    /// Words examined by the last allocation, to show that it is bounded.
    steps: u32,
}

impl Pool {
    /// The pool of one worker, whose blocks `ownership` knows.
    pub fn new<H: InsideHost>(
        config: &PoolConfig,
        ownership: &Ownership<H>,
        worker: WorkerId,
        seed: [u64; 2],
    ) -> Self {
        let mut ports = PortPlane::empty();
        for port in config.ports.iter().cloned().flatten().filter(|port| *port != 0) {
            ports.release(port);
        }
        let (prefixes, total) = without_overlaps(&config.addresses);
        let mut random = Unpredictable::new(seed, Purpose::Ports, worker.0);
        let (origin, mut stride) = (random.draw() % total.max(1), (random.draw() % total.max(1)) | 1);
        while greatest_common_divisor(stride, total) > 1 {
            stride += 2;
        }
        let set = || FreeSet::new(u32::try_from(total).unwrap_or(u32::MAX));
        let mut pool = Self {
            prefixes,
            total,
            ports,
            ports_per_block: ownership.ports_per_block(),
            taken: vec![0; ownership.blocks().into()].into_boxed_slice(),
            owned: 0,
            spare: 0,
            wants: false,
            untouched: PortPlane::empty(),
            open: Vec::new(),
            slots: BTreeMap::new(),
            strange: BTreeSet::new(),
            available: [[set(), set()], [set(), set()], [set(), set()]],
            origin,
            stride,
            visited: 0,
            bindings: 0,
            taken_of: [[0; 2]; 3],
            random,
            worker,
            workers: ownership.workers(),
            in_use: None,
            draining: Draining::default(),
            drained: Drained::default(),
            steps: 0,
        };
        for block in 0..ownership.blocks() {
            if ownership.gives(block, worker) {
                pool.gain(block);
            }
        }
        while pool.open.len() < OPEN_AT_START as usize && pool.open_another() {}
        pool
    }

    /// Whether the address belongs to the pool.
    #[inline]
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        let inside = |(_, prefix): &(u64, Prefix4)| prefix.contains(address);
        if self.prefixes.len() <= FEW_PREFIXES {
            return self.prefixes.iter().any(inside);
        }
        let behind = self.prefixes.partition_point(|(_, prefix)| prefix.address() <= address);
        self.prefixes[..behind].last().is_some_and(inside)
    }

    /// The address of a pool that has no other.
    pub(super) fn only_address(&self) -> Option<Ipv4Addr> {
        match &self.prefixes[..] {
            [(_, prefix)] if prefix.length() == 32 => Some(prefix.address()),
            _ => None,
        }
    }

    /// The address of a slot.
    pub(super) fn address_of(&self, slot: PoolSlot) -> Ipv4Addr {
        self.open[slot.0 as usize].address
    }

    /// Number of addresses, without those that are being drained.
    pub const fn addresses(&self) -> u64 {
        self.total - self.drained.addresses
    }

    /// Ports of each address that this worker may give.
    pub fn ports(&self) -> u32 {
        PortRange::ALL.iter().map(|range| self.untouched.free(*range)).sum()
    }

    /// Free ports of a protocol in these ranges at an open address that this worker may give.
    pub fn free_at(&self, slot: PoolSlot, protocol: NatProtocol, ranges: &[PortRange]) -> u32 {
        let plane =
            self.open[slot.0 as usize].planes[protocol as usize].as_deref().unwrap_or(&self.untouched);
        ranges.iter().map(|range| plane.free(*range)).sum()
    }

    /// Ports of a protocol in these ranges that this worker may give to a further host at any address, opened or not.
    pub fn free_anywhere(&self, protocol: NatProtocol, ranges: &[PortRange]) -> u32 {
        let free = |range: &PortRange| {
            let (at, range) = (protocol as usize, *range);
            let all = self.addresses().saturating_mul(self.untouched.free(range).into());
            let drained = self.drained.taken[at][range as usize];
            all.saturating_sub(self.taken_of[at][range as usize].saturating_sub(drained))
        };
        u32::try_from(ranges.iter().map(free).sum::<u64>()).unwrap_or(u32::MAX)
    }

    /// Requests another block.
    pub const fn want(&mut self) {
        self.wants = true;
    }

    /// Endpoints that are taken, by protocol ([`NatProtocol`]); without those at addresses that are being drained.
    pub fn taken(&self) -> [u64; 3] {
        let mut sums = [0; 3];
        for open in self.open.iter().filter(|open| !open.is_draining) {
            sums.iter_mut()
                .zip(open.taken)
                .for_each(|(sum, taken)| *sum += taken.map(u64::from).iter().sum::<u64>());
        }
        sums
    }

    /// Words looked at by the last allocation.
    #[cfg(test)]
    pub const fn steps(&self) -> u32 {
        self.steps
    }

    /// Takes a free endpoint for a binding of an inside port. `paired` is the address that the inside host already has: it gets no other
    /// one (RFC 4787 REQ-2, "paired"), also when that has no port left (RFC 7857 §4). `None`: there is no port left.
    pub fn allocate(
        &mut self,
        paired: Option<PoolSlot>,
        protocol: NatProtocol,
        inside_port: u16,
    ) -> Option<(PoolSlot, Outside<Endpoint4>)> {
        self.steps = 0;
        let random = self.random.draw();
        if let Some(slot) = paired {
            let drawn = self.draw_from(slot, protocol, inside_port, random);
            self.wants |= drawn.is_none();
            return drawn.map(|outside| (slot, outside));
        }
        if self.is_crowded() {
            self.open_another();
        }
        for range in PortRange::preference(protocol, inside_port) {
            let Some(slot) = self.available_address(protocol, *range, random) else { continue };
            if let Some(outside) = self.draw_from(slot, protocol, inside_port, random) {
                return Some((slot, outside));
            }
        }
        self.wants = true;
        None
    }

    /// An open address with a free port of the range; one is opened if there is none.
    fn available_address(
        &mut self,
        protocol: NatProtocol,
        range: PortRange,
        random: u64,
    ) -> Option<PoolSlot> {
        let open = self.open.len() as u32;
        let start = scale((random >> 32) as u32, open.max(1));
        let set = &self.available[protocol as usize][range as usize];
        if let Some(slot) = set.find(start, 0, open, &mut self.steps) {
            return Some(PoolSlot(slot));
        }
        (self.untouched.free(range) > 0 && self.open_another()).then_some(PoolSlot(open))
    }

    fn draw_from(
        &mut self,
        slot: PoolSlot,
        protocol: NatProtocol,
        inside_port: u16,
        random: u64,
    ) -> Option<Outside<Endpoint4>> {
        // Only UDP keeps parity (RFC 6146 §3.5.1.1); elsewhere it is one more random bit.
        let parity = match protocol {
            NatProtocol::Udp => inside_port & 1,
            NatProtocol::Tcp | NatProtocol::Icmp => (random >> 32) as u16 & 1,
        };
        let address = self.open[slot.0 as usize].address;
        for range in PortRange::preference(protocol, inside_port) {
            if !self.has_free(slot, protocol, *range) {
                continue;
            }
            let mut steps = self.steps;
            let plane = self.plane(slot, protocol);
            let drawn = plane.draw(*range, parity, random as u32, &mut steps);
            let left = plane.free(*range);
            let is_used_up = left == 0;
            self.steps = steps;
            self.wants |= left < RUNNING_OUT && *range == PortRange::High;
            if is_used_up {
                self.available[protocol as usize][*range as usize].remove(slot.0);
            }
            if let Some(port) = drawn {
                self.took(slot, protocol, port);
                return Some(Outside(Endpoint4::new(address, port)));
            }
        }
        None
    }

    #[inline]
    fn has_free(&self, slot: PoolSlot, protocol: NatProtocol, range: PortRange) -> bool {
        let open = &self.open[slot.0 as usize];
        if open.is_draining {
            let plane = open.planes[protocol as usize].as_deref().unwrap_or(&self.untouched);
            return plane.free(range) > 0;
        }
        self.available[protocol as usize][range as usize].contains(slot.0)
    }

    pub(super) fn plane(&mut self, slot: PoolSlot, protocol: NatProtocol) -> &mut PortPlane {
        let Self { open, untouched, .. } = self;
        open[slot.0 as usize].planes[protocol as usize].get_or_insert_with(|| Box::new(untouched.clone()))
    }

    /// Takes this endpoint for a static binding. The port may be outside the range that the pool gives. The BIB knows whether
    /// another binding uses it. `None`: the address is not in the pool.
    pub fn reserve(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>) -> Option<PoolSlot> {
        let slot = self.slot_of(outside.0.address)?;
        let range = PortRange::of(outside.0.port);
        let is_strange = !self.untouched.is_free(outside.0.port) && self.ports.is_free(outside.0.port);
        let plane = self.plane(slot, protocol);
        plane.take(outside.0.port);
        if plane.free(range) == 0 {
            self.available[protocol as usize][range as usize].remove(slot.0);
        }
        if is_strange {
            self.strange.insert((outside.0.port, slot.0, protocol));
        }
        self.took(slot, protocol, outside.0.port);
        Some(slot)
    }

    /// Takes this endpoint if it is free and this worker may give it.
    pub fn take(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>) -> Option<PoolSlot> {
        let port = outside.0.port;
        if !self.untouched.is_free(port) {
            return None;
        }
        let slot = self.slot_of(outside.0.address)?;
        let range = PortRange::of(port);
        let plane = self.plane(slot, protocol);
        if !plane.take(port) {
            return None;
        }
        if plane.free(range) == 0 {
            self.available[protocol as usize][range as usize].remove(slot.0);
        }
        self.took(slot, protocol, port);
        Some(slot)
    }

    /// The slot of an address of the pool, which is opened if need be.
    pub(super) fn slot_of(&mut self, address: Ipv4Addr) -> Option<PoolSlot> {
        if let Some(slot) = self.slots.get(&address) {
            return Some(*slot);
        }
        (self.contains(address) && self.open.len() < MOST_OPEN as usize).then(|| self.open_this(address))
    }

    /// Gives an endpoint back that [`Pool::allocate`] or [`Pool::reserve`] took.
    pub fn release(&mut self, slot: PoolSlot, protocol: NatProtocol, port: u16) {
        self.gave_back(slot, protocol, port);
        if !self.strange.is_empty() {
            self.strange.remove(&(port, slot.0, protocol));
        }
        if !self.untouched.is_free(port) {
            return;
        }
        self.plane(slot, protocol).release(port);
        if !self.open[slot.0 as usize].is_draining {
            self.available[protocol as usize][PortRange::of(port) as usize].insert(slot.0);
        }
    }

    /// An endpoint with this port is taken.
    pub(super) fn took(&mut self, slot: PoolSlot, protocol: NatProtocol, port: u16) {
        self.bindings += 1;
        let range = PortRange::of(port) as usize;
        self.taken_of[protocol as usize][range] += 1;
        let open = &mut self.open[slot.0 as usize];
        self.drained.taken[protocol as usize][range] += u64::from(open.is_draining);
        open.taken[protocol as usize][range] += 1;
        if open.taken_of(protocol) == 1 {
            let address = open.address;
            self.share(address, protocol, true);
        }
        self.hold(port / self.ports_per_block);
    }

    /// An endpoint with this port is free again.
    fn gave_back(&mut self, slot: PoolSlot, protocol: NatProtocol, port: u16) {
        self.bindings = self.bindings.saturating_sub(1);
        let range = PortRange::of(port) as usize;
        let taken = &mut self.taken_of[protocol as usize][range];
        *taken = taken.saturating_sub(1);
        let open = &mut self.open[slot.0 as usize];
        let drained = &mut self.drained.taken[protocol as usize][range];
        *drained = drained.saturating_sub(open.is_draining.into());
        let taken = &mut open.taken[protocol as usize][range];
        *taken = taken.saturating_sub(1);
        if open.taken_of(protocol) == 0 {
            let address = open.address;
            self.share(address, protocol, false);
        }
        self.let_go(port / self.ports_per_block);
    }

    /// One more reason why a block stays with this worker.
    pub(super) fn hold(&mut self, block: u16) {
        self.taken[usize::from(block)] += 1;
        if self.taken[usize::from(block)] == 1 && self.has(block) {
            self.spare -= 1;
        }
    }

    /// One reason less.
    pub(super) fn let_go(&mut self, block: u16) {
        let taken = &mut self.taken[usize::from(block)];
        *taken = taken.saturating_sub(1);
        if *taken == 0 && self.has(block) {
            self.spare += 1;
        }
    }

    /// Whether this worker may give ports of a block.
    pub(super) fn has(&self, block: u16) -> bool {
        self.untouched.has(block, self.ports_per_block)
    }

    /// Tells the other workers whether this one has bindings at an address.
    fn share(&self, address: Ipv4Addr, protocol: NatProtocol, is_used: bool) {
        if let (Some(in_use), Some(number)) = (&self.in_use, self.number_of(address)) {
            in_use.set(number, protocol, self.worker, is_used);
        }
    }

    /// Shares with the other workers which addresses have bindings, from now on.
    pub fn set_in_use(&mut self, in_use: Arc<AddressesInUse>) {
        self.in_use = Some(in_use);
        for open in &self.open {
            for protocol in NatProtocol::ALL {
                self.share(open.address, protocol, open.taken_of(protocol) > 0);
            }
        }
    }

    /// Whether an address may have bindings of a protocol, at any worker.
    pub fn is_in_use(&self, address: Ipv4Addr, protocol: NatProtocol) -> bool {
        let own = self.slots.get(&address).map_or(0, |slot| self.open[slot.0 as usize].taken_of(protocol));
        if own > 0 || self.workers == 1 {
            return own > 0;
        }
        let others = self.in_use.as_ref().zip(self.number_of(address));
        others.is_none_or(|(in_use, number)| in_use.any(number, protocol))
    }

    /// Whether some worker may give this port.
    pub fn may_give(&self, port: u16) -> bool {
        self.ports.is_free(port)
    }

    /// Blocks of this worker that have ports which may be given.
    pub const fn owned(&self) -> u32 {
        self.owned
    }

    /// Those without a taken port, at any address.
    pub const fn spare(&self) -> u32 {
        self.spare
    }

    /// Blocks that have ports which may be given, of all workers.
    pub fn blocks(&self) -> u32 {
        (0..self.taken.len() as u16).filter(|block| self.ports.has(*block, self.ports_per_block)).count()
            as u32
    }

    /// Whether ports ran out since the last time it was asked, or nearly did.
    pub const fn wants(&mut self) -> bool {
        std::mem::replace(&mut self.wants, false)
    }

    /// A block that can be given away: the last one without a taken port. Not of a pool with too many open addresses, where it would take
    /// long: its hosts find ports at another address.
    pub fn spare_block(&self) -> Option<u16> {
        let most = MOST_OPEN_TO_MOVE.min(MOST_PORTS_TO_MOVE / usize::from(self.ports_per_block.max(1)));
        if self.spare == 0 || self.open.len() > most {
            return None;
        }
        (0..self.taken.len() as u16).rev().find(|block| self.is_spare(*block))
    }

    /// Whether a block is this worker's and no port of it is taken.
    pub fn is_spare(&self, block: u16) -> bool {
        self.taken[usize::from(block)] == 0 && self.has(block)
    }

    /// A spare block is another worker's from now on.
    pub fn lose(&mut self, block: u16) {
        if !self.has(block) {
            return;
        }
        (self.owned, self.spare) = (self.owned - 1, self.spare - 1);
        self.change_planes(|plane, _, size| plane.take_block(block, size));
    }

    /// A block is this worker's from now on.
    pub fn gain(&mut self, block: u16) {
        if !self.ports.has(block, self.ports_per_block) || self.has(block) {
            return;
        }
        self.owned += 1;
        self.spare += u32::from(self.taken[usize::from(block)] == 0);
        self.change_planes(|plane, ports, size| plane.release_block(block, size, ports));
        // What static bindings have reserved there did not become free.
        let first = block.saturating_mul(self.ports_per_block);
        let last = first.saturating_add(self.ports_per_block - 1);
        let of_block = (first, 0, NatProtocol::Tcp)..=(last, u32::MAX, NatProtocol::Icmp);
        let reserved: Vec<_> = self.strange.range(of_block).copied().collect();
        for (port, slot, protocol) in reserved {
            self.strange.remove(&(port, slot, protocol));
            self.plane(PoolSlot(slot), protocol).take(port);
            self.sort_in(slot, protocol);
        }
    }

    /// Changes what is free at all addresses: `change` has a plane, the ports that any worker may give, and the size of blocks.
    fn change_planes(&mut self, change: impl Fn(&mut PortPlane, &PortPlane, u16)) {
        let Self { ports, untouched, open, ports_per_block, .. } = self;
        let planes = open.iter_mut().flat_map(|open| open.planes.iter_mut().flatten());
        planes.for_each(|plane| change(plane, ports, *ports_per_block));
        change(untouched, ports, *ports_per_block);
        for slot in 0..self.open.len() {
            for protocol in NatProtocol::ALL {
                self.sort_in(slot as u32, protocol);
            }
        }
    }

    /// Puts an open address among those that have a free port, or takes it out.
    fn sort_in(&mut self, slot: u32, protocol: NatProtocol) {
        let open = &self.open[slot as usize];
        let plane = open.planes[protocol as usize].as_deref().unwrap_or(&self.untouched);
        for range in PortRange::ALL {
            let set = &mut self.available[protocol as usize][range as usize];
            if plane.free(range) > 0 && !open.is_draining {
                set.insert(slot)
            } else {
                set.remove(slot)
            };
        }
    }

    /// Opens one more address; whether there was one.
    pub(super) fn open_another(&mut self) -> bool {
        while self.visited < self.total && self.open.len() < MOST_OPEN as usize {
            let number = (u128::from(self.origin) + u128::from(self.visited) * u128::from(self.stride))
                % u128::from(self.total);
            self.visited += 1;
            let address = self.address_numbered(number as u64);
            if !self.slots.contains_key(&address) && !self.draining.contains(address) {
                self.open_this(address);
                return true;
            }
        }
        false
    }

    fn open_this(&mut self, address: Ipv4Addr) -> PoolSlot {
        let slot = PoolSlot(self.open.len() as u32);
        let is_draining = self.draining.contains(address);
        let planes = [None, None, None];
        self.open.push(OpenAddress { address, planes, taken: [[0; 2]; 3], hosts: 0, is_draining });
        self.slots.insert(address, slot);
        self.drained.open += u64::from(is_draining);
        for ranges in self.available.iter_mut().filter(|_| !is_draining) {
            for range in PortRange::ALL {
                if self.untouched.free(range) > 0 {
                    ranges[range as usize].insert(slot.0);
                }
            }
        }
        slot
    }

    fn address_numbered(&self, number: u64) -> Ipv4Addr {
        let at = self.prefixes.partition_point(|(before, _)| *before <= number).saturating_sub(1);
        let (before, prefix) = self.prefixes[at];
        Ipv4Addr::from_bits(prefix.address().to_bits().wrapping_add((number - before) as u32))
    }

    /// The number of an address among those of the pool.
    fn number_of(&self, address: Ipv4Addr) -> Option<u64> {
        let behind = self.prefixes.partition_point(|(_, prefix)| prefix.address() <= address);
        let (before, prefix) = self.prefixes[..behind].last()?;
        prefix.contains(address).then(|| before + u64::from(address.to_bits() - prefix.address().to_bits()))
    }

    /// Memory in octets.
    pub fn memory(&self) -> usize {
        let planes = self.open.iter().flat_map(|open| open.planes.iter().flatten());
        let sets = self.available.iter().flatten();
        self.open.capacity() * size_of::<OpenAddress>()
            + self.slots.len() * 3 * size_of::<(Ipv4Addr, PoolSlot)>()
            + planes.map(|plane| plane.memory()).sum::<usize>()
            + sets.map(FreeSet::memory).sum::<usize>()
            + self.untouched.memory()
            + self.ports.memory()
            + size_of_val(&*self.taken)
    }
}

/// The prefixes in order, those inside others left out, each with the number of addresses before it; and the total.
fn without_overlaps(addresses: &[Prefix4]) -> (Vec<(u64, Prefix4)>, u64) {
    let mut sorted = addresses.to_vec();
    sorted.sort_by_key(|prefix| (prefix.address(), prefix.length()));
    let (mut prefixes, mut total) = (Vec::<(u64, Prefix4)>::new(), 0);
    for prefix in sorted {
        if prefixes.last().is_some_and(|(_, last)| last.overlaps(prefix)) {
            continue;
        }
        prefixes.push((total, prefix));
        total += 1 << (32 - prefix.length());
    }
    (prefixes, total)
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests;
