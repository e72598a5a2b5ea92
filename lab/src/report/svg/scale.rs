//! Axes: which part of the numbers is shown, and where ticks are.

/// Decades, or steps, with a tick at most.
const MOST: usize = 40;

/// From a value to a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    is_logarithmic: bool,
    /// Places of the low end and the high end.
    ends: (f64, f64),
}

impl Scale {
    /// From zero to a round number above the highest value.
    pub(super) fn from_zero(highest: f64, ends: (f64, f64)) -> Self {
        let step = step(highest.max(f64::MIN_POSITIVE) / 5.0);
        let high = (highest / step).ceil().max(1.0) * step;
        Self { low: 0.0, high, is_logarithmic: false, ends }
    }

    /// Between two values.
    pub(super) fn between(low: f64, high: f64, is_logarithmic: bool, ends: (f64, f64)) -> Self {
        let (low, high) = if low == high { (low * 0.5, (high * 1.5).max(1.0)) } else { (low, high) };
        Self { low, high, is_logarithmic, ends }
    }

    /// Whole decades around positive values.
    pub(super) fn decades(lowest: f64, highest: f64, ends: (f64, f64)) -> Self {
        let low = 10_f64.powf(lowest.log10().floor());
        let high = 10_f64.powf(highest.log10().ceil()).max(low * 10.0);
        Self { low, high, is_logarithmic: true, ends }
    }

    /// The place of a value.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = match self.is_logarithmic {
            true => {
                let value = value.max(self.low * 1e-3);
                (value / self.low).ln() / (self.high / self.low).ln()
            }
            false => (value - self.low) / (self.high - self.low),
        };
        self.ends.0 + share.clamp(0.0, 1.0) * (self.ends.1 - self.ends.0)
    }

    /// Round values along it.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if self.is_logarithmic {
            let decades = (self.high / self.low).log10().round() as i32;
            // The values are of a file, and may be any.
            let apart = decades.max(0).unsigned_abs() as usize / MOST + 1;
            return (0..=decades).step_by(apart).map(|decade| self.low * 10_f64.powi(decade)).collect();
        }
        let step = step((self.high - self.low) / 5.0);
        let first = (self.low / step).ceil();
        let count = ((self.high / step).floor() - first).clamp(0.0, MOST as f64) as u32;
        (0..=count).map(|at| (first + f64::from(at)) * step).collect()
    }
}

/// The smallest of 1, 2, 5, 10, 20 … that is not below this.
fn step(least: f64) -> f64 {
    let decade = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * decade);
    steps.into_iter().find(|step| *step >= least * 0.999_999).unwrap_or(decade * 10.0)
}

/// A value at a tick: short.
pub(super) fn tick(value: f64) -> String {
    let (value, suffix) = match value.abs() {
        1e9.. => (value / 1e9, "G"),
        1e6.. => (value / 1e6, "M"),
        1e4.. => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = match value.abs() {
        0.0 => "0".to_owned(),
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        0.01.. => format!("{value:.3}"),
        0.000_1.. => format!("{value:.5}"),
        _ => format!("{value:.0e}"),
    };
    let text = if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    };
    text + suffix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        let scale = Scale::from_zero(46_812.0, (200.0, 0.0));
        assert_eq!(scale.ticks(), [0.0, 10_000.0, 20_000.0, 30_000.0, 40_000.0, 50_000.0].map(f64::from));
        assert_eq!((scale.place(0.0), scale.place(scale.high)), (200.0, 0.0));
        assert!(Scale::from_zero(1.31, (0.0, 1.0)).ticks().len() >= 3);
        assert!(Scale::from_zero(0.0, (0.0, 1.0)).place(0.0) == 0.0, "nothing but zeros");
        let decades = Scale::decades(0.25, 3.1, (0.0, 100.0));
        assert_eq!(decades.ticks().len(), 3);
        assert_eq!(decades.place(1.0), 50.0);
    }

    #[test]
    fn ticks_are_few_whatever_the_values_are() {
        let widest = Scale::decades(f64::MIN_POSITIVE, f64::MAX, (0.0, 1.0));
        let odd = Scale::between(f64::NAN, f64::INFINITY, true, (0.0, 1.0));
        let tiny = Scale::between(0.0, 5e-324, false, (0.0, 1.0));
        for scale in [widest, odd, tiny] {
            assert!(scale.ticks().len() <= MOST + 1, "{scale:?}");
        }
        assert_eq!(Scale::decades(1.0, 1e39, (0.0, 1.0)).ticks().len(), 40, "each decade");
    }

    #[test]
    fn values_at_ticks_are_short() {
        let said = [0.0, 0.005, 0.5, 2.0, 2.5, 9_000.0, 12_000.0, 250_000.0, 1.5e6, 1e9].map(tick);
        assert_eq!(said, ["0", "0.005", "0.5", "2", "2.5", "9000", "12k", "250k", "1.5M", "1G"]);
    }
}
