//! The middle of what was measured.

/// The median; of an even number of figures halfway between the two in the middle.
pub fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    let (lower, upper) = ((figures.len() - 1) / 2, figures.len() / 2);
    f64::midpoint(figures[lower], figures[upper])
}
