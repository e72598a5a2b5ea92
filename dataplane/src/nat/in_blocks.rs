//! Bindings with ports of their subscriber's port blocks ([`PortBlocks`]).

use super::binding::BindingTable;
use super::binding_kind::BindingKind;
use super::block_policy::{BlockPolicy, MOST_BLOCKS};
use super::deterministic::Deterministic;
use super::inside_key::InsideKey;
use super::not_adopted::NotAdopted;
use super::pool::PoolSlot;
use super::port_blocks::{AddressBlocks, BlockCounts, BlockNews, PortBlocks};
use super::port_plane::PortRange;
use super::protocol::NatProtocol;
use super::quarantine::FormerOwner;
use super::sides::{Inside, Outside};
use super::slab::NONE;
use super::subscriber_table::{BlockList, Left, RowBlocks};
use super::timeouts::Clock;
use crate::drop_reason::DropReason;
use alloc::sync::Arc;
use core::net::Ipv4Addr;
use sixway_wire::{Endpoint4, Prefix4};

/// Ports of a subscriber's blocks that are examined for a quarantined one.
const EXAMINED: u16 = 64;

impl<I: InsideKey> BindingTable<I> {
    /// Gives subscribers port blocks from now on, if there is a policy for it: free ones, or those of a mapping.
    pub(super) fn set_up_blocks(
        &mut self,
        policy: Option<BlockPolicy>,
        deterministic: Option<Arc<Deterministic>>,
        most: u32,
    ) {
        self.deterministic = deterministic;
        let Some(policy) = policy else { return };
        let addresses = u32::try_from(self.pool.addresses()).unwrap_or(u32::MAX);
        let mut blocks = PortBlocks::new(policy, addresses, most, self.pool.workers() > 1);
        for number in 0..(65_536 / u32::from(policy.size)) as u16 {
            if self.pool.has(number) {
                blocks.gain(number);
            }
        }
        self.blocks = Some(Box::new(blocks));
        self.note_opened();
    }

    /// The table of blocks learns of addresses that the pool has opened.
    fn note_opened(&mut self) {
        if let Some(blocks) = &mut self.blocks {
            while blocks.open_addresses() < self.pool.open_addresses() {
                let slot = PoolSlot(blocks.open_addresses());
                blocks.opened(self.pool.is_draining(slot));
            }
        }
    }

    /// Drains these addresses of the pool, or gives them to hosts again.
    pub(super) fn drain(&mut self, prefix: Prefix4, drains: bool) {
        self.pool.drain(prefix, drains);
        self.note_opened();
        if let Some(blocks) = &mut self.blocks {
            for slot in (0..blocks.open_addresses()).map(PoolSlot) {
                blocks.set_draining(slot, self.pool.is_draining(slot));
            }
        }
    }

    /// The ports of a block are this worker's from now on.
    pub(super) fn gain_block(&mut self, number: u16) {
        self.pool.gain(number);
        if let Some(blocks) = self.blocks.as_mut().filter(|_| self.pool.has(number)) {
            blocks.gain(number);
        }
    }

    /// The ports of a spare block are another worker's from now on.
    pub(super) fn lose_block(&mut self, number: u16) {
        self.pool.lose(number);
        if let Some(blocks) = self.blocks.as_mut().filter(|_| !self.pool.has(number)) {
            blocks.lose(number);
        }
    }

