//! The state machine: inputs and outputs.

use super::super::ask::{Exchange, Failure, Transmit};
use super::super::settings::Upstream;
use super::super::shares::{Payer, Place, Shares};
use super::in_flight::{Open, OpenQuestion};
use super::numbered::Numbered;
use super::peer::Peer;
use super::question::{Exhausted, Number, Question, Reply};
use super::row::{Event, Row};
use super::timers::{Due, Timers};
use super::zone_health::{ZoneHealth, ZoneState};
use super::zones::Zones;
use crate::Instant;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;

/// How many questions may be open, if nothing else is said.
pub const MAX_QUESTIONS: usize = 8_192;

/// Puts questions to upstreams.
#[derive(Debug)]
pub struct Upstreams {
    pub(super) peers: Vec<Peer>,
    pub(super) zones: Zones,
    /// The name that an upstream is probed with: a zone that it serves.
    pub(super) probes: Vec<Box<[u8]>>,
    pub(super) random: StdRng,
    /// Questions that may be open, and half of the exchanges.
    pub(super) most: usize,
    pub(super) shares: Shares,
    pub(super) zone_health: ZoneHealth,
    pub(super) asked: Numbered<OpenQuestion>,
    pub(super) exchanges: Numbered<Open>,
    pub(super) timers: Timers,
    pub(super) transmits: VecDeque<Transmit>,
    pub(super) cancels: VecDeque<Exchange>,
    pub(super) outcomes: VecDeque<(Number, Result<Reply, Exhausted>)>,
    pub(super) events: VecDeque<Event>,
    pub(super) rejected: u64,
    /// The counts of upstreams that were removed.
    pub(super) gone: Row,
}

impl Upstreams {
    /// All of them, in the order of the settings, with at most this number of open questions ([`MAX_QUESTIONS`]), and twice as many exchanges. IDs and
    /// the case of names come from the seed, which must be secret.
    #[must_use]
    pub fn new(upstreams: &[Upstream], seed: [u8; 32], questions: usize, now: Instant) -> Self {
        let mut random = StdRng::from_seed(seed);
        Self {
            peers: upstreams.iter().map(|upstream| Peer::new(upstream, now)).collect(),
            zones: Zones::new(upstreams, random.next_u64()),
            probes: probe_names(upstreams),
            shares: Shares::new(questions, random.next_u64()),
            zone_health: ZoneHealth::new(random.next_u64()),
            random,
            most: questions,
            asked: Numbered::default(),
            exchanges: Numbered::default(),
            timers: Timers::default(),
            transmits: VecDeque::new(),
            cancels: VecDeque::new(),
            outcomes: VecDeque::new(),
            events: VecDeque::new(),
            rejected: 0,
            gone: Row::default(),
        }
    }

    /// Why a question of this payer would not be put to an upstream; `None`: it would be. In a failing zone, who holds more than a few
    /// places has few of the open questions; for others there is no limit, so that they are not affected by clients that query dead names.
    #[must_use]
    pub fn refusal(&self, now: Instant, name: &[u8], payer: Payer) -> Option<Exhausted> {
        if !self.shares.has_room(payer) {
            return Some(Exhausted::NoShare);
        }
        if self.zone_health.is_empty() || self.shares.holds_few(payer) {
            return None;
        }
        let zone = self.zone_health.keys(name);
        (!self.zone_health.has_room(now, &zone)).then_some(Exhausted::SilentZone)
    }

    /// Whether names of a name's zone had no reply lately: it is not asked ahead of a need.
    #[must_use]
    pub fn is_slow(&self, now: Instant, name: &[u8]) -> bool {
        !self.zone_health.is_empty()
            && self.zone_health.state(now, &self.zone_health.keys(name)) != ZoneState::Healthy
    }

    /// Whether an upstream is one of those that are asked about a question.
    #[must_use]
    pub fn is_asked(&self, upstream: usize, name: &[u8], qtype: u16) -> bool {
        self.zones.asked(name, qtype).contains(&upstream)
    }

    /// All zones are taken to answer again.
    pub fn forget_zones(&mut self) {
        self.zone_health.forget();
    }

    /// Asks. The outcome comes by [`poll_outcome`](Self::poll_outcome) under this number, perhaps immediately.
    pub fn ask(&mut self, now: Instant, question: &Question<'_>) -> Number {
        // The few of a failing zone are for who holds more than a few: others do not use them up.
        let is_limited = !self.shares.holds_few(question.payer);
        let place = match self.admit(now, question) {
            Ok(place) => place,
            Err(why) => {
                let number = Number(self.asked.skip());
                self.outcomes.push_back((number, Err(why)));
                return number;
            }
        };
        for at in self.zones.asked(question.name, question.qtype) {
            self.peers[*at].abilities.refresh(now);
        }
        let mut asked = OpenQuestion::new(now, question, place);
        if !self.zone_health.is_empty() {
            asked.zone = self.zone_health.keys(question.name);
            if is_limited {
                asked.counted = self.zone_health.begin(now, &asked.zone);
            }
        }
        let number = self.asked.insert(asked);
        self.go_on(now, number);
        self.explore(now, number);
        self.tidy();
        Number(number)
    }

