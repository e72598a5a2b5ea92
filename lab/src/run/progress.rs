//! Progress: the present measurement and the remaining time.

use super::duration::duration;
use crate::results::Cell;

/// What a run is about to do.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The cell that is measured next.
    pub cell: &'a Cell,
    /// Its place among the cells, from 1, and their number.
    pub place: (usize, usize),
    /// Estimated seconds until the end, this cell included.
    pub seconds_left: f64,
}

impl Progress<'_> {
    /// In one line.
    pub fn text(&self) -> String {
        let (at, all) = self.place;
        let Cell { experiment, series, device, point, repeat } = self.cell;
        let point: Vec<_> = point.iter().map(|(axis, value)| format!("{axis} {value}")).collect();
        let words = [experiment.clone(), series.clone(), device.clone(), point.join(", ")];
        let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let width = all.to_string().len();
        let left = duration(self.seconds_left);
        format!("[{at:>width$}/{all}] {}, round {}   {left} left", words.join(" · "), repeat + 1)
    }
}