    /// Creates a dynamic binding for an inside endpoint without one, with a port of its subscriber's blocks.
    pub(super) fn bind_in_block(
        &mut self,
        protocol: NatProtocol,
        inside: Inside<I>,
        (host, subscriber): (Option<u32>, Option<u32>),
        clock: Clock,
    ) -> Result<u32, DropReason> {
        if let Some(subscriber) = subscriber {
            // The ports of its blocks are its own.
            let left = Left { ports: u32::MAX, bindings: self.bindings.most() - self.bindings.len() };
            self.subscribers.may_bind(subscriber, protocol, left, clock)?;
        }
        if let Some(blocks) = &mut self.blocks {
            blocks.set_second(clock.floor);
        }
        let list = subscriber.map_or(BlockList::EMPTY, |subscriber| self.subscribers.blocks(subscriber));
        let found = match self.draw_in(list, protocol, inside.0.port()) {
            Some((block, outside)) => Some((block, outside, false)),
            None => self.draw_in_new(list, (host, subscriber), protocol, inside),
        };
        let (block, outside, is_new) = match found {
            Some(found) => found,
            None => {
                let (block, outside) = self.own_quarantined(list, protocol).ok_or_else(|| {
                    let is_at_most = self.blocks.as_ref().is_some_and(|it| list.count >= it.policy().most);
                    if is_at_most { DropReason::SubscriberLimit } else { DropReason::PortPoolEmpty }
                })?;
                (block, outside, false)
            }
        };
        let slot = self.slot_of_block(block);
        let binding = self.insert(protocol, inside, outside, BindingKind::Dynamic, (slot, host, subscriber));
        let Some(binding) = binding else {
            self.pool.release(slot, protocol, outside.0.port);
            self.left_block(slot, protocol, outside.0.port);
            if is_new {
                self.forget_block(block);
            }
            return Err(DropReason::BindingTableFull);
        };
        if is_new {
            self.belongs_to(block, self.subscriber_of(binding));
        }
        self.given(protocol, outside);
        Ok(binding)
    }

    /// Takes a free port of the blocks in a list.
    fn draw_in(
        &mut self,
        list: BlockList,
        protocol: NatProtocol,
        inside_port: u16,
    ) -> Option<(u32, Outside<Endpoint4>)> {
        if list.count == 0 {
            return None;
        }
        let random = if list.count == 1 { 0 } else { (self.pool.random() >> 32) as u32 };
        let order = self.blocks.as_ref()?.in_order(list.first, list.count, protocol, random);
        if let Some(outside) = self.draw_at(order.roomy, protocol, inside_port) {
            return Some((order.roomy, outside));
        }
        let mut block = order.at;
        for _ in 0..list.count {
            if let Some(outside) = self.draw_at(block, protocol, inside_port) {
                return Some((block, outside));
            }
            let next = self.blocks.as_ref()?.get(block).next;
            block = if next == NONE { order.start } else { next };
        }
        None
    }

    /// Takes a free port of a block.
    fn draw_at(&mut self, block: u32, protocol: NatProtocol, inside_port: u16) -> Option<Outside<Endpoint4>> {
        let blocks = self.blocks.as_mut()?;
        if block == NONE || blocks.is_used_up(block, protocol) {
            return None;
        }
        let (slot, number) = (blocks.get(block).slot, blocks.get(block).number);
        let outside = self.pool.draw_of(slot, protocol, number, inside_port)?;
        blocks.took(block, protocol);
        Some(outside)
    }

    /// Gives a block to a host whose subscriber has this list, and takes a port of it.
    #[inline(never)]
    fn draw_in_new(
        &mut self,
        list: BlockList,
        (host, subscriber): (Option<u32>, Option<u32>),
        protocol: NatProtocol,
        inside: Inside<I>,
    ) -> Option<(u32, Outside<Endpoint4>, bool)> {
        if list.count >= self.blocks.as_ref()?.policy().most {
            return None;
        }
        let paired = match list.first {
            NONE => host.map(|host| self.hosts[host].paired),
            first => Some(self.slot_of_block(first)),
        };
        let found = match &self.deterministic {
            Some(_) => self.own_block(inside),
            None => self.free_block(paired, list.count),
        };
        let Some((slot, number)) = found else {
            self.pool.want();
            return None;
        };
        let block = self.hold_block(slot, number, subscriber)?;
        let drawn = self.draw_at(block, protocol, inside.0.port());
        match drawn.or_else(|| self.quarantined_of(block, protocol, &mut { EXAMINED })) {
            Some(outside) => Some((block, outside, true)),
            None => {
                // Static bindings have all of its ports.
                self.forget_block(block);
                None
            }
        }
    }

