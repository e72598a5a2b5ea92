//! How many sessions of protocols without ports a NAT44 may have.

use serde::Serialize;

use crate::fault::Report;
use crate::pool::Pool;
use crate::section::Reader;

/// Limits of their table: of all workers together, but of a subscriber at each worker.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PortlessLimits {
    /// Sessions.
    #[serde(rename = "max_portless_sessions")]
    pub sessions: u32,
    /// Sessions of a subscriber, an IPv4 address; 0: no limit.
    #[serde(rename = "max_portless_sessions_per_subscriber")]
    pub sessions_per_subscriber: u32,
}

impl PortlessLimits {
    /// `pool`: the NAT44's, if it is known.
    pub(crate) fn read(section: &Reader, pool: Option<&Pool>, report: &mut Report) -> Option<Self> {
        let mut read = |key| section.value(key, report).and_then(|v| v.integer(report));
        let (sessions, of_each) =
            (read("max_portless_sessions"), read("max_portless_sessions_per_subscriber"));
        let made = Self { sessions: sessions?, sessions_per_subscriber: of_each? };
        let wanted = section.value("max_portless_sessions", report).filter(|v| v.is_written());
        if let (Some(v), Some(pool)) = (wanted.filter(|_| made.sessions > 0), pool.filter(|pool| pool.shared))
        {
            let what = "has no effect: this host takes packets of protocols without ports to its own address; use a pool that is not shared, or write 0";
            report.warn(&v.place, format!("{what} (pool {})", pool.name));
        }
        Some(made)
    }
}
