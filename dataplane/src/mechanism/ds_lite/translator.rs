//! The AFTR itself: lookup and decision for a packet.

use super::DsLiteConfig;
use super::address_rules::{AddressRules, Outcome, is_of_softwires, usual_inside};
use super::config::AFTR_ADDRESS;
use crate::counters::Counters;
use crate::direction::Direction;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::frame::Frame;
use crate::instant::Instant;
use crate::mechanism::contract::Arrival;
use crate::nat::{
    Arriving, Inside, NatProtocol, Outside, Ports, Side, Softwire, SoftwireId, Softwires, Sought,
};
use crate::parse::{Addresses, Packet, Transport};
use crate::stateful::{Remotes, Stateful as _, Translator};
use crate::verdict::{Action, Decision, Edit, Encap, Next, Outer, PolicyId, WorkerId};
use core::net::Ipv6Addr;
use sixway_wire::Endpoint4;
use sixway_wire::protocol::ICMPV6;

/// A packet's lookup. For a packet from a softwire the softwire is looked up first, for one from outside last.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// The session's.
    nat: crate::nat::Probe<Softwire>,
    /// The lookup key of a packet from a softwire.
    from: Option<FromSoftwire>,
}

/// A packet from a softwire, as it is looked up.
#[derive(Clone, Copy, Debug)]
struct FromSoftwire {
    b4: Ipv6Addr,
    sought: Sought,
    source: Endpoint4,
    remote: Endpoint4,
    ports: Ports,
}

impl Probe {
    /// An empty probe.
    pub const EMPTY: Self = Self { nat: crate::nat::Probe::EMPTY, from: None };

    #[inline(always)]
    fn clear(&mut self) {
        self.nat.clear();
        self.from = None;
    }
}

/// The packet inside a tunnel packet, as the NAT sees it.
struct InnerArrival<'a> {
    frame: &'a Frame,
    inner: &'a Packet,
    /// Where it begins.
    at: usize,
}

impl Arriving for InnerArrival<'_> {
    #[inline(always)]
    fn packet(&self) -> &Packet {
        self.inner
    }

    #[inline(always)]
    fn octets(&self) -> &[u8] {
        self.frame.bytes().get(self.at..).unwrap_or_default()
    }

    #[inline(always)]
    fn segments(&self) -> u32 {
        let transport = usize::from(self.inner.transport_at);
        self.frame.segment_count(self.at + transport, self.inner.length as usize - transport)
    }

    fn earlier_mark(&self) -> Option<u32> {
        None
    }
}

/// An AFTR: one worker's share of it.
pub type DsLite = Translator<Softwire, AddressRules>;

impl DsLite {
    /// The share of `worker`, of `workers`; subscribers are spread over the workers by `worker_key`. Static bindings that cannot be
    /// created are left out.
    pub fn keyed(
        config: &DsLiteConfig,
        policy: PolicyId,
        worker: (WorkerId, u8),
        seed: [u64; 2],
        worker_key: [u64; 2],
    ) -> Self {
        let allowed_own = config.allow_own.iter().chain(&config.pool.addresses).copied().collect();
        let rules = AddressRules {
            identity: config.identity,
            addresses: config.addresses.clone(),
            clients: config.clients.clone(),
            inside: config.inside.clone(),
            usual: usual_inside(&config.inside),
            remotes: Remotes::new(config.excluded.clone(), allowed_own),
            policy,
        };
        let mut aftr = Self::with_rules((rules, ()), &config.nat(), worker, seed, worker_key);
        *aftr.nat.names_mut() = Softwires::new(config.max_softwires, seed);
        for binding in &config.static_bindings {
            let _refused = aftr.add_static(binding);
        }
        aftr
    }

    /// Step one of a packet's lookup: of one from a softwire the softwire's index entry, of one from outside the session's.
    #[inline(always)]
    pub fn look(&self, packet: &Packet, inner: Option<&Packet>, probe: &mut Probe) {
        probe.clear();
        match (packet.addresses, inner) {
            (Addresses::V6 { source: b4, .. }, Some(inner)) => {
                let Some((source, remote, ports)) = tuple(inner) else { return };
                let sought = self.nat.names().touch(b4);
                probe.from = Some(FromSoftwire { b4, sought, source, remote, ports });
            }
            (Addresses::V4 { source, destination }, None) => {
                let Some(ports) = Ports::of_ipv4(packet, Direction::In) else { return };
                let outside = Outside(Endpoint4::new(destination, ports.to));
                let remote = Endpoint4::new(source, ports.from);
                self.nat.look_outside(outside, remote, ports, &mut probe.nat);
            }
            (Addresses::V4 { .. } | Addresses::V6 { .. }, _) => {}
        }
    }

