//! Clients' connections to a DNS64, and their threads.

use std::time::Duration;

use serde::Serialize;

use crate::fault::Report;
use crate::section::Reader;
use crate::text;
use crate::word::words;

words! {
    /// Which queries one thread has.
    ThreadsBy {
        /// All of a client.
        Client = "client",
        /// All of a flow.
        Flow = "flow",
    }
}

/// The bounds of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Connections {
    /// Connections in all.
    pub connections: u32,
    /// Connections of one client; `None`: as many as are free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections_per_client: Option<u32>,
    /// A connection without a query is closed after this time.
    #[serde(serialize_with = "text::as_duration")]
    pub idle_timeout: Duration,
    /// TLS must be agreed on within this time.
    #[serde(serialize_with = "text::as_duration")]
    pub handshake_timeout: Duration,
    /// Which queries one thread has.
    pub threads_by: ThreadsBy,
}

impl Connections {
    pub(super) fn read(section: &Reader, report: &mut Report) -> Option<Self> {
        let connections = section.value("connections", report).and_then(|v| v.integer(report));
        let per_client = section.value("connections_per_client", report);
        let per_client = per_client.map(|v| (v.integer::<u32>(report), v.place));
        if let (Some(all), Some((Some(one), place))) = (connections, &per_client)
            && *one > all
        {
            report.fault(place, format!("is more than connections, {all}; lower it, or raise connections"));
        }
        let idle_timeout = section.value("idle_timeout", report).and_then(|v| v.duration(report));
        let handshake_timeout = section.value("handshake_timeout", report).and_then(|v| v.duration(report));
        let threads_by = section.value("threads_by", report).and_then(|v| v.word(report));
        Some(Self {
            connections: connections?,
            connections_per_client: per_client.map_or(Some(None), |(one, _)| one.map(Some))?,
            idle_timeout: idle_timeout?,
            handshake_timeout: handshake_timeout?,
            threads_by: threads_by?,
        })
    }
}
