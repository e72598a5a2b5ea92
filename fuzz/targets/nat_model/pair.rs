//! The real NAT and the model, side by side: the same packets, the same time, and after every step the same answer.

use super::model::{Binding, Expected, Model, POOL, SECOND, Session, State, image};
use super::settings::{Family, Settings};
use super::step::{Step, remote};
use sixway_dataplane::effects::{Effects, Generated};
use sixway_dataplane::mechanism::contract::Arrival;
use sixway_dataplane::mechanism::ds_lite::{self, DsLite, DsLiteConfig};
use sixway_dataplane::mechanism::nat44::{self, Nat44, Nat44Config};
use sixway_dataplane::mechanism::nat64::{self, Nat64, Nat64Config};
use sixway_dataplane::nat::{Direction, Named, RowBlocks, SoftwireNetwork, StateLimits, SubscriberRow};
use sixway_dataplane::nat::{Inside, NatProtocol, Outside, Selection, StaticBinding, StaticBindingError};
use sixway_dataplane::parse::{Addresses, Packet, QuotedTuple, SYN, Transport};
use sixway_dataplane::stateful::Stateful;
use sixway_dataplane::translate::address::Rfc6052;
use sixway_dataplane::{Decision, DropReason, Edit, Frame, Instant, Next, PolicyId, Quoted, WorkerId};
use sixway_wire::protocol::{ICMPV4, ICMPV6, IPV4, TCP, UDP};
use sixway_wire::{Endpoint4, Endpoint6};
use sixway_wire::{Prefix4, Prefix6};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

/// Who sends the ICMP errors that come from outside.
const SENDER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 254);

/// What a stored SYN is answered with.
const STORED: Decision = Decision::keep(Next::Held);

/// The endpoints of the packet that an ICMP error quotes.
fn quoted_of(effects: &Effects, decision: &Decision) -> Option<Quoted> {
    effects.quoted_at(decision.quoted?)
}

/// The real one.
enum Real {
    Six(Box<Nat64>),
    Four(Box<Nat44>),
    Softwire(Box<DsLite>),
}

/// The AFTR's address.
const AFTR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1);

impl Real {
    fn new(settings: &Settings) -> Self {
        let limits = StateLimits {
            sessions: settings.most_sessions() as u32,
            bindings: settings.most_bindings() as u32,
            of_subscriber: settings.limits,
            ..StateLimits::default()
        };
        let (worker, seed) = ((WorkerId(0), settings.workers), settings.seed);
        let (blocks, deterministic) = (settings.policy(), settings.mapping().map(Arc::new));
        let filtering = settings.filtering;
        match settings.family {
            Family::Six => {
                let prefix = Rfc6052::new("64:ff9b::/96".parse().unwrap(), true).unwrap();
                let mut config =
                    Nat64Config { filtering, limits, ..Nat64Config::new(prefix, settings.pool()) };
                config.subscribers.blocks = blocks;
                config.subscribers.deterministic = deterministic;
                let exempt = Prefix6::holding(Family::Six.host(1), 64);
                config.subscribers.exempt.extend(settings.has_exempt.then_some(exempt));
                Self::Six(Box::new(Nat64::new(&config, PolicyId(0), worker.0, worker.1, seed)))
            }
            Family::Four => {
                let inside = vec![Family::inside4()];
                let mut config =
                    Nat44Config { filtering, limits, ..Nat44Config::new(inside, settings.pool()) };
                config.subscribers.bits = settings.family.bits();
                config.subscribers.blocks = blocks;
                config.subscribers.deterministic = deterministic;
                let exempt = Prefix4::holding(Ipv4Addr::new(10, 0, 1, 0), 24);
                config.subscribers.exempt.extend(settings.has_exempt.then_some(exempt));
                Self::Four(Box::new(Nat44::keyed(&config, PolicyId(0), worker, seed, [0, 0])))
            }
            Family::Softwire => {
                let clients = vec![settings.family.inside()];
                let mut config = DsLiteConfig {
                    filtering,
                    limits,
                    ..DsLiteConfig::new(vec![AFTR], clients, settings.pool())
                };
                config.subscribers.bits = settings.family.bits();
                config.subscribers.blocks = blocks;
                let exempt = SoftwireNetwork::Remote(Prefix6::holding(settings.family.host(1), 64));
                config.subscribers.exempt.extend(settings.has_exempt.then_some(exempt));
                Self::Softwire(Box::new(DsLite::keyed(&config, PolicyId(0), worker, seed, [0, 0])))
            }
        }
    }

