//! Port blocks of subscribers (RFC 6888 §5): whose ports are whose, so that one log record covers a block instead of one port.
//!
//! ```text
//!     192.0.2.1   │ 1024 … 1535 │ 1536 … 2047 │ 2048 … 2559 │ …
//!                        A             B             A        A has a second block because its first one is nearly full
//! ```
//!
//! A subscriber gets a block with its first binding, all of its blocks at one address, and each block for all protocols. A block without a
//! bound or quarantined port for the idle time is returned. Which ports are free is known to the [`super::pool::Pool`]; this table knows
//! whose block is whose, and how many ports of each are used.

use super::block_policy::BlockPolicy;
use super::free_set::FreeSet;
use super::keyed::scale;
use super::pool::PoolSlot;
use super::protocol::NatProtocol;
use super::slab::{NONE, Slab};
use core::net::{Ipv4Addr, Ipv6Addr};

/// One block of this many is given only to subscribers without any.
const RESERVED: u32 = 20;

/// Blocks that are examined for an idle one at an address, or for one at a port range that is in use.
const EXAMINED: usize = 64;

/// Unused blocks that are examined for one at an address that is not being drained, at most.
const EXAMINED_UNUSED: usize = 1_024;

/// A block that a subscriber has.
#[derive(Clone, Copy, Debug)]
pub(super) struct PortBlock {
    /// Its address.
    pub(super) slot: PoolSlot,
    /// Its first port, divided by the size of blocks.
    pub(super) number: u16,
    /// The row of its subscriber.
    pub(super) owner: u32,
    /// The next block of its subscriber.
    pub(super) next: u32,
    /// Dynamic bindings and quarantined ports, by protocol.
    taken: [u16; 3],
    /// The second since which none is taken.
    idle_since: u32,
    /// Neighbours in the list of unused blocks.
    idle_next: u32,
    idle_previous: u32,
}

impl PortBlock {
    fn is_unused(&self) -> bool {
        self.taken == [0; 3]
    }
}

/// Blocks of one address.
#[derive(Clone, Debug)]
struct AtAddress {
    /// Numbers of blocks that may be given.
    free: FreeSet,
    count: u32,
    /// Whether no further subscriber gets it.
    is_draining: bool,
    /// The block of each number, or [`NONE`].
    given: Box<[u32]>,
}

/// A block was given to a subscriber, or returned by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockNews {
    /// Whether it was given.
    pub(super) is_given: bool,
    /// The subscriber's prefix, as [`super::InsideKey::mapped`] gives addresses, and its length.
    pub(super) subscriber: (Ipv6Addr, u8),
    /// The outside address.
    pub(super) address: Ipv4Addr,
    /// The first port.
    pub(super) first: u16,
    /// The number of ports.
    pub(super) size: u16,
}

/// How many blocks there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts {
    /// Ports of a block.
    pub size: u16,
    /// Blocks that this worker may give, at all addresses.
    pub blocks: u64,
    /// Those that subscribers have.
    pub given: u32,
    /// Those of them without a used port.
    pub unused: u32,
    /// Those that may be given: none is left at addresses that are being drained.
    pub free: u64,
}

/// The blocks of an address of a pool, as far as they are this worker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressBlocks {
    /// The address.
    pub address: Ipv4Addr,
    /// Blocks that subscribers have.
    pub given: u32,
    /// Blocks that may be given.
    pub free: u32,
}

/// The table.
#[derive(Clone, Debug)]
pub(super) struct PortBlocks {
    policy: BlockPolicy,
    /// Numbers of whole blocks of this worker.
    whole: FreeSet,
    whole_count: u32,
    /// By the pool's open addresses.
    at: Vec<AtAddress>,
    /// Open addresses with a free block.
    available: FreeSet,
    blocks: Slab<PortBlock>,
    /// Blocks of each number that are given, at any address, and the numbers with one.
    uses: Box<[u32]>,
    used: FreeSet,
    /// Whether blocks of few numbers are given, so that others can move to another worker.
    is_compact: bool,
    /// Unused blocks, in the order in which they became so.
    idle_first: u32,
    idle_last: u32,
    idle_count: u32,
    /// Where the search for unused blocks at addresses that are being drained continues, or [`NONE`].
    searched: u32,
    /// The present second.
    second: u32,
}

impl PortBlocks {
    /// Without any block yet, for a pool with this number of addresses; at most `most` blocks are given.
    pub(super) fn new(policy: BlockPolicy, addresses: u32, most: u32, is_compact: bool) -> Self {
        let numbers = 65_536 / u32::from(policy.size);
        Self {
            policy,
            whole: FreeSet::new(numbers),
            whole_count: 0,
            at: Vec::new(),
            available: FreeSet::new(addresses),
            blocks: Slab::new(most.min(addresses.saturating_mul(numbers))),
            uses: vec![0; numbers as usize].into_boxed_slice(),
            used: FreeSet::new(numbers),
            is_compact,
            idle_first: NONE,
            idle_last: NONE,
            idle_count: 0,
            searched: NONE,
            second: 0,
        }
    }

