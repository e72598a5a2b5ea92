//! Upstreams as they may be, and a network in fake time between them and the machine under test.

use sixway_control::Instant;
use sixway_control::dns64::upstream::{
    DEADLINE, Event, Exhausted, MAX_QUESTIONS, Number, Question, Reply, Row, Upstreams,
};
use sixway_control::dns64::{Exchange, Failure, QueryTransport, Transmit, Upstream, Wire};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub const NAME: &[u8] = b"\x03www\x07example\0";
pub const A: u16 = 1;
pub const AAAA: u16 = 28;

pub const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// What an upstream does with a query: what comes back, and how long after its own delay.
pub type Said = Vec<(Duration, Result<Vec<u8>, Failure>)>;
pub type Behaviour = Box<dyn FnMut(&Transmit) -> Said>;

pub fn says(reply: Vec<u8>) -> Said {
    vec![(Duration::ZERO, Ok(reply))]
}

pub fn fails(failure: Failure) -> Said {
    vec![(Duration::ZERO, Err(failure))]
}

pub fn silence() -> Said {
    Vec::new()
}

/// The end of a query's question section.
fn question_end(query: &[u8]) -> usize {
    let mut at = 12;
    while query[at] != 0 {
        at += 1 + usize::from(query[at]);
    }
    at + 5
}

pub fn has_edns(query: &[u8]) -> bool {
    query[11] == 1
}

/// A reply to a query: header and question, with this RCODE and no records.
pub fn bare(query: &[u8], rcode: u8) -> Vec<u8> {
    let mut reply = query[..question_end(query)].to_vec();
    reply[2] = 0x81;
    reply[3] = 0x80 | rcode;
    reply[6..12].fill(0);
    reply
}

/// With one A record.
pub fn answer(query: &[u8]) -> Vec<u8> {
    let mut reply = bare(query, 0);
    reply[7] = 1;
    reply.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]);
    reply
}

/// NODATA or a referral: an authority section with one record of this type.
pub fn authority(query: &[u8], qtype: u8) -> Vec<u8> {
    let mut reply = bare(query, 0);
    reply[9] = 1;
    reply.extend_from_slice(&[0, 0, qtype, 0, 1, 0, 0, 0, 60, 0, 1, 0]);
    reply
}

pub fn truncated(query: &[u8]) -> Vec<u8> {
    let mut reply = bare(query, 0);
    reply[2] |= 2;
    reply
}

/// The question's name in lower case, as some servers have it.
pub fn folded(mut reply: Vec<u8>) -> Vec<u8> {
    let end = question_end(&reply);
    reply[12..end - 4].make_ascii_lowercase();
    reply
}

/// An upstream that answers everything.
pub fn good() -> Behaviour {
    Box::new(|transmit| says(answer(&transmit.message)))
}

pub fn dead() -> Behaviour {
    Box::new(|_| silence())
}

/// Whether this reply has the record of `answer`.
pub fn is_answer(outcome: &Result<Reply, Exhausted>) -> bool {
    outcome.as_ref().is_ok_and(|reply| reply.message.ends_with(&[192, 0, 2, 1]))
}

pub struct Server {
    pub delay: Duration,
    pub behaviour: Behaviour,
}

type Arrival = (Exchange, Result<Vec<u8>, Failure>);

pub struct Network {
    pub upstreams: Upstreams,
    pub now: Instant,
    pub servers: Vec<Server>,
    /// What was transmitted, and when.
    pub sent: Vec<(Instant, Transmit)>,
    pub outcomes: BTreeMap<Number, (Instant, Result<Reply, Exhausted>)>,
    pub events: Vec<Event>,
    pub open: BTreeSet<Exchange>,
    pub waiting: BTreeMap<Number, Instant>,
    on_the_way: BTreeMap<(Instant, u64), Arrival>,
    count: u64,
}

impl Network {
    pub fn of(upstreams: &[Upstream], servers: Vec<(Duration, Behaviour)>) -> Self {
        Self::bounded(upstreams, servers, MAX_QUESTIONS, 7)
    }

    pub fn bounded(
        upstreams: &[Upstream],
        servers: Vec<(Duration, Behaviour)>,
        exchanges: usize,
        seed: u8,
    ) -> Self {
        let now = Instant::from_secs(1_000);
        let server = |(delay, behaviour)| Server { delay, behaviour };
        Self {
            upstreams: Upstreams::new(upstreams, [seed; 32], exchanges, now),
            now,
            servers: servers.into_iter().map(server).collect(),
            sent: Vec::new(),
            outcomes: BTreeMap::new(),
            events: Vec::new(),
            open: BTreeSet::new(),
            waiting: BTreeMap::new(),
            on_the_way: BTreeMap::new(),
            count: 0,
        }
    }

