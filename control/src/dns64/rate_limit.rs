//! Rates of clients, of their queries and of the signatures that are checked for them: a token bucket for each subscriber, a prefix or an IPv4 address.
//!
//! Queries from proven addresses have separate buckets, in a separate table: what others send in a subscriber's name, with forged
//! sources, takes nothing from them.
//!
//! A bucket is the time at which it will be full again (the generic cell rate algorithm, ITU-T I.371 Annex A), so one number says all. The table has sets of eight
//! buckets; in a set that is full, the fullest makes room, since it forgets least. A flood of forged sources therefore displaces
//! other newcomers, and not the bucket of a client that has used up its tokens.

use super::shares::{Payer, Subscriber};
use crate::Instant;
use foldhash::fast::FixedState;
use std::hash::BuildHasher as _;
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

/// A rate limit: buckets for addresses that may be forged, and for those that are proven.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    forgeable: RateLimit,
    proven: RateLimit,
}

impl Rates {
    /// As [`RateLimit::new`].
    pub(super) fn new(limit: Option<(u32, u32)>, seed: u64) -> Self {
        let forgeable = RateLimit::new(limit, seed);
        Self { proven: forgeable.clone(), forgeable }
    }

    /// As [`RateLimit::reconfigure`].
    pub(super) fn reconfigure(&mut self, limit: Option<(u32, u32)>) {
        self.forgeable.reconfigure(limit);
        self.proven.reconfigure(limit);
    }

    /// Takes a token of the payer's subscriber; false: no token is left.
    pub(super) fn admit(&mut self, now: Instant, payer: Payer) -> bool {
        self.buckets(payer).admit(now, payer.subscriber())
    }

    /// Whether the payer's subscriber has a token.
    pub(super) fn has_token(&mut self, now: Instant, payer: Payer) -> bool {
        self.buckets(payer).has_token(now, payer.subscriber())
    }

    /// Takes what was spent already, more than there is if need be.
    pub(super) fn charge(&mut self, now: Instant, payer: Payer, tokens: u64) {
        self.buckets(payer).charge(now, payer.subscriber(), tokens);
    }

    fn buckets(&mut self, payer: Payer) -> &mut RateLimit {
        if payer.is_proven() { &mut self.proven } else { &mut self.forgeable }
    }
}

/// A bucket for each subscriber, if there is a limit.
#[derive(Clone, Debug)]
struct RateLimit {
    /// Nanoseconds for one token.
    token: u64,
    /// Nanoseconds for all but one of a full bucket's tokens.
    tolerance: u64,
    hash: FixedState,
    buckets: Vec<Bucket>,
}

impl RateLimit {
    /// Queries a second and burst size; `None`: no limit. The seed makes the buckets' places unpredictable.
    fn new(limit: Option<(u32, u32)>, seed: u64) -> Self {
        Self::with_hash(limit, FixedState::with_seed(seed))
    }

    fn with_hash(limit: Option<(u32, u32)>, hash: FixedState) -> Self {
        let (rate, burst) = limit.map_or((0, 1), |(rate, burst)| (u64::from(rate), u64::from(burst.max(1))));
        let token = SECOND.checked_div(rate).unwrap_or(u64::MAX).max(1);
        Self {
            token,
            tolerance: token.saturating_mul(burst - 1),
            hash,
            buckets: if limit.is_some() { vec![Bucket::default(); WAYS * SETS] } else { Vec::new() },
        }
    }

    /// Takes another limit; with another one than before, all buckets are full.
    fn reconfigure(&mut self, limit: Option<(u32, u32)>) {
        let other = Self::with_hash(limit, self.hash.clone());
        if (other.token, other.tolerance, other.buckets.len())
            != (self.token, self.tolerance, self.buckets.len())
        {
            *self = other;
        }
    }

