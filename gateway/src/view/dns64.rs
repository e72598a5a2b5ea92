//! The DNS64 as it is shown: by the admin API, by `sixway show` and in metrics, which all read the same row.

use super::dns64_rows::{CountedRow, Dns64Row, OutcomeRow, UpstreamRow};
use crate::dns64::{Rates, Report};
use sixway_control::dns64::Outcome;
use sixway_control::dns64::upstream::{Health, Row};

/// What does not change while it runs.
#[derive(Clone, Debug, Default)]
pub struct Dns64Facts {
    /// A summary of listening addresses and prefix.
    pub serves: String,
    /// The upstreams' names.
    pub upstreams: Vec<String>,
    /// Maximum cache size in octets.
    pub cache: u64,
    /// Maximum number of waiting queries.
    pub waiting: u64,
}

/// A counter: name, description, and its value in a report.
type Counted = (&'static str, &'static str, fn(&Report) -> u64);

/// Counters in addition to outcomes.
const COUNTED: [Counted; 15] = [
    ("cached", "Queries answered without waiting for an upstream.", |it| it.counters.cached),
    ("queries_sent", "Queries sent to upstreams.", |it| it.counters.asked),
    ("replies", "Replies accepted from upstreams.", |it| it.counters.replies),
    ("rejected", "Replies rejected: they did not match a query or were malformed.", |it| {
        it.counters.rejected
    }),
    ("timeouts", "Queries to upstreams that timed out.", |it| it.counters.unanswered),
    ("evicted", "Answers evicted from the cache before they expired.", |it| it.counters.evicted),
    ("validations", "DNSSEC validations started.", |it| it.counters.validations),
    ("prefetched", "Queries sent to refresh an answer before it expires.", |it| it.counters.prefetched),
    ("waiting_refused", "Queries refused: the client has its share of waiting queries.", |it| {
        it.counters.waiting_refused
    }),
    (
        "upstream_queries_refused",
        "Lookups refused: the client has its share of upstream_queries, or there was no room to send them.",
        |it| it.counters.upstream_queries_refused,
    ),
    (
        "silent_zone_refused",
        "Lookups refused: the zone does not answer, and the client has many queries under way.",
        |it| it.counters.silent_zone_refused,
    ),
    ("validations_delayed", "DNSSEC validations that had to wait: the client had its share.", |it| {
        it.counters.validations_delayed
    }),
    ("overflowed", "Queries lost because a socket buffer was full.", |it| it.sockets.overflowed),
    ("unsent", "Answers that the kernel refused to send.", |it| it.sockets.unsent),
    (
        "queries_unsent",
        "Queries to upstreams not sent: no file descriptor or no room in the socket buffer.",
        |it| it.sockets.lost,
    ),
];

/// The row. What streams and trust anchors add is added by who knows it.
#[must_use]
pub fn dns64_row(facts: &Dns64Facts, report: &Report, rates: &Rates) -> Dns64Row {
    let all = facts.upstreams.len();
    let upstreams = match report.counters.asked {
        0 => format!("{all} upstream{}, not asked yet", if all == 1 { "" } else { "s" }),
        _ => format!("upstream {} of {all} healthy", all.saturating_sub(report.down())),
    };
    Dns64Row {
        serves: format!("{} · {upstreams}", facts.serves),
        queries_per_second: rates.queries(),
        cache_hit_ratio: rates.cache_hit_ratio(),
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
    let mut notes = Vec::new();
    if row.without_edns {
        notes.push("no EDNS: not supported by the upstream");
    }
    if row.by_stream {
        notes.push("TCP only: it changes the case of names");
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
        in_flight: row.open as u64,
        queries: row.asked,
        replies: row.replies,
        failures: row.failed,
        timeouts: row.unanswered,
        unreachable: row.unreachable,
        rejected: row.rejected,
        truncated: row.truncated,
        notes: notes.join("; "),
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
        let mut report = Report { upstreams: vec![Row::default(), down], ..Report::default() };
        let row = dns64_row(&facts, &report, &Rates::new(Instant::now()));
        assert_eq!(row.serves, "[2001:db8:1::1]:53 · prefix from nat64 · 2 upstreams, not asked yet");
        report.counters.asked = 1;
        let row = dns64_row(&facts, &report, &Rates::new(Instant::now()));
        assert_eq!(row.serves, "[2001:db8:1::1]:53 · prefix from nat64 · upstream 1 of 2 healthy");
        assert_eq!(row.outcomes.len(), Outcome::ALL.len());
        let health: Vec<&str> = row.upstreams.iter().map(|row| &*row.health).collect();
        assert_eq!(health, ["up", "down"]);
        assert!(row.upstreams[0].notes.is_empty() && row.upstreams[1].notes.contains("EDNS"));
    }
}
