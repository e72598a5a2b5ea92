//! One worker's share of a NAT.

use crate::counters::Counters;
use crate::instant::Instant;
use crate::nat::addresses_in_use::AddressesInUse;
use crate::nat::config::Config;
use crate::nat::inside_key::{InsideHost, InsideKey};
use crate::nat::ownership::{Ownership, PORTS_PER_BLOCK};
use crate::nat::pool::{Pool, PoolSlot};
use crate::nat::protocol::NatProtocol;
use crate::nat::rows::Occupancy;
use crate::nat::sides::{Inside, Outside};
use crate::nat::spread::Spread;
use crate::nat::state_limits::StateLimits;
use crate::nat::state_tables::{Fired, StateTables};
use crate::nat::timeouts::Clock;
use crate::verdict::WorkerId;
use alloc::sync::Arc;
use core::net::Ipv4Addr;
use sixway_wire::Endpoint4;
use std::collections::BTreeMap;

/// A NAT: one worker's share of it.
pub struct Engine<I: InsideKey> {
    pub(super) worker: WorkerId,
    pub(super) ownership: Ownership<I::Site>,
    /// Blocks of all workers that have ports which may be given.
    pub(super) all_blocks: u32,
    pub(super) tables: StateTables<I>,
    /// Endpoints of other workers' static bindings that lie in this worker's blocks.
    pub(super) reserved: BTreeMap<(NatProtocol, Outside<Endpoint4>), PoolSlot>,
    pub(super) limits: StateLimits,
    pub(super) clock: Clock,
}

impl<I: InsideKey> Engine<I> {
    /// The share of `worker`, of `workers`. Static bindings that cannot be created are left out: [`Config::faults`] names them.
    ///
    /// By `worker_key`, which all workers and what steers packets to them share, subscribers are spread over the workers.
    pub fn new(
        config: &Config<I>,
        (worker, workers): (WorkerId, u8),
        seed: [u64; 2],
        worker_key: [u64; 2],
    ) -> Self {
        let spread = Spread::new(worker_key, <I::Site as InsideHost>::place_bits(config.subscribers.bits));
        let ports = config.subscribers.blocks.map_or(PORTS_PER_BLOCK, |blocks| blocks.size);
        let mut ownership = Ownership::in_blocks_of(ports, workers, spread);
        if let Some(deterministic) = &config.subscribers.deterministic {
            ownership.set_deterministic(Arc::clone(deterministic));
        }
        let pool = Pool::new(&config.given(), &ownership, worker, seed);
        let mut engine = Self {
            all_blocks: pool.blocks(),
            worker,
            ownership,
            tables: StateTables::new(config, pool, seed),
            reserved: BTreeMap::new(),
            limits: config.limits,
            clock: Clock::default(),
        };
        for binding in &config.static_bindings {
            let _ = engine.add_static(binding);
        }
        engine
    }

    /// Whether the address belongs to the pool.
    #[inline]
    pub fn owns_outside(&self, address: Ipv4Addr) -> bool {
        self.tables.bindings.pool().contains(address)
    }

    /// Whether it is a port of the pool, of any worker.
    pub fn gives_port(&self, port: u16) -> bool {
        self.tables.bindings.pool().may_give(port)
    }

    /// Shares with the other workers which addresses of the pool have bindings.
    pub fn set_in_use(&mut self, in_use: &Arc<AddressesInUse>) {
        self.tables.bindings.pool_mut().set_in_use(in_use.clone());
    }

    /// Whether an address of the pool may have bindings of a protocol, at any worker.
    pub fn is_in_use(&self, address: Ipv4Addr, protocol: NatProtocol) -> bool {
        self.tables.bindings.pool().is_in_use(address, protocol)
    }

    /// The outside address that the bindings of an inside host have.
    pub(crate) fn paired_address(&self, host: I::Host) -> Option<Ipv4Addr> {
        self.tables.bindings.paired_address(Inside(host))
    }

    /// Which worker owns what.
    pub const fn ownership(&self) -> &Ownership<I::Site> {
        &self.ownership
    }

    /// The names of inside hosts.
    #[inline(always)]
    pub const fn names(&self) -> &I::Names {
        &self.tables.bindings.names
    }

    /// The same, to name more of them.
    #[inline(always)]
    pub const fn names_mut(&mut self) -> &mut I::Names {
        &mut self.tables.bindings.names
    }

    /// The worker that owns the sessions and bindings of an inside host.
    pub(super) fn worker_of_host(&self, host: I::Host) -> WorkerId {
        self.ownership.worker_of_inside(I::site(host, self.names()))
    }

    /// Whether this is that worker's share.
    pub(crate) fn is_worker(&self, worker: WorkerId) -> bool {
        self.worker == worker
    }

    /// How full the tables are.
    pub fn occupancy(&self) -> Occupancy {
        Occupancy {
            sessions: self.tables.sessions.len(),
            max_sessions: self.limits.sessions,
            bindings: self.tables.bindings.len(),
            max_bindings: self.limits.bindings,
            addresses: self.tables.bindings.pool().addresses(),
            ports: self.own_ports(),
            taken: self.tables.bindings.pool().taken(),
        }
    }

    /// Ports of each address that are this worker's: with deterministic NAT any port may be any worker's, and each counts its share.
    fn own_ports(&self) -> u32 {
        let ports = self.tables.bindings.pool().ports();
        if !self.ownership.is_deterministic() {
            return ports;
        }
        let workers = u32::from(self.ownership.workers());
        ports / workers + u32::from(u32::from(self.worker.0) < ports % workers)
    }

    /// Memory in octets, reserved room included.
    pub fn memory(&self) -> usize {
        self.tables.memory()
    }

    /// Ends what is due, examining at most `budget` sessions, and reports what must be sent. Whatever is left
    /// waits for the next call; a packet of a session that is due but not ended finds it ended all the same.
    pub(crate) fn expire(
        &mut self,
        now: Instant,
        budget: usize,
        counters: &mut Counters,
        tell: impl FnMut(Fired<I>),
    ) {
        self.clock.set(now);
        self.tables.tick_half_open(now);
        self.tables.expire(self.clock, budget, counters, tell);
    }
}
