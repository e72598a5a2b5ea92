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
    /// Their place on other axes of the same table; those that are not named may have any.
    pub fixed: &'static [(&'static str, f64)],
    /// The names of its columns: those of values in samples.
    pub values: &'static [&'static str],
    /// For each row its place on the axis and its figures, in the units of those values: shares from 0 to 1, milliseconds, cores.
    pub rows: &'static [(f64, &'static [f64])],
}

impl Published {
    /// The place of its rows on the axis, if a cell of a table with these axes has it.
    pub fn row(&self, axes: &[&str], place: &[f64]) -> Option<f64> {
        let on = |axis: &str| axes.iter().zip(place).find(|(of, _)| **of == axis).map(|(_, at)| *at);
        let at = on(self.axis)?;
        let is_there = self.fixed.iter().all(|(axis, fixed)| on(axis) == Some(*fixed));
        (is_there && self.rows.iter().any(|(of, _)| *of == at)).then_some(at)
    }

    /// A figure, if the paper has it.
    pub fn at(&self, place: f64, value: &str) -> Option<f64> {
        let column = self.values.iter().position(|name| *name == value)?;
        let (_, row) = self.rows.iter().find(|(at, _)| *at == place)?;
        row.get(column).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_their_axis_and_the_fixed_places() {
        let paper = Published {
            device: "Linux",
            source: "a table",
            series: "s",
            axis: "form",
            fixed: &[("link", 100.0)],
            values: &["time"],
            rows: &[(1.0, &[2.0])],
        };
        let axes = ["form", "version", "link"];
        assert_eq!(paper.row(&axes, &[1.0, 6.0, 100.0]), Some(1.0));
        assert_eq!(paper.row(&axes, &[1.0, 4.0, 100.0]), Some(1.0), "any version");
        assert_eq!(paper.row(&axes, &[1.0, 6.0, 0.0]), None, "another link");
        assert_eq!(paper.row(&axes, &[2.0, 6.0, 100.0]), None, "no such row");
        assert_eq!(paper.row(&["form"], &[1.0]), None, "a table without that axis");
        let anywhere = Published { fixed: &[], ..paper };
        assert_eq!(anywhere.row(&["form"], &[1.0]), Some(1.0));
        assert_eq!(anywhere.row(&["version"], &[1.0]), None);
    }
}
