//! The client's state machine.

use super::action::{Action, ClientState, Port};
use super::chance::Chance;
use super::discovery::{DISCOVERY, Discovery};
use super::exchange::{ATTEMPTS, Answer, Due, Exchange, Question};
use super::interval::Learning;
use super::qualification::{Qualification, Qualified};
use super::refused::Refused;
use super::settings::{Local, ServerAddresses, Settings, Way};
use super::silence::Silence;
use super::status::{NatKind, Phase, PortChoice, Status};
use super::why::Why;
use core::time::Duration;
use sixway_dataplane::Instant;
use sixway_dataplane::mechanism::teredo::PortRule;
use sixway_wire::Endpoint4;
use sixway_wire::teredo::{TeredoAddress, TeredoInterface, bubble};
use std::collections::VecDeque;

/// The first pause after all servers have failed; it doubles each time.
pub const FIRST_PAUSE: Duration = Duration::from_secs(8);
/// The longest pause.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// A wake-up that is late by more than this was a suspended host: it may be in another network.
pub const LATE: Duration = Duration::from_secs(10);
/// A host that slept longer may be in another network.
pub const SUSPENDED: Duration = Duration::from_secs(5);
/// The shortest interval, used if the mapping changes repeatedly.
pub const SHORTEST_INTERVAL: Duration = Duration::from_secs(5);
/// The least time between two solicitations outside of the refresh interval.
pub const DOUBT_INTERVAL: Duration = Duration::from_secs(5);
/// Consecutive answers with a different mapping each, after which the server is asked again at the usual time.
const DOUBTS: u8 = 3;
/// Changes of state in one step.
const MOST_TICKS: u8 = 4;
/// Actions that wait for the daemon.
const MOST_ACTIONS: usize = 64;

/// The maintenance of an address (RFC 4380 §5.2.5).
#[derive(Clone, Copy, Debug)]
struct Maintenance {
    due: Instant,
    exchange: Option<Exchange>,
    /// A changed mapping that one answer has reported.
    changed: Option<Endpoint4>,
    doubts: u8,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Stopped,
    Qualifying(Qualification),
    Qualified(Maintenance),
    Waiting(Instant),
}

/// Counters for `show`.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    mapping_changes: u64,
    changes_unconfirmed: u64,
    refused: u64,
    last_refused: Option<Refused>,
}

/// A Teredo client.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    chance: Chance,
    local: Option<Local>,
    started: bool,
    native: bool,
    state: State,
    in_use: Option<ClientState>,
    /// The address that was used last: its random bits are used again where the rest is the same.
    last: Option<TeredoAddress>,
    why: Option<Why>,
    /// The index of the current server.
    at: usize,
    /// Servers of this round that have failed, and those of them that were silent.
    failed: (usize, usize),
    rounds: u32,
    nat: NatKind,
    ports: PortChoice,
    interval: Duration,
    answered: Option<Instant>,
    /// When the mapping changed last.
    changed: Option<Instant>,
    key_expires: bool,
    counts: Counts,
    probe: Option<Exchange>,
    learning: Option<Learning>,
    discovery: Option<Discovery>,
    silence: Silence,
    /// When it was last called as each second, and how long this host had slept since its start.
    seen: Option<(Instant, Duration)>,
    /// The route to its servers; `None`: not known yet.
    way: Option<Option<Way>>,
    actions: VecDeque<Action>,
}

impl Client {
    /// A client that is not started. Nonces, the random bits of its address and its delays follow from the seed, which must be secret.
    pub fn new(settings: Settings, local: Option<Local>, seed: [u8; 32]) -> Self {
        Self {
            chance: Chance::new(seed),
            local,
            started: false,
            native: false,
            state: State::Stopped,
            in_use: None,
            last: None,
            why: None,
            at: 0,
            failed: (0, 0),
            rounds: 0,
            nat: NatKind::Unknown,
            ports: PortChoice::Unknown,
            interval: settings.interval,
            answered: None,
            changed: None,
            key_expires: false,
            counts: Counts::default(),
            probe: None,
            learning: None,
            discovery: None,
            silence: Silence::default(),
            seen: None,
            way: None,
            actions: VecDeque::new(),
            settings,
        }
    }

