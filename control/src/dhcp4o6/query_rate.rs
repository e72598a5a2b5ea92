//! How many queries a client prefix may send: token buckets in a fixed table. Prefixes whose keyed hashes collide share a bucket.

use core::hash::BuildHasher as _;
use foldhash::quality::FixedState;
use sixway_dataplane::Instant;

/// Buckets.
const BUCKETS: usize = 4_096;
/// Queries that may come together.
const BURST: u64 = 20;

/// The buckets: when each will be full again, in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct QueryRate {
    full_at: Vec<u64>,
    /// Nanoseconds for a query; 0: no limit.
    interval: u64,
    hasher: FixedState,
}

impl QueryRate {
    /// `per_second`: 0 disables it.
    pub(super) fn new(per_second: u32, seed: u64) -> Self {
        let interval = 1_000_000_000_u64.checked_div(per_second.into()).unwrap_or(0);
        Self { full_at: vec![0; BUCKETS], interval, hasher: FixedState::with_seed(seed) }
    }

    /// Whether a query of this prefix may be answered.
    pub(super) fn admit(&mut self, prefix: u128, now: Instant) -> bool {
        let place = self.hasher.hash_one(prefix) as usize % BUCKETS;
        let full_at = &mut self.full_at[place];
        let next = (*full_at).max(now.0) + self.interval;
        let admitted = next - now.0 <= self.interval * BURST;
        if admitted {
            *full_at = next;
        }
        admitted
    }
}
