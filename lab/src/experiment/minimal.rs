//! Differences that are not worth a word.

use crate::analyse::{Bearing, Ratio};

/// Differences of this share and less are minimal.
pub const MINIMAL: f64 = 0.1;

/// Whether the whole interval is minimally different from 1, or beyond that; `None` if it is uncertain.
pub fn is_minimal(bearing: &Bearing) -> Option<bool> {
    let (least, greatest) = (1.0 - MINIMAL, 1.0 + MINIMAL);
    let differs = |ratio: &Ratio| ratio.interval.1 < least || ratio.interval.0 > greatest;
    match bearing {
        Bearing::Number(ratio) | Bearing::Direction(ratio) if differs(ratio) => Some(false),
        Bearing::Number(ratio) | Bearing::Equal(ratio) => {
            (ratio.interval.0 >= least && ratio.interval.1 <= greatest).then_some(true)
        }
        Bearing::Direction(_) | Bearing::Nothing(_) => None,
    }
}
