//! The workers' clock: monotonic, read once a batch.

use sixway_dataplane::Instant;
use sixway_dataplane::mechanism::siit::dynamic_pool::WallClock;
use std::time::SystemTime;

/// A clock that all workers of a gateway share.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: std::time::Instant,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { base: std::time::Instant::now() }
    }

    /// The time since the start.
    pub fn now(self) -> Instant {
        // 584 years fit.
        Instant(u64::try_from(self.base.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// This moment on the wall as well.
    pub fn wall(self) -> WallClock {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        WallClock { now: self.now(), unix_seconds: since.map_or(0, |since| since.as_secs()) }
    }
}
