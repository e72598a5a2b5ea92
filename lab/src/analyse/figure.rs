//! Figures: which values are drawn along which axis.

use super::about::{Column, Table};

/// How a figure shows its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Lines along an axis.
    Lines,
    /// A bar for each device.
    Bars,
}

/// A figure in the form of the paper's.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// The heading under which it stands together with others, or `""`.
    pub group: &'static str,
    /// Its title, without the unit.
    pub title: &'static str,
    /// The series of cells.
    pub series: &'static str,
    /// The axis; of bars, the one whose values have a head each, or `""`.
    pub axis: &'static str,
    /// What is written at the axis.
    pub axis_title: &'static str,
    /// The value's name in samples.
    pub value: &'static str,
    /// Lines or bars.
    pub kind: Kind,
    /// The place on all other axes; those that are not named may have any.
    pub at: &'static [(&'static str, f64)],
    /// Whether values are drawn on a logarithmic scale.
    pub logarithmic: bool,
    /// Values that are drawn as lines in one figure, each with what it is; without any, the value alone.
    pub lines: &'static [(&'static str, &'static str)],
    /// The only devices that are drawn; without any, all.
    pub devices: &'static [&'static str],
}

/// The most figures that a table gets by itself.
const BY_ITSELF: usize = 6;

/// The figures of tables for which the experiment draws none: each column along the first axis.
pub fn figures_of(tables: &[Table]) -> Vec<Figure> {
    let of_column = |table: &Table, column: &Column| Figure {
        group: if tables.len() > 1 { table.title } else { "" },
        title: column.title,
        series: table.series,
        axis: table.axes.first().copied().unwrap_or(""),
        axis_title: table.axes.first().copied().unwrap_or(""),
        value: column.value,
        kind: if table.axes.is_empty() { Kind::Bars } else { Kind::Lines },
        at: &[],
        logarithmic: false,
        lines: &[],
        devices: &[],
    };
    let of_table = |table: &Table| {
        let columns = table.columns.iter().take(BY_ITSELF);
        columns.map(|column| of_column(table, column)).collect::<Vec<_>>()
    };
    tables.iter().flat_map(of_table).collect()
}
