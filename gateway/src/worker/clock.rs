//! The workers' clock: monotonic, read once a batch.

use sixway_dataplane::Instant;

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
}