    /// Steps two and three: of a packet from a softwire the session's index entry and then the session, of one from outside the session
    /// and then the softwire.
    #[inline(always)]
    pub fn look_on(&self, stage: usize, probe: &mut Probe) {
        match (&probe.from, stage) {
            (Some(from), 0) => {
                if let Some(id) = self.nat.names().candidate(from.sought, from.b4) {
                    let inside = Inside(Softwire { id, endpoint: from.source });
                    self.nat.look_inside(inside, from.remote, from.ports, &mut probe.nat);
                }
            }
            (Some(_), _) | (None, 0) => self.nat.warm(&mut probe.nat),
            (None, _) => {
                if let Some(Inside(inside)) = self.nat.found_inside(&probe.nat) {
                    self.nat.names().touch_row(inside.id);
                }
            }
        }
    }

    /// Decides on a packet, whose probe has been through all steps.
    ///
    /// # Errors
    /// It is dropped: why.
    #[inline(always)]
    pub fn answer(
        &mut self,
        arrival: &Arrival<'_>,
        probe: &Probe,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        match (arrival.inner, probe.nat.side) {
            (Some(inner), _) => self.out_of_softwire((arrival, inner), probe, now, effects),
            (None, Side::Outside(outside)) => {
                let of = (outside, &probe.nat, now);
                let outcome = self.nat.inbound(arrival, of, &self.rules, &mut effects.counters)?;
                self.decision(outcome, effects)
            }
            (None, _) => self.error_from_outside(arrival, effects),
        }
    }

