//! What the admin API says of the DNS64.

use serde::{Deserialize, Serialize};

/// The DNS64: what it serves, what became of queries, what is kept, and its upstreams.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dns64Row {
    /// Where clients ask, with which prefix, and how many upstreams answer.
    pub serves: String,
    /// Queries a second, averaged over the last seconds.
    pub queries_per_second: f64,
    /// The part of them that was answered without waiting for an upstream, of the last seconds; `None`: there were none.
    pub cached_part: Option<f64>,
    /// Queries since the start.
    pub queries: u64,
    /// Queries that wait for an answer.
    pub waiting: u64,
    /// How many may wait.
    pub waiting_capacity: u64,
    /// Answers in the cache.
    pub cache_answers: u64,
    /// Octets that the cache takes.
    pub cache_octets: u64,
    /// Octets that it may take.
    pub cache_capacity: u64,
    /// Connections of clients; 0 where there are none.
    pub connections: u64,
    /// What became of queries, all of it.
    pub outcomes: Vec<OutcomeRow>,
    /// What else is counted.
    pub counters: Vec<CountedRow>,
    /// Events of streams.
    pub streams: Vec<CountedRow>,
    /// The upstreams, in the order of the configuration.
    pub upstreams: Vec<UpstreamRow>,
    /// Trust anchors, where answers are validated.
    pub anchors: Vec<AnchorRow>,
    /// What the operator should look at.
    pub warnings: Vec<String>,
}

/// What became of queries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutcomeRow {
    /// Its name.
    pub outcome: String,
    /// How often it came.
    pub count: u64,
    /// How often it came in a second, averaged over the last seconds.
    pub per_second: f64,
    /// What it means.
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
    /// Where it is and how it is asked.
    pub name: String,
    /// `up`, `suspected`, `down`.
    pub health: String,
    /// Smoothed time from question to reply, in seconds; `None`: there was no reply yet.
    pub latency_seconds: Option<f64>,
    /// Questions that wait for its reply.
    pub open: u64,
    /// Questions put to it.
    pub asked: u64,
    /// Replies that were believed.
    pub replies: u64,
    /// Of these, such as were of no use.
    pub failed: u64,
    /// Questions without a reply in time.
    pub unanswered: u64,
    /// Questions that could not be put to it.
    pub unreachable: u64,
    /// Replies that were not believed.
    pub disbelieved: u64,
    /// Replies that were truncated.
    pub truncated: u64,
    /// What is unusual about it; empty: nothing.
    pub remarks: String,
}

/// A key that is believed in, or may come to be (RFC 5011).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AnchorRow {
    /// The zone.
    pub zone: String,
    /// The key's tag (RFC 4034 Appendix B).
    pub tag: u16,
    /// Its state (RFC 5011 §4).
    pub state: String,
}

/// What is to be forgotten; neither: nothing is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flush {
    /// A name, and all below it.
    pub name: Option<String>,
    /// `true`: everything.
    pub all: Option<bool>,
}

/// What was forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flushed {
    /// Answers.
    pub answers: u64,
}
