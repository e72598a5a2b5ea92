//! Figures of a paper, shown next to the measured ones and marked.

/// A table of a paper for one device.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// The device, as the paper names it.
    pub device: &'static str,
    /// The paper's table or figure.
    pub source: &'static str,
    /// The series that it belongs to.
    pub series: &'static str,
    /// The axis that its rows run along.
    pub axis: &'static str,
    /// The names of its columns: those of values in samples.
    pub values: &'static [&'static str],
    /// For each row its place on the axis and its figures, in the units of those values: shares from 0 to 1, milliseconds, cores.
    pub rows: &'static [(f64, &'static [f64])],
}

impl Published {
    /// A figure, if the paper has it.
    pub fn at(&self, place: f64, value: &str) -> Option<f64> {
        let column = self.values.iter().position(|name| *name == value)?;
        let (_, row) = self.rows.iter().find(|(at, _)| *at == place)?;
        row.get(column).copied()
    }
}
