//! The clients' rate limit: a token bucket for each /64 or IPv4 address.
//!
//! A bucket is the time at which it will be full again (the generic cell rate algorithm, ITU-T I.371 Annex A), so one number says all. The table has sets of eight
//! buckets; in a set that is full, the fullest makes room, since it forgets least. A flood of forged sources therefore displaces
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
    /// Queries a second and burst size; `None`: no limit. The seed makes the buckets' places unpredictable.
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

/// The client's bucket, or a fresh one in place of the fullest.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv6Addr;

    fn client(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn admitted(limit: &mut RateLimit, now: Instant, from: &str, times: usize) -> usize {
        (0..times).filter(|_| limit.admit(now, client(from))).count()
    }

    #[test]
    fn without_a_limit_everybody_is_admitted() {
        let mut limit = RateLimit::new(None, 1);
        assert_eq!(admitted(&mut limit, Instant::default(), "2001:db8::1", 100_000), 100_000);
    }

    #[test]
    fn a_client_may_ask_a_burst_and_then_at_its_rate() {
        let mut limit = RateLimit::new(Some((10, 50)), 1);
        let mut now = Instant::from_secs(100);
        assert_eq!(admitted(&mut limit, now, "2001:db8::1", 80), 50);
        now = now + Duration::from_secs(1);
        assert_eq!(admitted(&mut limit, now, "2001:db8::1", 80), 10);
        now = now + Duration::from_secs(60);
        assert_eq!(admitted(&mut limit, now, "2001:db8::1", 80), 50);
    }

    #[test]
    fn a_64_is_one_client_and_so_is_an_ipv4_address() {
        let mut limit = RateLimit::new(Some((1, 2)), 1);
        let now = Instant::from_secs(1);
        assert_eq!(admitted(&mut limit, now, "2001:db8::1", 1), 1);
        assert_eq!(admitted(&mut limit, now, "2001:db8::ffff:2", 2), 1);
        assert_eq!(admitted(&mut limit, now, "2001:db8:0:1::1", 2), 2);
        assert_eq!(admitted(&mut limit, now, "192.0.2.1", 1), 1);
        assert_eq!(admitted(&mut limit, now, "::ffff:192.0.2.1", 2), 1);
        assert_eq!(admitted(&mut limit, now, "192.0.2.2", 2), 2);
    }

    #[test]
    fn invented_sources_do_not_give_a_heavy_client_new_tokens() {
        let mut limit = RateLimit::new(Some((1, 100)), 1);
        let now = Instant::from_secs(1);
        assert_eq!(admitted(&mut limit, now, "2001:db8::1", 200), 100);
        for n in 0..1_000_000_u64 {
            let source = Ipv6Addr::from_bits(u128::from(0x2002_0000_0000_0000 + n) << 64);
            assert!(limit.admit(now, source.into()));
        }
        assert_eq!(admitted(&mut limit, now, "2001:db8::1", 200), 0);
        assert_eq!(limit.buckets.len(), WAYS * SETS);
    }

    #[test]
    fn a_rate_of_zero_is_a_burst_and_nothing_more() {
        let mut limit = RateLimit::new(Some((0, 1)), 1);
        assert_eq!(admitted(&mut limit, Instant::from_secs(1), "192.0.2.1", 5), 1);
        assert_eq!(admitted(&mut limit, Instant::from_secs(1_000_000), "192.0.2.1", 5), 0);
    }

    proptest! {
        /// A model of a bucket that counts its tokens.
        #[test]
        fn a_bucket_is_what_counting_its_tokens_says(
            rate in prop::sample::select(vec![1_u32, 2, 5, 10, 100]), burst in 1_u32..20, waits in prop::collection::vec(0_u64..2_000, 1..60)
        ) {
            let mut limit = RateLimit::new(Some((rate, burst)), 3);
            let token = SECOND / u64::from(rate);
            let (mut now, mut last, mut left) = (SECOND, SECOND, u64::from(burst) * token);
            for wait in waits {
                now += wait * 1_000_000;
                left = (left + (now - last)).min(u64::from(burst) * token);
                last = now;
                let may = left >= token;
                left -= if may { token } else { 0 };
                prop_assert_eq!(limit.admit(Instant(now), client("192.0.2.1")), may);
            }
        }
    }
}
