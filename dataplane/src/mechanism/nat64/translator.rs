//! The translator itself: lookup and decision for a packet.

use super::Nat64Config;
use super::address_rules::AddressRules;
use crate::direction::Direction;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::instant::Instant;
use crate::mechanism::contract::Arrival;
use crate::nat::{Inside, NatProtocol, Outside, Ports, Side};
use crate::parse::{Addresses, Packet, Transport};
use crate::stateful::{Remotes, Translator};
use crate::translate::address::rfc6052::Rfc6052;
use crate::verdict::{Decision, PolicyId, WorkerId};
use sixway_wire::protocol::{ICMPV4, ICMPV6, TCP, UDP};
use sixway_wire::{Endpoint4, Endpoint6, Prefix6};

/// A packet's five-tuple, and how far the lookup of its session is.
pub type Probe = crate::nat::Probe<Endpoint6>;

/// A stateful NAT64: one worker's share of it.
pub type Nat64 = Translator<Endpoint6, AddressRules>;

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
        let allowed_own = config.allow_own.iter().chain(&config.pool.addresses).copied().collect();
        let rules = AddressRules {
            prefix: config.prefix,
            inside: config.inside.clone(),
            other_prefixes: Vec::new(),
            remotes: Remotes::new(config.excluded.clone(), allowed_own),
            policy,
        };
        Self::with_rules((rules, ()), &config.nat(), worker, seed, worker_key)
    }

    /// The translation prefix, Pref64::/n.
    pub const fn prefix(&self) -> &Rfc6052 {
        &self.rules.prefix
    }

    /// Adds the prefixes of the gateway's other NAT64s: a source under one is refused like one under the own prefix.
    pub fn refuse_sources(&mut self, other_prefixes: impl IntoIterator<Item = Prefix6>) {
        self.rules.other_prefixes.extend(other_prefixes);
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
        if arrival.alone && self.assistance.connections.may_have(probe.remote_port()) {
            return self.decide_assisted(arrival, probe, now, effects);
        }
        let counters = &mut effects.counters;
        match probe.side {
            Side::Inside(inside) => self.nat.outbound(arrival, (inside, probe, now), &self.rules, counters),
            Side::Outside(outside) => self.nat.inbound(arrival, (outside, probe, now), &self.rules, counters),
            // Of a batch's packets none is an error: that is known where this is compiled for them, and their decisions need no memory.
            Side::Neither if arrival.quoted.is_none() => Err(self.refusal(arrival.packet)),
            Side::Neither => self.of_error(arrival, effects),
        }
    }

    /// The same of what may be a packet of a control connection of FTP.
    #[cold]
    #[inline(never)]
    fn decide_assisted(
        &mut self,
        arrival: &Arrival<'_>,
        probe: &Probe,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        let decision = self.decide(&Arrival { alone: false, ..*arrival }, probe, now, effects)?;
        if arrival.again {
            return Ok(decision);
        }
        Ok(self.assist((arrival.frame, arrival.packet), decision, now, effects))
    }

    /// Whether a fragment may be held: only what its packet's session or binding could need.
    pub(super) fn may_hold(&self, packet: &Packet) -> Result<(), DropReason> {
        match packet.addresses {
            Addresses::V6 { source, .. } => {
                self.rules.refuse_own_source(source)?;
                if self.rules.is_inside(source) || self.has_static(source) {
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
            // Its quote cannot be parsed.
            Transport::IcmpError { .. } => DropReason::QuoteUnusable,
            Transport::Ports { .. } | Transport::IcmpQuery { .. } => {
                let unreachable = destination.and_then(|address| self.rules.prefix.extract(address).err());
                unreachable.unwrap_or(DropReason::IcmpUntranslatable)
            }
        }
    }
}