    /// Upstreams that are asked by datagrams about everything.
    pub fn new(servers: Vec<(Duration, Behaviour)>) -> Self {
        let upstreams: Vec<_> =
            servers.iter().map(|_| Upstream { names: Vec::new(), datagrams: true }).collect();
        Self::of(&upstreams, servers)
    }

    pub fn ask(&mut self) -> Number {
        self.ask_for(&Question::new(NAME, A))
    }

    pub fn ask_for(&mut self, question: &Question<'_>) -> Number {
        let number = self.upstreams.ask(self.now, question);
        assert!(self.waiting.insert(number, self.now).is_none(), "the number was used before");
        self.drain();
        number
    }

    /// Asks, and lets time pass until the outcome is there; how long that took, in milliseconds.
    pub fn outcome(&mut self, question: &Question<'_>) -> (Result<Reply, Exhausted>, u64) {
        let asked = self.now;
        let number = self.ask_for(question);
        while !self.outcomes.contains_key(&number) {
            assert!(self.step(), "nothing will ever happen");
        }
        let (at, outcome) = self.outcomes[&number].clone();
        (outcome, (at - asked).as_millis() as u64)
    }

    /// As `outcome`, for any question.
    pub fn asked(&mut self) -> (Result<Reply, Exhausted>, u64) {
        self.outcome(&Question::new(NAME, A))
    }

    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.next().is_some_and(|at| at <= end) {
            self.step();
        }
        self.now = end;
        self.upstreams.handle_timeout(self.now);
        self.drain();
    }

    fn next(&self) -> Option<Instant> {
        let arrives = self.on_the_way.keys().next().map(|(at, _)| *at);
        arrives.into_iter().chain(self.upstreams.poll_timeout()).min()
    }

    /// The next thing happens; whether there was one.
    fn step(&mut self) -> bool {
        let Some(next) = self.next() else { return false };
        self.now = self.now.max(next);
        if let Some(entry) = self.on_the_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (exchange, reply) = entry.remove();
            self.deliver(exchange, reply);
        } else {
            self.upstreams.handle_timeout(self.now);
        }
        self.drain();
        true
    }

    /// A reply arrives, unless its socket is closed.
    fn deliver(&mut self, exchange: Exchange, reply: Result<Vec<u8>, Failure>) {
        if !self.open.contains(&exchange) {
            return;
        }
        if reply.is_err() {
            self.open.remove(&exchange);
        }
        self.upstreams.handle_reply(self.now, exchange, reply.as_deref().map_err(|failure| *failure));
    }

    /// All polls.
    pub fn drain(&mut self) {
        while let Some(transmit) = self.upstreams.poll_transmit() {
            assert!(self.open.insert(transmit.exchange), "the exchange is open already");
            let server = &mut self.servers[transmit.upstream];
            for (after, reply) in (server.behaviour)(&transmit) {
                self.count += 1;
                let at = self.now + server.delay + after;
                self.on_the_way.insert((at, self.count), (transmit.exchange, reply));
            }
            self.sent.push((self.now, transmit));
        }
        while let Some(exchange) = self.upstreams.poll_cancel() {
            assert!(self.open.remove(&exchange), "it was cancelled before, or had failed");
        }
        while let Some((number, outcome)) = self.upstreams.poll_outcome() {
            let asked = self.waiting.remove(&number).expect("each question has one outcome");
            assert!(self.now - asked <= DEADLINE, "it came late");
            self.outcomes.insert(number, (self.now, outcome));
        }
        self.events.extend(std::iter::from_fn(|| self.upstreams.poll_event()));
        assert_eq!(self.upstreams.open(), self.open.len(), "exchanges leak");
        assert_eq!(self.upstreams.questions(), self.waiting.len(), "shares leak");
        assert!(self.upstreams.poll_timeout().is_some() || self.waiting.is_empty(), "it sleeps for ever");
    }

    pub fn rows(&self) -> Vec<Row> {
        self.upstreams.rows().collect()
    }

    /// What was sent since the last call: upstream, way, with EDNS.
    pub fn tries(&mut self) -> Vec<(usize, QueryTransport, bool)> {
        let sent = std::mem::take(&mut self.sent);
        sent.iter().map(|(_, sent)| (sent.upstream, sent.way, has_edns(&sent.message))).collect()
    }
}

pub fn for_names(names: &[&[u8]], datagrams: bool) -> Upstream {
    Upstream { names: names.iter().map(|name| Wire(Box::from(*name))).collect(), datagrams }
}
