//! Nonces, random bits of addresses and delays, from a seed. Nonces are sent in clear text and must not reveal later ones, so a stream cipher generates them.

use core::time::Duration;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

#[derive(Debug)]
pub(super) struct Chance(StdRng);

impl Chance {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Self(StdRng::from_seed(seed))
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniformly from `least` to `most`.
    pub(super) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let span = u64::try_from(most.saturating_sub(least).as_nanos()).unwrap_or(u64::MAX - 1);
        let scaled = u128::from(self.bits()) * (u128::from(span) + 1);
        least + Duration::from_nanos((scaled >> 64) as u64)
    }
}