    /// A packet that came out of a softwire.
    #[inline(always)]
    fn out_of_softwire(
        &mut self,
        (arrival, inner): (&Arrival<'_>, &Packet),
        probe: &Probe,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        self.rules.check_inner(inner)?;
        let Addresses::V6 { destination: local, source: b4 } = arrival.packet.addresses else {
            return Err(DropReason::NoTunnel);
        };
        let (Some(from), false) = (&probe.from, is_for_aftr(inner)) else {
            return self.without_session((arrival, inner), (b4, local), effects);
        };
        let at = usize::from(arrival.packet.transport_at);
        let arriving = InnerArrival { frame: arrival.frame, inner, at };
        let outcome = match probe.nat.side {
            // If the table is full, a softwire that packets before this one have ended may be forgotten, and its number may be another's.
            Side::Inside(inside) if self.nat.names().is(inside.0.id, b4) => {
                let of = (inside, &probe.nat, now);
                let outcome = self.nat.outbound(&arriving, of, &self.rules, &mut effects.counters)?;
                // A refused packet does not change the local end; with one address there is nothing to change.
                if self.rules.addresses.len() > 1 {
                    self.nat.names_mut().set_local(inside.0.id, self.rules.number_of(local));
                }
                outcome
            }
            Side::Inside(_) | Side::Outside(_) | Side::Neither => {
                self.out_of_new_softwire(&arriving, (from, local), now, &mut effects.counters)?
            }
        };
        self.decision(outcome, effects)
    }

    /// A packet of an unknown softwire, which is added to the table if the packet creates a binding.
    #[cold]
    #[inline(never)]
    fn out_of_new_softwire(
        &mut self,
        arriving: &InnerArrival<'_>,
        (from, local): (&FromSoftwire, Ipv6Addr),
        now: Instant,
        counters: &mut Counters,
    ) -> Result<Outcome, DropReason> {
        let id = self.nat.names_mut().intern(from.b4).ok_or(DropReason::SoftwireTableFull)?;
        let inside = Inside(Softwire { id, endpoint: from.source });
        let mut probe = crate::nat::Probe::EMPTY;
        self.nat.look_inside(inside, from.remote, from.ports, &mut probe);
        self.nat.warm(&mut probe);
        let outcome = self.nat.outbound(arriving, (inside, &probe, now), &self.rules, counters);
        if outcome.is_ok() {
            self.nat.names_mut().set_local(id, self.rules.number_of(local));
        }
        self.nat.names_mut().forget_unused(id);
        outcome
    }

    /// A packet from a softwire that has no session of its own.
    #[cold]
    #[inline(never)]
    fn without_session(
        &mut self,
        (arrival, inner): (&Arrival<'_>, &Packet),
        (b4, local): (Ipv6Addr, Ipv6Addr),
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        let Addresses::V4 { destination, .. } = inner.addresses else { return Err(DropReason::NoTunnel) };
        if inner.fragment.is_some() {
            return Ok(Decision::keep(Next::Whole));
        }
        if destination == AFTR_ADDRESS {
            let outer = effects.outer(Outer::V6 { source: local, destination: b4 });
            let policy = self.rules.policy;
            let encap = Some(Encap { outer, policy });
            let action = Action { decap: Some(policy), edit: None, policy, encap };
            return Ok(Decision { action, quoted: None, next: Next::Reply });
        }
        if is_of_softwires(destination) {
            return Err(DropReason::NoMechanism);
        }
        self.error_from_softwire((arrival, inner), b4, effects)
    }

    /// The headers that follow from an outcome.
    #[inline(always)]
    fn decision(&self, outcome: Outcome, effects: &mut Effects) -> Result<Decision, DropReason> {
        let policy = self.rules.policy;
        match outcome {
            Outcome::Out { outside, remote, is_hairpin } => {
                let edit = Edit::Renumber4 { source: outside, destination: remote, keep_ports: false };
                let action = Action { decap: Some(policy), edit: Some(edit), policy, encap: None };
                let next = if is_hairpin { Next::Again } else { Next::Leave };
                Ok(Decision { action, quoted: None, next })
            }
            Outcome::In { inside, remote } => {
                let edit =
                    Edit::Renumber4 { source: remote, destination: inside.endpoint, keep_ports: false };
                let encap = Some(self.encap_for(inside.id, effects)?);
                let action = Action { decap: None, edit: Some(edit), policy, encap };
                Ok(Decision { action, quoted: None, next: Next::Leave })
            }
            Outcome::Held => Ok(Decision::keep(Next::Held)),
        }
    }

    /// The outer header of packets into a softwire.
    #[inline(always)]
    pub(super) fn encap_for(&self, id: SoftwireId, effects: &mut Effects) -> Result<Encap, DropReason> {
        let (source, destination) = self.ends(id).ok_or(DropReason::NoBinding)?;
        let outer = effects.outer(Outer::V6 { source, destination });
        Ok(Encap { outer, policy: self.rules.policy })
    }

    /// Both ends of a softwire: the AFTR's address that the B4 uses, and the B4's.
    #[inline(always)]
    pub(super) fn ends(&self, id: SoftwireId) -> Option<(Ipv6Addr, Ipv6Addr)> {
        let (b4, local) = self.nat.names().ends(id)?;
        Some((*self.rules.address(local)?, b4))
    }

    /// Forgets softwires without bindings.
    pub(super) fn forget_left(&mut self) {
        self.nat.names_mut().forget_left();
    }

    /// The softwires of this worker.
    pub const fn softwires(&self) -> &Softwires {
        self.nat.names()
    }

    /// Whether a fragment from outside may be held: only what a binding could need.
    pub(super) fn may_hold_from_outside(&self, packet: &Packet) -> Result<(), DropReason> {
        let Addresses::V4 { destination, .. } = packet.addresses else {
            return Err(DropReason::NoMechanism);
        };
        let known = NatProtocol::of(packet.protocol).filter(|_| packet.protocol != ICMPV6);
        let protocol = known.ok_or(DropReason::ProtocolUnsupported)?;
        if self.nat.is_in_use(destination, protocol) { Ok(()) } else { Err(DropReason::NoBinding) }
    }
}

/// What a whole packet out of a softwire is looked up by: its host's endpoint, the remote one, and its ports.
#[inline(always)]
fn tuple(inner: &Packet) -> Option<(Endpoint4, Endpoint4, Ports)> {
    let Addresses::V4 { source, destination } = inner.addresses else { return None };
    if inner.fragment.is_some() {
        return None;
    }
    let ports = Ports::of_ipv4(inner, Direction::Out)?;
    Some((Endpoint4::new(source, ports.from), Endpoint4::new(destination, ports.to), ports))
}

/// Whether a packet is for the AFTR itself, or for an address that no host has.
#[inline(always)]
const fn is_for_aftr(inner: &Packet) -> bool {
    match inner.addresses {
        Addresses::V4 { destination, .. } => is_of_softwires(destination),
        Addresses::V6 { .. } => true,
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