    /// Takes a token from the client's bucket; false: it is empty.
    fn admit(&mut self, now: Instant, client: Subscriber) -> bool {
        if self.buckets.is_empty() {
            return true;
        }
        let (token, tolerance) = (self.token, self.tolerance);
        let Some(bucket) = self.bucket(client_of(client)) else { return true };
        let full = bucket.full.max(now);
        if full.since(now) > Duration::from_nanos(tolerance) {
            return false;
        }
        bucket.full = full + Duration::from_nanos(token);
        true
    }

    /// Whether a subscriber's bucket has a token.
    fn has_token(&mut self, now: Instant, client: Subscriber) -> bool {
        let tolerance = self.tolerance;
        self.bucket(client_of(client))
            .is_none_or(|bucket| bucket.full.since(now) <= Duration::from_nanos(tolerance))
    }

    /// Takes what was spent already, more than the bucket has if need be.
    fn charge(&mut self, now: Instant, client: Subscriber, tokens: u64) {
        let spent = Duration::from_nanos(self.token.saturating_mul(tokens));
        if let Some(bucket) = self.bucket(client_of(client)) {
            bucket.full = bucket.full.max(now) + spent;
        }
    }

    fn bucket(&mut self, client: u64) -> Option<&mut Bucket> {
        let set = (self.hash.hash_one(client) as usize % SETS) * WAYS;
        place(self.buckets.get_mut(set..set + WAYS)?, client)
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

/// A subscriber. Never zero, which marks an empty place.
fn client_of(subscriber: Subscriber) -> u64 {
    subscriber.short().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv6Addr;

    fn client(text: &str) -> Subscriber {
        of_prefix(text, 64)
    }

    fn of_prefix(text: &str, length: u8) -> Subscriber {
        Payer::of(text.parse().unwrap(), length, false).subscriber()
    }

    fn admitted(limit: &mut RateLimit, now: Instant, from: &str, times: usize) -> usize {
        (0..times).filter(|_| limit.admit(now, client(from))).count()
    }

    #[test]
    fn forged_sources_take_no_tokens_of_who_is_proven() {
        let mut rates = Rates::new(Some((1, 10)), 1);
        let now = Instant::from_secs(1);
        let of = |proven| Payer::of("2001:db8::1".parse().unwrap(), 64, proven);
        let mut admitted = |proven| (0..50).filter(|_| rates.admit(now, of(proven))).count();
        assert_eq!((admitted(false), admitted(true), admitted(true), admitted(false)), (10, 10, 0, 0));
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
    fn a_prefix_is_one_client_and_so_is_an_ipv4_address() {
        let mut limit = RateLimit::new(Some((1, 2)), 1);
        let now = Instant::from_secs(1);
        assert_eq!(admitted(&mut limit, now, "2001:db8::1", 1), 1);
        assert_eq!(admitted(&mut limit, now, "2001:db8::ffff:2", 2), 1);
        assert_eq!(admitted(&mut limit, now, "2001:db8:0:1::1", 2), 2);
        assert_eq!(admitted(&mut limit, now, "192.0.2.1", 1), 1);
        assert_eq!(admitted(&mut limit, now, "::ffff:192.0.2.1", 2), 1);
        assert_eq!(admitted(&mut limit, now, "192.0.2.2", 2), 2);
        let mut limit = RateLimit::new(Some((1, 2)), 1);
        let mut of_a_56 = |from: &str| limit.admit(now, of_prefix(from, 56));
        assert!(of_a_56("2001:db8::1") && of_a_56("2001:db8:0:ff::1") && !of_a_56("2001:db8:0:1::1"));
        assert!(of_a_56("2001:db8:0:100::1"));
    }

    #[test]
    fn invented_sources_do_not_give_a_heavy_client_new_tokens() {
        let mut limit = RateLimit::new(Some((1, 100)), 1);
        let now = Instant::from_secs(1);
        assert_eq!(admitted(&mut limit, now, "2001:db8::1", 200), 100);
        for n in 0..1_000_000_u64 {
            let source = Ipv6Addr::from_bits(u128::from(0x2002_0000_0000_0000 + n) << 64);
            assert!(limit.admit(now, Payer::of(source.into(), 64, false).subscriber()));
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