    /// The address that the previous process used; before [`Client::start`]. The client has the same one if its NAT still maps it so.
    pub const fn keep(&mut self, address: TeredoAddress) {
        self.last = Some(address);
    }

    /// Starts it.
    pub fn start(&mut self, now: Instant) {
        self.started = true;
        self.restart(now);
    }

    /// Stops it: the address is given up, and the other ports are closed.
    pub fn shut_down(&mut self) {
        self.started = false;
        self.stop(Why::NotStarted);
        self.state = State::Stopped;
    }

    /// The service port has another local address or port, or none. The address in use is given up immediately, as its mapping is lost.
    pub fn moved(&mut self, local: Option<Local>, now: Instant) {
        let endpoint = |local: &Option<Local>| local.as_ref().map(|local| local.endpoint);
        let is_same = endpoint(&self.local) == endpoint(&local);
        self.local = local;
        if is_same || !self.started {
            return;
        }
        if self.in_use.is_some() {
            self.stop(Why::Moved);
        }
        self.rounds = 0;
        self.restart(now);
    }

    /// This host has IPv6 by other means, or no longer (RFC 4380 §5.5).
    pub fn native_ipv6(&mut self, exists: bool, now: Instant) {
        if core::mem::replace(&mut self.native, exists) != exists && self.started {
            self.rounds = 0;
            self.restart(now);
        }
    }

    /// The host was suspended: it qualifies again. The address stays in use until it is known whether it is still the same.
    pub fn resumed(&mut self, now: Instant) {
        self.rounds = 0;
        if self.started {
            self.restart(now);
        }
    }

    /// To be called each second, with the time that this host slept since its start (CLOCK_BOOTTIME less CLOCK_MONOTONIC). After a
    /// suspension, or a call that is late by more than [`LATE`], it qualifies again.
    pub fn each_second(&mut self, slept: Duration, now: Instant) {
        let Some((last, before)) = self.seen.replace((now, slept)) else { return };
        if slept.saturating_sub(before) > SUSPENDED || now.since(last) > LATE {
            self.resumed(now);
        }
    }

    /// The present route to its servers; `None`: there is no route. With another route the client may be behind another NAT.
    pub fn routed(&mut self, way: Option<Way>, now: Instant) {
        if self.way.as_ref() == Some(&way) {
            return;
        }
        let (is_there, is_first) = (way.is_some(), self.way.is_none());
        self.way = Some(way);
        if is_there && !is_first {
            self.resumed(now);
        }
    }

    /// Whether data were sent to peers and received from them since the last call. If nothing comes back, see [`Client::doubt`].
    pub fn observe(&mut self, sent: bool, received: bool, now: Instant) {
        if self.silence.observe(sent, received, now) {
            self.doubt(now);
        }
    }

    /// Peers do not answer, or unexpected packets arrive: the server is asked immediately (RFC 6081 §5.1.1), at most once per [`DOUBT_INTERVAL`].
    pub fn doubt(&mut self, now: Instant) {
        let recent = self.answered.is_some_and(|answered| now.since(answered) < DOUBT_INTERVAL);
        if let State::Qualified(maintenance) = &mut self.state
            && !recent
        {
            maintenance.due = maintenance.due.min(now);
        }
    }

    /// Why the client cannot start.
    fn obstacle(&self) -> Option<Why> {
        match () {
            () if !self.started => Some(Why::NotStarted),
            () if self.native => Some(Why::NativeIpv6),
            () if self.settings.servers.is_empty() => Some(Why::NoServer),
            () if self.local.is_none() => Some(Why::NoLocalAddress),
            () => None,
        }
    }

    fn restart(&mut self, now: Instant) {
        self.failed = (0, 0);
        match self.obstacle() {
            Some(why) => {
                self.stop(why);
                self.state = State::Stopped;
            }
            None => self.qualify(now),
        }
    }

