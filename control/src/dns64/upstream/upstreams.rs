//! The state machine: from a question to its outcome.

use super::super::ask::{Exchange, Failure, Transmit, Way};
use super::super::settings::Upstream;
use super::alarms::{Alarms, Due};
use super::latency::{DATAGRAM, Latency, STREAM};
use super::numbered::Numbered;
use super::query_message::{Style, query};
use super::question::{Exhausted, Number, Question, Reply};
use super::reply::{Sent, Verdict, judge};
use super::row::{Event, Row};
use crate::Instant;
use core::time::Duration;
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::collections::VecDeque;

/// A question has its outcome within this time.
pub const DEADLINE: Duration = Duration::from_millis(4_500);

/// A question is put so many times, to whichever upstreams.
pub const MAX_TRIES: usize = 6;

/// How many exchanges may be open, if nothing else is said.
pub const MAX_EXCHANGES: usize = 4_096;

/// A question on its way.
#[derive(Debug)]
struct Asked {
    message: Vec<u8>,
    id: u16,
    exchange: Option<u64>,
    upstream: usize,
    tries: usize,
    due: Instant,
    until: Instant,
    dnssec_ok: bool,
    sent: Instant,
}

/// One upstream.
#[derive(Debug)]
struct Peer {
    datagrams: bool,
    latency: Latency,
    row: Row,
}

/// Puts questions to upstreams.
#[derive(Debug)]
pub struct Upstreams {
    peers: Vec<Peer>,
    random: StdRng,
    most: usize,
    asked: Numbered<Asked>,
    exchanges: Numbered<u64>,
    alarms: Alarms,
    transmits: VecDeque<Transmit>,
    cancels: VecDeque<Exchange>,
    outcomes: VecDeque<(Number, Result<Reply, Exhausted>)>,
    disbelieved: u64,
}

impl Upstreams {
    /// All of them, in the order of the settings, at most `exchanges` open at a time ([`MAX_EXCHANGES`]). IDs and the case of names come from
    /// the seed, which must be secret.
    #[must_use]
    pub fn new(upstreams: &[Upstream], seed: [u8; 32], exchanges: usize, now: Instant) -> Self {
        let _ = now;
        let peer = |upstream: &Upstream| {
            let bounds = if upstream.datagrams { DATAGRAM } else { STREAM };
            Peer { datagrams: upstream.datagrams, latency: Latency::new(bounds), row: Row::default() }
        };
        Self {
            peers: upstreams.iter().map(peer).collect(),
            random: StdRng::from_seed(seed),
            most: exchanges,
            asked: Numbered::default(),
            exchanges: Numbered::default(),
            alarms: Alarms::default(),
            transmits: VecDeque::new(),
            cancels: VecDeque::new(),
            outcomes: VecDeque::new(),
            disbelieved: 0,
        }
    }

    /// Asks. The outcome comes by [`poll_outcome`](Self::poll_outcome) under this number, perhaps at once.
    pub fn ask(&mut self, now: Instant, question: &Question<'_>) -> Number {
        if self.exchanges.len() >= self.most || self.peers.is_empty() {
            let number = Number(self.asked.skip());
            let why = if self.peers.is_empty() { Exhausted::NoUpstream } else { Exhausted::Full };
            self.outcomes.push_back((number, Err(why)));
            return number;
        }
        let (message, id) = query(question, Style { edns: true, cased: false }, &mut self.random);
        let number = self.asked.insert(Asked {
            message,
            id,
            exchange: None,
            upstream: 0,
            tries: 0,
            due: now,
            until: now + DEADLINE,
            dnssec_ok: question.dnssec_ok,
            sent: now,
        });
        self.put(now, number);
        self.tidy();
        Number(number)
    }

    /// Nobody waits for this question any more: it has no outcome.
    pub fn abandon(&mut self, number: Number) {
        self.close(number.0);
        self.outcomes.retain(|(other, _)| *other != number);
        self.tidy();
    }

