//! Columns of text: a line of titles, then rows, two blanks between columns, no frames.

use super::colour::Colour;

/// A table under way.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these titles.
    pub(super) fn new(titles: &[&str]) -> Self {
        Self { rows: vec![titles.iter().map(|title| (*title).into()).collect()] }
    }

    /// Adds a row; it has as many cells as there are titles.
    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The text, one line for each row.
    pub(super) fn text(&self, colour: Colour) -> String {
        let columns = self.rows[0].len();
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(&format!("{cell:width$}  "));
            }
            let line = line.trim_end();
            match (index, colour) {
                (0, Colour::Ansi) => text.push_str(&format!("\x1b[1m{line}\x1b[0m\n")),
                (_, Colour::Ansi | Colour::Never) => text.push_str(&format!("{line}\n")),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_lines_end_without_blanks() {
        let mut table = Table::new(&["A", "LONGER", "C"]);
        table.row(vec!["wide cell".into(), "–".into(), "".into()]);
        assert_eq!(table.text(Colour::Never), "A          LONGER  C\nwide cell  –\n");
    }

    #[test]
    fn only_the_titles_are_coloured() {
        let mut table = Table::new(&["A"]);
        table.row(vec!["b".into()]);
        assert_eq!(table.text(Colour::Ansi), "\x1b[1mA\x1b[0m\nb\n");
    }
}
