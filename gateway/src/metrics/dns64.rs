//! Metrics of the DNS64: every outcome with its help text from the one list, the fill of its tables, and its upstreams.

use crate::view::{Dns64Row, UpstreamRow};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;

/// Something that is counted of an upstream: its name, its help, and its value.
type OfUpstream = (&'static str, &'static str, fn(&UpstreamRow) -> u64);

/// The counters of upstreams.
const OF_UPSTREAMS: [OfUpstream; 7] = [
    ("queries", "Queries sent to the upstream.", |row| row.queries),
    ("replies", "Replies accepted from the upstream.", |row| row.replies),
    ("failures", "Failure replies of the upstream (SERVFAIL, REFUSED and others).", |row| row.failures),
    ("timeouts", "Queries to the upstream that timed out.", |row| row.timeouts),
    ("unreachable", "Queries that could not be sent because the upstream was unreachable.", |row| {
        row.unreachable
    }),
    ("rejected", "Replies of the upstream rejected: they did not match a query or were malformed.", |row| {
        row.rejected
    }),
    ("truncated", "Truncated replies of the upstream.", |row| row.truncated),
];

pub(super) fn encode(row: &Dns64Row, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    counter(encoder, "dns64_queries", "Queries received from clients.", row.queries)?;
    outcomes(row, encoder)?;
    for counted in &row.counters {
        counter(encoder, &format!("dns64_{}", counted.name), &counted.help, counted.value)?;
    }
    for counted in &row.streams {
        counter(encoder, &format!("dns64_streams_{}", counted.name), &counted.help, counted.value)?;
    }
    let gauges = [
        ("dns64_waiting", "Queries waiting for an answer.", row.waiting),
        ("dns64_waiting_capacity", "Maximum number of waiting queries.", row.waiting_capacity),
        ("dns64_cache_answers", "Answers in the cache.", row.cache_answers),
        ("dns64_cache_bytes", "Cache size in octets.", row.cache_octets),
        ("dns64_cache_capacity_bytes", "Maximum cache size in octets.", row.cache_capacity),
        ("dns64_connections", "Open client connections.", row.connections),
    ];
    for (name, help, value) in gauges {
        let encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(encoder)?;
    }
    upstreams(row, encoder)
}

fn counter(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    ConstCounter::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)
}

fn outcomes(row: &Dns64Row, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Queries by outcome.";
    let mut family = encoder.encode_descriptor("dns64_answers", help, None, MetricType::Counter)?;
    for outcome in &row.outcomes {
        let labels = [("outcome", outcome.outcome.as_str())];
        ConstCounter::new(outcome.count).encode(family.encode_family(&labels)?)?;
    }
    let help = "Description of each query outcome.";
    let mut family = encoder.encode_descriptor("dns64_outcome", help, None, MetricType::Gauge)?;
    for outcome in &row.outcomes {
        let labels = [("outcome", outcome.outcome.as_str()), ("help", outcome.help.as_str())];
        ConstGauge::new(1).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn upstreams(row: &Dns64Row, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    for (name, help, value) in OF_UPSTREAMS {
        let name = format!("dns64_upstream_{name}");
        let mut family = encoder.encode_descriptor(&name, help, None, MetricType::Counter)?;
        for upstream in &row.upstreams {
            let labels = [("upstream", upstream.name.as_str())];
            ConstCounter::new(value(upstream)).encode(family.encode_family(&labels)?)?;
        }
    }
    let help = "Whether the upstream answers: 1 yes, 0 no.";
    let mut family = encoder.encode_descriptor("dns64_upstream_up", help, None, MetricType::Gauge)?;
    for upstream in &row.upstreams {
        let labels = [("upstream", upstream.name.as_str())];
        ConstGauge::new(u64::from(upstream.health != "down")).encode(family.encode_family(&labels)?)?;
    }
    let help = "Smoothed time from query to reply.";
    let name = "dns64_upstream_latency_seconds";
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for upstream in &row.upstreams {
        let Some(latency) = upstream.latency_seconds else { continue };
        let labels = [("upstream", upstream.name.as_str())];
        ConstGauge::new(latency).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{GatewaySample, encode};
    use super::*;
    use crate::view::{CountedRow, OutcomeRow};

    #[test]
    fn every_outcome_has_its_count_and_its_help() {
        let outcome = |name: &str, count| OutcomeRow {
            outcome: name.into(),
            count,
            help: format!("help of {name}"),
            ..OutcomeRow::default()
        };
        let row = Dns64Row {
            queries: 9,
            outcomes: vec![outcome("synthesised", 7), outcome("bogus", 2)],
            counters: vec![CountedRow { name: "queries_sent".into(), help: "Queries.".into(), value: 5 }],
            upstreams: vec![UpstreamRow {
                name: "192.0.2.53:53".into(),
                health: "up".into(),
                latency_seconds: Some(0.25),
                ..UpstreamRow::default()
            }],
            ..Dns64Row::default()
        };
        let text = encode(vec![], GatewaySample { dns64: Some(row), ..GatewaySample::default() }).unwrap();
        for line in [
            "sixway_dns64_queries_total 9\n",
            "sixway_dns64_answers_total{outcome=\"synthesised\"} 7\n",
            "sixway_dns64_answers_total{outcome=\"bogus\"} 2\n",
            "sixway_dns64_outcome{outcome=\"bogus\",help=\"help of bogus\"} 1\n",
            "sixway_dns64_queries_sent_total 5\n",
            "sixway_dns64_upstream_up{upstream=\"192.0.2.53:53\"} 1\n",
            "sixway_dns64_upstream_latency_seconds{upstream=\"192.0.2.53:53\"} 0.25\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }
}