    fn stateful(&mut self) -> &mut dyn Stateful {
        match self {
            Self::Softwire(aftr) => &mut **aftr,
            Self::Six(nat64) => &mut **nat64,
            Self::Four(nat44) => &mut **nat44,
        }
    }

    fn seen(&self) -> &dyn Stateful {
        match self {
            Self::Softwire(aftr) => &**aftr,
            Self::Six(nat64) => &**nat64,
            Self::Four(nat44) => &**nat44,
        }
    }

    fn decide(
        &mut self,
        arrival: &Arrival<'_>,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        match self {
            Self::Six(nat64) => {
                let mut probe = nat64::Probe::EMPTY;
                nat64.probe(arrival.packet, &mut probe);
                nat64.warm(&mut probe);
                nat64.decide(arrival, &probe, now, effects)
            }
            Self::Four(nat44) => {
                let mut probe = nat44::Probe::EMPTY;
                nat44.probe(arrival.packet, &mut probe);
                nat44.warm(&mut probe);
                nat44.decide(arrival, &probe, now, effects)
            }
            Self::Softwire(aftr) => {
                let mut probe = ds_lite::Probe::EMPTY;
                aftr.look(arrival.packet, arrival.inner, &mut probe);
                (0..2).for_each(|stage| aftr.look_on(stage, &mut probe));
                aftr.answer(arrival, &probe, now, effects)
            }
        }
    }

    fn expire(&mut self, now: Instant, effects: &mut Effects) {
        match self {
            Self::Six(nat64) => nat64.expire(now, usize::MAX, effects),
            Self::Four(nat44) => nat44.expire(now, usize::MAX, effects),
            Self::Softwire(aftr) => aftr.end_what_is_due(now, usize::MAX, effects),
        }
    }
}

/// The real one and the model, side by side.
pub(crate) struct Pair {
    real: Real,
    effects: Effects,
    pub(crate) model: Model,
    family: Family,
}

const ERROR: Transport = Transport::IcmpError { kind: 3, code: 1 };

impl Pair {
    pub(crate) fn new(settings: Settings) -> Self {
        let (real, family) = (Real::new(&settings), settings.family);
        Self { real, effects: Effects::default(), model: Model::new(settings), family }
    }

    fn now(&self) -> Instant {
        Instant(self.model.now)
    }

    fn decide(&mut self, packet: &Packet, quoted: Option<QuotedTuple>) -> Result<Decision, DropReason> {
        self.decide_of(packet, None, quoted)
    }

    /// `b4`: the packet came out of the softwire with this remote end.
    fn decide_of(
        &mut self,
        packet: &Packet,
        b4: Option<Ipv6Addr>,
        quoted: Option<QuotedTuple>,
    ) -> Result<Decision, DropReason> {
        // Of an ICMP error the first two octets, whose checksum is right.
        let frame = Frame::holding(&[0xff; 100]);
        let outer = b4.map(|source| Packet {
            addresses: Addresses::V6 { source, destination: AFTR },
            protocol: IPV4,
            hops: 64,
            transport_at: 40,
            length: 40 + packet.length,
            ..Packet::EMPTY
        });
        let arrival = match &outer {
            Some(outer) => Arrival { quoted, ..Arrival::new(&frame, outer, Some(packet)) },
            None => Arrival { quoted, ..Arrival::new(&frame, packet, None) },
        };
        let now = self.now();
        let outcome = self.real.decide(&arrival, now, &mut self.effects);
        if outcome == Ok(STORED) {
            self.effects.counters.held += 1;
        }
        outcome
    }