    /// A free block at an address, or at any; a subscriber that has some does not get the last ones. Without a free block, one that has been
    /// unused for longest is returned early.
    fn free_block(&mut self, paired: Option<PoolSlot>, count: u32) -> Option<(PoolSlot, u16)> {
        // Static bindings and ports of an earlier process may have opened addresses.
        self.note_opened();
        let random = self.pool.random();
        let (low, high) = (random as u32, (random >> 32) as u32);
        let blocks = self.blocks.as_ref()?;
        if let Some(slot) = paired {
            let (has_more, is_running_out) = (blocks.has_more(slot), blocks.is_running_out(slot));
            if is_running_out {
                self.pool.want();
            }
            if count > 0 && !has_more {
                return None;
            }
            return self.number_at(slot, high);
        }
        if blocks.is_crowded() && self.pool.open_another() {
            self.note_opened();
        }
        let found = self.blocks.as_ref()?.available_address(low);
        if found.is_none() && self.pool.has_any() && self.pool.open_another() {
            self.note_opened();
        }
        let slot = match found.or_else(|| self.blocks.as_ref()?.available_address(low)) {
            Some(slot) => slot,
            None => {
                let unused = self.blocks.as_ref()?.unused(None)?;
                self.blocks.as_ref()?.get(unused).slot
            }
        };
        if self.blocks.as_ref()?.is_running_out(slot) {
            self.pool.want();
        }
        self.number_at(slot, high)
    }

    /// The block that an inside endpoint's subscriber has by the mapping.
    fn own_block(&mut self, Inside(inside): Inside<I>) -> Option<(PoolSlot, u16)> {
        let (address, first) = self.deterministic.as_ref()?.block_of(inside.named(&self.names)?.site())?;
        let slot = self.pool.slot_of(address)?;
        self.note_opened();
        let blocks = self.blocks.as_ref()?;
        let number = first / blocks.policy().size;
        blocks.is_free(slot, number).then_some((slot, number))
    }

    /// A free block at an address, by its number; an unused one is returned for it.
    fn number_at(&mut self, slot: PoolSlot, random: u32) -> Option<(PoolSlot, u16)> {
        let blocks = self.blocks.as_ref()?;
        if let Some(number) = blocks.free_number(slot, random) {
            return Some((slot, number));
        }
        let unused = blocks.unused(Some(slot))?;
        self.return_block(unused);
        self.blocks.as_ref()?.free_number(slot, random).map(|number| (slot, number))
    }

    /// Gives a free block, which has no owner yet, to a subscriber; of a full table, an unused one of another subscriber is returned for it.
    fn hold_block(&mut self, slot: PoolSlot, number: u16, subscriber: Option<u32>) -> Option<u32> {
        if self.blocks.as_ref()?.is_full() {
            // Without its last block the subscriber itself might be forgotten.
            let unused = self.blocks.as_ref()?.first_unused_of_others(subscriber)?;
            self.return_block(unused);
        }
        let block = self.blocks.as_mut()?.give(slot, number)?;
        self.pool.hold(number);
        Some(block)
    }

    /// A new block belongs to a subscriber.
    fn belongs_to(&mut self, block: u32, subscriber: u32) {
        let BlockList { first, count } = self.subscribers.blocks(subscriber);
        if let Some(blocks) = &mut self.blocks {
            blocks.set_owner(block, subscriber, first);
        }
        self.subscribers.set_blocks(subscriber, BlockList { first: block, count: count + 1 });
        self.note_block(block, true);
    }

    /// Returns an unused block of a subscriber.
    fn return_block(&mut self, block: u32) {
        self.note_block(block, false);
        let Some(blocks) = &mut self.blocks else { return };
        let owner = blocks.get(block).owner;
        let BlockList { first, count } = self.subscribers.blocks(owner);
        let first = blocks.unlink(first, block);
        self.subscribers.set_blocks(owner, BlockList { first, count: count - 1 });
        self.forget_block(block);
    }

    /// Takes back a block that has no owner.
    fn forget_block(&mut self, block: u32) {
        let Some(blocks) = &mut self.blocks else { return };
        let number = blocks.get(block).number;
        blocks.take_back(block);
        self.pool.let_go(number);
    }

    /// Returns the next block that was idle for long enough; whether there was one.
    pub(super) fn end_idle_block(&mut self, second: u32) -> bool {
        let Some(blocks) = &mut self.blocks else { return false };
        blocks.set_second(second);
        let Some(block) = blocks.overdue() else { return false };
        self.return_block(block);
        true
    }

    /// A dynamic port is free again: if its block is given, it has one used port less.
    pub(super) fn left_block(&mut self, slot: PoolSlot, protocol: NatProtocol, port: u16) {
        let Some(blocks) = &mut self.blocks else { return };
        if let Some(block) = blocks.find(slot, port) {
            blocks.gave_back(block, protocol);
        }
    }

