//! The state of one upstream.

use super::super::ask::QueryTransport;
use super::super::settings::Upstream;
use super::abilities::{Abilities, Case};
use super::latency::{DATAGRAM, Latency, STREAM};
use super::liveness::Liveness;
use super::row::{Health, Row};
use crate::Instant;
use core::time::Duration;

/// The latency that is assumed of an upstream that was not measured.
const UNMEASURED: Duration = Duration::from_millis(200);

/// The share of misses, in these parts; each result moves it by an eighth.
const WHOLE: u64 = 1 << 16;

/// What a miss costs: the client waits for another try.
const MISS: u64 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) datagrams: bool,
    pub(super) liveness: Liveness,
    pub(super) abilities: Abilities,
    by_datagram: Latency,
    by_stream: Latency,
    /// The share of questions that another upstream had to answer.
    misses: u64,
    /// Its counters; the rest is filled in when it is shown.
    pub(super) row: Row,
}

impl Peer {
    pub(super) fn new(upstream: &Upstream, now: Instant) -> Self {
        Self {
            datagrams: upstream.datagrams,
            liveness: Liveness::new(now),
            abilities: Abilities::new(),
            by_datagram: Latency::new(DATAGRAM),
            by_stream: Latency::new(STREAM),
            misses: 0,
            row: Row::default(),
        }
    }

    /// The way it is asked first.
    pub(super) fn way(&self) -> QueryTransport {
        let by_stream = !self.datagrams || matches!(self.abilities.case(), Case::ByStream(_));
        if by_stream { QueryTransport::Stream } else { QueryTransport::Datagram }
    }

    pub(super) fn latency(&self, way: QueryTransport) -> &Latency {
        match way {
            QueryTransport::Datagram => &self.by_datagram,
            QueryTransport::Stream => &self.by_stream,
        }
    }

    pub(super) fn latency_mut(&mut self, way: QueryTransport) -> &mut Latency {
        match way {
            QueryTransport::Datagram => &mut self.by_datagram,
            QueryTransport::Stream => &mut self.by_stream,
        }
    }

    /// Names are sent in random case.
    pub(super) fn is_cased(&self, way: QueryTransport) -> bool {
        way == QueryTransport::Datagram && !matches!(self.abilities.case(), Case::Plain(_))
    }

    pub(super) fn is_measured(&self) -> bool {
        self.latency(self.way()).smoothed().is_some()
    }

    /// What asking it first is expected to cost a client, in nanoseconds.
    pub(super) fn cost(&self) -> u64 {
        let smoothed = self.latency(self.way()).smoothed().unwrap_or(UNMEASURED);
        let health = match self.liveness.health {
            Health::Up => 0,
            Health::Suspected => 1_000_000_000,
            Health::Down => 5_000_000_000,
        };
        let smoothed = u64::try_from(smoothed.as_nanos()).unwrap_or(u64::MAX / 4);
        smoothed.min(u64::MAX / 4) + self.misses * (MISS / WHOLE) + health
    }

    /// It answered.
    pub(super) fn hit(&mut self) {
        self.misses -= self.misses / 8;
    }

    /// Another had to answer.
    pub(super) fn miss(&mut self) {
        self.misses += (WHOLE - self.misses) / 8;
    }

    /// Old misses say little of one that is back.
    pub(super) fn back(&mut self) {
        self.misses /= 4;
    }

    pub(super) fn shown(&self) -> Row {
        Row {
            health: self.liveness.health,
            latency: self.latency(self.way()).smoothed(),
            without_edns: !self.abilities.edns(),
            by_stream: self.datagrams && self.way() == QueryTransport::Stream,
            ..self.row
        }
    }
}
