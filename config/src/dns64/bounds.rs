//! The bounds of a DNS64: memory, times and rates of clients.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::fault::Report;
use crate::section::Reader;
use crate::text;

/// How long expired records are still used (RFC 8767).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    /// Never.
    Off,
    /// For this duration.
    For(Duration),
}

impl Serialize for Stale {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_str("off"),
            Self::For(time) => text::as_duration(time, serializer),
        }
    }
}

/// Bounds, each of all threads together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bounds {
    /// The largest answer by UDP, in octets.
    pub udp_payload: u16,
    /// Octets of the cache.
    #[serde(serialize_with = "text::as_octets")]
    pub cache: u64,
    /// Threads that answer.
    pub threads: u8,
    /// The maximum TTL; higher ones are lowered.
    #[serde(serialize_with = "text::as_duration")]
    pub max_ttl: Duration,
    /// The maximum TTL of a negative answer (RFC 2308 §5).
    #[serde(serialize_with = "text::as_duration")]
    pub max_negative_ttl: Duration,
    /// How long expired records are still used.
    pub stale: Stale,
    /// Whether answers in use are queried again shortly before they expire.
    pub prefetch: bool,
    /// Queries that may wait.
    pub waiting: u32,
    /// Questions to upstreams that are open.
    pub upstream_queries: u32,
    /// IPv6 clients with this many first bits in common are one client.
    pub client_prefix_length: u8,
    /// Queries of one client in a second; `None`: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries_per_second: Option<u32>,
    /// Maximum burst of a client's queries; set if `queries_per_second` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
}

impl Bounds {
    pub(super) fn read(section: &Reader, report: &mut Report) -> Option<Self> {
        let udp_payload = section.value("udp_payload", report).and_then(|v| v.integer(report));
        let cache = section.value("cache", report).and_then(|v| v.size(report));
        let threads = section.value("threads", report).and_then(|v| v.integer(report));
        let max_ttl = section.value("max_ttl", report).and_then(|v| v.duration(report));
        let negative = section.value("max_negative_ttl", report);
        let max_negative_ttl = negative.as_ref().and_then(|v| v.duration(report));
        if let (Some(v), Some(negative), Some(most)) = (&negative, max_negative_ttl, max_ttl)
            && v.is_written()
            && negative > most
        {
            let most = text::duration(most);
            report.fault(&v.place, format!("is more than max_ttl, {most}; lower it, or raise max_ttl"));
        }
        let stale = section.value("stale", report).and_then(|v| v.duration_or(report));
        let prefetch = section.value("prefetch", report).and_then(|v| v.boolean(report));
        let waiting = section.value("waiting", report).and_then(|v| v.integer(report));
        let upstream_queries = section.value("upstream_queries", report).and_then(|v| v.integer(report));
        let prefix_length = section.value("client_prefix_length", report).and_then(|v| v.integer(report));
        let (queries_per_second, burst) = read_haste(section, report)?;
        let max_ttl = max_ttl?;
        Some(Self {
            udp_payload: udp_payload?,
            cache: cache?,
            threads: threads?,
            max_ttl,
            max_negative_ttl: max_negative_ttl?.min(max_ttl),
            stale: stale?.map_or(Stale::Off, Stale::For),
            prefetch: prefetch?,
            waiting: waiting?,
            upstream_queries: upstream_queries?,
            client_prefix_length: prefix_length?,
            queries_per_second,
            burst,
        })
    }
}

/// `queries_per_second` and `burst`.
fn read_haste(section: &Reader, report: &mut Report) -> Option<(Option<u32>, Option<u32>)> {
    let rate = section.value("queries_per_second", report).map(|v| v.integer::<u32>(report));
    let burst = section.value("burst", report).map(|v| (v.integer::<u32>(report), v.place));
    match (rate, burst) {
        (None, None) => Some((None, None)),
        (None, Some((_, place))) => {
            report.fault(&place, "has no effect without queries_per_second; set that too, or remove this");
            None
        }
        (Some(rate), None) => Some((Some(rate?), Some(rate?.saturating_mul(2)))),
        (Some(rate), Some((burst, _))) => Some((Some(rate?), Some(burst?))),
    }
}