    /// An outside endpoint: mostly one that is in use.
    fn outside(&self, protocol: NatProtocol, number: u8) -> Endpoint4 {
        let used: Vec<_> = self.model.bindings.iter().filter(|b| b.protocol == protocol).collect();
        match used.get(usize::from(number) % 8) {
            Some(binding) => binding.outside,
            None => {
                let first = *self.model.settings.ports().start();
                Endpoint4::new(POOL[usize::from(number % 2)], first + u16::from(number / 2 % 6))
            }
        }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match *step {
            Step::Out { protocol, host: number, port, remote: to, remote_port, flags } => {
                let inside = Endpoint6::new(self.family.host(number), port);
                let remote = remote(to, remote_port, protocol);
                self.out(protocol, inside, remote, if protocol == NatProtocol::Tcp { flags } else { 0 });
            }
            Step::In { protocol, outside, remote: from, remote_port, flags } => {
                let outside = self.outside(protocol, outside);
                let remote = remote(from, remote_port, protocol);
                self.inbound(protocol, outside, remote, if protocol == NatProtocol::Tcp { flags } else { 0 });
            }
            Step::ErrorFromOutside { protocol, outside, remote: to, remote_port } => {
                self.error_from_outside(
                    protocol,
                    self.outside(protocol, outside),
                    remote(to, remote_port, protocol),
                );
            }
            Step::ErrorFromInside { protocol, host: number, port, remote: from, remote_port } => {
                let inside = Endpoint6::new(self.family.host(number), port);
                self.error_from_inside(protocol, inside, remote(from, remote_port, protocol));
            }
            Step::Again { session, from_inside, flags } => self.again(session, from_inside, flags),
            Step::Wait(time) => self.wait(time),
            Step::EndSession(number) => self.end_session(number),
            Step::EndBinding(number) => self.end_binding(number),
            Step::AddStatic { protocol, host: number, port, outside } => {
                let outside = self.outside(protocol, outside);
                self.add_static(protocol, Endpoint6::new(self.family.host(number), port), outside);
            }
            Step::Burst { protocol, host: number, first, count } => {
                let remote = remote(0, 80, protocol);
                for port in first..first + u16::from(count) {
                    let inside = Endpoint6::new(self.family.host(number), port);
                    self.out(protocol, inside, remote, if protocol == NatProtocol::Tcp { SYN } else { 0 });
                }
            }
            Step::Drain { address, drains } => self.drain(POOL[usize::from(address % 2)], drains),
            Step::RemoveStatic(number) => self.remove_static(number),
        }
        self.compare();
    }

    fn out(&mut self, protocol: NatProtocol, inside: Endpoint6, remote: Endpoint4, flags: u8) {
        let addresses = self.outbound_addresses(inside.address, remote.address);
        let packet = packet(addresses, protocol, ([inside.port, remote.port], Direction::Out), flags);
        let b4 = (self.family == Family::Softwire).then_some(inside.address);
        let outcome = self.decide_of(&packet, b4, None);
        let real = match outcome {
            Ok(STORED) | Err(_) => None,
            Ok(decision) => match decision.action.edit {
                Some(Edit::Translate6To4 { source, .. } | Edit::Renumber4 { source, .. }) => Some(source),
                Some(Edit::Translate4To6 { .. } | Edit::Renumber6 { .. }) | None => None,
            },
        };
        let expected = self.model.out(protocol, inside, remote, flags, real);
        agree(outcome, &expected);
    }

    fn inbound(&mut self, protocol: NatProtocol, outside: Endpoint4, remote: Endpoint4, flags: u8) {
        let addresses = Addresses::V4 { source: remote.address, destination: outside.address };
        let packet = packet(addresses, protocol, ([remote.port, outside.port], Direction::In), flags);
        let outcome = self.decide(&packet, None);
        let expected = self.model.inbound(protocol, outside, remote, flags);
        agree(outcome, &expected);
    }

