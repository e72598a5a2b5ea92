//! Rates of many addresses or senders. All with the same hash share a bucket, so no bucket is ever replaced. A flood of forged sources uses
//! up only the tokens of senders whose buckets it hits.

use crate::instant::Instant;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::{BuildHasher as _, Hash};
use core::time::Duration;
use foldhash::fast::FixedState;

const SECOND: u64 = 1_000_000_000;

/// Tokens a second, and how many a full bucket has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Packets a second.
    pub rate: u32,
    /// Packets of a burst.
    pub burst: u32,
}

impl Rate {
    /// A third of it, for some; and what is left for others.
    pub const fn thirds(self) -> (Self, Self) {
        let (rate, burst) = (self.rate / 3, self.burst / 3);
        (Self { rate, burst }, Self { rate: self.rate - rate, burst: self.burst - burst })
    }
}

/// Buckets of one rate; each is the time at which it is full (the generic cell rate algorithm, ITU-T I.371 Annex A).
#[derive(Clone, Debug)]
pub struct Rates {
    token: Duration,
    tolerance: Duration,
    hash: FixedState,
    full: Vec<Instant>,
}

impl Rates {
    /// This many buckets; one is a rate of all together.
    pub fn new(Rate { rate, burst }: Rate, buckets: usize, seed: u64) -> Self {
        let token = SECOND.checked_div(u64::from(rate)).unwrap_or(u64::MAX).max(1);
        Self {
            token: Duration::from_nanos(token),
            tolerance: Duration::from_nanos(token.saturating_mul(u64::from(burst.max(1)) - 1)),
            hash: FixedState::with_seed(seed),
            full: vec![Instant::default(); buckets.max(1)],
        }
    }

    /// Takes a token of an address, or of an identifier; false: the bucket is empty.
    pub fn admit(&mut self, whose: impl Hash, now: Instant) -> bool {
        let at = self.at(whose);
        let full = self.full[at].max(now);
        if full.since(now) > self.tolerance {
            return false;
        }
        self.full[at] = full + self.token;
        true
    }

    /// Whether [`Rates::admit`] would have a token, which stays.
    pub fn has(&self, whose: impl Hash, now: Instant) -> bool {
        self.full[self.at(whose)].since(now) <= self.tolerance
    }

    /// Octets of memory.
    pub const fn memory_used(&self) -> usize {
        self.full.capacity() * size_of::<Instant>()
    }

    fn at(&self, whose: impl Hash) -> usize {
        self.hash.hash_one(whose) as usize % self.full.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    #[test]
    fn an_address_may_send_a_burst_and_then_at_its_rate_while_another_is_not_touched() {
        let mut rates = Rates::new(Rate { rate: 10, burst: 20 }, 65_536, 1);
        let [heavy, light] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
        let now = Instant::from_secs(100);
        let taken = |rates: &mut Rates, from, now| (0..1_000).filter(|_| rates.admit(from, now)).count();
        assert_eq!(taken(&mut rates, heavy, now), 20);
        assert_eq!((rates.has(heavy, now), rates.has(light, now)), (false, true));
        assert_eq!(taken(&mut rates, heavy, now + Duration::from_secs(1)), 10);
        assert_eq!(taken(&mut rates, light, now + Duration::from_secs(1)), 20);
    }

    #[test]
    fn one_bucket_is_the_rate_of_all() {
        let mut rates = Rates::new(Rate { rate: 1, burst: 3 }, 1, 1);
        let admitted = (0..10).filter(|n| rates.admit(Ipv4Addr::from_bits(*n), Instant::from_secs(9)));
        assert_eq!(admitted.count(), 3);
    }
}