    /// What came of an exchange. What is not the reply to its question is counted, and the exchange goes on; after a failure it is over.
    pub fn handle_reply(&mut self, now: Instant, exchange: Exchange, reply: Result<&[u8], Failure>) {
        let Some(number) = self.exchanges.find(exchange.0).copied() else {
            self.disbelieved += u64::from(reply.is_ok());
            return;
        };
        let Some(asked) = self.asked.find(number) else { return };
        let peer = &mut self.peers[asked.upstream];
        let (dnssec_ok, upstream) = (asked.dnssec_ok, asked.upstream);
        match reply {
            Ok(message) => {
                let end = asked.message.len() - 11;
                let sent = Sent { id: asked.id, question: &asked.message[12..end], cased: false };
                if matches!(judge(&sent, message), Verdict::Disbelieved | Verdict::OtherCase) {
                    self.disbelieved += 1;
                    peer.row.disbelieved += 1;
                    return;
                }
                peer.row.replies += 1;
                peer.latency.sample(now - asked.sent);
                let way = if peer.datagrams { Way::Datagram } else { Way::Stream };
                let reply = Reply { message: message.to_vec(), upstream, way, dnssec_ok };
                self.close(number);
                self.outcomes.push_back((Number(number), Ok(reply)));
            }
            Err(_) => {
                peer.row.unreachable += 1;
                self.exchanges.remove(exchange.0);
                self.put(now, number);
            }
        }
        self.tidy();
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, due)) = self.alarms.ring(now) {
            let Due::Question(number) = due;
            if self.asked.find(number).is_some_and(|asked| asked.due == at) {
                self.put(now, number);
            }
        }
        self.tidy();
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due; `None`: never.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.alarms.first()
    }

    /// The next question for an upstream, to be sent at once.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// The next exchange that is over: it was answered, or nobody waits for it any more.
    pub fn poll_cancel(&mut self) -> Option<Exchange> {
        self.cancels.pop_front()
    }

    /// The next outcome of a question.
    pub fn poll_outcome(&mut self) -> Option<(Number, Result<Reply, Exhausted>)> {
        self.outcomes.pop_front()
    }

    /// What happened to an upstream, for the log.
    pub fn poll_event(&mut self) -> Option<Event> {
        None
    }

    /// Each upstream, in the order of the settings.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row> + '_ {
        self.peers.iter().map(|peer| Row { latency: peer.latency.smoothed(), ..peer.row })
    }

    /// Replies that were disbelieved, those to exchanges that were over included.
    #[must_use]
    pub fn disbelieved(&self) -> u64 {
        self.disbelieved
    }

    /// Puts a question to the next upstream, or gives it up.
    fn put(&mut self, now: Instant, number: u64) {
        let Some(asked) = self.asked.find_mut(number) else { return };
        if let Some(open) = asked.exchange.take() {
            self.exchanges.remove(open);
            self.cancels.push_back(Exchange(open));
        }
        if asked.tries == MAX_TRIES || now >= asked.until {
            self.close(number);
            self.outcomes.push_back((Number(number), Err(Exhausted::NoReply)));
            return;
        }
        asked.upstream = asked.tries % self.peers.len();
        asked.tries += 1;
        asked.sent = now;
        let peer = &mut self.peers[asked.upstream];
        asked.due = asked.until.min(now + peer.latency.timeout(asked.tries as u32 - 1));
        peer.row.asked += 1;
        let exchange = self.exchanges.insert(number);
        asked.exchange = Some(exchange);
        let way = if peer.datagrams { Way::Datagram } else { Way::Stream };
        self.alarms.set(asked.due, Due::Question(number));
        let (upstream, message) = (asked.upstream, asked.message.clone());
        self.transmits.push_back(Transmit { exchange: Exchange(exchange), upstream, way, message });
    }

    /// Forgets a question and its exchange.
    fn close(&mut self, number: u64) {
        if let Some(open) = self.asked.remove(number).and_then(|asked| asked.exchange) {
            self.exchanges.remove(open);
            self.cancels.push_back(Exchange(open));
        }
    }

    fn tidy(&mut self) {
        self.alarms.tidy(|at, due| match due {
            Due::Question(number) => self.asked.find(number).is_some_and(|asked| asked.due == at),
        });
    }
}
