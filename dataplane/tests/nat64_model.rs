//! A tiny, slow, obvious model of RFC 6146 runs beside the real NAT64: the same packets, the same time, and after every step
//! the same answer and the same bindings and sessions.
//!
//! The model keeps lists and searches them from end to end. Where the RFC leaves a choice (which outside port), it takes the
//! real one's and checks that it is lawful.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use proptest::prelude::*;
use sixway_dataplane::mechanism::nat64::{Arrival, Due, Nat64, Nat64Config, Outcome, Probe};
use sixway_dataplane::nat::{
    Filtering, Inside, NatProtocol, Outside, PoolConfig, Selection, StaticBinding, StaticBindingError,
    Timeouts,
};
use sixway_dataplane::parse::{ACK, Addresses, FIN, Packet, QuotedTuple, RST, SYN, Transport};
use sixway_dataplane::translate::Policy;
use sixway_dataplane::translate::address::Rfc6052;
use sixway_dataplane::{Counters, DropReason, Edit, Instant, PolicyId, Quoted, WorkerId};
use sixway_wire::protocol::{ICMPV4, ICMPV6, TCP, UDP};
use sixway_wire::{Endpoint4, Endpoint6};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const MOST_SESSIONS: usize = 14;
const MOST_BINDINGS: usize = 9;
/// Two addresses with a few ports on either side of 1024, so that each kind runs out now and then.
const POOL: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 0), Ipv4Addr::new(192, 0, 2, 1)];
const PORTS: std::ops::RangeInclusive<u16> = 1_021..=1_026;
const SENDER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 254);

