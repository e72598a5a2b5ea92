//! Stateful NAT64 (RFC 6146): IPv6 hosts reach IPv4 ones behind a pool of IPv4 addresses.
//!
//! ```text
//!     inside, IPv6                                        outside, IPv4
//!     (X',x) ─▶ (Pref64::Z,z)   ── outbound ──▶    (T,t) ─▶ (Z,z)
//!     (X',x) ◀─ (Pref64::Z,z)   ◀── inbound ──     (T,t) ◀─ (Z,z)
//!          binding: (X',x) ⇄ (T,t)     session: binding and (Z,z)
//! ```
//!
//! A packet costs one look-up. A batch goes through [`Nat64::probe`] and [`Nat64::warm`] first, so that its cache misses
//! overlap, and then through [`Nat64::decide`].

mod config;
mod contract;
mod icmp_error;
mod inbound;
mod offload;
mod operator;
mod outbound;
mod probe;
mod time;

pub use config::Nat64Config;
pub use probe::Probe;
pub use time::{Due, Probed};

use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::instant::Instant;
use crate::mechanism::contract::Arrival;
use crate::mechanism::identity::Identity;
use crate::nat::{Clock, NatProtocol, Occupancy, Outside, Ownership, Pool, PoolSlot, StateTables};
use crate::parse::Transport;
use crate::translate::address::rfc6052::Rfc6052;
use crate::verdict::{Decision, Next, PolicyId, Quoted, WorkerId};
use core::net::Ipv4Addr;
use probe::Side;
use sixway_wire::{Endpoint4, Prefix6};
use std::collections::BTreeMap;

/// What becomes of a packet that is not dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is translated.
    Translate(Decision),
    /// It is an ICMP error, translated with the packet that it quotes.
    Error(Decision, Quoted),
    /// It is an inbound SYN that was stored (RFC 6146 §3.5.2.2). The frame counts as held; when its time is up,
    /// [`Nat64::expire`] takes it off that count, counts it as dropped, and hands it out to be answered.
    Stored,
}

/// A stateful NAT64: one worker's share of it.
#[derive(Clone, Debug)]
pub struct Nat64 {
    prefix: Rfc6052,
    /// Prefixes of the gateway's other NAT64s: no host's address lies under one.
    other_prefixes: Vec<Prefix6>,
    policy: PolicyId,
    worker: WorkerId,
    ownership: Ownership,
    tables: StateTables,
    /// Endpoints of worker 0's static bindings that lie in this worker's blocks.
    reserved: BTreeMap<(NatProtocol, Outside<Endpoint4>), PoolSlot>,
    limits: (u32, u32),
    clock: Clock,
    /// The mark of the packet at hand as it came, if it was translated already.
    came: Option<u32>,
}

impl Nat64 {
    /// The share of `worker`, of `workers`. Static bindings that cannot be made are left out: [`Nat64Config::faults`] names
    /// them.
    pub fn new(
        config: &Nat64Config,
        policy: PolicyId,
        worker: WorkerId,
        workers: u8,
        seed: [u64; 2],
    ) -> Self {
        let ownership = Ownership::striped(workers);
        let pool = Pool::new(&config.pool, &ownership, worker, seed);
        let (bindings, sessions) = (config.max_bindings, config.max_sessions);
        let most = [bindings, config.max_bindings_per_subscriber, sessions];
        let tables = StateTables::new(most, &config.timeouts, config.filtering, pool, seed);
        let mut nat64 = Self {
            prefix: config.prefix,
            other_prefixes: Vec::new(),
            policy,
            worker,
            ownership,
            tables,
            reserved: BTreeMap::new(),
            limits: (bindings, sessions),
            clock: Clock::default(),
            came: None,
        };
        for binding in &config.static_bindings {
            let _ = nat64.add_static(binding);
        }
        nat64
    }

    /// The translation prefix, Pref64::/n.
    pub const fn prefix(&self) -> &Rfc6052 {
        &self.prefix
    }

    /// Who it is, for flows and sessions that outlive this process.
    pub const fn identity(&self) -> Identity {
        Identity::of_nat64(self.prefix.prefix())
    }

    /// Tells of the gateway's other NAT64s' prefixes: a source under one is refused like one under the own prefix.
    pub fn refuse_sources(&mut self, other_prefixes: impl IntoIterator<Item = Prefix6>) {
        self.other_prefixes.extend(other_prefixes);
    }

    /// Whether the address is one of the pool's.
    #[inline]
    pub fn owns_outside(&self, address: Ipv4Addr) -> bool {
        self.tables.bindings.pool().contains(address)
    }

    /// Which worker owns what.
    pub const fn ownership(&self) -> &Ownership {
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

    /// Decides on a packet (RFC 6146 §3.4 to §3.6). `probe` is what [`Nat64::probe`] made of this very packet.
    #[inline(always)]
    pub fn decide(
        &mut self,
        arrival: &Arrival<'_>,
        probe: &Probe,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<Outcome, DropReason> {
        self.clock.set(now);
        match probe.side {
            Side::Inside(inside) => self.outbound(arrival, inside, probe, counters),
            Side::Outside(outside) => self.inbound(arrival, outside, probe, counters),
            Side::Neither => self.without_session(arrival),
        }
    }

    /// An ICMP error, or what NAT64 does not translate.
    #[cold]
    fn without_session(&self, arrival: &Arrival<'_>) -> Result<Outcome, DropReason> {
        self.refuse_own_source(arrival.packet)?;
        if let Transport::IcmpError { .. } = arrival.packet.transport {
            return self.icmp_error(arrival);
        }
        Err(self.refusal(arrival.packet))
    }

    /// Where a packet for this IPv4 address goes: a hairpin comes back (RFC 6146 §3.8).
    #[inline(always)]
    fn next(&self, remote: Ipv4Addr) -> Next {
        if self.owns_outside(remote) { Next::Again } else { Next::Leave }
    }
}

#[cfg(test)]
mod tests;
