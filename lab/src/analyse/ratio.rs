//! Ratios of two devices in the same rounds, and whether they exceed the noise. No other code divides a measured figure by another one.

use super::statistics::estimate;

/// Minimum number of rounds for a ratio.
const ROUNDS: usize = 3;
/// Maximum ratio of an interval's ends: with a wider interval the value has no meaning.
const WIDEST: f64 = 1.5;
/// A difference counts from this multiple of the noise.
const NOISES: f64 = 2.0;

/// A ratio over paired rounds: the geometric mean, and its 95 % confidence interval (Student's t of the logarithms).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The ratio.
    pub value: f64,
    /// The interval's ends.
    pub interval: (f64, f64),
    /// Rounds.
    pub rounds: usize,
}

/// What may be said of two devices.
#[derive(Clone, Debug, PartialEq)]
pub enum Bearing {
    /// The ratio, which differs from 1 by more than the noise.
    Number(Ratio),
    /// It is above 1, or below; by how much is not borne.
    Direction(Ratio),
    /// There is no difference larger than the noise.
    Equal(Ratio),
    /// There is no ratio, with the reason.
    Nothing(String),
}

impl Ratio {
    /// The ratio of these logarithms, one for each round; `None` for fewer than two.
    pub fn of_logarithms(logarithms: &[f64]) -> Option<Self> {
        let mean = estimate(logarithms)?;
        let half = mean.half_width?;
        let interval = ((mean.mean - half).exp(), (mean.mean + half).exp());
        let is_finite = mean.mean.is_finite() && half.is_finite();
        is_finite.then_some(Self { value: mean.mean.exp(), interval, rounds: mean.n })
    }

    /// What the noise, a share, bears of it.
    pub fn bearing(self, noise: f64) -> Bearing {
        let (low, high) = self.interval;
        if self.rounds < ROUNDS {
            return Bearing::Nothing(format!("a ratio takes {ROUNDS} rounds, and here are {}", self.rounds));
        }
        let differs = (low > 1.0 || high < 1.0) && beyond(self.value, NOISES * noise);
        match (differs, high <= low * WIDEST) {
            (true, true) => Bearing::Number(self),
            (true, false) => Bearing::Direction(self),
            (false, true) => Bearing::Equal(self),
            (false, false) => Bearing::Nothing(format!(
                "the rounds differ too much: from {low:.2} to {high:.2} with 95 % confidence"
            )),
        }
    }
}

/// Whether a ratio or its reciprocal is above 1 by more than a share.
fn beyond(ratio: f64, share: f64) -> bool {
    ratio.ln().abs() > share.ln_1p()
}

impl Bearing {
    /// The ratio, if there is one that may be printed as a number.
    pub const fn number(&self) -> Option<Ratio> {
        match self {
            Self::Number(ratio) => Some(*ratio),
            Self::Direction(_) | Self::Equal(_) | Self::Nothing(_) => None,
        }
    }

    /// The ratio with its interval, if there is one, whatever the noise bears of it.
    pub const fn ratio(&self) -> Option<Ratio> {
        match self {
            Self::Number(ratio) | Self::Direction(ratio) | Self::Equal(ratio) => Some(*ratio),
            Self::Nothing(_) => None,
        }
    }

    /// As it is written in a table.
    pub fn text(&self) -> String {
        match self {
            Self::Number(ratio) => format!("{} ×", short(ratio.value)),
            Self::Direction(ratio) if ratio.value > 1.0 => "more".to_owned(),
            Self::Direction(_) => "less".to_owned(),
            Self::Equal(_) => "equal".to_owned(),
            Self::Nothing(_) => "–".to_owned(),
        }
    }

    /// The same with the interval or the reason.
    pub fn explained(&self) -> String {
        let interval = |ratio: &Ratio| {
            let (low, high) = ratio.interval;
            format!("{} to {} with 95 % confidence, {} rounds", short(low), short(high), ratio.rounds)
        };
        match self {
            Self::Number(ratio) => interval(ratio),
            Self::Direction(ratio) => format!("by how much is not certain: {}", interval(ratio)),
            Self::Equal(ratio) => {
                format!("no difference beyond the noise: {}", interval(ratio))
            }
            Self::Nothing(why) => why.clone(),
        }
    }
}

/// A ratio in three digits.
pub fn short(ratio: f64) -> String {
    match ratio {
        100.0.. => format!("{ratio:.0}"),
        10.0.. => format!("{ratio:.1}"),
        0.1.. => format!("{ratio:.2}"),
        _ => format!("{ratio:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearing(ratios: &[f64], noise: f64) -> Bearing {
        let logarithms: Vec<_> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let nothing = || Bearing::Nothing(String::new());
        Ratio::of_logarithms(&logarithms).map_or_else(nothing, |ratio| ratio.bearing(noise))
    }

    #[test]
    fn a_ratio_that_noise_does_not_bear_is_not_printed() {
        assert_eq!(bearing(&[1.9, 2.0, 2.1], 0.05).text(), "2.00 ×");
        // The machine varied by 60 %: twice as much is not a difference.
        assert_eq!(bearing(&[1.9, 2.0, 2.1], 0.6).text(), "equal");
        assert_eq!(bearing(&[0.99, 1.01, 1.03], 0.02).text(), "equal");
        assert_eq!(bearing(&[3.0, 4.0, 6.0], 0.02).text(), "more");
        assert_eq!(bearing(&[0.5, 1.0, 2.0], 0.02).text(), "–");
        assert!(bearing(&[0.5, 1.0, 2.0], 0.02).explained().starts_with("the rounds differ too much"));
        assert_eq!(bearing(&[2.0, 2.0], 0.0).explained(), "a ratio takes 3 rounds, and here are 2");
        assert_eq!(bearing(&[2.0], 0.0), Bearing::Nothing(String::new()));
    }

    #[test]
    fn half_as_much_is_as_far_from_one_as_twice_as_much() {
        assert!(beyond(2.0, 0.9) && beyond(0.5, 0.9));
        assert!(!beyond(2.0, 1.1) && !beyond(0.5, 1.1));
    }
}
