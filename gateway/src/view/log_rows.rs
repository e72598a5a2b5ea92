//! The rows of the admin API about the event log.

use serde::{Deserialize, Serialize};

/// A sink of the event log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SinkRow {
    /// Which: `workers` (their rings), a path, or `syslog udp 192.0.2.5:514`.
    pub name: String,
    /// Records written or sent.
    pub written: u64,
    /// Octets in its spool.
    pub spooled_octets: u64,
    /// Records lost.
    pub lost: u64,
    /// Seconds since records were last lost; `None`: never.
    pub lost_seconds: Option<u64>,
    /// Seconds since it went away; `None`: it is there.
    pub away_seconds: Option<u64>,
    /// Whether events wait for it in a spool while it is away; if not, they are lost.
    #[serde(default)]
    pub has_spool: bool,
    /// Why it is away.
    pub reason: Option<String>,
}