    fn again(&mut self, number: u8, from_inside: bool, flags: u8) {
        if self.model.sessions.is_empty() {
            return;
        }
        let at = usize::from(number) % self.model.sessions.len();
        let Session { protocol, inside, outside, remote, .. } = self.model.sessions[at];
        let flags = if protocol == NatProtocol::Tcp { flags } else { 0 };
        match inside {
            Some(inside) if from_inside => self.out(protocol, inside, remote, flags),
            Some(_) | None => self.inbound(protocol, outside, remote, flags),
        }
    }

    /// RFC 6146 §3.6.1, IPv4 to IPv6: the BIB alone decides, unless packets are filtered. An AFTR reads the quote from the octets, which there are
    /// not here.
    fn error_from_outside(&mut self, protocol: NatProtocol, outside: Endpoint4, remote: Endpoint4) {
        if self.family == Family::Softwire {
            return;
        }
        let addresses = Addresses::V4 { source: SENDER, destination: outside.address };
        let packet = Packet { addresses, protocol: ICMPV4, transport: ERROR, length: 2, ..Packet::EMPTY };
        let quoted =
            QuotedTuple::V4 { source: outside, destination: remote, protocol: number(protocol, false) };
        let outcome = self.decide(&packet, Some(quoted));
        let binding = self.model.binding_of_outside(protocol, outside);
        let of_session =
            Endpoint4::new(remote.address, if protocol == NatProtocol::Icmp { 0 } else { remote.port });
        let Some(binding) = binding.filter(|binding| self.model.admits(binding, of_session)) else {
            assert_eq!(outcome, Err(DropReason::NoSessionForError));
            return;
        };
        let Ok(decision) = outcome else { panic!("{outcome:?}") };
        let port = if protocol == NatProtocol::Icmp { binding.inside.port } else { remote.port };
        let quoted = match (decision.action.edit, self.family) {
            (Some(Edit::Translate4To6 { source, destination, .. }), Family::Six) => {
                assert_eq!((source.address, destination.address), (image(SENDER), binding.inside.address));
                let destination = Endpoint6::new(image(remote.address), port);
                Quoted::V6 { source: binding.inside, destination, keep_ports: false }
            }
            (Some(Edit::Renumber4 { source, destination, .. }), Family::Four) => {
                let inside = self.family.plain(binding.inside);
                assert_eq!((source.address, destination.address), (SENDER, inside.address));
                let destination = Endpoint4::new(remote.address, port);
                Quoted::V4 { source: inside, destination, keep_ports: false }
            }
            (edit, _) => panic!("{edit:?}"),
        };
        assert_eq!(quoted_of(&self.effects, &decision), Some(quoted));
    }

    /// The same from IPv6 to IPv4, where a session is required.
    fn error_from_inside(&mut self, protocol: NatProtocol, inside: Endpoint6, remote: Endpoint4) {
        if self.family == Family::Softwire {
            return;
        }
        let addresses = self.outbound_addresses(self.family.host(200), remote.address);
        let is_six = self.family == Family::Six;
        let protocol_of_error = if is_six { ICMPV6 } else { ICMPV4 };
        let packet =
            Packet { addresses, protocol: protocol_of_error, transport: ERROR, length: 2, ..Packet::EMPTY };
        let quoted = if is_six {
            let source = Endpoint6::new(image(remote.address), remote.port);
            QuotedTuple::V6 { source, destination: inside, protocol: number(protocol, true) }
        } else {
            QuotedTuple::V4 {
                source: remote,
                destination: self.family.plain(inside),
                protocol: number(protocol, false),
            }
        };
        let outcome = self.decide(&packet, Some(quoted));
        let found = self.model.binding_of_inside(protocol, inside);
        let Some(binding) = found.filter(|binding| self.model.has_session(binding, remote)) else {
            assert_eq!(outcome, Err(DropReason::NoSessionForError));
            return;
        };
        let Ok(decision) = outcome else { panic!("{outcome:?}") };
        let Some(
            Edit::Translate6To4 { source, destination, .. } | Edit::Renumber4 { source, destination, .. },
        ) = decision.action.edit
        else {
            panic!()
        };
        assert_eq!((source.address, destination.address), (binding.outside.address, remote.address));
        let port = if protocol == NatProtocol::Icmp { binding.outside.port } else { remote.port };
        let source = Endpoint4::new(remote.address, port);
        let destination = binding.outside;
        assert_eq!(
            quoted_of(&self.effects, &decision),
            Some(Quoted::V4 { source, destination, keep_ports: false })
        );
    }