    /// A quarantined port of a subscriber's own blocks, given early. It stays taken.
    #[cold]
    fn own_quarantined(
        &mut self,
        list: BlockList,
        protocol: NatProtocol,
    ) -> Option<(u32, Outside<Endpoint4>)> {
        let (mut block, mut left) = (list.first, EXAMINED);
        while block != NONE && left > 0 {
            if let Some(outside) = self.quarantined_of(block, protocol, &mut left) {
                return Some((block, outside));
            }
            block = self.blocks.as_ref()?.get(block).next;
        }
        None
    }

    /// A quarantined port of a block, given early to the block's subscriber; `left`: ports that may be examined.
    #[cold]
    fn quarantined_of(
        &mut self,
        block: u32,
        protocol: NatProtocol,
        left: &mut u16,
    ) -> Option<Outside<Endpoint4>> {
        // Of an earlier process, too, its ports were its own only if they follow from the configuration. TCP's are quarantined only then.
        let may_be_unknown = self.deterministic.is_some();
        let slot = self.slot_of_block(block);
        if self.quarantine.at(slot, protocol, &[PortRange::High]) == 0 {
            return None;
        }
        let (first, size) = self.blocks.as_ref()?.ports(block);
        let address = self.pool.address_of(slot);
        let start = self.pool.random() as u16 % size;
        let examined = size.min(*left);
        *left -= examined;
        for step in 0..examined {
            let outside = Outside(Endpoint4::new(address, first + (start + step) % size));
            let Some(owner) = self.quarantine.remove_own((protocol, outside), may_be_unknown) else {
                continue;
            };
            if owner == FormerOwner::UNKNOWN {
                // It was part of no block.
                self.blocks.as_mut()?.took(block, protocol);
            }
            return Some(outside);
        }
        None
    }

    /// Restores a dynamic binding of another process, and the block that its port lies in.
    pub(super) fn rebind_in_block(
        &mut self,
        protocol: NatProtocol,
        inside: Inside<I>,
        outside: Outside<Endpoint4>,
        (host, subscriber): (Option<u32>, Option<u32>),
    ) -> Result<u32, NotAdopted> {
        let slot = self.pool.slot_of(outside.0.address).ok_or(NotAdopted::PortNotGiven)?;
        self.note_opened();
        let list = subscriber.map_or(BlockList::EMPTY, |subscriber| self.subscribers.blocks(subscriber));
        let blocks = self.blocks.as_ref().ok_or(NotAdopted::PortNotGiven)?;
        let number = outside.0.port / blocks.policy().size;
        let known = blocks.find(slot, outside.0.port);
        if let Some(block) = known {
            if Some(blocks.get(block).owner) != subscriber {
                return Err(NotAdopted::PortNotGiven);
            }
        } else {
            let is_elsewhere = list.first != NONE && blocks.get(list.first).slot != slot;
            if !blocks.is_free(slot, number) || is_elsewhere {
                return Err(NotAdopted::PortNotGiven);
            }
            if list.count >= blocks.policy().most {
                return Err(NotAdopted::SubscriberLimit);
            }
        }
        self.leave_quarantine(protocol, outside);
        self.pool.take(protocol, outside).ok_or(NotAdopted::PortNotGiven)?;
        let is_other = |block: &(PoolSlot, u16)| *block != (slot, number);
        if known.is_none()
            && self.deterministic.is_some()
            && self.own_block(inside).as_ref().is_none_or(is_other)
        {
            self.pool.release(slot, protocol, outside.0.port);
            return Err(NotAdopted::PortNotGiven);
        }
        let held = known.or_else(|| self.hold_block(slot, number, subscriber));
        let Some(block) = held else {
            self.pool.release(slot, protocol, outside.0.port);
            return Err(NotAdopted::TableFull);
        };
        if let Some(blocks) = &mut self.blocks {
            blocks.took(block, protocol);
        }
        let binding = self.insert(protocol, inside, outside, BindingKind::Dynamic, (slot, host, subscriber));
        let Some(binding) = binding else {
            self.pool.release(slot, protocol, outside.0.port);
            self.left_block(slot, protocol, outside.0.port);
            if known.is_none() {
                self.forget_block(block);
            }
            return Err(NotAdopted::TableFull);
        };
        if known.is_none() {
            self.belongs_to(block, self.subscriber_of(binding));
        }
        self.given(protocol, outside);
        Ok(binding)
    }

