//! The DNS64 as it is shown: by the admin API, by `sixway show` and in metrics, which all read the same row.

use super::dns64_rows::{CountedRow, Dns64Row, OutcomeRow, UpstreamRow};
use crate::dns64::{Rates, Report};
use sixway_control::dns64::Outcome;
use sixway_control::dns64::upstream::{Health, Row};

/// What does not change while it runs.
#[derive(Clone, Debug, Default)]
pub struct Dns64Facts {
    /// Where clients ask and with which prefix, in a few words.
    pub serves: String,
    /// What upstreams are called.
    pub upstreams: Vec<String>,
    /// Octets that the cache may take.
    pub cache: u64,
    /// Queries that may wait.
    pub waiting: u64,
}

/// Something that is counted: its name, what it counts, and where it stands in a report.
type Counted = (&'static str, &'static str, fn(&Report) -> u64);

/// What is counted beside outcomes.
const COUNTED: [Counted; 11] = [
    ("cached", "Queries answered without waiting for an upstream.", |it| it.counters.cached),
    ("asked", "Questions put to upstreams.", |it| it.counters.asked),
    ("replies", "Replies of upstreams that were believed.", |it| it.counters.replies),
    ("disbelieved", "Replies that were not: of another question, or malformed.", |it| {
        it.counters.disbelieved
    }),
    ("unanswered", "Questions to upstreams without a reply in time.", |it| it.counters.unanswered),
    ("evicted", "Answers in the cache that made way for others before their end.", |it| it.counters.evicted),
    ("validations", "Validations begun.", |it| it.counters.validations),
    ("prefetched", "Questions asked ahead of an answer's end.", |it| it.counters.prefetched),
    ("overflowed", "Queries that the sockets had no room for when they came.", |it| it.sockets.overflowed),
    ("unsent", "Answers that the kernel would not send.", |it| it.sockets.unsent),
    ("lost", "Questions to upstreams that could not be put for want of a descriptor or of room.", |it| {
        it.sockets.lost
    }),
];

/// The row. What streams and trust anchors add is added by who knows it.
#[must_use]
pub fn dns64_row(facts: &Dns64Facts, report: &Report, rates: &Rates) -> Dns64Row {
    let all = facts.upstreams.len();
    let healthy = all.saturating_sub(report.down());
    Dns64Row {
        serves: format!("{} · upstream {healthy} of {all} healthy", facts.serves),
        queries_per_second: rates.queries(),
        cached_part: rates.cached_part(),
        queries: report.counters.queries,
        waiting: report.waiting as u64,
        waiting_capacity: facts.waiting,
        cache_answers: report.entries as u64,
        cache_octets: report.octets as u64,
        cache_capacity: facts.cache,
        outcomes: outcomes(report, rates),
        counters: COUNTED
            .iter()
            .map(|(name, help, value)| CountedRow {
                name: (*name).into(),
                help: (*help).into(),
                value: value(report),
            })
            .collect(),
        upstreams: facts.upstreams.iter().zip(&report.upstreams).map(upstream).collect(),
        ..Dns64Row::default()
    }
}

fn outcomes(report: &Report, rates: &Rates) -> Vec<OutcomeRow> {
    let row = |outcome: &Outcome| OutcomeRow {
        outcome: outcome.name().into(),
        count: report.counters.of(*outcome),
        per_second: rates.outcome(*outcome),
        help: outcome.help().into(),
    };
    Outcome::ALL.iter().map(row).collect()
}

fn upstream((name, row): (&String, &Row)) -> UpstreamRow {
    let mut remarks = Vec::new();
    if row.without_edns {
        remarks.push("without EDNS, which it does not understand");
    }
    if row.by_stream {
        remarks.push("by TCP, since it changes the case of names");
    }
    UpstreamRow {
        name: name.clone(),
        health: match row.health {
            Health::Up => "up",
            Health::Suspected => "suspected",
            Health::Down => "down",
        }
        .into(),
        latency_seconds: row.latency.map(|latency| latency.as_secs_f64()),
        open: row.open as u64,
        asked: row.asked,
        replies: row.replies,
        failed: row.failed,
        unanswered: row.unanswered,
        unreachable: row.unreachable,
        disbelieved: row.disbelieved,
        truncated: row.truncated,
        remarks: remarks.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn every_outcome_and_every_upstream_has_its_row() {
        let facts = Dns64Facts {
            serves: "[2001:db8:1::1]:53 · prefix from nat64".into(),
            upstreams: vec!["192.0.2.53:53 (udp)".into(), "192.0.2.54:853 (tls)".into()],
            ..Dns64Facts::default()
        };
        let down = Row { health: Health::Down, without_edns: true, by_stream: true, ..Row::default() };
        let report = Report { upstreams: vec![Row::default(), down], ..Report::default() };
        let row = dns64_row(&facts, &report, &Rates::new(Instant::now()));
        assert_eq!(row.serves, "[2001:db8:1::1]:53 · prefix from nat64 · upstream 1 of 2 healthy");
        assert_eq!(row.outcomes.len(), Outcome::ALL.len());
        let health: Vec<&str> = row.upstreams.iter().map(|row| &*row.health).collect();
        assert_eq!(health, ["up", "down"]);
        assert!(row.upstreams[0].remarks.is_empty() && row.upstreams[1].remarks.contains("EDNS"));
    }
}
