//! Limits of connections to upstreams.

use std::time::Duration;

/// Maximum queries in flight on one connection; some servers close one that has more.
pub(super) const IN_FLIGHT: usize = 100;

/// Connections to one upstream that take questions.
pub(super) const CONNECTIONS: usize = 8;

/// Questions under way to one upstream: half of what its connections could carry, since some of these have abandoned questions.
pub(super) const SLOTS: usize = CONNECTIONS / 2 * IN_FLIGHT;

/// A connection without queries is closed after this time (RFC 7766 §6.2.3).
pub(super) const IDLE: Duration = Duration::from_secs(10);

/// A connection without any reply for this time, while queries wait, is closed.
pub(super) const SILENCE: Duration = Duration::from_secs(4);