    /// Asks the current server.
    fn qualify(&mut self, now: Instant) {
        self.close_ports();
        let Some(server) = self.settings.servers.get(self.at).copied() else { return };
        self.state = State::Qualifying(Qualification::new(Port::Service, server, &mut self.chance, now));
    }

    fn next_server(&mut self) {
        self.at = (self.at + 1).checked_rem(self.settings.servers.len()).unwrap_or(0);
    }

    fn close_ports(&mut self) {
        if self.probe.take().is_some() {
            self.actions.push_back(Action::Close(Port::Probe));
        }
        if self.learning.take().is_some() {
            self.actions.push_back(Action::Close(Port::Secondary));
        }
    }

    /// Gives the address up.
    fn stop(&mut self, why: Why) {
        self.close_ports();
        self.discovery = None;
        self.interval = self.settings.interval;
        let was_in_use = self.in_use.take().is_some();
        if was_in_use || self.why != Some(why) {
            self.actions.retain(|action| matches!(action, Action::Close(_)));
            self.actions.push_back(Action::Stop(why));
        }
        self.why = Some(why);
        (self.nat, self.ports) = (NatKind::Unknown, PortChoice::Unknown);
    }

    /// The current server cannot be used: the next one is asked, or a pause follows the last one.
    fn fail(&mut self, why: Why, now: Instant) {
        let servers = self.settings.servers.len();
        let silent = matches!(why, Why::NoAnswer(_));
        self.failed = (self.failed.0 + 1, self.failed.1 + usize::from(silent));
        self.next_server();
        if self.failed.0 < servers && why != Why::Symmetric {
            self.qualify(now);
            return;
        }
        let all_silent = servers > 1 && self.failed.1 == servers;
        let (nat, ports) = (self.nat, self.ports);
        self.stop(if all_silent { Why::Blocked(servers.try_into().unwrap_or(u16::MAX)) } else { why });
        if why == Why::Symmetric {
            (self.nat, self.ports) = (nat, ports);
        }
        self.failed = (0, 0);
        let longest = FIRST_PAUSE.saturating_mul(1 << self.rounds.min(16)).min(LONGEST_PAUSE);
        self.rounds += 1;
        self.state = State::Waiting(now + self.chance.between(longest * 3 / 4, longest));
    }

    /// The current server, if it is asked or used.
    fn server(&self) -> Option<ServerAddresses> {
        match &self.state {
            State::Stopped | State::Waiting(_) => None,
            State::Qualifying(qualification) => Some(qualification.server()),
            State::Qualified(_) => self.settings.servers.get(self.at).copied(),
        }
    }

    /// Uses an address; the random bits of the last one stay if the rest is the same.
    fn use_address(&mut self, server: ServerAddresses, mapped: Endpoint4, symmetric: bool) {
        let flags = self.chance.bits() as u16 & TeredoInterface::RANDOM;
        let kept = self.last.filter(|kept| kept.server == server.primary && kept.mapped() == mapped);
        let interface = TeredoInterface { flags, mapped };
        let address = kept.unwrap_or(TeredoAddress { server: server.primary, interface });
        let state = ClientState { address, symmetric };
        if self.in_use != Some(state) {
            self.actions.push_back(Action::Use(state));
        }
        (self.in_use, self.last) = (Some(state), Some(address));
        self.why = None;
    }

    fn qualified(&mut self, server: ServerAddresses, found: Qualified, now: Instant) {
        (self.nat, self.ports, self.key_expires) = (found.nat, found.ports, found.key_expires);
        let symmetric = found.nat == NatKind::Symmetric;
        if symmetric && !self.settings.symmetric {
            self.fail(Why::Symmetric, now);
            return;
        }
        (self.failed, self.rounds) = ((0, 0), 0);
        if self.in_use.is_none_or(|state| state.address.mapped() != found.mapped) {
            self.interval = self.interval.min(self.settings.interval);
        }
        self.use_address(server, found.mapped, symmetric);
        let due = self.next_maintenance(now);
        self.state = State::Qualified(Maintenance { due, exchange: None, changed: None, doubts: 0 });
        if let (NatKind::Restricted, Some(answering), true) =
            (found.nat, server.secondary, self.settings.probe_cone)
        {
            let (port, server) = (Port::Probe, server.primary);
            let question = Question { port, server, asked: server, answering, attempts: 1 };
            self.probe = Some(Exchange::new(question, &mut self.chance, now));
        }
        if self.settings.learn_interval && self.interval < Learning::MAXIMUM {
            self.learning = Some(Learning::new(server, self.interval, &mut self.chance, now));
        }
        if self.settings.local_discovery && self.discovery.is_none() {
            self.discovery = Some(Discovery::new(&mut self.chance, now));
        }
    }

