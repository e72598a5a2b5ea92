//! The translator itself: how a packet is looked up and decided on.

use super::Nat64Config;
use super::address_rules::AddressRules;
use crate::direction::Direction;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::identity::Identity;
use crate::instant::Instant;
use crate::mechanism::contract::Arrival;
use crate::nat::{
    AddressesInUse, Engine, Inside, NatProtocol, Occupancy, Outside, Ownership, Ports, Side, StaticBinding,
};
use crate::parse::{Addresses, Packet, Transport};
use crate::translate::address::rfc6052::Rfc6052;
use crate::verdict::{Decision, Next, PolicyId, WorkerId};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::protocol::{ICMPV4, ICMPV6, TCP, UDP};
use sixway_wire::{Endpoint4, Endpoint6, Prefix6};

/// A packet's five-tuple, and how far the lookup of its session is.
pub type Probe = crate::nat::Probe<Endpoint6>;

/// A stateful NAT64: one worker's share of it.
pub struct Nat64 {
    pub(super) rules: AddressRules,
    pub(super) nat: Engine<Endpoint6>,
    /// Hosts with static bindings, and how many each has: they may be outside of `inside`.
    pub(super) static_hosts: BTreeMap<Ipv6Addr, u32>,
}

impl Nat64 {
    /// The share of `worker`, of `workers`. Static bindings that cannot be created are left out: [`Nat64Config::faults`] names
    /// them.
    pub fn new(
        config: &Nat64Config,
        policy: PolicyId,
        worker: WorkerId,
        workers: u8,
        seed: [u64; 2],
    ) -> Self {
        Self::keyed(config, policy, (worker, workers), seed, seed)
    }

    /// The same where subscribers are spread over the workers by a key of its own.
    pub fn keyed(
        config: &Nat64Config,
        policy: PolicyId,
        worker: (WorkerId, u8),
        seed: [u64; 2],
        worker_key: [u64; 2],
    ) -> Self {
        let rules = AddressRules {
            prefix: config.prefix,
            inside: config.inside.clone(),
            other_prefixes: Vec::new(),
            excluded: config.excluded.clone(),
            host4: Vec::new(),
            allowed_own: config.allow_own.iter().chain(&config.pool.addresses).copied().collect(),
            policy,
        };
        let mut nat64 = Self {
            rules,
            nat: Engine::new(&config.nat(), worker, seed, worker_key),
            static_hosts: BTreeMap::new(),
        };
        config.static_bindings.iter().for_each(|binding| nat64.note_static(binding));
        nat64
    }

    /// Shares with the other workers which addresses of the pool have bindings.
    pub(super) fn set_in_use(&mut self, in_use: &Arc<AddressesInUse>) {
        self.nat.set_in_use(in_use);
    }

    /// A host has one more static binding.
    pub(super) fn note_static(&mut self, binding: &StaticBinding) {
        *self.static_hosts.entry(binding.inside.0.address).or_default() += 1;
    }

    /// The translation prefix, Pref64::/n.
    pub const fn prefix(&self) -> &Rfc6052 {
        &self.rules.prefix
    }

    /// Who it is, for flows and sessions that outlive this process.
    pub const fn identity(&self) -> Identity {
        Identity::of_nat64(self.rules.prefix.prefix())
    }

    /// Adds the prefixes of the gateway's other NAT64s: a source under one is refused like one under the own prefix.
    pub fn refuse_sources(&mut self, other_prefixes: impl IntoIterator<Item = Prefix6>) {
        self.rules.other_prefixes.extend(other_prefixes);
    }

    /// This host's IPv4 addresses from now on: no new session leads to one, except to those that the configuration allows.
    pub(crate) fn set_host4(&mut self, host4: &[Ipv4Addr]) {
        self.rules.host4 = host4.to_vec();
        self.rules.host4.sort_unstable();
    }

    /// Whether the address belongs to the pool.
    #[inline]
    pub fn owns_outside(&self, address: Ipv4Addr) -> bool {
        self.nat.owns_outside(address)
    }

    /// Which worker owns what.
    pub const fn ownership(&self) -> &Ownership {
        self.nat.ownership()
    }

    /// How full the tables are.
    pub fn occupancy(&self) -> Occupancy {
        self.nat.occupancy()
    }

    /// Memory in octets, reserved room included.
    pub fn memory(&self) -> usize {
        self.nat.memory()
    }

