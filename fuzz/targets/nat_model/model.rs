//! The model: lists, searched from end to end, in the words of RFC 6146 §3.5.

use super::settings::{Family, Settings, ceil};
use super::subscribers::Subscribers;
use sixway_dataplane::nat::{Filtering, NatProtocol};
use sixway_dataplane::parse::{FIN, RST, SYN};
use sixway_dataplane::{DropReason, Edit};
use sixway_wire::{Endpoint4, Endpoint6};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Two addresses.
pub(crate) const POOL: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 0), Ipv4Addr::new(192, 0, 2, 1)];

pub(crate) fn image(address: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(0x64_ff9b << 96 | u128::from(address.to_bits()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
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
pub(crate) struct Session {
    pub(crate) protocol: NatProtocol,
    pub(crate) inside: Option<Endpoint6>,
    pub(crate) outside: Endpoint4,
    pub(crate) remote: Endpoint4,
    pub(crate) state: State,
    /// The second its lifetime last started.
    pub(crate) started: u64,
    /// Whether a packet from outside made it, and none from inside has answered it since.
    pub(crate) from_outside: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub(crate) protocol: NatProtocol,
    pub(crate) inside: Endpoint6,
    pub(crate) outside: Endpoint4,
    pub(crate) is_static: bool,
}

impl Session {
    pub(crate) fn lifetime(&self) -> u64 {
        match (self.protocol, self.state) {
            (NatProtocol::Udp, _) => 5 * 60,
            (NatProtocol::Icmp, _) => 60,
            (NatProtocol::Tcp, State::SynStored) => 6,
            (NatProtocol::Tcp, State::Established | State::V4Fin | State::V6Fin) => 2 * 60 * 60,
            (NatProtocol::Tcp, _) => 4 * 60,
        }
    }

    pub(crate) fn is_over(&self, now: u64) -> bool {
        now / SECOND >= self.started + self.lifetime()
    }

    /// RFC 6146 §3.5.2.2, in the order of its text.
    /// RFC 7857 §7: once a packet from inside has answered a session from outside, it is as one from inside; §7.1: a RST from inside
    /// refreshes nothing.
    pub(crate) fn packet(&mut self, from_v6: bool, flags: u8, now: u64) {
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
                restart = !(from_v6 && rst);
            }
            State::V6Fin => {
                if !from_v6 && fin {
                    self.state = State::BothFin;
                }
                restart = !(from_v6 && rst);
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
        if from_v6 && matches!(self.state, State::Open | State::Established) {
            self.from_outside = false;
        }
    }
}

pub(crate) const SECOND: u64 = 1_000_000_000;

/// A port that was a host's until lately (RFC 6888 REQ-8).
#[derive(Clone, Debug)]
pub(crate) struct Quarantined {
    pub(crate) protocol: NatProtocol,
    pub(crate) outside: Endpoint4,
    /// The subscriber that it belonged to.
    pub(crate) subscriber: u128,
    /// The second in which it may be another one's.
    pub(crate) until: u64,
}

impl Quarantined {
    pub(crate) fn is_of(&self, protocol: NatProtocol, outside: Endpoint4) -> bool {
        self.protocol == protocol && self.outside == outside
    }
}

/// What the model expects of a packet.
#[derive(Debug)]
pub(crate) enum Expected {
    Refused(Vec<DropReason>),
    Stored,
    To(Edit),
}

pub(crate) struct Model {
    pub(crate) settings: Settings,
    pub(crate) now: u64,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) sessions: Vec<Session>,
    /// The outside address that a host was given with the oldest of the bindings that it has had without a break.
    pub(crate) homes: BTreeMap<Ipv6Addr, Ipv4Addr>,
    pub(crate) quarantined: Vec<Quarantined>,
    /// How many ports another subscriber got before their time.
    pub(crate) cut_short: u64,
    /// Static bindings of other workers' hosts, with ports of this one.
    pub(crate) reserved: Vec<Binding>,
    /// Addresses that no further host gets.
    pub(crate) draining: Vec<Ipv4Addr>,
    /// What subscribers have in addition: rates, and port blocks.
    pub(crate) subscribers: Subscribers,
}

impl Model {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            now: 0,
            bindings: Vec::new(),
            sessions: Vec::new(),
            homes: BTreeMap::new(),
            quarantined: Vec::new(),
            cut_short: 0,
            reserved: Vec::new(),
            draining: Vec::new(),
            subscribers: Subscribers::default(),
        }
    }

    pub(crate) fn subscriber(&self, host: Ipv6Addr) -> u128 {
        self.settings.family.subscriber(host)
    }

    /// The addresses at which a host may get a port: its own, or those that are not being drained.
    pub(crate) fn addresses(&self, host: Ipv6Addr) -> Vec<Ipv4Addr> {
        let blocks = self.subscribers.block_address(self.subscriber(host));
        match blocks.or_else(|| self.homes.get(&host).copied()) {
            Some(home) => vec![home],
            None => POOL.into_iter().filter(|one| !self.draining.contains(one)).collect(),
        }
    }

    pub(crate) fn binding_of_inside(&self, protocol: NatProtocol, inside: Endpoint6) -> Option<&Binding> {
        self.bindings.iter().find(|b| b.protocol == protocol && b.inside == inside)
    }

    pub(crate) fn binding_of_outside(&self, protocol: NatProtocol, outside: Endpoint4) -> Option<&Binding> {
        self.bindings.iter().find(|b| b.protocol == protocol && b.outside == outside)
    }

    pub(crate) fn is_free(&self, protocol: NatProtocol, outside: Endpoint4) -> bool {
        let is_it = |b: &Binding| b.protocol == protocol && b.outside == outside;
        self.binding_of_outside(protocol, outside).is_none() && !self.reserved.iter().any(is_it)
    }

    pub(crate) fn may_be_given(&self, protocol: NatProtocol, outside: Endpoint4) -> bool {
        let is_it = |q: &Quarantined| q.protocol == protocol && q.outside == outside;
        self.is_free(protocol, outside) && !self.quarantined.iter().any(is_it)
    }

    /// The quarantined ports of which an inside endpoint may get one if no other is left: its own subscriber's, or else those that are there
    /// longest.
    fn early(&self, protocol: NatProtocol, inside: Endpoint6) -> Vec<Quarantined> {
        let addresses = self.addresses(inside.address);
        let is_usable = |q: &&Quarantined| {
            q.protocol == protocol
                && addresses.contains(&q.outside.address)
                && (q.outside.port >= 1_024 || inside.port < 1_024 || protocol == NatProtocol::Icmp)
        };
        let usable: Vec<_> = self.quarantined.iter().filter(is_usable).cloned().collect();
        let is_own = |q: &&Quarantined| q.subscriber == self.subscriber(inside.address);
        let own: Vec<_> = usable.iter().filter(is_own).cloned().collect();
        if !own.is_empty() {
            return own;
        }
        // RFC 4787 REQ-3 b: of the inside port's range, if that has any.
        let is_low = inside.port < 1_024 && protocol != NatProtocol::Icmp;
        let is_of_range = |q: &&Quarantined| (q.outside.port < 1_024) == is_low;
        let range: Vec<_> = usable.iter().filter(is_of_range).cloned().collect();
        let range = if range.is_empty() { usable } else { range };
        let first = range.iter().map(|q| q.until).min();
        range.into_iter().filter(|q| Some(q.until) == first).collect()
    }

    /// Whether a port is left at the host's address, or at any if it has none.
    fn is_port_left(&self, protocol: NatProtocol, inside: Endpoint6) -> bool {
        let has_port = |address| self.usable(protocol, address, inside.port).iter().any(|p| !p.is_empty());
        self.addresses(inside.address).into_iter().any(has_port)
    }

    /// A quarantined port is given.
    fn give_early(&mut self, protocol: NatProtocol, inside: Endpoint6, outside: Endpoint4) -> bool {
        let Some(at) = self.quarantined.iter().position(|q| q.protocol == protocol && q.outside == outside)
        else {
            return false;
        };
        assert!(!self.is_port_left(protocol, inside), "{outside} for {inside}: another port is free");
        let early = self.early(protocol, inside);
        assert!(early.iter().any(|q| q.outside == outside), "{outside} for {inside} is not of {early:?}");
        let given = self.quarantined.remove(at);
        self.cut_short += u64::from(given.subscriber != self.subscriber(inside.address));
        true
    }

    /// Free ports of an address that an inside port may get, the preferred range first.
    pub(crate) fn usable(&self, protocol: NatProtocol, address: Ipv4Addr, inside_port: u16) -> Vec<Vec<u16>> {
        let free = |low: bool| -> Vec<u16> {
            let in_range = self.settings.ports().filter(|port| (*port < 1_024) == low);
            in_range.filter(|port| self.may_be_given(protocol, Endpoint4::new(address, *port))).collect()
        };
        match protocol {
            NatProtocol::Icmp => {
                vec![
                    self.settings
                        .ports()
                        .filter(|p| self.may_be_given(protocol, Endpoint4::new(address, *p)))
                        .collect(),
                ]
            }
            _ if inside_port < 1_024 => vec![free(true), free(false)],
            _ => vec![free(false)],
        }
    }

    /// RFC 6146 §3.5.1.1 and §3.5.2.3, RFC 7857 §4.
    pub(crate) fn check_lawful(&self, protocol: NatProtocol, inside: Endpoint6, outside: Endpoint4) {
        assert!(
            POOL.contains(&outside.address) && self.settings.is_ours(outside.port),
            "{outside} is not the pool's"
        );
        assert!(self.is_free(protocol, outside), "{outside} is in use");
        let on = |address| self.usable(protocol, address, inside.port);
        let addresses = self.addresses(inside.address);
        assert!(addresses.contains(&outside.address), "{inside} has {addresses:?} and got {outside}");
        // The best range that the address has, or for a host without one, that any address has.
        let best = |address| on(address).iter().position(|ports| !ports.is_empty());
        let range = addresses.into_iter().filter_map(best).min();
        let range = &on(outside.address)[range.unwrap()];
        assert!(range.contains(&outside.port), "{outside} for {inside} is not of {range:?}");
        if protocol == NatProtocol::Udp && range.iter().any(|port| port % 2 == inside.port % 2) {
            assert_eq!(outside.port % 2, inside.port % 2, "parity of {outside} for {inside}");
        }
    }

    pub(crate) fn bind(&mut self, binding: Binding) {
        self.homes.entry(binding.inside.address).or_insert(binding.outside.address);
        self.bindings.push(binding);
        self.look_at_blocks();
    }

    /// Dynamic bindings end with the last session (§3.1) that a packet from inside made or answered (RFC 7857 §7), and the others with them. Their
    /// ports are quarantined.
    pub(crate) fn tidy(&mut self) {
        let is_of = |s: &Session, b: &Binding| {
            s.protocol == b.protocol && s.outside == b.outside && s.inside == Some(b.inside)
        };
        let sessions = &self.sessions;
        let is_kept = |b: &Binding| b.is_static || sessions.iter().any(|s| is_of(s, b) && !s.from_outside);
        let (kept, over): (Vec<_>, Vec<_>) = self.bindings.iter().cloned().partition(is_kept);
        self.bindings = kept;
        for binding in over {
            self.quarantine(&binding);
            self.sessions.retain_mut(|s| {
                let is_its = is_of(s, &binding);
                if is_its && s.state == State::SynStored {
                    s.inside = None;
                }
                !is_its || s.state == State::SynStored
            });
        }
        let bindings = &self.bindings;
        self.homes.retain(|host, _| bindings.iter().any(|b| b.inside.address == *host));
        self.look_at_blocks();
        self.forget_subscribers();
    }

    pub(crate) fn forget_subscribers(&mut self) {
        let (subscribers, settings) = (&mut self.subscribers, self.settings);
        subscribers
            .forget(|one| self.bindings.iter().any(|b| settings.family.subscriber(b.inside.address) == one));
    }

    /// A dynamic binding has ended.
    pub(crate) fn quarantine(&mut self, binding: &Binding) {
        if self.settings.filtering != Filtering::EndpointIndependent || binding.protocol == NatProtocol::Tcp {
            return;
        }
        self.quarantined.push(Quarantined {
            protocol: binding.protocol,
            outside: binding.outside,
            subscriber: self.subscriber(binding.inside.address),
            until: ceil(self.now) + 120,
        });
    }

    /// Time passes: how many stored SYNs are to be answered, and connections to be probed.
    pub(crate) fn wait(&mut self, time: u64) -> (usize, usize) {
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
        self.quarantined.retain(|q| q.until > now / SECOND);
        self.look_at_blocks();
        (unanswered, probes)
    }

    pub(crate) fn admits(&self, binding: &Binding, remote: Endpoint4) -> bool {
        let by_address = |s: &Session| {
            s.protocol == binding.protocol
                && s.outside == binding.outside
                && s.remote.address == remote.address
                && s.state != State::SynStored
        };
        binding.is_static
            || match self.settings.filtering {
                Filtering::EndpointIndependent => true,
                Filtering::AddressDependent => self.sessions.iter().any(by_address),
                Filtering::AddressAndPortDependent => self.has_session(binding, remote),
            }
    }

    /// Whether packets of a binding and a remote endpoint crossed.
    pub(crate) fn has_session(&self, binding: &Binding, remote: Endpoint4) -> bool {
        self.sessions.iter().any(|s| {
            s.protocol == binding.protocol
                && s.outside == binding.outside
                && s.remote == remote
                && s.state != State::SynStored
        })
    }

    pub(crate) fn is_full(&self) -> bool {
        self.sessions.len() == self.settings.most_sessions()
    }

    /// A quarter of the table is kept for those inside.
    pub(crate) fn is_full_for_outside(&self) -> bool {
        let from_outside = self.sessions.iter().filter(|session| session.from_outside).count();
        from_outside == self.settings.most_sessions() - self.settings.most_sessions() / 4
    }

    pub(crate) fn open(&mut self, binding: &Binding, remote: Endpoint4, state: State, from_outside: bool) {
        self.sessions.push(Session {
            protocol: binding.protocol,
            inside: Some(binding.inside),
            outside: binding.outside,
            remote,
            state,
            started: self.now.div_ceil(SECOND),
            from_outside,
        });
    }

    /// A packet from inside. `real` is the outside endpoint that the real NAT64 took, if it took one.
    pub(crate) fn out(
        &mut self,
        protocol: NatProtocol,
        inside: Endpoint6,
        remote: Endpoint4,
        flags: u8,
        real: Option<Endpoint4>,
    ) -> Expected {
        let family = self.settings.family;
        let to = |outside: Endpoint4| {
            let port = if protocol == NatProtocol::Icmp { outside.port } else { remote.port };
            let destination = Endpoint4::new(remote.address, port);
            Expected::To(match family {
                Family::Six => Edit::Translate6To4 { source: outside, destination, keep_ports: false },
                Family::Four | Family::Softwire => {
                    Edit::Renumber4 { source: outside, destination, keep_ports: false }
                }
            })
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
        if known.is_none() && self.bindings.len() == self.settings.most_bindings() {
            refusals.push(DropReason::BindingTableFull);
        }
        refusals.extend(self.over_limits(protocol, inside.address, known.is_none()));
        let (is_over, may_be_over) = self.over_rates(inside.address, known.is_none(), real.is_some());
        refusals.extend(is_over.then_some(DropReason::SubscriberLimit));
        let mut may_also: Vec<_> = may_be_over.then_some(DropReason::SubscriberLimit).into_iter().collect();
        if known.is_none() {
            if self.settings.in_blocks() {
                let (is_sure, reasons) = self.without_port_in_blocks(protocol, inside);
                (if is_sure { &mut refusals } else { &mut may_also }).extend(reasons);
            } else if !self.is_port_left(protocol, inside) && self.early(protocol, inside).is_empty() {
                // RFC 7857 §4: a host gets no other address than the one that it has.
                refusals.push(DropReason::PortPoolEmpty);
            }
        }
        let Some(outside) =
            outside.filter(|_| refusals.is_empty() && (real.is_some() || may_also.is_empty()))
        else {
            refusals.append(&mut may_also);
            return Expected::Refused(refusals);
        };
        let binding = known.unwrap_or_else(|| {
            if self.settings.in_blocks() {
                self.give_in_block(protocol, inside, outside);
            } else if !self.give_early(protocol, inside, outside) {
                self.check_lawful(protocol, inside, outside);
            }
            let binding = Binding { protocol, inside, outside, is_static: false };
            self.bind(binding.clone());
            binding
        });
        match waiting {
            Some(waiting) => {
                self.sessions[waiting].inside = Some(inside);
                self.sessions[waiting].from_outside = false;
                self.sessions[waiting].packet(true, flags, now);
            }
            None => {
                let state = if protocol == NatProtocol::Tcp { State::V6Init } else { State::Open };
                self.open(&binding, remote, state, false);
            }
        }
        to(outside)
    }

    pub(crate) fn store(
        &mut self,
        protocol: NatProtocol,
        inside: Option<Endpoint6>,
        outside: Endpoint4,
        remote: Endpoint4,
    ) -> Expected {
        if self.is_full() || self.is_full_for_outside() {
            return Expected::Refused(vec![DropReason::StoredSynsFull]);
        }
        let (state, started, from_outside) = (State::SynStored, self.now.div_ceil(SECOND), true);
        self.sessions.push(Session { protocol, inside, outside, remote, state, started, from_outside });
        Expected::Stored
    }

    /// A packet from outside.
    pub(crate) fn inbound(
        &mut self,
        protocol: NatProtocol,
        outside: Endpoint4,
        remote: Endpoint4,
        flags: u8,
    ) -> Expected {
        let refused = |reason| Expected::Refused(vec![reason]);
        let family = self.settings.family;
        let to = |inside: Endpoint6| {
            let port = if protocol == NatProtocol::Icmp { inside.port } else { remote.port };
            Expected::To(match family {
                Family::Six => {
                    let source = Endpoint6::new(image(remote.address), port);
                    Edit::Translate4To6 { source, destination: inside, keep_ports: false }
                }
                Family::Four | Family::Softwire => {
                    let (source, destination) = (Endpoint4::new(remote.address, port), family.plain(inside));
                    Edit::Renumber4 { source, destination, keep_ports: false }
                }
            })
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
        if !self.admits(&binding, remote) {
            if is_syn {
                return self.store(protocol, Some(binding.inside), outside, remote);
            }
            return refused(DropReason::Filtered);
        }
        if protocol == NatProtocol::Tcp && !is_syn {
            return to(binding.inside);
        }
        let is_refused = self.is_full_for_outside() || !self.may_open_from_outside(binding.inside.address);
        let mut refusals: Vec<_> =
            is_refused.then_some(DropReason::OutsideSessionsFull).into_iter().collect();
        refusals.extend(self.is_full().then_some(DropReason::SessionTableFull));
        if !refusals.is_empty() {
            return Expected::Refused(refusals);
        }
        self.open(&binding, remote, if is_syn { State::V4Init } else { State::Open }, true);
        to(binding.inside)
    }
}