    /// How blocks are given.
    pub(super) const fn policy(&self) -> BlockPolicy {
        self.policy
    }

    /// It is this second.
    pub(super) fn set_second(&mut self, second: u32) {
        self.second = self.second.max(second);
    }

    /// A block.
    pub(super) fn get(&self, block: u32) -> &PortBlock {
        &self.blocks[block]
    }

    /// Ports of a block: the first one, and how many.
    pub(super) fn ports(&self, block: u32) -> (u16, u16) {
        (self.blocks[block].number * self.policy.size, self.policy.size)
    }

    /// The given block that a port lies in.
    pub(super) fn find(&self, slot: PoolSlot, port: u16) -> Option<u32> {
        let at = self.at.get(slot.0 as usize)?;
        let block = at.given[usize::from(port / self.policy.size)];
        (block != NONE).then_some(block)
    }

    /// Whole blocks of this number are this worker's from now on.
    pub(super) fn gain(&mut self, number: u16) {
        if !self.whole.insert(number.into()) {
            return;
        }
        self.whole_count += 1;
        for (slot, at) in self.at.iter_mut().enumerate() {
            if at.given[usize::from(number)] == NONE && at.free.insert(number.into()) {
                at.count += 1;
                if !at.is_draining {
                    self.available.insert(slot as u32);
                }
            }
        }
    }

    /// Blocks of this number, of which none is given, are another worker's from now on.
    pub(super) fn lose(&mut self, number: u16) {
        if !self.whole.remove(number.into()) {
            return;
        }
        self.whole_count -= 1;
        for (slot, at) in self.at.iter_mut().enumerate() {
            if at.free.remove(number.into()) {
                at.count -= 1;
                if at.count == 0 {
                    self.available.remove(slot as u32);
                }
            }
        }
    }

    /// Open addresses that this table knows.
    pub(super) fn open_addresses(&self) -> u32 {
        self.at.len() as u32
    }

    /// The pool has opened its next address.
    pub(super) fn opened(&mut self, is_draining: bool) {
        let numbers = self.uses.len();
        self.at.push(AtAddress {
            free: self.whole.clone(),
            count: self.whole_count,
            is_draining,
            given: vec![NONE; numbers].into_boxed_slice(),
        });
        if self.whole_count > 0 && !is_draining {
            self.available.insert(self.at.len() as u32 - 1);
        }
    }

    /// No further subscriber gets an open address, or they do again. What is unused there is returned soon ([`Self::overdue`]).
    pub(super) fn set_draining(&mut self, slot: PoolSlot, is_draining: bool) {
        let Some(at) = self.at.get_mut(slot.0 as usize) else { return };
        let was_draining = std::mem::replace(&mut at.is_draining, is_draining);
        if is_draining && !was_draining {
            self.searched = self.idle_first;
        }
        if at.count > 0 && !is_draining {
            self.available.insert(slot.0);
        } else {
            self.available.remove(slot.0);
        }
    }

    /// An open address with a free block.
    pub(super) fn available_address(&self, random: u32) -> Option<PoolSlot> {
        let open = self.at.len() as u32;
        self.available.find(scale(random, open.max(1)), 0, open, &mut 0).map(PoolSlot)
    }

    /// Whether a subscriber that has blocks at an address may have one more: the last ones are for those without any.
    pub(super) fn has_more(&self, slot: PoolSlot) -> bool {
        let reserved = (self.whole_count / RESERVED).max(u32::from(self.whole_count > 1));
        self.at.get(slot.0 as usize).is_some_and(|at| at.count > reserved)
    }

    /// Whether an address has few blocks left.
    pub(super) fn is_running_out(&self, slot: PoolSlot) -> bool {
        self.at.get(slot.0 as usize).is_none_or(|at| at.count <= 1 + self.whole_count / RESERVED)
    }

    /// Whether more addresses should be opened: most blocks of the open ones are given.
    pub(super) fn is_crowded(&self) -> bool {
        u64::from(self.blocks.len()) * 2 > u64::from(self.whole_count) * self.at.len() as u64
    }