    /// The Randomized Refresh Interval: 75 to 100 % of the interval (RFC 4380 §5.2).
    fn next_maintenance(&mut self, now: Instant) -> Instant {
        now + self.chance.between(self.interval * 3 / 4, self.interval)
    }

    /// Processes a datagram that arrived at a port. On the service port these are only router advertisements; the engine processes the others.
    ///
    /// # Errors
    /// Why it is silently discarded.
    pub fn receive(
        &mut self,
        port: Port,
        from: Endpoint4,
        payload: &[u8],
        now: Instant,
    ) -> Result<(), Refused> {
        let result = self.take(port, (from, payload), now);
        if let Err(refused) = result
            && port != Port::Discovery
        {
            self.counts.refused += 1;
            self.counts.last_refused = Some(refused);
        }
        result
    }

    fn take(&mut self, port: Port, datagram: (Endpoint4, &[u8]), now: Instant) -> Result<(), Refused> {
        let local = self.local.as_ref().ok_or(Refused::NotAsked)?;
        let (secret, chance) = (self.settings.secret.as_ref(), &mut self.chance);
        match port {
            Port::Service => self.advertised(datagram, now),
            Port::Probe => {
                let probe = self.probe.as_mut().ok_or(Refused::NotAsked)?;
                probe.read(datagram, secret, local)?;
                self.nat = NatKind::Cone;
                self.end_probe();
                Ok(())
            }
            Port::Secondary => {
                let own = self.in_use.ok_or(Refused::NotAsked)?.address;
                let learning = self.learning.as_mut().ok_or(Refused::NotAsked)?;
                learning.receive(datagram, own, (secret, local), chance, now)?;
                self.learned();
                Ok(())
            }
            Port::Discovery => {
                let own = self.in_use.ok_or(Refused::NotDiscovery)?.address;
                let discovery = self.discovery.as_mut().ok_or(Refused::NotDiscovery)?;
                let peer = discovery.read(datagram, own, local, now)?;
                if self.actions.len() >= MOST_ACTIONS {
                    return Err(Refused::TooMany);
                }
                let octets = bubble(own.address(), peer, 255).to_vec();
                self.actions.push_back(Action::LocalPeer(peer, datagram.0));
                self.actions.push_back(Action::Send { from: Port::Service, to: datagram.0, octets });
                Ok(())
            }
        }
    }

    /// A router advertisement on the service port.
    fn advertised(&mut self, datagram: (Endpoint4, &[u8]), now: Instant) -> Result<(), Refused> {
        let local = self.local.as_ref().ok_or(Refused::NotAsked)?;
        let (secret, chance) = (self.settings.secret.as_ref(), &mut self.chance);
        match &mut self.state {
            State::Stopped | State::Waiting(_) => Err(Refused::NotAsked),
            State::Qualifying(qualification) => {
                let server = qualification.server();
                let found = qualification.receive(datagram, secret, local, chance, now)?;
                self.answered = Some(now);
                if let Some(found) = found {
                    self.qualified(server, found, now);
                }
                Ok(())
            }
            State::Qualified(maintenance) => {
                let exchange = maintenance.exchange.as_mut().ok_or(Refused::NotAsked)?;
                let answer = exchange.read(datagram, secret, local)?;
                self.answered = Some(now);
                self.maintained(answer, now);
                Ok(())
            }
        }
    }

