//! The format of figures: three digits, with the unit in the head of the column.

use crate::analyse::Estimate;
use crate::results::Unit;
use crate::terminal::thousands;

/// A figure in the unit's own writing, without the unit.
pub fn figure(value: f64, unit: Unit) -> String {
    let value = value * unit.factor();
    match (value.abs(), unit) {
        (0.0, _) => "0".to_owned(),
        (_, Unit::Lost) => format!("{value:.3}"),
        (1_000.0.., _) if value > 0.0 => thousands(value.round() as u64),
        (100.0.., _) | (_, Unit::Count) => format!("{value:.0}"),
        (10.0.., _) => format!("{value:.1}"),
        (1.0.., _) => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A mean with half the width of its interval, if it has one.
pub(super) fn estimated(estimate: Estimate, unit: Unit) -> String {
    let mean = figure(estimate.mean, unit);
    match estimate.half_width {
        // What does not differ at all needs no interval.
        Some(half) if half > 0.0 => format!("{mean} ± {}", figure(half, unit)),
        Some(_) | None => mean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_about_three_digits() {
        assert_eq!(figure(59_123.4, Unit::PerSecond), "59,123");
        assert_eq!(figure(0.000_3, Unit::Lost), "0.030");
        assert_eq!(figure(0.941, Unit::Cores), "94.1");
        assert_eq!(figure(0.274, Unit::Milliseconds), "0.274");
        assert_eq!(figure(1.311, Unit::Milliseconds), "1.31");
        assert_eq!(figure(0.0, Unit::Count), "0");
        let estimate = Estimate { mean: 2.0, half_width: Some(0.5), n: 3 };
        assert_eq!(estimated(estimate, Unit::Milliseconds), "2.00 ± 0.500");
    }
}
