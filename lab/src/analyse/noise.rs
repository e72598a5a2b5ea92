//! The variation of the machine itself during a run.

use crate::results::Sample;
use crate::terminal::median;

/// The median absolute deviation of normally distributed figures, times this, is their standard deviation.
const NORMAL: f64 = 1.482_6;

/// The standard deviation of the control's time, as a share of it: a fixed piece of work before each measurement, so that it differs only by what
/// else the machine did. A single slow one does not count. `None` for fewer than three.
pub fn noise(samples: &[Sample]) -> Option<f64> {
    let controls: Vec<f64> = samples.iter().filter_map(|sample| sample.control).collect();
    let middle = median(&controls);
    if controls.len() < 3 || middle <= 0.0 {
        return None;
    }
    let deviations: Vec<f64> = controls.iter().map(|control| (control - middle).abs()).collect();
    Some(NORMAL * median(&deviations) / middle)
}