    /// The answer to a solicitation of the maintenance (RFC 4380 §5.2.5). A changed mapping is used only if a second answer confirms it.
    fn maintained(&mut self, Answer { mapped, key_expires }: Answer, now: Instant) {
        let due = self.next_maintenance(now);
        let Some(state) = self.in_use else { return };
        let Some(server) = self.server() else { return };
        let State::Qualified(maintenance) = &mut self.state else { return };
        self.key_expires = key_expires;
        (maintenance.due, maintenance.exchange) = (due, None);
        if mapped == state.address.mapped() {
            self.counts.changes_unconfirmed += u64::from(maintenance.changed.is_some());
            (maintenance.changed, maintenance.doubts) = (None, 0);
        } else if maintenance.changed == Some(mapped) {
            self.counts.mapping_changes += 1;
            // A NAT that forgets within the interval must be asked more often (RFC 6081 §5.1.1).
            let again = self.changed.is_some_and(|changed| now.since(changed) <= self.interval * 3);
            let shorter = (self.interval / 2).max(SHORTEST_INTERVAL);
            self.interval =
                if again { shorter.min(self.interval) } else { self.interval.min(self.settings.interval) };
            self.changed = Some(now);
            self.use_address(server, mapped, state.symmetric);
            // The NAT may be another one.
            self.restart(now);
        } else {
            self.counts.changes_unconfirmed += u64::from(maintenance.changed.is_some());
            maintenance.changed = Some(mapped);
            maintenance.doubts += 1;
            if maintenance.doubts <= DOUBTS {
                maintenance.exchange = Some(Exchange::new(maintain(server), &mut self.chance, now));
            } else {
                (maintenance.changed, maintenance.doubts) = (None, 0);
            }
        }
    }

    fn end_probe(&mut self) {
        if self.probe.take().is_some() {
            self.actions.push_back(Action::Close(Port::Probe));
        }
    }

    fn learned(&mut self) {
        let Some(learning) = &self.learning else { return };
        self.interval = learning.interval();
        if learning.has_concluded() {
            self.learning = None;
            self.actions.push_back(Action::Close(Port::Secondary));
        }
    }

    /// The next thing to do; call it until it returns `None`.
    pub fn step(&mut self, now: Instant) -> Option<Action> {
        // A failure may make something else due, such as a solicitation to the next server.
        for _ in 0..MOST_TICKS {
            if self.actions.is_empty() && self.due().is_some_and(|due| due <= now) {
                self.tick(now);
            }
        }
        self.actions.pop_front()
    }

    /// When [`Client::step`] is to be called next; `None`: nothing is planned.
    pub fn due(&self) -> Option<Instant> {
        if !self.actions.is_empty() {
            return Some(Instant::default());
        }
        let state = match &self.state {
            State::Stopped => None,
            State::Qualifying(qualification) => Some(qualification.due()),
            State::Qualified(maintenance) => Some(maintenance.due()),
            State::Waiting(until) => Some(*until),
        };
        let probe = self.probe.as_ref().map(Exchange::due);
        let learning = self.learning.as_ref().map(Learning::due);
        let discovery = self.discovery.as_ref().map(Discovery::due);
        [state, probe, learning, discovery].into_iter().flatten().min()
    }

    fn tick(&mut self, now: Instant) {
        match self.state {
            State::Waiting(until) if now.since(until) > LATE => self.resumed(now),
            State::Waiting(until) if until <= now => self.restart(now),
            State::Qualified(_) => self.maintain(now),
            State::Stopped | State::Waiting(_) | State::Qualifying(_) => {}
        }
        if let State::Qualifying(qualification) = &mut self.state {
            match qualification.step(self.settings.secret.as_ref(), now) {
                Due::Nothing => {}
                Due::Send(action) => self.actions.push_back(action),
                Due::Over => {
                    let why = qualification.why();
                    self.fail(why, now);
                }
            }
        }
        self.tick_ports(now);
    }