    fn wait(&mut self, time: u64) {
        let expected = self.model.wait(time);
        let (mut unanswered, mut probes) = (0, 0);
        let now = self.now();
        self.real.expire(now, &mut self.effects);
        for generated in self.effects.take_generated() {
            match generated {
                Generated::Answer(..) => unanswered += 1,
                Generated::Probe(..) => probes += 1,
                Generated::Datagram(..) | Generated::Released(..) => unreachable!("a NAT makes none"),
            }
        }
        assert_eq!((unanswered, probes), expected, "stored SYNs answered, connections probed");
    }

    fn end_session(&mut self, number: u8) {
        if self.model.sessions.is_empty() {
            return;
        }
        let at = usize::from(number) % self.model.sessions.len();
        let Session { protocol, inside, remote, .. } = self.model.sessions[at];
        // What waits without an inside endpoint cannot be named.
        let Some(inside) = inside else { return };
        assert!(self.real.stateful().end_session(
            protocol,
            self.family.named(inside),
            remote,
            &mut self.effects.counters
        ));
        self.model.sessions.remove(at);
        self.model.tidy();
    }

    fn end_binding(&mut self, number: u8) {
        if self.model.bindings.is_empty() {
            return;
        }
        let Binding { protocol, inside, outside, is_static } =
            self.model.bindings[usize::from(number) % self.model.bindings.len()];
        let ended = self.real.stateful().end_binding(
            protocol,
            Outside(outside),
            usize::MAX,
            &mut self.effects.counters,
        );
        assert_eq!(ended, (!is_static).then_some(true));
        if !is_static {
            self.model.sessions.retain(|s| s.protocol != protocol || s.inside != Some(inside));
            self.model.tidy();
        }
    }

    fn add_static(&mut self, protocol: NatProtocol, inside: Endpoint6, outside: Endpoint4) {
        let binding = self.static_binding(protocol, inside, outside);
        let made = self.real.stateful().add_static(&binding);
        // That of another worker's host is made there; here its port is reserved.
        let is_ours = self.real.seen().worker_of_inside(inside.address) == WorkerId(0);
        let mut faults = Vec::new();
        if is_ours && self.model.binding_of_inside(protocol, inside).is_some() {
            faults.push(StaticBindingError::InsideInUse);
        }
        if !self.model.is_free(protocol, outside) {
            faults.push(StaticBindingError::OutsideInUse);
        }
        if is_ours && self.model.bindings.len() == self.model.settings.most_bindings() {
            faults.push(StaticBindingError::TableFull);
        }
        if !self.model.settings.is_ours(outside.port) {
            faults.push(StaticBindingError::NotInPool);
        }
        match made {
            Ok(()) => {
                assert_eq!(faults, []);
                self.model.quarantined.retain(|q| !q.is_of(protocol, outside));
                let binding = Binding { protocol, inside, outside, is_static: true };
                match is_ours {
                    true => self.model.bind(binding),
                    false => {
                        self.model.reserved.push(binding);
                        self.model.look_at_blocks();
                    }
                }
            }
            Err(fault) => assert!(faults.contains(&fault), "{fault:?} is not of {faults:?}"),
        }
    }

    fn static_binding(&self, protocol: NatProtocol, inside: Endpoint6, outside: Endpoint4) -> StaticBinding {
        let Named { softwire, inside } = self.family.named(inside);
        StaticBinding { protocol, softwire, inside, outside: Outside(outside) }
    }

    /// How the model knows what is named so.
    fn known_as(&self, softwire: Option<Ipv6Addr>, inside: Inside<Endpoint6>) -> Endpoint6 {
        let known = Endpoint6::new(softwire.unwrap_or(inside.0.address), inside.0.port);
        assert_eq!(self.family.named(known), Named { softwire, inside });
        known
    }

