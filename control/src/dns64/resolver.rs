//! The resolver: from a client's query to its answer.

use super::ask::{Asker, Exchange, Failure, Heard, Transmit};
use super::outcome::{Counters, Outcome};
use super::settings::{Access, Anchor, Settings};
use super::upstream::{Event, Row};
use crate::Instant;

/// A DNS64 forwarder. `T` is what the caller needs to send an answer.
#[derive(Debug)]
pub struct Resolver<T> {
    settings: Settings,
    counters: Counters,
    answers: Vec<(Asker<T>, Vec<u8>, Outcome)>,
}

impl<T: Copy> Resolver<T> {
    /// A resolver with an empty cache. The same seed gives the same run.
    #[must_use]
    pub fn new(settings: Settings, seed: [u8; 32], now: Instant) -> Self {
        let _ = (seed, now);
        Self { settings, counters: Counters::default(), answers: Vec::new() }
    }

    /// A client's query, without a stream's length field. If it can be answered at once, the answer is written to `answer`, which is cleared
    /// first; nothing is allocated then as long as `answer` has room.
    pub fn handle_query(
        &mut self,
        now: Instant,
        asker: &Asker<T>,
        query: &[u8],
        answer: &mut Vec<u8>,
    ) -> Heard {
        let _ = (now, asker, query, &self.settings);
        answer.clear();
        self.counters.queries += 1;
        self.counters.count(Outcome::Ignored);
        Heard::Ignored
    }

    /// The next answer to a query that was [waiting](Heard::Waiting), and what it is.
    pub fn poll_answer(&mut self, now: Instant, answer: &mut Vec<u8>) -> Option<(Asker<T>, Outcome)> {
        let _ = now;
        let (asker, message, outcome) = self.answers.pop()?;
        answer.clear();
        answer.extend_from_slice(&message);
        Some((asker, outcome))
    }

    /// The next question for an upstream.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        let _ = now;
        None
    }

    /// An exchange that nobody waits for any more: its socket may be closed.
    pub fn poll_cancel(&mut self) -> Option<Exchange> {
        None
    }

    /// What came of an exchange. A reply that is not to its question is counted and otherwise ignored: the exchange goes on.
    pub fn handle_reply(&mut self, now: Instant, exchange: Exchange, reply: Result<&[u8], Failure>) {
        let _ = (now, exchange, reply);
    }

    /// The wall clock, in seconds since 1970 (Unix time): signatures are valid by it. To be told at the start and each second or so.
    pub fn set_wall_clock(&mut self, now: Instant, seconds: u64) {
        let _ = (now, seconds);
    }

    /// Other keys are believed in from now on (RFC 5011).
    pub fn set_anchors(&mut self, anchors: Vec<Anchor>) {
        self.settings.dnssec.anchors = anchors;
    }

    /// When the polls are to be made again, if nothing happens before.
    #[must_use]
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        None
    }

    /// Others may ask from now on.
    pub fn set_access(&mut self, access: Access) {
        self.settings.access = access;
    }

    /// What happened to an upstream, for the log.
    pub fn poll_event(&mut self) -> Option<Event> {
        None
    }

    /// Forgets what is kept of a name in wire form and of those below it; of all names for the root. Says how many answers that were.
    pub fn flush(&mut self, name: &[u8]) -> usize {
        let _ = name;
        0
    }

    /// Queries that wait for an answer.
    #[must_use]
    pub fn waiting(&self) -> usize {
        0
    }

    /// Answers in the cache, and the octets that they take.
    #[must_use]
    pub fn cached(&self) -> (usize, usize) {
        (0, 0)
    }

    /// Each upstream, in the order of the settings.
    pub fn upstreams(&self) -> impl Iterator<Item = Row> + '_ {
        std::iter::empty()
    }

    /// What has been counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters.clone()
    }
}
