//! Limits of connections to upstreams.

use std::time::Duration;

/// Questions under way on one connection at most; some servers end one that has more.
pub(super) const IN_FLIGHT: usize = 100;

/// A connection without a question is closed after this time (RFC 7766 §6.2.3).
pub(super) const IDLE: Duration = Duration::from_secs(10);

/// A connection that yields nothing for so long, while questions wait for replies, is of no use.
pub(super) const SILENCE: Duration = Duration::from_secs(4);