fn image(address: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(0x64_ff9b << 96 | u128::from(address.to_bits()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Open,
    SynStored,
    V4Init,
    V6Init,
    Established,
    V4Fin,
    V6Fin,
    BothFin,
    Trans,
}

#[derive(Clone, Debug)]
struct Session {
    protocol: NatProtocol,
    inside: Option<Endpoint6>,
    outside: Endpoint4,
    remote: Endpoint4,
    state: State,
    /// The second its lifetime last started.
    started: u64,
}

#[derive(Clone, Debug)]
struct Binding {
    protocol: NatProtocol,
    inside: Endpoint6,
    outside: Endpoint4,
    is_static: bool,
}

impl Session {
    fn lifetime(&self) -> u64 {
        match (self.protocol, self.state) {
            (NatProtocol::Udp, _) => 5 * 60,
            (NatProtocol::Icmp, _) => 60,
            (NatProtocol::Tcp, State::SynStored) => 6,
            (NatProtocol::Tcp, State::Established | State::V4Fin | State::V6Fin) => 2 * 60 * 60,
            (NatProtocol::Tcp, _) => 4 * 60,
        }
    }

    fn is_over(&self, now: u64) -> bool {
        now / SECOND >= self.started + self.lifetime()
    }

    /// RFC 6146 §3.5.2.2, in the order of its text.
    fn packet(&mut self, from_v6: bool, flags: u8, now: u64) {
        let rst = flags & RST != 0;
        let syn = flags & SYN != 0 && !rst;
        let fin = flags & FIN != 0 && !rst && !syn;
        let mut restart = false;
        match self.state {
            State::Open => restart = true,
            State::SynStored | State::V4Init => {
                if from_v6 && syn {
                    self.state = State::Established;
                    restart = true;
                }
            }
            State::V6Init => {
                if !from_v6 && syn {
                    self.state = State::Established;
                }
                restart = syn;
            }
            State::Established => {
                if fin {
                    self.state = if from_v6 { State::V6Fin } else { State::V4Fin };
                } else {
                    if rst {
                        self.state = State::Trans;
                    }
                    restart = true;
                }
            }
            State::V4Fin => {
                if from_v6 && fin {
                    self.state = State::BothFin;
                }
                restart = true;
            }
            State::V6Fin => {
                if !from_v6 && fin {
                    self.state = State::BothFin;
                }
                restart = true;
            }
            State::BothFin => {}
            State::Trans => {
                if !rst {
                    self.state = State::Established;
                    restart = true;
                }
            }
        }
        if restart {
            self.started = now.div_ceil(SECOND);
        }
    }
}

const SECOND: u64 = 1_000_000_000;

/// What the model expects of a packet.
#[derive(Debug)]
enum Expected {
    Refused(Vec<DropReason>),
    Stored,
    To(Edit),
}

struct Model {
    filtering: Filtering,
    now: u64,
    bindings: Vec<Binding>,
    sessions: Vec<Session>,
    /// The outside address that a host was given with the oldest of the bindings that it has had without a break.
    homes: BTreeMap<Ipv6Addr, Ipv4Addr>,
}

impl Model {
    fn binding_of_inside(&self, protocol: NatProtocol, inside: Endpoint6) -> Option<&Binding> {
        self.bindings.iter().find(|b| b.protocol == protocol && b.inside == inside)
    }

    fn binding_of_outside(&self, protocol: NatProtocol, outside: Endpoint4) -> Option<&Binding> {
        self.bindings.iter().find(|b| b.protocol == protocol && b.outside == outside)
    }

    fn is_free(&self, protocol: NatProtocol, outside: Endpoint4) -> bool {
        self.binding_of_outside(protocol, outside).is_none()
    }

    /// Free ports of an address that an inside port may get, the preferred range first.
    fn usable(&self, protocol: NatProtocol, address: Ipv4Addr, inside_port: u16) -> Vec<Vec<u16>> {
        let free = |low: bool| -> Vec<u16> {
            let in_range = PORTS.filter(|port| (*port < 1_024) == low);
            in_range.filter(|port| self.is_free(protocol, Endpoint4::new(address, *port))).collect()
        };
        match protocol {
            NatProtocol::Icmp => {
                vec![PORTS.filter(|p| self.is_free(protocol, Endpoint4::new(address, *p))).collect()]
            }
            _ if inside_port < 1_024 => vec![free(true), free(false)],
            _ => vec![free(false)],
        }
    }

    /// RFC 6146 §3.5.1.1 and §3.5.2.3.
    fn check_lawful(&self, protocol: NatProtocol, inside: Endpoint6, outside: Endpoint4) {
        assert!(
            POOL.contains(&outside.address) && PORTS.contains(&outside.port),
            "{outside} is not the pool's"
        );
        assert!(self.is_free(protocol, outside), "{outside} is in use");
        let on = |address| self.usable(protocol, address, inside.port);
        let has_any = |address| on(address).iter().any(|ports| !ports.is_empty());
        let home = self.homes.get(&inside.address).copied();
        let is_home = home == Some(outside.address);
        if let Some(home) = home.filter(|home| has_any(*home)) {
            assert!(is_home, "{inside} has {home} and got {outside}");
        }
        // The best range that the address has, or for a host without one, that any address has.
        let best = |address| on(address).iter().position(|ports| !ports.is_empty());
        let range = if is_home { best(outside.address) } else { POOL.into_iter().filter_map(best).min() };
        let range = &on(outside.address)[range.unwrap()];
        assert!(range.contains(&outside.port), "{outside} for {inside} is not of {range:?}");
        if protocol == NatProtocol::Udp && range.iter().any(|port| port % 2 == inside.port % 2) {
            assert_eq!(outside.port % 2, inside.port % 2, "parity of {outside} for {inside}");
        }
    }

    fn bind(&mut self, binding: Binding) {
        self.homes.entry(binding.inside.address).or_insert(binding.outside.address);
        self.bindings.push(binding);
    }

    /// Dynamic bindings end with their last session (§3.1).
    fn tidy(&mut self) {
        let sessions = &self.sessions;
        self.bindings.retain(|b| {
            b.is_static
                || sessions
                    .iter()
                    .any(|s| s.protocol == b.protocol && s.outside == b.outside && s.inside == Some(b.inside))
        });
        let bindings = &self.bindings;
        self.homes.retain(|host, _| bindings.iter().any(|b| b.inside.address == *host));
    }

    /// Time passes: how many stored SYNs are to be answered, and connections to be probed.
    fn wait(&mut self, time: u64) -> (usize, usize) {
        self.now += time;
        let (mut unanswered, mut probes) = (0, 0);
        let now = self.now;
        self.sessions.retain_mut(|session| {
            let was_established = session.state == State::Established && session.protocol == NatProtocol::Tcp;
            if was_established && session.is_over(now) {
                session.started += session.lifetime();
                session.state = State::Trans;
                probes += usize::from(!session.is_over(now));
            }
            let over = session.is_over(now);
            unanswered += usize::from(over && session.state == State::SynStored);
            !over
        });
        self.tidy();
        (unanswered, probes)
    }

    fn admits(&self, binding: &Binding, remote: Ipv4Addr) -> bool {
        self.filtering == Filtering::EndpointIndependent
            || binding.is_static
            || self.sessions.iter().any(|s| {
                s.protocol == binding.protocol
                    && s.outside == binding.outside
                    && s.remote.address == remote
                    && s.state != State::SynStored
            })
    }

    fn is_full(&self) -> bool {
        self.sessions.len() == MOST_SESSIONS
    }

    fn open(&mut self, binding: &Binding, remote: Endpoint4, state: State) {
        self.sessions.push(Session {
            protocol: binding.protocol,
            inside: Some(binding.inside),
            outside: binding.outside,
            remote,
            state,
            started: self.now.div_ceil(SECOND),
        });
    }

    /// A packet from inside. `real` is the outside endpoint that the real NAT64 took, if it took one.
    fn out(
        &mut self,
        protocol: NatProtocol,
        inside: Endpoint6,
        remote: Endpoint4,
        flags: u8,
        real: Option<Endpoint4>,
    ) -> Expected {
        let to = |outside: Endpoint4| {
            let port = if protocol == NatProtocol::Icmp { outside.port } else { remote.port };
            let destination = Endpoint4::new(remote.address, port);
            Expected::To(Edit::Translate6To4 { source: outside, destination, keep_ports: false })
        };
        let now = self.now;
        let is_it =
            |s: &&mut Session| s.protocol == protocol && s.inside == Some(inside) && s.remote == remote;
        if let Some(session) = self.sessions.iter_mut().find(is_it) {
            session.packet(true, flags, now);
            return to(session.outside);
        }
        let is_syn = flags & SYN != 0 && flags & RST == 0;
        let known = self.binding_of_inside(protocol, inside).cloned();
        if protocol == NatProtocol::Tcp && !is_syn {
            return known.map_or(Expected::Refused(vec![DropReason::NoSession]), |b| to(b.outside));
        }
        let outside = known.as_ref().map(|binding| binding.outside).or(real);
        let waits = |s: &Session| {
            s.protocol == protocol && s.inside.is_none() && Some(s.outside) == outside && s.remote == remote
        };
        let waiting = self.sessions.iter().position(waits);
        let mut refusals = Vec::new();
        if self.is_full() && waiting.is_none() {
            refusals.push(DropReason::SessionTableFull);
        }
        if known.is_none() && self.bindings.len() == MOST_BINDINGS {
            refusals.push(DropReason::BindingTableFull);
        }
        let has_port = |address| self.usable(protocol, address, inside.port).iter().any(|p| !p.is_empty());
        if known.is_none() && !POOL.into_iter().any(has_port) {
            refusals.push(DropReason::PortPoolEmpty);
        }
        let Some(outside) = outside.filter(|_| refusals.is_empty()) else {
            return Expected::Refused(refusals);
        };
        let binding = known.unwrap_or_else(|| {
            self.check_lawful(protocol, inside, outside);
            let binding = Binding { protocol, inside, outside, is_static: false };
            self.bind(binding.clone());
            binding
        });
        match waiting {
            Some(waiting) => {
                self.sessions[waiting].inside = Some(inside);
                self.sessions[waiting].packet(true, flags, now);
            }
            None => {
                let state = if protocol == NatProtocol::Tcp { State::V6Init } else { State::Open };
                self.open(&binding, remote, state);
            }
        }
        to(outside)
    }

    fn store(
        &mut self,
        protocol: NatProtocol,
        inside: Option<Endpoint6>,
        outside: Endpoint4,
        remote: Endpoint4,
    ) -> Expected {
        if self.is_full() {
            return Expected::Refused(vec![DropReason::InboundSyn]);
        }
        let started = self.now.div_ceil(SECOND);
        self.sessions.push(Session { protocol, inside, outside, remote, state: State::SynStored, started });
        Expected::Stored
    }

    /// A packet from outside.
    fn inbound(
        &mut self,
        protocol: NatProtocol,
        outside: Endpoint4,
        remote: Endpoint4,
        flags: u8,
    ) -> Expected {
        let refused = |reason| Expected::Refused(vec![reason]);
        let to = |inside: Endpoint6| {
            let port = if protocol == NatProtocol::Icmp { inside.port } else { remote.port };
            let source = Endpoint6::new(image(remote.address), port);
            Expected::To(Edit::Translate4To6 { source, destination: inside, keep_ports: false })
        };
        let now = self.now;
        let is_it = |s: &&mut Session| s.protocol == protocol && s.outside == outside && s.remote == remote;
        if let Some(session) = self.sessions.iter_mut().find(is_it) {
            if session.state == State::SynStored {
                return refused(DropReason::SynAwaitsInside);
            }
            session.packet(false, flags, now);
            return to(session.inside.unwrap());
        }
        let is_syn = protocol == NatProtocol::Tcp && flags & SYN != 0 && flags & RST == 0;
        let Some(binding) = self.binding_of_outside(protocol, outside).cloned() else {
            return match protocol {
                NatProtocol::Tcp if is_syn => self.store(protocol, None, outside, remote),
                NatProtocol::Tcp => refused(DropReason::NoSession),
                NatProtocol::Udp | NatProtocol::Icmp => refused(DropReason::NoBinding),
            };
        };
        if !self.admits(&binding, remote.address) {
            if is_syn {
                return self.store(protocol, Some(binding.inside), outside, remote);
            }
            return refused(DropReason::Filtered);
        }
        if protocol == NatProtocol::Tcp && !is_syn {
            return to(binding.inside);
        }
        if self.is_full() {
            return refused(DropReason::SessionTableFull);
        }
        self.open(&binding, remote, if is_syn { State::V4Init } else { State::Open });
        to(binding.inside)
    }
}

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    Out {
        protocol: NatProtocol,
        host: u8,
        port: u16,
        remote: u8,
        remote_port: u16,
        flags: u8,
    },
    In {
        protocol: NatProtocol,
        outside: u8,
        remote: u8,
        remote_port: u16,
        flags: u8,
    },
    ErrorFromOutside {
        protocol: NatProtocol,
        outside: u8,
        remote: u8,
        remote_port: u16,
    },
    ErrorFromInside {
        protocol: NatProtocol,
        host: u8,
        port: u16,
        remote: u8,
        remote_port: u16,
    },
    /// One more packet of a session.
    Again {
        session: u8,
        from_inside: bool,
        flags: u8,
    },
    Wait(u64),
    EndSession(u8),
    EndBinding(u8),
    AddStatic {
        protocol: NatProtocol,
        host: u8,
        port: u16,
        outside: u8,
    },
    RemoveStatic(u8),
}

fn protocol() -> impl Strategy<Value = NatProtocol> {
    prop_oneof![4 => Just(NatProtocol::Tcp), 2 => Just(NatProtocol::Udp), 1 => Just(NatProtocol::Icmp)]
}

fn flags() -> impl Strategy<Value = u8> {
    prop_oneof![
        4 => Just(SYN),
        3 => Just(SYN | ACK),
        4 => Just(ACK),
        3 => Just(FIN | ACK),
        2 => Just(RST),
        1 => any::<u8>(),
    ]
}

fn inside_port() -> impl Strategy<Value = u16> {
    prop_oneof![Just(80u16), Just(81), Just(5_000), Just(5_001)]
}

fn remote_port() -> impl Strategy<Value = u16> {
    prop_oneof![3 => Just(80u16), 1 => Just(1_024)]
}

fn time() -> impl Strategy<Value = u64> {
    let exact = prop_oneof![Just(6u64), Just(60), Just(240), Just(300), Just(7_200), Just(7_440), Just(1)];
    prop_oneof![
        3 => exact.prop_map(|seconds| seconds * SECOND),
        1 => (0..10_000u64).prop_map(|seconds| seconds * SECOND),
        2 => 0..8 * SECOND,
        1 => Just(SECOND - 1),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let (host, remote, any_index) = (0u8..3, 0u8..4, any::<u8>());
    prop_oneof![
        10 => (protocol(), host.clone(), inside_port(), remote.clone(), remote_port(), flags()).prop_map(
            |(protocol, host, port, remote, remote_port, flags)| Step::Out { protocol, host, port, remote, remote_port, flags }),
        10 => (protocol(), any_index, remote.clone(), remote_port(), flags()).prop_map(
            |(protocol, outside, remote, remote_port, flags)| Step::In { protocol, outside, remote, remote_port, flags }),
        1 => (protocol(), any::<u8>(), remote.clone(), remote_port()).prop_map(
            |(protocol, outside, remote, remote_port)| Step::ErrorFromOutside { protocol, outside, remote, remote_port }),
        1 => (protocol(), host.clone(), inside_port(), remote, remote_port()).prop_map(
            |(protocol, host, port, remote, remote_port)| Step::ErrorFromInside { protocol, host, port, remote, remote_port }),
        20 => (any::<u8>(), any::<bool>(), flags()).prop_map(
            |(session, from_inside, flags)| Step::Again { session, from_inside, flags }),
        6 => time().prop_map(Step::Wait),
        1 => any::<u8>().prop_map(Step::EndSession),
        1 => any::<u8>().prop_map(Step::EndBinding),
        1 => (protocol(), host, inside_port(), any::<u8>()).prop_map(
            |(protocol, host, port, outside)| Step::AddStatic { protocol, host, port, outside }),
        1 => any::<u8>().prop_map(Step::RemoveStatic),
    ]
}

fn host(number: u8) -> Ipv6Addr {
    Ipv6Addr::from_bits((0x2001_0db8 << 96) + u128::from(number) + 1)
}

/// The third and fourth remote are the pool's own addresses: hairpins.
fn remote(number: u8, port: u16, protocol: NatProtocol) -> Endpoint4 {
    let address = match number {
        0 | 1 => Ipv4Addr::new(203, 0, 113, 1 + number),
        _ => POOL[usize::from(number - 2)],
    };
    Endpoint4::new(address, if protocol == NatProtocol::Icmp { 0 } else { port })
}

/// The real one and the model, side by side.
struct Pair {
    real: Nat64,
    counters: Counters,
    model: Model,
}

const ERROR: Transport = Transport::IcmpError { kind: 3, code: 1 };

impl Pair {
    fn new(filtering: Filtering, seed: [u64; 2]) -> Self {
        let config = Nat64Config {
            prefix: Rfc6052::new("64:ff9b::/96".parse().unwrap(), true).unwrap(),
            pool: PoolConfig { addresses: vec!["192.0.2.0/31".parse().unwrap()], ports: vec![PORTS] },
            filtering,
            static_bindings: Vec::new(),
            timeouts: Timeouts::default(),
            max_bindings: MOST_BINDINGS as u32,
            max_sessions: MOST_SESSIONS as u32,
            policy: Policy::default(),
        };
        let real = Nat64::new(&config, PolicyId(0), WorkerId(0), 1, seed);
        let model =
            Model { filtering, now: 0, bindings: Vec::new(), sessions: Vec::new(), homes: BTreeMap::new() };
        Self { real, counters: Counters::default(), model }
    }

    fn now(&self) -> Instant {
        Instant(self.model.now)
    }

    fn decide(&mut self, packet: &Packet, quoted: Option<QuotedTuple>) -> Result<Outcome, DropReason> {
        let mut probe = Probe::EMPTY;
        self.real.probe(packet, &mut probe);
        self.real.warm(&mut probe);
        let arrival = Arrival { packet, quoted, octets: &[0x45; 40], segments: 1 };
        let now = self.now();
        let outcome = self.real.decide(&arrival, &probe, now, &mut self.counters);
        if outcome == Ok(Outcome::Stored) {
            self.counters.held += 1;
        }
        outcome
    }

    /// An outside endpoint: mostly one that is in use.
    fn outside(&self, protocol: NatProtocol, number: u8) -> Endpoint4 {
        let used: Vec<_> = self.model.bindings.iter().filter(|b| b.protocol == protocol).collect();
        match used.get(usize::from(number) % 8) {
            Some(binding) => binding.outside,
            None => Endpoint4::new(POOL[usize::from(number % 2)], PORTS.start() + u16::from(number / 2 % 6)),
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Out { protocol, host: number, port, remote: to, remote_port, flags } => {
                let inside = Endpoint6::new(host(number), port);
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
                let inside = Endpoint6::new(host(number), port);
                self.error_from_inside(protocol, inside, remote(from, remote_port, protocol));
            }
            Step::Again { session, from_inside, flags } => self.again(session, from_inside, flags),
            Step::Wait(time) => self.wait(time),
            Step::EndSession(number) => self.end_session(number),
            Step::EndBinding(number) => self.end_binding(number),
            Step::AddStatic { protocol, host: number, port, outside } => {
                let outside = self.outside(protocol, outside);
                self.add_static(protocol, Endpoint6::new(host(number), port), outside);
            }
            Step::RemoveStatic(number) => self.remove_static(number),
        }
        self.compare();
    }

    fn out(&mut self, protocol: NatProtocol, inside: Endpoint6, remote: Endpoint4, flags: u8) {
        let addresses = Addresses::V6 { source: inside.address, destination: image(remote.address) };
        let packet = packet(addresses, protocol, [inside.port, remote.port], flags);
        let outcome = self.decide(&packet, None);
        let real = match outcome {
            Ok(Outcome::Translate(decision)) => match decision.action.edit {
                Edit::Translate6To4 { source, .. } => Some(source),
                Edit::Translate4To6 { .. } => None,
            },
            Ok(Outcome::Stored) | Err(_) => None,
        };
        let expected = self.model.out(protocol, inside, remote, flags, real);
        agree(outcome, &expected);
    }

    fn inbound(&mut self, protocol: NatProtocol, outside: Endpoint4, remote: Endpoint4, flags: u8) {
        let addresses = Addresses::V4 { source: remote.address, destination: outside.address };
        let packet = packet(addresses, protocol, [remote.port, outside.port], flags);
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

    /// RFC 6146 §3.6.1, IPv4 to IPv6: the BIB alone decides, unless packets are filtered.
    fn error_from_outside(&mut self, protocol: NatProtocol, outside: Endpoint4, remote: Endpoint4) {
        let addresses = Addresses::V4 { source: SENDER, destination: outside.address };
        let packet = Packet { addresses, protocol: ICMPV4, transport: ERROR, ..Packet::EMPTY };
        let quoted =
            QuotedTuple::V4 { source: outside, destination: remote, protocol: number(protocol, false) };
        let outcome = self.decide(&packet, Some(quoted));
        let binding = self.model.binding_of_outside(protocol, outside);
        let Some(binding) = binding.filter(|binding| self.model.admits(binding, remote.address)) else {
            assert_eq!(outcome, Err(DropReason::NoSessionForError));
            return;
        };
        let Ok(Outcome::Translate(decision)) = outcome else { panic!("{outcome:?}") };
        let Edit::Translate4To6 { source, destination, .. } = decision.action.edit else { panic!() };
        assert_eq!((source.address, destination.address), (image(SENDER), binding.inside.address));
        let port = if protocol == NatProtocol::Icmp { binding.inside.port } else { remote.port };
        let destination = Endpoint6::new(image(remote.address), port);
        assert_eq!(
            decision.quoted,
            Some(Quoted::V6 { source: binding.inside, destination, keep_ports: false })
        );
    }

    fn error_from_inside(&mut self, protocol: NatProtocol, inside: Endpoint6, remote: Endpoint4) {
        let router = host(200);
        let addresses = Addresses::V6 { source: router, destination: image(remote.address) };
        let packet = Packet { addresses, protocol: ICMPV6, transport: ERROR, ..Packet::EMPTY };
        let source = Endpoint6::new(image(remote.address), remote.port);
        let quoted = QuotedTuple::V6 { source, destination: inside, protocol: number(protocol, true) };
        let outcome = self.decide(&packet, Some(quoted));
        let Some(binding) = self.model.binding_of_inside(protocol, inside) else {
            assert_eq!(outcome, Err(DropReason::NoSessionForError));
            return;
        };
        let Ok(Outcome::Translate(decision)) = outcome else { panic!("{outcome:?}") };
        let Edit::Translate6To4 { source, destination, .. } = decision.action.edit else { panic!() };
        assert_eq!((source.address, destination.address), (binding.outside.address, remote.address));
        let port = if protocol == NatProtocol::Icmp { binding.outside.port } else { remote.port };
        let source = Endpoint4::new(remote.address, port);
        let destination = binding.outside;
        assert_eq!(decision.quoted, Some(Quoted::V4 { source, destination, keep_ports: false }));
    }

    fn wait(&mut self, time: u64) {
        let expected = self.model.wait(time);
        let (mut unanswered, mut probes) = (0, 0);
        let now = self.now();
        self.real.expire(now, usize::MAX, &mut self.counters, |due| match due {
            Due::UnansweredSyn(_) => unanswered += 1,
            Due::Probe(_) => probes += 1,
        });
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
        assert!(self.real.end_session(protocol, Inside(inside), remote, &mut self.counters));
        self.model.sessions.remove(at);
        self.model.tidy();
    }

    fn end_binding(&mut self, number: u8) {
        if self.model.bindings.is_empty() {
            return;
        }
        let Binding { protocol, inside, outside, is_static } =
            self.model.bindings[usize::from(number) % self.model.bindings.len()];
        let ended = self.real.end_binding(protocol, Outside(outside), usize::MAX, &mut self.counters);
        assert_eq!(ended, (!is_static).then_some(true));
        if !is_static {
            self.model.sessions.retain(|s| s.protocol != protocol || s.inside != Some(inside));
            self.model.tidy();
        }
    }

    fn add_static(&mut self, protocol: NatProtocol, inside: Endpoint6, outside: Endpoint4) {
        let made = self.real.add_static(&StaticBinding {
            protocol,
            inside: Inside(inside),
            outside: Outside(outside),
        });
        let mut faults = Vec::new();
        if self.model.binding_of_inside(protocol, inside).is_some() {
            faults.push(StaticBindingError::InsideInUse);
        }
        if !self.model.is_free(protocol, outside) {
            faults.push(StaticBindingError::OutsideInUse);
        }
        if self.model.bindings.len() == MOST_BINDINGS {
            faults.push(StaticBindingError::TableFull);
        }
        match made {
            Ok(()) => {
                assert_eq!(faults, []);
                self.model.bind(Binding { protocol, inside, outside, is_static: true });
            }
            Err(fault) => assert!(faults.contains(&fault), "{fault:?} is not of {faults:?}"),
        }
    }

    fn remove_static(&mut self, number: u8) {
        let made: Vec<usize> =
            (0..self.model.bindings.len()).filter(|at| self.model.bindings[*at].is_static).collect();
        if made.is_empty() {
            return;
        }
        let at = made[usize::from(number) % made.len()];
        let Binding { protocol, inside, outside, .. } = self.model.bindings[at];
        let binding = StaticBinding { protocol, inside: Inside(inside), outside: Outside(outside) };
        assert_eq!(self.real.remove_static(&binding, usize::MAX, &mut self.counters), Some(true));
        self.model.bindings.remove(at);
        self.model.sessions.retain(|s| s.protocol != protocol || s.inside != Some(inside));
        self.model.tidy();
    }

    /// The same bindings and sessions on both sides, and counters that tell the same.
    fn compare(&self) {
        let mut rows = Vec::new();
        assert_eq!(self.real.sessions(0, u32::MAX, &Selection::default(), self.now(), &mut rows), None);
        let mut real: Vec<_> = rows
            .iter()
            .map(|r| (r.protocol, r.inside.map(|i| i.0), r.outside.0, r.remote, r.state, r.ends_in))
            .collect();
        let mut model: Vec<_> = self
            .model
            .sessions
            .iter()
            .map(|s| {
                let trans = if s.state == State::Established { 240 } else { 0 };
                let ends_in = Duration::from_secs(s.started + s.lifetime() + trans - self.model.now / SECOND);
                (s.protocol, s.inside, s.outside, s.remote, name(s.state), ends_in)
            })
            .collect();
        real.sort();
        model.sort();
        assert_eq!(real, model, "sessions, the real ones left");

        let mut rows = Vec::new();
        assert_eq!(self.real.bindings(0, u32::MAX, &Selection::default(), &mut rows), None);
        let mut real: Vec<_> = rows
            .iter()
            .map(|r| (r.protocol, r.inside.0, r.outside.0, r.is_static, r.sessions as usize))
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

        let occupancy = self.real.occupancy();
        assert_eq!(occupancy.sessions as usize, self.model.sessions.len());
        assert_eq!(self.counters.sessions_made - self.counters.sessions_ended, u64::from(occupancy.sessions));
        let stored = self.model.sessions.iter().filter(|s| s.state == State::SynStored).count();
        assert_eq!(self.counters.held, stored as u64, "held frames");
    }
}

fn name(state: State) -> &'static str {
    match state {
        State::Open => "open",
        State::SynStored => "v4 init, syn stored",
        State::V4Init => "v4 init",
        State::V6Init => "v6 init",
        State::Established => "established",
        State::V4Fin => "v4 fin rcv",
        State::V6Fin => "v6 fin rcv",
        State::BothFin => "v6 fin + v4 fin rcv",
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

fn packet(addresses: Addresses, protocol: NatProtocol, [source, destination]: [u16; 2], flags: u8) -> Packet {
    let v6 = matches!(addresses, Addresses::V6 { .. });
    let transport = match protocol {
        NatProtocol::Tcp | NatProtocol::Udp => Transport::Ports { source, destination, tcp_flags: flags },
        NatProtocol::Icmp if v6 => Transport::IcmpQuery { kind: 128, code: 0, identifier: source },
        NatProtocol::Icmp => Transport::IcmpQuery { kind: 8, code: 0, identifier: destination },
    };
    Packet { addresses, protocol: number(protocol, v6), hops: 64, length: 60, transport, ..Packet::EMPTY }
}

fn agree(outcome: Result<Outcome, DropReason>, expected: &Expected) {
    match (outcome, expected) {
        (Err(reason), Expected::Refused(reasons)) if reasons.contains(&reason) => {}
        (Ok(Outcome::Stored), Expected::Stored) => {}
        (Ok(Outcome::Translate(decision)), Expected::To(edit)) if decision.action.edit == *edit => {}
        (outcome, expected) => panic!("the real one says {outcome:?}, the model {expected:?}"),
    }
}

fn run(filtering: Filtering, seed: [u64; 2], steps: &[Step]) {
    let mut pair = Pair::new(filtering, seed);
    for step in steps {
        pair.step(step);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn with_endpoint_independent_filtering_the_real_nat64_does_what_the_model_does(
        seed: [u64; 2],
        steps in prop::collection::vec(step(), 1..150),
    ) {
        run(Filtering::EndpointIndependent, seed, &steps);
    }

    #[test]
    fn with_address_dependent_filtering_the_real_nat64_does_what_the_model_does(
        seed: [u64; 2],
        steps in prop::collection::vec(step(), 1..150),
    ) {
        run(Filtering::AddressDependent, seed, &steps);
    }
}
