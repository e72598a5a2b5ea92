//! The capacity of a device, on which the load of a whole series depends: a single short measurement may be disturbed.

use crate::failure::Result;

/// Two measurements agree if the smaller is this share of the greater.
const AGREE: f64 = 0.9;
/// How often it is measured at most.
const MOST: usize = 6;

/// Measures until the two greatest figures agree; the greatest one. A disturbance makes a figure smaller and never greater.
///
/// # Errors
/// A measurement fails.
pub fn capacity(mut measure: impl FnMut() -> Result<f64>) -> Result<f64> {
    let (mut greatest, mut second) = (measure()?, 0.0);
    for _ in 1..MOST {
        let figure = measure()?;
        (greatest, second) = match figure > greatest {
            true => (figure, greatest),
            false => (greatest, f64::max(second, figure)),
        };
        if second >= AGREE * greatest {
            break;
        }
    }
    Ok(greatest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;

    /// The capacity by these figures, and how many were measured.
    fn of(figures: &[f64]) -> (f64, usize) {
        let mut left = figures.iter();
        let found = capacity(|| left.next().copied().ok_or(Failure::Interrupted)).unwrap();
        (found, figures.len() - left.len())
    }

    #[test]
    fn a_disturbed_calibration_is_not_the_capacity() {
        assert_eq!(of(&[59_785.0, 58_000.0, 1.0]), (59_785.0, 2));
        assert_eq!(of(&[1_230.0, 12_566.0, 59_785.0, 60_100.0, 1.0]), (60_100.0, 4));
        assert_eq!(of(&[59_785.0, 1_230.0, 12_566.0, 59_000.0, 1.0]), (59_785.0, 4));
        // It ends, whatever the machine does.
        assert_eq!(of(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]), (32.0, 6));
        assert_eq!(of(&[0.0, 0.0]), (0.0, 2));
    }
}
