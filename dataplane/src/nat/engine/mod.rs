//! The NAT itself: which session and which binding a packet belongs to, for whatever kind of inside endpoint.
//!
//! ```text
//!     inside                                 outside, IPv4
//!     I ─▶ (Z,z)       ── outbound ──▶       (T,t) ─▶ (Z,z)
//!     I ◀─ (Z,z)       ◀── inbound ──        (T,t) ◀─ (Z,z)
//!          binding: I ⇄ (T,t)       session: binding and (Z,z)
//! ```
//!
//! A mechanism reads the five-tuple, says which addresses it lets through, and makes the edit of what is decided here.
//! NAT64, NAT44 and DS-Lite each have an engine of their own kind, chosen at compile time by its [`InsideKey`].
//!
//! A packet costs one look-up. A batch goes through [`Engine::look_inside`] or [`Engine::look_outside`] and through [`Engine::warm`]
//! first, so that its cache misses overlap, and then through [`Engine::decide`].

mod adoption;
mod config;
mod icmp_error;
mod inbound;
mod operator;
mod outbound;
mod probe;

#[cfg(test)]
mod tests;

pub(crate) use adoption::Entry;
pub use config::Config;
pub use probe::{Ports, Probe};

use super::inside_key::InsideKey;
use super::ownership::Ownership;
use super::pool::{Pool, PoolSlot};
use super::protocol::NatProtocol;
use super::rows::Occupancy;
use super::sides::{Inside, Outside};
use super::state_tables::{Fired, StateTables};
use super::timeouts::Clock;
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::instant::Instant;
use crate::parse::{Packet, QuotedTuple};
use crate::verdict::WorkerId;
use core::net::Ipv4Addr;
use probe::Side;
use sixway_wire::Endpoint4;
use std::collections::BTreeMap;

/// A packet as a NAT decides on it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The packet, reassembled if it came in fragments.
    pub packet: &'a Packet,
    /// What it quotes, if it is an ICMP error.
    pub quoted: Option<QuotedTuple>,
    /// Its octets, from the IP header on: an inbound SYN may have to be stored.
    pub octets: &'a [u8],
    /// Packets that a wire would carry: more than one for a super-frame.
    pub segments: u32,
}

/// What becomes of a packet that is not dropped. Ports are those that it has when it leaves; an ICMP query's identifier stands in
/// both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow<I> {
    /// It goes out.
    Outward {
        /// Its new source.
        outside: Outside<Endpoint4>,
        /// Its destination.
        remote: Endpoint4,
    },
    /// It comes in.
    Inward {
        /// Its new destination.
        inside: Inside<I>,
        /// Its source.
        remote: Endpoint4,
    },
    /// It is an inbound SYN that was stored (RFC 6146 §3.5.2.2). The frame counts as held; when its time is up,
    /// [`Engine::expire`] takes it off that count, counts it as dropped, and hands it out to be answered.
    Held,
}

/// Which addresses a mechanism lets through. It is asked about packets that belong to no session, and about nothing else.
pub trait AddressPolicy<I> {
    /// Whether the inside endpoint may open a session to the remote address.
    ///
    /// # Errors
    /// Why not.
    fn may_go_out(&self, inside: Inside<I>, remote: Ipv4Addr) -> Result<(), DropReason>;

    /// Whether the remote address may open a session from outside.
    ///
    /// # Errors
    /// Why not.
    fn may_come_in(&self, remote: Ipv4Addr) -> Result<(), DropReason>;

    /// Whether a session of these two, which another process had, may be carried on.
    fn may_go_on(&self, inside: Inside<I>, remote: Ipv4Addr) -> bool;
}

/// A NAT: one worker's share of it.
pub struct Engine<I: InsideKey> {
    worker: WorkerId,
    ownership: Ownership<I::Host>,
    tables: StateTables<I>,
    /// Endpoints of worker 0's static bindings that lie in this worker's blocks.
    reserved: BTreeMap<(NatProtocol, Outside<Endpoint4>), PoolSlot>,
    limits: (u32, u32),
    clock: Clock,
    /// The mark of the packet at hand as it came, if it was translated already.
    came: Option<u32>,
}

impl<I: InsideKey> Engine<I> {
    /// The share of `worker`, of `workers`. Static bindings that cannot be made are left out: [`Config::faults`] names them.
    pub fn new(config: &Config<I>, worker: WorkerId, workers: u8, seed: [u64; 2]) -> Self {
        let ownership = Ownership::striped(workers);
        let pool = Pool::new(&config.pool, &ownership, worker, seed);
        let mut engine = Self {
            worker,
            ownership,
            tables: StateTables::new(config, pool, seed),
            reserved: BTreeMap::new(),
            limits: (config.max_bindings, config.max_sessions),
            clock: Clock::default(),
            came: None,
        };
        for binding in &config.static_bindings {
            let _ = engine.add_static(binding);
        }
        engine
    }

    /// Whether the address is one of the pool's.
    #[inline]
    pub fn owns_outside(&self, address: Ipv4Addr) -> bool {
        self.tables.bindings.pool().contains(address)
    }

    /// Which worker owns what.
    pub const fn ownership(&self) -> &Ownership<I::Host> {
        &self.ownership
    }

    /// How full the tables are.
    pub fn occupancy(&self) -> Occupancy {
        Occupancy {
            sessions: self.tables.sessions.len(),
            max_sessions: self.limits.1,
            bindings: self.tables.bindings.len(),
            max_bindings: self.limits.0,
            addresses: self.tables.bindings.pool().addresses(),
            ports: self.tables.bindings.pool().ports(),
        }
    }

    /// Memory in octets, reserved room included.
    pub fn memory(&self) -> usize {
        self.tables.memory()
    }

    /// Decides on a packet (RFC 6146 §3.5). `probe` is what the look-ups made of this very packet.
    /// `None`: it has no session of its own; it may be an ICMP error about one.
    ///
    /// # Errors
    /// Why it is dropped.
    #[inline(always)]
    pub fn decide(
        &mut self,
        arrival: &Arrival,
        probe: &Probe<I>,
        now: Instant,
        policy: &impl AddressPolicy<I>,
        counters: &mut Counters,
    ) -> Result<Option<Flow<I>>, DropReason> {
        self.clock.set(now);
        match probe.side {
            Side::Inside(inside) => self.outbound(arrival, (inside, probe), policy, counters).map(Some),
            Side::Outside(outside) => self.inbound(arrival, (outside, probe), policy, counters).map(Some),
            Side::Neither => Ok(None),
        }
    }

    /// Ends what is due, looking at no more than `budget` sessions, and hands out what must be told to someone. Whatever is left
    /// waits for the next call; a packet of a session that is due but not ended finds it ended all the same.
    pub(crate) fn expire(
        &mut self,
        now: Instant,
        budget: usize,
        counters: &mut Counters,
        tell: impl FnMut(Fired<I>),
    ) {
        self.clock.set(now);
        self.tables.expire(self.clock, budget, counters, tell);
    }
}
