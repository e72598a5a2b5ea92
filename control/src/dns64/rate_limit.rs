//! How often a client may ask: a bucket of tokens for each /64 or IPv4 address.
//!
//! A bucket is the time at which it will be full again (the generic cell rate algorithm, ITU-T I.371 Annex A), so one number says all. The table has sets of eight
//! buckets; in a set that is full, the fullest makes room, since it forgets least. Whoever floods the table with invented sources therefore displaces
//! other newcomers, and not the bucket of a client that has used up its tokens.

use crate::Instant;
use foldhash::fast::FixedState;
use std::hash::BuildHasher as _;
use std::net::IpAddr;
use std::time::Duration;

/// Buckets that are looked through for one client.
const WAYS: usize = 8;

/// Sets of buckets: room for 65,536 clients in 1 MiB.
const SETS: usize = 8_192;

const SECOND: u64 = 1_000_000_000;

/// A client's bucket.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    client: u64,
    /// When it is full again.
    full: Instant,
}

/// The buckets of all clients, if there is a limit.
#[derive(Clone, Debug)]
pub(super) struct RateLimit {
    /// Nanoseconds for one token.
    token: u64,
    /// Nanoseconds for all but one of a full bucket's tokens.
    tolerance: u64,
    hash: FixedState,
    buckets: Vec<Bucket>,
}

impl RateLimit {
    /// So many queries a second, and so many at once; `None`: no limit. The seed places the buckets where nobody can foretell.
    pub(super) fn new(limit: Option<(u32, u32)>, seed: u64) -> Self {
        let (rate, burst) = limit.map_or((0, 1), |(rate, burst)| (u64::from(rate), u64::from(burst.max(1))));
        let token = SECOND.checked_div(rate).unwrap_or(u64::MAX).max(1);
        Self {
            token,
            tolerance: token.saturating_mul(burst - 1),
            hash: FixedState::with_seed(seed),
            buckets: if limit.is_some() { vec![Bucket::default(); WAYS * SETS] } else { Vec::new() },
        }
    }

    /// Takes a token from the client's bucket; false: it is empty.
    pub(super) fn admit(&mut self, now: Instant, client: IpAddr) -> bool {
        if self.buckets.is_empty() {
            return true;
        }
        let client = client_of(client);
        let set = (self.hash.hash_one(client) as usize % SETS) * WAYS;
        let Some(bucket) = place(&mut self.buckets[set..set + WAYS], client) else { return true };
        let full = bucket.full.max(now);
        if full.since(now) > Duration::from_nanos(self.tolerance) {
            return false;
        }
        bucket.full = full + Duration::from_nanos(self.token);
        true
    }
}

/// The client's bucket, or a fresh one in the place of the fullest.
fn place(set: &mut [Bucket], client: u64) -> Option<&mut Bucket> {
    if let Some(at) = set.iter().position(|bucket| bucket.client == client) {
        return set.get_mut(at);
    }
    let fullest = set.iter_mut().min_by_key(|bucket| bucket.full)?;
    *fullest = Bucket { client, full: Instant::default() };
    Some(fullest)
}

/// A /64, or an IPv4 address where no /64 is: under ffff:ffff::/32, which is multicast. Never zero, which marks an empty place.
fn client_of(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(address) => 0xffff_ffff << 32 | u64::from(address.to_bits()),
        IpAddr::V6(address) => ((address.to_bits() >> 64) as u64).max(1),
    }
}