    fn admit(&mut self, now: Instant, question: &Question<'_>) -> Result<Place, Exhausted> {
        if self.zones.asked(question.name, question.qtype).is_empty() {
            return Err(Exhausted::NoUpstream);
        }
        match self.refusal(now, question.name, question.payer) {
            Some(why) => Err(why),
            None => self.shares.admit(question.payer).map_err(|_| Exhausted::NoShare),
        }
    }

    /// No one waits for this question any more: it has no outcome.
    pub fn abandon(&mut self, number: Number) {
        let _ = self.end(number.0);
        self.outcomes.retain(|(other, _)| *other != number);
        self.tidy();
    }

    /// The outcome of an exchange. A reply that does not match its question is counted, and the exchange continues; a failure ends it.
    pub fn handle_reply(&mut self, now: Instant, exchange: Exchange, reply: Result<&[u8], Failure>) {
        match reply {
            Ok(message) => self.replied(now, exchange.0, message),
            Err(failure) => self.failed(now, exchange.0, failure),
        }
        self.tidy();
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, due)) = self.timers.pop_due(now) {
            if !self.matters(at, due) {
                continue;
            }
            match due {
                Due::Question(number) => self.silent(now, number),
                Due::Alone(exchange) => self.alone_silent(now, exchange),
                Due::Probe(upstream) => self.probe(now, upstream),
            }
        }
        self.tidy();
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due; `None`: never.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first()
    }

    /// The next question for an upstream, to be sent immediately.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        loop {
            let transmit = self.transmits.pop_front()?;
            if let Some(open) = self.exchanges.find_mut(transmit.exchange.0) {
                open.transmitted = true;
                return Some(transmit);
            }
        }
    }

    /// The next exchange that has ended: it was answered, or no query waits for it any more.
    pub fn poll_cancel(&mut self) -> Option<Exchange> {
        self.cancels.pop_front()
    }

    /// The next outcome of a question.
    pub fn poll_outcome(&mut self) -> Option<(Number, Result<Reply, Exhausted>)> {
        self.outcomes.pop_front()
    }

    /// Events of an upstream, for the log.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Each upstream, in the order of the settings.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row> + '_ {
        self.peers.iter().map(Peer::shown)
    }

    /// Replies and silences of all, those that are gone included.
    #[must_use]
    pub fn total(&self) -> Row {
        self.peers.iter().fold(self.gone, |total, peer| total.with(&peer.row))
    }

    /// Replies that were rejected, those to exchanges that were over included.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    /// The upstreams that are asked about a name, by their places in the settings.
    #[must_use]
    pub fn asked_about(&self, name: &[u8], qtype: u16) -> &[usize] {
        self.zones.asked(name, qtype)
    }

    /// Questions that are open.
    #[must_use]
    pub fn questions(&self) -> usize {
        self.shares.used()
    }

    /// Exchanges that are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.exchanges.len()
    }

    /// Ends an exchange, which is reported to the caller unless it never saw it.
    pub(super) fn take(&mut self, exchange: u64) -> Option<Open> {
        let open = self.exchanges.remove(exchange)?;
        self.peers[open.upstream].row.open -= 1;
        if open.transmitted {
            self.cancels.push_back(Exchange(exchange));
        }
        Some(open)
    }

    pub(super) fn close(&mut self, exchange: u64) {
        let _ = self.take(exchange);
    }

    /// A question is finished, and so are its exchanges.
    pub(super) fn end(&mut self, number: u64) -> Option<OpenQuestion> {
        let mut asked = self.asked.remove(number)?;
        for exchange in asked.tries.iter().filter_map(|tried| tried.exchange) {
            self.close(exchange);
        }
        if let Some(place) = asked.place.take() {
            self.shares.leave(place);
        }
        self.zone_health.end(&asked.counted);
        Some(asked)
    }

    /// Whether a timer still means something.
    fn matters(&self, at: Instant, due: Due) -> bool {
        match due {
            Due::Question(number) => self.asked.find(number).is_some_and(|asked| asked.due == at),
            Due::Alone(exchange) => self.exchanges.find(exchange).is_some(),
            Due::Probe(upstream) => {
                self.peers.get(upstream).is_some_and(|peer| peer.liveness.probe_due == Some(at))
            }
        }
    }

    pub(super) fn tidy(&mut self) {
        let mut timers = core::mem::take(&mut self.timers);
        timers.tidy(|at, due| self.matters(at, due));
        self.timers = timers;
    }
}

/// What each upstream is probed with.
pub(super) fn probe_names(upstreams: &[Upstream]) -> Vec<Box<[u8]>> {
    let probe = |upstream: &Upstream| upstream.names.first().map_or(Box::from([0]), |zone| zone.0.clone());
    upstreams.iter().map(probe).collect()
}