    fn maintain(&mut self, now: Instant) {
        let Some(server) = self.server() else { return };
        let State::Qualified(maintenance) = &mut self.state else { return };
        if now.since(maintenance.due()) > LATE {
            self.resumed(now);
            return;
        }
        if maintenance.exchange.is_none() && maintenance.due <= now {
            maintenance.exchange = Some(Exchange::new(maintain(server), &mut self.chance, now));
        }
        let Some(exchange) = &mut maintenance.exchange else { return };
        match exchange.step(self.settings.secret.as_ref(), now) {
            Due::Nothing => {}
            Due::Send(action) => self.actions.push_back(action),
            Due::Over => {
                // The address stays in use until another server answers, or all have failed.
                self.why = Some(exchange.refused.map_or(Why::NoAnswer(server.primary), Why::BadAnswer));
                self.failed = (0, 0);
                self.next_server();
                self.qualify(now);
            }
        }
    }

    /// The due actions on the other ports.
    fn tick_ports(&mut self, now: Instant) {
        let secret = self.settings.secret.as_ref();
        match self.probe.as_mut().map(|probe| probe.step(secret, now)) {
            Some(Due::Send(action)) => self.actions.push_back(action),
            Some(Due::Over) => self.end_probe(),
            Some(Due::Nothing) | None => {}
        }
        let Some(ClientState { address: own, .. }) = self.in_use else { return };
        if let Some(learning) = &mut self.learning {
            let action = learning.step(own, self.settings.secret.as_ref(), &mut self.chance, now);
            self.actions.extend(action);
            self.learned();
        }
        let bubble = self.discovery.as_mut().and_then(|due| due.step(own, &mut self.chance, now));
        let send = |octets| Action::Send { from: Port::Service, to: DISCOVERY, octets };
        self.actions.extend(bubble.map(send));
    }

    /// How the ports of the NAT follow, if peers are to be found by a prediction (RFC 6081 §5.4, §5.5). A symmetric NAT that does not preserve them is taken
    /// for a sequential one (§3.4): a few packets do not show the difference.
    pub fn port_rule(&self) -> Option<PortRule> {
        let state = self.in_use.filter(|state| state.symmetric)?;
        let secondary =
            |server: &ServerAddresses| server.secondary.filter(|_| server.primary == state.address.server);
        match self.ports {
            PortChoice::Preserved => Some(PortRule::Preserved),
            PortChoice::Unknown | PortChoice::Sequential | PortChoice::Other => {
                let secondary = self.settings.servers.iter().find_map(secondary)?;
                Some(PortRule::Sequential { secondary })
            }
        }
    }

    /// The client's status.
    pub fn status(&self, now: Instant) -> Status {
        let phase = match &self.state {
            State::Stopped => Phase::Stopped,
            State::Qualifying(qualification) if qualification.is_comparing() => Phase::ComparingMappings,
            State::Qualifying(_) => Phase::Qualifying,
            State::Qualified(_) => Phase::Qualified,
            State::Waiting(_) => Phase::Waiting,
        };
        let next = match self.state {
            State::Waiting(until) => Some(until.since(now)),
            State::Stopped | State::Qualifying(_) | State::Qualified(_) => None,
        };
        let Counts { mapping_changes, changes_unconfirmed, refused, last_refused } = self.counts;
        Status {
            phase,
            why: self.why.or_else(|| self.obstacle()),
            in_use: self.in_use,
            server: self.server().map(|server| server.primary),
            local: self.local.as_ref().map(|local| local.endpoint),
            nat: self.nat,
            ports: self.ports,
            interval: self.interval,
            answered: self.answered.map(|answered| now.since(answered)),
            next,
            key_expires: self.key_expires,
            mapping_changes,
            changes_unconfirmed,
            refused,
            last_refused,
        }
    }
}

impl Maintenance {
    fn due(&self) -> Instant {
        self.exchange.as_ref().map_or(self.due, Exchange::due)
    }
}

const fn maintain(server: ServerAddresses) -> Question {
    let asked = server.primary;
    Question { port: Port::Service, server: asked, asked, answering: asked, attempts: ATTEMPTS }
}