    /// The blocks that are given at an address, and the subscribers that have only blocks there.
    pub(super) fn without_hosts(&self, slot: PoolSlot) -> (u32, u32) {
        let Some(blocks) = &self.blocks else { return (0, 0) };
        let given = blocks.counts_at(slot).map_or(0, |(given, _)| given);
        if given == 0 {
            return (0, 0);
        }
        let owners = blocks.at_address(slot).map(|block| (block, blocks.get(block).owner));
        let without_hosts = owners.filter(|(block, owner)| {
            self.subscribers.blocks(*owner).first == *block && !self.subscribers.has_hosts(*owner)
        });
        (given, without_hosts.count() as u32)
    }

    fn slot_of_block(&self, block: u32) -> PoolSlot {
        self.blocks.as_ref().map_or(PoolSlot(0), |blocks| blocks.get(block).slot)
    }

    /// A block was given to its owner, or is returned by it.
    fn note_block(&mut self, block: u32, is_given: bool) {
        let Some(blocks) = self.blocks.as_ref().filter(|_| self.deterministic.is_none()) else { return };
        let (place, bits) = self.subscribers.place(blocks.get(block).owner);
        let Some(subscriber) = I::mapped_prefix(place, bits) else { return };
        let (first, size) = blocks.ports(block);
        let address = self.pool.address_of(blocks.get(block).slot);
        self.block_news.push(BlockNews { is_given, subscriber: (subscriber, bits), address, first, size });
    }

    /// Blocks that were given or returned since these were last forgotten.
    #[inline]
    pub(super) fn block_news(&self) -> &[BlockNews] {
        &self.block_news
    }

    /// Forgets them.
    pub(super) fn forget_block_news(&mut self) {
        self.block_news.clear();
    }

    /// Whether there are port blocks, but none is free.
    pub(super) fn is_out_of_blocks(&self) -> bool {
        // While all addresses are drained, more blocks are of no use.
        let is_out = self.blocks.as_ref().is_some_and(|blocks| blocks.available_address(0).is_none());
        is_out && self.pool.addresses() > 0
    }

    /// The address of the port blocks of a host's subscriber.
    pub(super) fn block_address(&self, host: I::Host) -> Option<Ipv4Addr> {
        self.blocks.as_ref()?;
        let first = self.subscribers.blocks(self.subscriber_of_host(host)?).first;
        (first != NONE).then(|| self.pool.address_of(self.slot_of_block(first)))
    }

    /// The port blocks of a subscriber, for display.
    pub(super) fn blocks_of(&self, subscriber: u32) -> RowBlocks {
        let Some(blocks) = &self.blocks else { return RowBlocks::default() };
        let mut row = RowBlocks { size: blocks.policy().size, ..RowBlocks::default() };
        let mut block = self.subscribers.blocks(subscriber).first;
        while block != NONE && u32::from(row.count) < MOST_BLOCKS {
            row.address = Some(self.pool.address_of(blocks.get(block).slot));
            row.first[usize::from(row.count)] = blocks.ports(block).0;
            row.count += 1;
            block = blocks.get(block).next;
        }
        row
    }

    /// How many port blocks there are; `None`: subscribers have none.
    pub(super) fn block_counts(&self) -> Option<BlockCounts> {
        self.blocks.as_ref().map(|blocks| blocks.counts(self.pool.addresses()))
    }

    /// The port blocks of open addresses from a place on, at most `most` of them, and where to continue.
    pub(super) fn address_blocks(&self, from: u32, most: u32) -> (Vec<AddressBlocks>, Option<u32>) {
        let Some(blocks) = &self.blocks else { return (Vec::new(), None) };
        let mut rows = Vec::new();
        for slot in (from..from.saturating_add(most)).map(PoolSlot) {
            let Some((given, free)) = blocks.counts_at(slot) else { return (rows, None) };
            rows.push(AddressBlocks { address: self.pool.address_of(slot), given, free });
        }
        (rows, Some(from.saturating_add(most)))
    }
}
