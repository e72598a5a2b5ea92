//! The workers' clock: monotonic, read once a batch.

use nix::time::ClockId;
use sixway_dataplane::Instant;
use sixway_dataplane::mechanism::siit::dynamic_pool::WallClock;
use std::time::{Duration, SystemTime};

/// A clock that all workers of a gateway share. It counts from the machine's start, so that what the previous process did has a
/// time of its own.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: std::time::Instant,
    /// Since the machine's start, at `base`.
    before: Duration,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        let before = ClockId::CLOCK_MONOTONIC.now().map_or(Duration::ZERO, Duration::from);
        Self { base: std::time::Instant::now(), before }
    }

    /// The time since the machine's start, without sleep.
    pub fn now(self) -> Instant {
        // 584 years fit.
        Instant(u64::try_from((self.before + self.base.elapsed()).as_nanos()).unwrap_or(u64::MAX))
    }

    /// This moment on the wall as well.
    pub fn wall(self) -> WallClock {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        WallClock { now: self.now(), unix_seconds: since.map_or(0, |since| since.as_secs()) }
    }
}