    fn remove_static(&mut self, number: u8) {
        if !self.model.reserved.is_empty() && number % 2 == 1 {
            let at = usize::from(number) % self.model.reserved.len();
            let Binding { protocol, inside, outside, .. } = self.model.reserved.remove(at);
            let binding = self.static_binding(protocol, inside, outside);
            let counters = &mut self.effects.counters;
            assert_eq!(self.real.stateful().remove_static(&binding, usize::MAX, counters), Some(true));
            return;
        }
        let made: Vec<usize> =
            (0..self.model.bindings.len()).filter(|at| self.model.bindings[*at].is_static).collect();
        if made.is_empty() {
            return;
        }
        let at = made[usize::from(number) % made.len()];
        let Binding { protocol, inside, outside, .. } = self.model.bindings[at];
        let binding = self.static_binding(protocol, inside, outside);
        assert_eq!(
            self.real.stateful().remove_static(&binding, usize::MAX, &mut self.effects.counters),
            Some(true)
        );
        self.model.bindings.remove(at);
        self.model.sessions.retain(|s| s.protocol != protocol || s.inside != Some(inside));
        self.model.tidy();
    }

    fn drain(&mut self, address: Ipv4Addr, drains: bool) {
        self.real.stateful().drain(Prefix4::holding(address, 32), drains);
        self.model.draining.retain(|one| *one != address);
        self.model.draining.extend(drains.then_some(address));
        self.model.subscribers.has_drained |= drains;
    }

    /// The addresses of a packet from inside.
    fn outbound_addresses(&self, host: Ipv6Addr, remote: Ipv4Addr) -> Addresses {
        match self.family {
            Family::Six => Addresses::V6 { source: host, destination: image(remote) },
            Family::Four | Family::Softwire => {
                let source = self.family.plain(Endpoint6::new(host, 0)).address;
                Addresses::V4 { source, destination: remote }
            }
        }
    }

    /// The same subscribers on both sides, with their blocks.
    fn compare_subscribers(&mut self) {
        let mut rows = Vec::new();
        assert_eq!(self.real.seen().subscribers(0, u32::MAX, None, self.now(), &mut rows), None);
        let of = |row: &SubscriberRow| self.family.subscriber(row.address);
        let blocks: Vec<_> = rows
            .iter()
            .flat_map(|row| {
                let RowBlocks { address, count, first, .. } = row.blocks;
                let address = address.unwrap_or(Ipv4Addr::UNSPECIFIED);
                first.into_iter().take(count.into()).map(move |first| (of(row), address, first))
            })
            .collect();
        self.model.returned(&blocks);
        let hosts: BTreeSet<Ipv6Addr> = self.model.bindings.iter().map(|b| b.inside.address).collect();
        let mut known: BTreeSet<u128> = hosts.iter().map(|host| self.family.subscriber(*host)).collect();
        known.extend(self.model.subscribers.blocks.iter().map(|block| block.subscriber));
        let model: BTreeSet<_> = known
            .into_iter()
            .map(|one| {
                let (inside, outside) = self.model.sessions_of(one);
                let hosts = hosts.iter().filter(|host| self.family.subscriber(**host) == one).count();
                (one, hosts, self.model.bindings_of(one), inside + outside, outside)
            })
            .collect();
        let real: BTreeSet<_> = rows
            .iter()
            .map(|row| {
                let bindings = row.bindings.map(|count| count as usize);
                (of(row), row.hosts as usize, bindings, row.sessions as usize, row.from_outside as usize)
            })
            .collect();
        assert_eq!(real, model, "subscribers, the real ones left");
    }

