//! Ratios of two devices in the same rounds, and whether they exceed the noise. No other code divides a measured figure by another one.

use super::statistics::estimate;

/// Minimum number of rounds for a ratio.
const ROUNDS: usize = 3;
/// Maximum ratio of an interval's ends: with a wider interval the value has no meaning.
const WIDEST: f64 = 1.5;
/// An interval within this factor of 1 on both sides shows that there is no relevant difference.
const NEAR: f64 = 1.1;
/// A difference counts from this multiple of the noise.
const NOISES: f64 = 2.0;
/// Why rounds that differ more than [`WIDEST`] have no ratio.
const TOO_WIDE: &str = "the rounds differ too much";

/// A ratio over paired rounds: the geometric mean, and its 95 % confidence interval (Student's t of the logarithms).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The ratio.
    pub value: f64,
    /// The interval's ends. Within a [`Bearing`] they are at least twice the noise from the value, so that who compares them with a limit has counted the
    /// noise.
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
        let wide = self.widened(noise);
        let differs = wide.interval.0 > 1.0 || wide.interval.1 < 1.0;
        match (differs, high <= low * WIDEST) {
            (true, true) => Bearing::Number(wide),
            (true, false) => Bearing::Direction(wide),
            (false, true) => Bearing::Equal(wide),
            (false, false) => {
                Bearing::Nothing(format!("{TOO_WIDE}: from {low:.2} to {high:.2} with 95 % confidence"))
            }
        }
    }

    /// With an interval that the noise may have moved the value in: rounds of one run can agree better than the machine with itself.
    fn widened(self, noise: f64) -> Self {
        let ((low, high), factor) = (self.interval, 1.0 + NOISES * noise);
        Self { interval: (low.min(self.value / factor), high.max(self.value * factor)), ..self }
    }
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

    /// Whether it is above 1. "No" takes an interval below 1, or one within [`NEAR`] of 1 as a whole; otherwise it is uncertain (`None`).
    pub fn is_above(&self) -> Option<bool> {
        self.is_on_side(|value| value > 1.0)
    }

    /// Whether it is below 1, in the same way.
    pub fn is_below(&self) -> Option<bool> {
        self.is_on_side(|value| value < 1.0)
    }

    fn is_on_side(&self, is_there: fn(f64) -> bool) -> Option<bool> {
        match self {
            Self::Number(ratio) | Self::Direction(ratio) => Some(is_there(ratio.value)),
            Self::Equal(ratio) => {
                let (low, high) = ratio.interval;
                (low >= 1.0 / NEAR && high <= NEAR).then_some(false)
            }
            Self::Nothing(_) => None,
        }
    }

    /// Why there is no ratio, without figures, so that equal reasons can be counted.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Nothing(why) if why.starts_with(TOO_WIDE) => Some(TOO_WIDE),
            Self::Nothing(why) => Some(why),
            Self::Number(_) | Self::Direction(_) | Self::Equal(_) => None,
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

    /// Rounds that differ by more than a difference that counts show none of: above, below, equal.
    #[test]
    fn a_wide_interval_around_one_does_not_show_that_there_is_no_difference() {
        let of = |low, high| Bearing::Equal(Ratio { value: 1.0, interval: (low, high), rounds: 3 });
        let said = |bearing: &Bearing| (bearing.is_above(), bearing.is_below());
        assert_eq!(said(&of(0.97, 1.35)), (None, None));
        assert_eq!(said(&of(0.80, 1.05)), (None, None));
        assert_eq!(said(&of(0.90, 1.0)), (None, None));
        assert_eq!(said(&of(1.0, 1.11)), (None, None));
        assert_eq!(said(&of(0.99, 1.02)), (Some(false), Some(false)));
        assert_eq!(said(&of(0.91, 1.10)), (Some(false), Some(false)));
        assert_eq!(said(&bearing(&[1.9, 2.0, 2.1], 0.05)), (Some(true), Some(false)));
        assert_eq!(said(&bearing(&[0.3, 0.4, 0.6], 0.02)), (Some(false), Some(true)));
        assert_eq!(said(&Bearing::Nothing(String::new())), (None, None));
    }

    #[test]
    fn half_as_much_is_as_far_from_one_as_twice_as_much() {
        // Twice the noise is 0.9 of the value, and 1.1.
        let differs = |ratio: f64, noise| bearing(&[ratio; 3], noise).number().is_some();
        assert!(differs(2.0, 0.45) && differs(0.5, 0.45));
        assert!(!differs(2.0, 0.55) && !differs(0.5, 0.55));
    }

    #[test]
    fn an_interval_has_at_least_twice_the_noise_on_either_side() {
        let interval = |ratios: &[f64], noise| bearing(ratios, noise).ratio().expect("a ratio").interval;
        let (low, high) = interval(&[1.08; 3], 0.03);
        assert!((low - 1.08 / 1.06).abs() < 1e-9 && (high - 1.08 * 1.06).abs() < 1e-9, "{low} {high}");
        // Rounds that differ by more have the interval of their own.
        assert_eq!(interval(&[1.9, 2.0, 2.1], 0.005), interval(&[1.9, 2.0, 2.1], 0.0));
    }
}
