//! The rows of DNS64 in the admin API.

use serde::{Deserialize, Serialize};

/// The DNS64: what it serves, query outcomes, the cache and the upstreams.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dns64Row {
    /// Where clients send queries, the prefix, and how many upstreams are healthy.
    pub serves: String,
    /// Queries a second, averaged over the last seconds.
    pub queries_per_second: f64,
    /// The fraction of queries in the last seconds answered without waiting for an upstream; `None`: no queries.
    pub cache_hit_ratio: Option<f64>,
    /// Queries since the start.
    pub queries: u64,
    /// Queries waiting for an answer.
    pub waiting: u64,
    /// Maximum number of waiting queries.
    pub waiting_capacity: u64,
    /// Answers in the cache.
    pub cache_answers: u64,
    /// Cache size in octets.
    pub cache_octets: u64,
    /// Maximum cache size in octets.
    pub cache_capacity: u64,
    /// Open client connections.
    pub connections: u64,
    /// Queries by outcome.
    pub outcomes: Vec<OutcomeRow>,
    /// Further counters.
    pub counters: Vec<CountedRow>,
    /// Events of streams.
    pub streams: Vec<CountedRow>,
    /// The upstreams, in the order of the configuration.
    pub upstreams: Vec<UpstreamRow>,
    /// Trust anchors, where answers are validated.
    pub anchors: Vec<AnchorRow>,
    /// What needs the operator's attention.
    pub warnings: Vec<String>,
}

/// How often queries had one outcome.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutcomeRow {
    /// Its name.
    pub outcome: String,
    /// How often it came.
    pub count: u64,
    /// How often it came in a second, averaged over the last seconds.
    pub per_second: f64,
    /// Its meaning.
    pub help: String,
}

/// Something that is counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CountedRow {
    /// Its name.
    pub name: String,
    /// What it counts.
    pub help: String,
    /// How often it came.
    pub value: u64,
}

/// An upstream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UpstreamRow {
    /// Its address and transport.
    pub name: String,
    /// `up`, `suspected`, `down`.
    pub health: String,
    /// Smoothed round-trip time in seconds; `None`: no reply yet.
    pub latency_seconds: Option<f64>,
    /// Queries waiting for its reply.
    pub in_flight: u64,
    /// Queries sent to it.
    pub queries: u64,
    /// Replies accepted.
    pub replies: u64,
    /// Failure replies among these (SERVFAIL, REFUSED and others).
    pub failures: u64,
    /// Queries that timed out.
    pub timeouts: u64,
    /// Queries that could not be sent: the upstream was unreachable.
    pub unreachable: u64,
    /// Replies rejected: no matching query, or malformed.
    pub rejected: u64,
    /// Replies that were truncated.
    pub truncated: u64,
    /// What is unusual about it; empty if nothing is.
    pub notes: String,
}

/// A trust anchor, or a key that may become one (RFC 5011).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AnchorRow {
    /// The zone.
    pub zone: String,
    /// The key's tag (RFC 4034 Appendix B).
    pub tag: u16,
    /// Its state (RFC 5011 §4).
    pub state: String,
}

/// What to remove from the cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flush {
    /// A name, and all below it.
    pub name: Option<String>,
    /// `true`: everything.
    pub all: Option<bool>,
}

/// What was removed from the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flushed {
    /// Answers.
    pub answers: u64,
}
