//! Random delays from a seed: the same seed gives the same delays, so that any run can be replayed.

use core::time::Duration;

/// splitmix64. It spreads timers; it keeps no secret.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniformly from `least` to `most`, both included; `least` if they are the wrong way around.
    pub(crate) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let span = u64::try_from(most.saturating_sub(least).as_nanos()).unwrap_or(u64::MAX - 1);
        let scaled = u128::from(self.next()) * (u128::from(span) + 1);
        least + Duration::from_nanos((scaled >> 64) as u64)
    }

    /// Uniformly from zero to `most`.
    pub(crate) fn upto(&mut self, most: Duration) -> Duration {
        self.between(Duration::ZERO, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_fill_their_range_and_stay_within_it() {
        let mut random = Random::new(7);
        let (least, most) = (Duration::from_millis(200), Duration::from_millis(600));
        let delays: Vec<_> = (0..1_000).map(|_| random.between(least, most)).collect();
        assert!(delays.iter().all(|delay| (least..=most).contains(delay)));
        assert!(delays.iter().any(|delay| *delay < Duration::from_millis(210)));
        assert!(delays.iter().any(|delay| *delay > Duration::from_millis(590)));
        assert_eq!(random.between(most, least), most);
    }
}