    /// The same bindings and sessions on both sides, and counters that tell the same.
    fn compare(&mut self) {
        self.compare_subscribers();
        let mut rows = Vec::new();
        assert_eq!(
            self.real.seen().sessions(0, u32::MAX, &Selection::default(), self.now(), &mut rows),
            None
        );
        let mut real: Vec<_> = rows
            .iter()
            .map(|r| {
                let inside = r.inside.map(|inside| self.known_as(r.softwire, inside));
                (r.protocol, inside, r.outside.0, r.remote, r.state, r.ends_in)
            })
            .collect();
        let mut model: Vec<_> = self
            .model
            .sessions
            .iter()
            .map(|s| {
                let trans = if s.state == State::Established { 240 } else { 0 };
                let ends_in = Duration::from_secs(s.started + s.lifetime() + trans - self.model.now / SECOND);
                (s.protocol, s.inside, s.outside, s.remote, name(s), ends_in)
            })
            .collect();
        real.sort();
        model.sort();
        assert_eq!(real, model, "sessions, the real ones left");

        let mut rows = Vec::new();
        assert_eq!(self.real.seen().bindings(0, u32::MAX, &Selection::default(), &mut rows), None);
        let mut real: Vec<_> = rows
            .iter()
            .map(|r| {
                let inside = self.known_as(r.softwire, r.inside);
                (r.protocol, inside, r.outside.0, r.is_static, r.sessions as usize)
            })
            .collect();
        let count = |b: &Binding| {
            self.model
                .sessions
                .iter()
                .filter(|s| s.protocol == b.protocol && s.inside == Some(b.inside))
                .count()
        };
        let mut model: Vec<_> = self
            .model
            .bindings
            .iter()
            .map(|b| (b.protocol, b.inside, b.outside, b.is_static, count(b)))
            .collect();
        real.sort();
        model.sort();
        assert_eq!(real, model, "bindings, the real ones left");

        let occupancy = self.real.seen().occupancy();
        assert_eq!(occupancy.sessions as usize, self.model.sessions.len());
        assert_eq!(
            self.effects.counters.sessions_made - self.effects.counters.sessions_ended,
            u64::from(occupancy.sessions)
        );
        let stored = self.model.sessions.iter().filter(|s| s.state == State::SynStored).count();
        assert_eq!(self.effects.counters.held, stored as u64, "held frames");
        assert_eq!(self.real.seen().quarantined(), self.model.quarantined.len(), "ports in quarantine");
        assert_eq!(self.effects.counters.quarantines_cut_short, self.model.cut_short, "ended early");
    }
}

fn name(session: &Session) -> &'static str {
    match session.state {
        State::Open if session.from_outside => "unanswered",
        State::Open => "open",
        State::SynStored => "outside init, syn stored",
        State::V4Init => "outside init",
        State::V6Init => "inside init",
        State::Established => "established",
        State::V4Fin => "fin from outside",
        State::V6Fin => "fin from inside",
        State::BothFin => "fin from both",
        State::Trans => "trans",
    }
}

fn number(protocol: NatProtocol, v6: bool) -> u8 {
    match protocol {
        NatProtocol::Tcp => TCP,
        NatProtocol::Udp => UDP,
        NatProtocol::Icmp if v6 => ICMPV6,
        NatProtocol::Icmp => ICMPV4,
    }
}

fn packet(
    addresses: Addresses,
    protocol: NatProtocol,
    ([source, destination], direction): ([u16; 2], Direction),
    flags: u8,
) -> Packet {
    let v6 = matches!(addresses, Addresses::V6 { .. });
    let transport = match protocol {
        NatProtocol::Tcp | NatProtocol::Udp => Transport::Ports { source, destination, tcp_flags: flags },
        NatProtocol::Icmp if v6 => Transport::IcmpQuery { kind: 128, code: 0, identifier: source },
        NatProtocol::Icmp => {
            let identifier = if direction == Direction::Out { source } else { destination };
            Transport::IcmpQuery { kind: 8, code: 0, identifier }
        }
    };
    Packet { addresses, protocol: number(protocol, v6), hops: 64, length: 60, transport, ..Packet::EMPTY }
}

pub(crate) fn agree(outcome: Result<Decision, DropReason>, expected: &Expected) {
    match (outcome, expected) {
        (Err(reason), Expected::Refused(reasons)) if reasons.contains(&reason) => {}
        (Ok(STORED), Expected::Stored) => {}
        (Ok(decision), Expected::To(edit)) if decision.action.edit == Some(*edit) => {}
        (outcome, expected) => panic!("the real one says {outcome:?}, the model {expected:?}"),
    }
}