    /// A free number at an address.
    pub(super) fn free_number(&self, slot: PoolSlot, random: u32) -> Option<u16> {
        let at = self.at.get(slot.0 as usize)?;
        let all = self.uses.len() as u32;
        let start = scale(random, all);
        if self.is_compact {
            let mut from = start;
            for _ in 0..EXAMINED.min(self.uses.len()) {
                let Some(number) = self.used.find(from, 0, all, &mut 0) else { break };
                if at.free.contains(number) {
                    return u16::try_from(number).ok();
                }
                from = (number + 1) % all;
            }
        }
        at.free.find(start, 0, all, &mut 0).and_then(|number| u16::try_from(number).ok())
    }

    /// Whether the block of this number may be given at an address.
    pub(super) fn is_free(&self, slot: PoolSlot, number: u16) -> bool {
        self.at.get(slot.0 as usize).is_some_and(|at| at.free.contains(number.into()))
    }

    /// Whether the table is full, so that further blocks cannot be given.
    pub(super) fn is_full(&self) -> bool {
        self.blocks.is_full()
    }

    /// Gives a free block; it has no owner yet. `None`: the table is full.
    pub(super) fn give(&mut self, slot: PoolSlot, number: u16) -> Option<u32> {
        let block = self.blocks.insert(PortBlock {
            slot,
            number,
            owner: NONE,
            next: NONE,
            taken: [0; 3],
            idle_since: self.second,
            idle_next: NONE,
            idle_previous: NONE,
        })?;
        let at = &mut self.at[slot.0 as usize];
        if at.free.remove(number.into()) {
            at.count -= 1;
            if at.count == 0 {
                self.available.remove(slot.0);
            }
        }
        at.given[usize::from(number)] = block;
        self.uses[usize::from(number)] += 1;
        self.used.insert(number.into());
        self.append_idle(block);
        Some(block)
    }

    /// A block has this owner, and is the first of its list before `next`.
    pub(super) fn set_owner(&mut self, block: u32, owner: u32, next: u32) {
        (self.blocks[block].owner, self.blocks[block].next) = (owner, next);
    }

    /// Takes an unused block out of its owner's list, which begins with `first`; returns what the list begins with then.
    pub(super) fn unlink(&mut self, first: u32, block: u32) -> u32 {
        let next = self.blocks[block].next;
        if first == block {
            return next;
        }
        let mut at = first;
        while at != NONE {
            if self.blocks[at].next == block {
                self.blocks[at].next = next;
                break;
            }
            at = self.blocks[at].next;
        }
        first
    }

    /// Takes an unused block back.
    pub(super) fn take_back(&mut self, block: u32) {
        self.remove_idle(block);
        let PortBlock { slot, number, .. } = self.blocks[block];
        let at = &mut self.at[slot.0 as usize];
        at.given[usize::from(number)] = NONE;
        if self.whole.contains(number.into()) && at.free.insert(number.into()) {
            at.count += 1;
            if !at.is_draining {
                self.available.insert(slot.0);
            }
        }
        self.uses[usize::from(number)] -= 1;
        if self.uses[usize::from(number)] == 0 {
            self.used.remove(number.into());
        }
        self.blocks.release(block);
    }

    /// A port of a block is bound or quarantined.
    pub(super) fn took(&mut self, block: u32, protocol: NatProtocol) {
        if self.blocks[block].is_unused() {
            self.remove_idle(block);
        }
        self.blocks[block].taken[protocol as usize] += 1;
    }

    /// It is free again.
    pub(super) fn gave_back(&mut self, block: u32, protocol: NatProtocol) {
        let taken = &mut self.blocks[block].taken[protocol as usize];
        *taken = taken.saturating_sub(1);
        if !self.blocks[block].is_unused() {
            return;
        }
        self.blocks[block].idle_since = self.second;
        self.append_idle(block);
        if self.searched == NONE && self.is_at_draining(block) {
            // It is returned at the next check: its subscriber is to leave the address. A continued search also finds it.
            self.searched = block;
        }
    }

    /// The blocks of a list in the order in which they should be tried for a port: the first one with a quarter of its ports free, so that later
    /// ones become unused and no port can be foretold; then the others from a random one on.
    pub(super) fn in_order(&self, first: u32, count: u32, protocol: NatProtocol, random: u32) -> Order {
        let mut order = Order { roomy: NONE, start: first, at: NONE };
        let skipped = scale(random, count.max(1));
        let (mut block, mut place) = (first, 0);
        while block != NONE {
            let PortBlock { taken, next, .. } = self.blocks[block];
            // The list begins with the newest block: the oldest roomy one is the last found.
            if u32::from(taken[protocol as usize]) * 4 <= u32::from(self.policy.size) * 3 {
                order.roomy = block;
            }
            if place == skipped {
                order.at = block;
            }
            (block, place) = (next, place + 1);
        }
        order
    }

    /// Whether all ports of a block are used by a protocol.
    pub(super) fn is_used_up(&self, block: u32, protocol: NatProtocol) -> bool {
        self.blocks[block].taken[protocol as usize] >= self.policy.size
    }

