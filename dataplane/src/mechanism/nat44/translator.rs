//! The translator itself: lookup and decision for a packet.

use super::Nat44Config;
use super::address_rules::AddressRules;
use super::own_tunnels::OwnTunnels;
use super::portless::{PortlessProtocol, PortlessSessions};
use crate::direction::Direction;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::instant::Instant;
use crate::mechanism::contract::Arrival;
use crate::nat::{Inside, NatProtocol, Outside, Ports, Side};
use crate::parse::{Addresses, Packet, Transport};
use crate::stateful::{Remotes, Translator};
use crate::verdict::{Decision, Edit, PolicyId, WorkerId};
use sixway_wire::Endpoint4;
use sixway_wire::protocol::ICMPV6;

/// A packet's five-tuple, and how far the lookup of its session is.
pub type Probe = crate::nat::Probe<Endpoint4>;

/// A NAT44: one worker's share of it.
pub type Nat44 = Translator<Endpoint4, AddressRules>;

impl Nat44 {
    /// The share of `worker`, of `workers`; subscribers are spread over the workers by `worker_key`. Static bindings that cannot be
    /// created are left out: [`Nat44Config::faults`] names them.
    pub fn keyed(
        config: &Nat44Config,
        policy: PolicyId,
        worker: (WorkerId, u8),
        seed: [u64; 2],
        worker_key: [u64; 2],
    ) -> Self {
        let allowed_own = config.allow_own.iter().chain(&config.pool.addresses).copied().collect();
        let remotes = Remotes::new(config.excluded.clone(), allowed_own);
        let own_tunnels = OwnTunnels::new(config.translate_own_tunnels);
        let (realm, identity, inside) = (config.realm, config.identity, config.inside.clone());
        let rules = AddressRules { realm, identity, inside, remotes, policy, own_tunnels };
        let pool = &config.pool.addresses;
        let portless = PortlessSessions::new(&config.portless, pool, worker.0, seed, worker_key);
        Self::with_rules((rules, portless), &config.nat(), worker, seed, worker_key)
    }

    /// Whether a packet comes from an inside host.
    #[inline(always)]
    pub(super) fn is_from_inside(&self, packet: &Packet) -> bool {
        match packet.addresses {
            Addresses::V4 { source, .. } => self.rules.is_inside(source),
            Addresses::V6 { .. } => false,
        }
    }

    /// Step one of a packet's lookup: the five-tuple, its tag, and the index entry at the tag's home.
    #[inline]
    pub fn probe(&self, packet: &Packet, probe: &mut Probe) {
        probe.clear();
        let Addresses::V4 { source, destination } = packet.addresses else { return };
        if self.rules.is_inside(source) {
            let Some(ports) = Ports::of_ipv4(packet, Direction::Out) else { return };
            let inside = Inside(Endpoint4::new(source, ports.from));
            self.nat.look_inside(inside, Endpoint4::new(destination, ports.to), ports, probe);
        } else {
            let Some(ports) = Ports::of_ipv4(packet, Direction::In) else { return };
            let outside = Outside(Endpoint4::new(destination, ports.to));
            self.nat.look_outside(outside, Endpoint4::new(source, ports.from), ports, probe);
        }
    }

    /// Decides on a packet. `probe` is the result of [`Nat44::probe`] for this packet.
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
            Side::Neither if arrival.quoted.is_none() => {
                let (source, destination, next) = self.without_five_tuple(arrival, now, counters)?;
                let [source, destination] = [source, destination].map(|address| Endpoint4::new(address, 0));
                let edit = Edit::Renumber4 { source, destination, keep_ports: true };
                Ok(Decision::edit(edit, self.rules.policy, next))
            }
            Side::Neither => self.icmp_error(arrival, now, effects),
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
        let Addresses::V4 { destination, .. } = packet.addresses else {
            return Err(DropReason::NoMechanism);
        };
        if let Some(protocol) = PortlessProtocol::of(packet.protocol) {
            return self.may_hold_portless(packet, protocol);
        }
        let known = NatProtocol::of(packet.protocol).filter(|_| packet.protocol != ICMPV6);
        let protocol = known.ok_or(DropReason::ProtocolUnsupported)?;
        if self.is_from_inside(packet) || self.nat.is_in_use(destination, protocol) {
            Ok(())
        } else {
            Err(DropReason::NoBinding)
        }
    }
}

/// Why a packet without five-tuple is refused.
pub(super) fn refusal(packet: &Packet) -> DropReason {
    if NatProtocol::of(packet.protocol).is_none() || packet.protocol == ICMPV6 {
        return DropReason::ProtocolUnsupported;
    }
    match packet.transport {
        Transport::Opaque => DropReason::BadFragment,
        // Its quote cannot be parsed.
        Transport::IcmpError { .. } => DropReason::QuoteUnusable,
        Transport::Ports { .. } | Transport::IcmpQuery { .. } => DropReason::IcmpUntranslatable,
    }
}
