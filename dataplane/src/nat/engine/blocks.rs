//! Port blocks that move between workers, so that workers with many hosts have enough ports.
//!
//! ```text
//!     worker A runs out ──▶ asks B, who has most spare blocks ──▶ B gives: its own table first, its ports are gone
//!                                                              ──▶ everyone gets the BlockMove, A too: A has the ports
//! ```
//!
//! A block moves only while no port of it is taken at any address, so no binding moves with it. Until a worker learns of the move it takes the
//! block for B's; B hands its packets over. A block is never two workers': who gives it has lost it before it is offered.
//!
//! A twentieth of all blocks is reserved: a worker gives its share of the reserve only to a worker without any block. So one
//! subscriber can use 92 % of an address (95 % by blocks, less what its share leaves), and never takes the last blocks from the other workers' subscribers.

use super::Engine;
use crate::nat::inside_key::InsideKey;
use crate::nat::ownership::{BlockMove, PORTS_PER_BLOCK};
use crate::nat::port_blocks::{AddressBlocks, BlockCounts};
use crate::nat::protocol::NatProtocol;
use crate::nat::sides::{Inside, Outside};
use crate::verdict::WorkerId;
use core::net::Ipv6Addr;
use sixway_wire::Endpoint4;

/// One block of this many is reserved.
const RESERVED: u32 = 20;

/// Blocks that are given at a time, at most.
pub const MOST_BLOCKS_AT_ONCE: usize = 8;

/// How many blocks a worker has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// All of them that have ports which may be given to hosts; 0 also where subscribers have blocks and none is free.
    pub owned: u32,
    /// Those without a taken port: a worker without blocks can have them.
    pub spare: u32,
    /// Those that any worker can have.
    pub offered: u32,
}

impl Blocks {
    /// How many of these blocks a worker with `owned` blocks can have.
    pub const fn for_owner_of(self, owned: u32) -> u32 {
        if owned == 0 { self.spare } else { self.offered }
    }
}

impl<I: InsideKey> Engine<I> {
    /// Whether this worker wants more blocks: ports ran out, or nearly did, since the last time it was asked.
    pub fn wants_blocks(&mut self) -> bool {
        self.blocks_move() && self.tables.bindings.pool_mut().wants()
    }

    /// Whether blocks move between workers.
    pub(crate) fn blocks_move(&self) -> bool {
        self.ownership.moves()
    }

    /// How many blocks this worker has.
    pub fn blocks(&self) -> Blocks {
        let pool = self.tables.bindings.pool();
        if !self.blocks_move() {
            return Blocks { owned: pool.owned(), spare: pool.spare(), offered: 0 };
        }
        Blocks {
            // A worker whose subscribers get no block at all may use reserved ones.
            owned: if self.tables.bindings.is_out_of_blocks() { 0 } else { pool.owned() },
            spare: pool.spare(),
            offered: pool.spare().saturating_sub(self.reserve()),
        }
    }

    /// How many port blocks subscribers have here; `None`: they have none.
    pub(crate) fn block_counts(&self) -> Option<BlockCounts> {
        self.tables.bindings.block_counts()
    }

    /// The port blocks of addresses from a place on, at most `most` addresses, and where to continue.
    pub(crate) fn address_blocks(&self, from: u32, most: u32) -> (Vec<AddressBlocks>, Option<u32>) {
        self.tables.bindings.address_blocks(from, most)
    }

    /// Gives spare blocks to a worker that has `owned` blocks; returns the messages for all workers.
    pub fn give_blocks(&mut self, to: WorkerId, owned: u32) -> Vec<BlockMove> {
        let mut given = Vec::new();
        // The more a worker has, the more it takes at a time.
        let wanted = (1 + owned as usize / 8).min(MOST_BLOCKS_AT_ONCE);
        // A large block takes as long as many small ones.
        let wanted = if self.ownership.ports_per_block() > PORTS_PER_BLOCK { 1 } else { wanted };
        let kept = if owned == 0 { 0 } else { self.reserve() };
        while to != self.worker
            && self.blocks_move()
            && given.len() < wanted
            && self.tables.bindings.pool().spare() > kept
        {
            let Some(block) = self.tables.bindings.pool().spare_block() else { break };
            given.push(self.give_block(block, to));
        }
        given
    }

    /// A block has moved. Whether that was news.
    pub fn block_moved(&mut self, moved: BlockMove) -> bool {
        let is_news = self.ownership.moved(moved);
        if is_news && moved.to == self.worker {
            self.tables.bindings.gain_block(moved.block);
        }
        is_news
    }

    /// Gives this block to another worker, if no port of it is taken; returns the message for all workers.
    pub(crate) fn give_spare(&mut self, port: u16, to: WorkerId) -> Option<BlockMove> {
        let is_given = to != self.worker && self.is_spare(port);
        is_given.then(|| self.give_block(port / self.ownership.ports_per_block(), to))
    }

    /// Gives the block of this port, for which a host of another worker has asked, if no port of it is taken. This worker keeps half of an even
    /// share of all blocks: hosts that request certain ports get no more of the other workers' blocks than that. Returns the message for all
    /// workers.
    pub(crate) fn give_wanted(&mut self, port: u16, to: WorkerId) -> Option<BlockMove> {
        let even = self.all_blocks / u32::from(self.ownership.workers());
        let (pool, kept) = (self.tables.bindings.pool(), self.reserve().max(even / 2));
        // Where subscribers have blocks, a host gets no port of another one.
        if self.block_counts().is_some() || pool.spare() <= kept || pool.spare_block().is_none() {
            return None;
        }
        self.give_spare(port, to)
    }

    /// Whether the endpoint is one that some worker may give to a host: it is not part of a static binding.
    pub(crate) fn gives(&self, protocol: NatProtocol, outside: Outside<Endpoint4>) -> bool {
        !self.ownership.is_static(protocol, outside) && self.tables.bindings.pool().may_give(outside.0.port)
    }

    /// Whether the block of this port is this worker's and has no port taken.
    pub(crate) fn is_spare(&self, port: u16) -> bool {
        self.blocks_move()
            && self.ownership.worker_of_block(port) == self.worker
            && self.tables.bindings.pool().is_spare(port / self.ownership.ports_per_block())
    }

    /// Whether a host has bindings here.
    pub(crate) fn has_host(&self, host: I::Host) -> bool {
        self.tables.bindings.has_host(Inside(host))
    }

    /// Whether hosts of a site that is known by its name have bindings here.
    pub(crate) fn names_site(&self, address: Ipv6Addr) -> bool {
        I::names_site(address, self.names())
    }

    /// Assigns the hosts of a site to a worker, against its prefix, if the table of exceptions has room.
    pub(crate) fn except(&mut self, site: I::Site, worker: WorkerId) {
        self.ownership.except(site, worker);
    }

    fn give_block(&mut self, block: u16, to: WorkerId) -> BlockMove {
        self.tables.bindings.lose_block(block);
        self.ownership.give(block, to)
    }

    /// This worker's share of the reserve: blocks that it keeps.
    fn reserve(&self) -> u32 {
        let workers = u32::from(self.ownership.workers());
        let reserve = self.all_blocks / RESERVED;
        reserve / workers + u32::from(u32::from(self.worker.0) < reserve % workers)
    }
}
