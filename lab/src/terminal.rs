//! The display of results: one line for each step, aligned tables, readable figures. Colour only on a terminal.

use std::fmt::Display;
use std::io::IsTerminal as _;

const GREEN: &str = "32";
const RED: &str = "31";
const DIM: &str = "2";
const BOLD: &str = "1";

fn coloured(code: &str, text: impl Display) -> String {
    if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_string()
    }
}

/// The mark of what was reached.
pub fn tick() -> String {
    coloured(GREEN, "✓")
}

/// The mark of what was not.
pub fn cross() -> String {
    coloured(RED, "✗")
}

/// Text that may be overlooked.
pub fn dim(text: impl Display) -> String {
    coloured(DIM, text)
}

/// Text that must not be overlooked.
pub fn bold(text: impl Display) -> String {
    coloured(BOLD, text)
}

/// One thing that was tried: mark, name, what was tried, result.
pub fn line(reached: bool, name: &str, tried: &str, result: &str) {
    let mark = if reached { tick() } else { cross() };
    println!("  {mark} {name:<11} {tried:<42} {result}");
}

/// Something that was left out, and why.
pub fn skipped(name: &str, why: &str) {
    println!("  {} {name:<11} {}", dim("–"), dim(format!("skipped: {why}")));
}

/// Text of other programs and machines for a terminal: without control characters, which could move the cursor or change its colours. Line ends and
/// tabs stay.
pub fn printable(text: &str) -> String {
    text.chars().filter(|it| !it.is_control() || matches!(it, '\n' | '\t')).collect()
}

/// Bits per second, with three digits.
pub fn bits(per_second: f64) -> String {
    match per_second {
        rate if rate >= 1e9 => format!("{:.1} Gbit/s", rate / 1e9),
        rate if rate >= 1e6 => format!("{:.0} Mbit/s", rate / 1e6),
        rate => format!("{:.0} kbit/s", rate / 1e3),
    }
}

/// Octets.
pub fn octets(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} KB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}

/// A whole number with commas between the thousands.
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A table with a heading; columns are as wide as their widest cell, all but the first are set to the right if `right`.
pub fn table(heading: &[&str], rows: &[Vec<String>], right: bool) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([heading[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..heading.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<_> = cells
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| match right && column > 0 {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            })
            .collect();
        format!("  {}", cells.join("   ")).trim_end().to_owned() + "\n"
    };
    let mut text = line(&mut heading.iter().copied());
    for row in rows {
        text += &line(&mut row.iter().map(String::as_str));
    }
    text
}

/// The middle of some figures; of an even number of them halfway between the two in the middle. Zero of none.
pub fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        count if count.is_multiple_of(2) => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
        count => sorted[count / 2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(bits(9.84e9), "9.8 Gbit/s");
        assert_eq!(bits(841.2e6), "841 Mbit/s");
        assert_eq!(octets(4_096), "4.1 KB");
        assert_eq!(octets(12), "12 B");
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn the_median_of_an_even_number_of_figures_is_halfway_between_the_two_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[10.0, 1.0, 4.0, 2.0]), 3.0);
        assert_eq!(median(&[7.0, 5.0]), 6.0);
        assert_eq!(median(&[7.0]), 7.0);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn what_is_printed_has_no_control_characters() {
        assert_eq!(printable("a\u{1b}[31m\tb\r\nc\u{7f}\u{9b}é"), "a[31m\tb\ncé");
    }

    #[test]
    fn a_table_is_aligned() {
        let rows = [vec!["a".to_owned(), "10".to_owned()], vec!["long".to_owned(), "2".to_owned()]];
        assert_eq!(table(&["X", "N"], &rows, true), "  X       N\n  a      10\n  long    2\n");
    }
}
