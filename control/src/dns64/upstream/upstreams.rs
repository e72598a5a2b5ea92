//! The state machine: what comes in and goes out.

use super::super::ask::{Exchange, Failure, Transmit};
use super::super::settings::Upstream;
use super::alarms::{Alarms, Due};
use super::in_flight::{Open, OpenQuestion};
use super::numbered::Numbered;
use super::peer::Peer;
use super::question::{Exhausted, Number, Question, Reply};
use super::row::{Event, Row};
use super::zones::Zones;
use crate::Instant;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;

/// How many exchanges may be open, if nothing else is said.
pub const MAX_EXCHANGES: usize = 4_096;

/// Puts questions to upstreams.
#[derive(Debug)]
pub struct Upstreams {
    pub(super) peers: Vec<Peer>,
    pub(super) zones: Zones,
    /// What an upstream is probed with: a zone that it is there for.
    pub(super) probes: Vec<Box<[u8]>>,
    pub(super) random: StdRng,
    pub(super) most: usize,
    pub(super) asked: Numbered<OpenQuestion>,
    pub(super) exchanges: Numbered<Open>,
    pub(super) alarms: Alarms,
    pub(super) transmits: VecDeque<Transmit>,
    pub(super) cancels: VecDeque<Exchange>,
    pub(super) outcomes: VecDeque<(Number, Result<Reply, Exhausted>)>,
    pub(super) events: VecDeque<Event>,
    pub(super) disbelieved: u64,
}

impl Upstreams {
    /// All of them, in the order of the settings, at most `exchanges` open at a time ([`MAX_EXCHANGES`]). IDs and the case of names come from
    /// the seed, which must be secret.
    #[must_use]
    pub fn new(upstreams: &[Upstream], seed: [u8; 32], exchanges: usize, now: Instant) -> Self {
        let mut random = StdRng::from_seed(seed);
        let probe =
            |upstream: &Upstream| upstream.names.first().map_or(Box::from([0]), |zone| zone.0.clone());
        Self {
            peers: upstreams.iter().map(|upstream| Peer::new(upstream, now)).collect(),
            zones: Zones::new(upstreams, random.next_u64()),
            probes: upstreams.iter().map(probe).collect(),
            random,
            most: exchanges,
            asked: Numbered::default(),
            exchanges: Numbered::default(),
            alarms: Alarms::default(),
            transmits: VecDeque::new(),
            cancels: VecDeque::new(),
            outcomes: VecDeque::new(),
            events: VecDeque::new(),
            disbelieved: 0,
        }
    }

    /// Asks. The outcome comes by [`poll_outcome`](Self::poll_outcome) under this number, perhaps immediately.
    pub fn ask(&mut self, now: Instant, question: &Question<'_>) -> Number {
        let full = self.exchanges.len() >= self.most;
        if full || self.zones.asked(question.name, question.qtype).is_empty() {
            let number = Number(self.asked.skip());
            self.outcomes
                .push_back((number, Err(if full { Exhausted::Full } else { Exhausted::NoUpstream })));
            return number;
        }
        for at in self.zones.asked(question.name, question.qtype) {
            self.peers[*at].abilities.refresh(now);
        }
        let number = self.asked.insert(OpenQuestion::new(now, question));
        self.go_on(now, number);
        self.explore(now, number);
        self.tidy();
        Number(number)
    }

    /// No one waits for this question any more: it has no outcome.
    pub fn abandon(&mut self, number: Number) {
        if let Some(asked) = self.asked.remove(number.0) {
            self.close_all(&asked);
        }
        self.outcomes.retain(|(other, _)| *other != number);
        self.tidy();
    }

    /// What came of an exchange. What is not the reply to its question is counted, and the exchange goes on; after a failure it is over.
    pub fn handle_reply(&mut self, now: Instant, exchange: Exchange, reply: Result<&[u8], Failure>) {
        match reply {
            Ok(message) => self.replied(now, exchange.0, message),
            Err(failure) => self.failed(now, exchange.0, failure),
        }
        self.tidy();
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, due)) = self.alarms.ring(now) {
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
        self.alarms.first()
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

    /// The next exchange that is over: it was answered, or no one waits for it any more.
    pub fn poll_cancel(&mut self) -> Option<Exchange> {
        self.cancels.pop_front()
    }

    /// The next outcome of a question.
    pub fn poll_outcome(&mut self) -> Option<(Number, Result<Reply, Exhausted>)> {
        self.outcomes.pop_front()
    }

    /// What happened to an upstream, for the log.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Each upstream, in the order of the settings.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row> + '_ {
        self.peers.iter().map(Peer::shown)
    }

    /// Replies that were disbelieved, those to exchanges that were over included.
    #[must_use]
    pub fn disbelieved(&self) -> u64 {
        self.disbelieved
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

    pub(super) fn close_all(&mut self, asked: &OpenQuestion) {
        for exchange in asked.tries.iter().filter_map(|tried| tried.exchange) {
            self.close(exchange);
        }
    }

    /// Whether an alarm still means something.
    fn matters(&self, at: Instant, due: Due) -> bool {
        match due {
            Due::Question(number) => self.asked.find(number).is_some_and(|asked| asked.due == at),
            Due::Alone(exchange) => self.exchanges.find(exchange).is_some(),
            Due::Probe(upstream) => self.peers[upstream].liveness.probe_due == Some(at),
        }
    }

    fn tidy(&mut self) {
        let mut alarms = core::mem::take(&mut self.alarms);
        alarms.tidy(|at, due| self.matters(at, due));
        self.alarms = alarms;
    }
}