    /// The block that has been unused for longest, of all but this subscriber's.
    pub(super) fn first_unused_of_others(&self, subscriber: Option<u32>) -> Option<u32> {
        let mut block = self.idle_first;
        while block != NONE && Some(self.blocks[block].owner) == subscriber {
            // No subscriber has many.
            block = self.blocks[block].idle_next;
        }
        (block != NONE).then_some(block)
    }

    /// The same of an address, or of those that further subscribers get.
    pub(super) fn unused(&self, slot: Option<PoolSlot>) -> Option<u32> {
        let mut block = self.idle_first;
        for _ in 0..EXAMINED_UNUSED {
            if block == NONE {
                return None;
            }
            let its = self.blocks[block].slot;
            if slot.map_or(!self.is_at_draining(block), |slot| slot == its) {
                return Some(block);
            }
            block = self.blocks[block].idle_next;
        }
        None
    }

    /// A block that has been unused for the idle time, or is unused at an address that is being drained. A call examines a bounded number of
    /// blocks for the latter.
    pub(super) fn overdue(&mut self) -> Option<u32> {
        let first = self.idle_first;
        if first == NONE {
            return None;
        }
        let until = self.blocks[first].idle_since.saturating_add(self.policy.idle_seconds);
        if until <= self.second || self.is_at_draining(first) {
            return Some(first);
        }
        for _ in 0..EXAMINED_UNUSED {
            let block = self.searched;
            if block == NONE {
                break;
            }
            self.searched = self.blocks[block].idle_next;
            if self.is_at_draining(block) {
                return Some(block);
            }
        }
        None
    }

    fn is_at_draining(&self, block: u32) -> bool {
        self.at[self.blocks[block].slot.0 as usize].is_draining
    }

    /// The blocks that are given at an address.
    pub(super) fn at_address(&self, slot: PoolSlot) -> impl Iterator<Item = u32> {
        let at = self.at.get(slot.0 as usize);
        at.into_iter().flat_map(|at| at.given.iter().copied()).filter(|block| *block != NONE)
    }

    /// How many there are, where a pool has this number of addresses.
    pub(super) fn counts(&self, addresses: u64) -> BlockCounts {
        let open = self.at.iter().filter(|at| !at.is_draining);
        let (open, free) = open.fold((0, 0), |(open, free), at| (open + 1, free + u64::from(at.count)));
        BlockCounts {
            size: self.policy.size,
            blocks: addresses * u64::from(self.whole_count),
            given: self.blocks.len(),
            unused: self.idle_count,
            free: free + addresses.saturating_sub(open) * u64::from(self.whole_count),
        }
    }

    /// Blocks of an open address that are given, and those that may be given.
    pub(super) fn counts_at(&self, slot: PoolSlot) -> Option<(u32, u32)> {
        let at = self.at.get(slot.0 as usize)?;
        let given = self.whole_count.saturating_sub(at.count);
        Some((given, if at.is_draining { 0 } else { at.count }))
    }

    fn append_idle(&mut self, block: u32) {
        let last = std::mem::replace(&mut self.idle_last, block);
        (self.blocks[block].idle_next, self.blocks[block].idle_previous) = (NONE, last);
        if last == NONE {
            self.idle_first = block;
        } else {
            self.blocks[last].idle_next = block;
        }
        self.idle_count += 1;
    }

    fn remove_idle(&mut self, block: u32) {
        let PortBlock { idle_next, idle_previous, .. } = self.blocks[block];
        if self.searched == block {
            self.searched = idle_next;
        }
        if idle_next == NONE {
            self.idle_last = idle_previous;
        } else {
            self.blocks[idle_next].idle_previous = idle_previous;
        }
        if idle_previous == NONE {
            self.idle_first = idle_next;
        } else {
            self.blocks[idle_previous].idle_next = idle_next;
        }
        self.idle_count -= 1;
    }

    /// Memory in octets.
    pub(super) fn memory(&self) -> usize {
        let at = |at: &AtAddress| at.free.memory() + size_of_val(&*at.given) + size_of::<AtAddress>();
        self.blocks.memory()
            + self.at.iter().map(at).sum::<usize>()
            + size_of_val(&*self.uses)
            + self.available.memory()
            + self.whole.memory()
            + self.used.memory()
    }
}

/// The blocks of a subscriber in an order to be tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    /// The oldest with a quarter of its ports free, or [`NONE`].
    pub(super) roomy: u32,
    /// The list.
    pub(super) start: u32,
    /// Where in it a search begins.
    pub(super) at: u32,
}

#[cfg(test)]
mod number_tests;
#[cfg(test)]
mod tests;