    /// Step one of a packet's lookup: the five-tuple, its tag, and the index entry at the tag's home.
    #[inline]
    pub fn probe(&self, packet: &Packet, probe: &mut Probe) {
        probe.clear();
        match packet.addresses {
            Addresses::V6 { source, destination } => {
                let Some(ports) = Ports::of(packet, Direction::Out) else { return };
                let Ok(remote) = self.rules.prefix.extract_any(destination) else { return };
                let inside = Inside(Endpoint6::new(source, ports.from));
                self.nat.look_inside(inside, Endpoint4::new(remote, ports.to), ports, probe);
            }
            Addresses::V4 { source, destination } => {
                let Some(ports) = Ports::of(packet, Direction::In) else { return };
                let outside = Outside(Endpoint4::new(destination, ports.to));
                self.nat.look_outside(outside, Endpoint4::new(source, ports.from), ports, probe);
            }
        }
    }

    /// Step two: the session's line; of a packet without session, what its binding is looked up by.
    #[inline]
    pub fn warm(&self, probe: &mut Probe) {
        self.nat.warm(probe);
    }

    /// Decides on a packet (RFC 6146 §3.4 to §3.6). `probe` is the result of [`Nat64::probe`] for this packet.
    ///
    /// # Errors
    /// Why it is dropped.
    #[inline(always)]
    pub fn decide(
        &mut self,
        arrival: &Arrival<'_>,
        probe: &Probe,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        let counters = &mut effects.counters;
        match probe.side {
            Side::Inside(inside) => self.nat.outbound(arrival, (inside, probe, now), &self.rules, counters),
            Side::Outside(outside) => self.nat.inbound(arrival, (outside, probe, now), &self.rules, counters),
            // Of a batch's packets none is an error: that is known where this is compiled for them, and their decisions need no memory.
            Side::Neither if arrival.quoted.is_none() => Err(self.refusal(arrival.packet)),
            Side::Neither => self.of_error(arrival, effects),
        }
    }

    /// Where a packet for this IPv4 address goes: a hairpin comes back (RFC 6146 §3.8).
    pub(super) fn next(&self, remote: Ipv4Addr) -> Next {
        if self.owns_outside(remote) { Next::Again } else { Next::Leave }
    }

    /// Whether a fragment may be held: only what its packet's session or binding could need.
    pub(super) fn may_hold(&self, packet: &Packet) -> Result<(), DropReason> {
        match packet.addresses {
            Addresses::V6 { source, .. } => {
                self.rules.refuse_own_source(source)?;
                if self.rules.is_inside(source) || self.static_hosts.contains_key(&source) {
                    Ok(())
                } else {
                    Err(DropReason::SourceNotInside)
                }
            }
            Addresses::V4 { destination, .. } => {
                let protocol = match packet.protocol {
                    TCP => NatProtocol::Tcp,
                    UDP => NatProtocol::Udp,
                    ICMPV4 => NatProtocol::Icmp,
                    _ => return Err(DropReason::ProtocolUnsupported),
                };
                if self.nat.is_in_use(destination, protocol) { Ok(()) } else { Err(DropReason::NoBinding) }
            }
        }
    }

    /// An ICMP error.
    #[cold]
    fn of_error(&self, arrival: &Arrival<'_>, effects: &mut Effects) -> Result<Decision, DropReason> {
        if let Addresses::V6 { source, .. } = arrival.packet.addresses {
            self.rules.refuse_own_source(source)?;
        }
        self.icmp_error(arrival, effects)
    }

    /// Why a packet without five-tuple is refused.
    #[cold]
    #[inline(never)]
    fn refusal(&self, packet: &Packet) -> DropReason {
        if let Addresses::V6 { source, .. } = packet.addresses
            && let Err(reason) = self.rules.refuse_own_source(source)
        {
            return reason;
        }
        let (icmp, destination) = match packet.addresses {
            Addresses::V6 { destination, .. } => (ICMPV6, Some(destination)),
            Addresses::V4 { .. } => (ICMPV4, None),
        };
        if ![TCP, UDP, icmp].contains(&packet.protocol) {
            return DropReason::ProtocolUnsupported;
        }
        match packet.transport {
            Transport::Opaque => DropReason::BadFragment,
            // What it quotes cannot be read.
            Transport::IcmpError { .. } => DropReason::QuoteUnusable,
            Transport::Ports { .. } | Transport::IcmpQuery { .. } => {
                let unreachable = destination.and_then(|address| self.rules.prefix.extract(address).err());
                unreachable.unwrap_or(DropReason::IcmpUntranslatable)
            }
        }
    }
}
