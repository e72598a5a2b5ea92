//! Pseudo-random numbers, the same ones for the same seed (SplitMix64).

/// A source of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random(pub u64);

impl Random {
    /// Any number.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// From 0 to 1, without 1.
    pub fn share(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Whether something of this probability happens.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    /// Exponentially distributed with the mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.share()).ln()
    }

    /// Normally distributed with the mean 0 and the standard deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.share()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_have_their_means_and_deviations() {
        let mut random = Random(1);
        let mut of = |draw: fn(&mut Random) -> f64| {
            let all: Vec<f64> = (0..100_000).map(|_| draw(&mut random)).collect();
            let mean = all.iter().sum::<f64>() / 1e5;
            let variance = all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / 1e5;
            (mean, variance.sqrt())
        };
        for (draw, mean, deviation) in [
            (Random::share as fn(&mut Random) -> f64, 0.5, 0.288_7),
            (Random::exponential, 1.0, 1.0),
            (Random::normal, 0.0, 1.0),
        ] {
            let seen = of(draw);
            assert!((seen.0 - mean).abs() < 0.02 && (seen.1 - deviation).abs() < 0.02, "{seen:?}");
        }
        assert!((0..1_000).all(|_| random.happens(1.0) && !random.happens(0.0)));
    }
}
