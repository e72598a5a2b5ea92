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
//! first, so that its cache misses overlap, and then through [`Engine::outbound`] or [`Engine::inbound`].

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
pub use probe::{Ports, Probe, Side};

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
use crate::parse::Packet;
use crate::verdict::WorkerId;
use core::net::Ipv4Addr;
use sixway_wire::Endpoint4;
use std::collections::BTreeMap;

/// A packet as a NAT decides on it.
pub trait Arriving {
    /// The packet, reassembled if it came in fragments.
    fn packet(&self) -> &Packet;

    /// Its octets, from the IP header on: an inbound SYN may have to be stored.
    fn octets(&self) -> &[u8];

    /// Packets that a wire would carry: more than one for a super-frame.
    fn segments(&self) -> u32;

    /// The mark that it came with, if it was translated already: a hairpin on its way back, which left that mark at this pass's
    /// session too.
    fn came(&self) -> Option<u32>;
}

/// The mechanism that an engine works for: what it answers, and which addresses it lets through.
///
/// It is asked for its answer where the session is found, so that nothing is copied in between. Ports are those that the packet has
/// when it leaves; an ICMP query's identifier stands in both.
pub trait Mechanism<I> {
    /// What the mechanism answers a packet with.
    type Outcome;

    /// A packet goes out: `outside` is its new source, `remote` its destination. A hairpin's destination is one of the pool's
    /// addresses, so that it comes back (RFC 6146 §3.8, RFC 4787 REQ-9).
    fn outward(&self, outside: Outside<Endpoint4>, remote: Endpoint4, is_hairpin: bool) -> Self::Outcome;

    /// A packet comes in: `inside` is its new destination, `remote` its source.
    fn inward(&self, inside: Inside<I>, remote: Endpoint4) -> Self::Outcome;

    /// An inbound SYN was stored (RFC 6146 §3.5.2.2). The frame counts as held; when its time is up, [`Engine::expire`] takes it off
    /// that count, counts it as dropped, and hands it out to be answered.
    fn held(&self) -> Self::Outcome;

    /// Whether the inside endpoint may open a session to the remote address. Asked of packets that belong to no session.
    ///
    /// # Errors
    /// Why not.
    fn may_go_out(&self, inside: Inside<I>, remote: Ipv4Addr) -> Result<(), DropReason>;

    /// Whether the remote address may open a session from outside. Asked of packets that belong to no session.
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
