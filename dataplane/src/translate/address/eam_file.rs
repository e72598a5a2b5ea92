//! The text form of a table of explicit address mappings: a row on each line, the prefixes in either order.
//!
//! ```text
//!     # front-end servers
//!     198.51.100.8/29   2001:db8:1::/125
//!     198.51.100.40     2001:db8:2::80      # a length left out means a single address
//! ```

use super::eam::Eam;
use core::fmt;
use sixway_wire::{Prefix4, Prefix6, PrefixError};

/// Why a line is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EamLineError<'a> {
    /// Only one word.
    Alone(&'a str),
    /// A third word.
    Surplus(&'a str),
    /// An invalid prefix, and why.
    Prefix(&'a str, PrefixError),
    /// Two prefixes of the same family.
    SameFamily,
}

impl fmt::Display for EamLineError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone(word) => {
                write!(f, "`{}` is incomplete; a row is an IPv4 prefix and an IPv6 prefix", Shown(word))
            }
            Self::Surplus(word) => {
                write!(f, "unexpected `{}`; a row is an IPv4 prefix and an IPv6 prefix", Shown(word))
            }
            Self::Prefix(word, error) => write!(f, "`{}`: {error}", Shown(word)),
            Self::SameFamily => f.write_str(
                "both prefixes are of the same family; a row is an IPv4 prefix and an IPv6 prefix",
            ),
        }
    }
}

/// A word as a terminal may see it: not endless, and without what would steer it.
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// More characters than the longest prefix has.
        const MOST: usize = 60;
        let mut characters = self.0.chars();
        for character in characters.by_ref().take(MOST) {
            match character.is_control() {
                true => write!(f, "{}", character.escape_default())?,
                false => write!(f, "{character}")?,
            }
        }
        if characters.next().is_some() { f.write_str("…") } else { Ok(()) }
    }
}

impl std::error::Error for EamLineError<'_> {}

/// A prefix of either family.
enum Prefix {
    Four(Prefix4),
    Six(Prefix6),
}

/// Reads rows, with the number of each one's line, from 1. Blank lines and what follows a `#` are passed over.
pub fn parse_eam_file(text: &str) -> impl Iterator<Item = (usize, Result<Eam, EamLineError<'_>>)> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let line = line.split('#').next().unwrap_or(line).trim();
        (!line.is_empty()).then(|| (index + 1, parse_line(line)))
    })
}

fn parse_line(line: &str) -> Result<Eam, EamLineError<'_>> {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or(line);
    let second = words.next().ok_or(EamLineError::Alone(first))?;
    if let Some(third) = words.next() {
        return Err(EamLineError::Surplus(third));
    }
    match (prefix(first)?, prefix(second)?) {
        (Prefix::Four(four), Prefix::Six(six)) | (Prefix::Six(six), Prefix::Four(four)) => Ok((four, six)),
        (Prefix::Four(_), Prefix::Four(_)) | (Prefix::Six(_), Prefix::Six(_)) => {
            Err(EamLineError::SameFamily)
        }
    }
}

fn prefix(word: &str) -> Result<Prefix, EamLineError<'_>> {
    let read =
        if word.contains(':') { word.parse().map(Prefix::Six) } else { word.parse().map(Prefix::Four) };
    read.map_err(|error| EamLineError::Prefix(word, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_word_is_shown_short_and_harmless() {
        let (_, row) = parse_eam_file("\u{1b}[2J\0").next().unwrap();
        assert!(row.unwrap_err().to_string().starts_with("`\\u{1b}[2J\\u{0}` is incomplete"));
        let long = "x".repeat(1_000_000);
        let said = parse_eam_file(&long).next().unwrap().1.unwrap_err().to_string();
        assert!(said.starts_with("`xxx") && said.contains("x…` is incomplete") && said.len() < 200, "{said}");
    }

    #[test]
    fn rows_are_read_in_either_order_around_comments_and_blank_lines() {
        let text = "# servers\n\n198.51.100.8/29\t2001:db8:1::/125\n  2001:db8:2::80 198.51.100.40 # one\r\n";
        let rows: Vec<_> = parse_eam_file(text).map(|(line, row)| (line, row.unwrap())).collect();
        let (four, six) = ("198.51.100.40/32".parse().unwrap(), "2001:db8:2::80/128".parse().unwrap());
        assert_eq!(
            rows,
            [
                (3, ("198.51.100.8/29".parse().unwrap(), "2001:db8:1::/125".parse().unwrap())),
                (4, (four, six))
            ]
        );
    }

    #[test]
    fn every_bad_line_is_reported_with_its_number() {
        let text = "192.0.2.1\n192.0.2.1 192.0.2.2\n192.0.2.1 2001:db8::1 x\n192.0.2.1/24 ::1\n192.0.2.1 ::1/129\nfoo ::1\n192.0.2.1 ::1";
        let rows: Vec<_> = parse_eam_file(text).collect();
        assert_eq!(rows[0], (1, Err(EamLineError::Alone("192.0.2.1"))));
        assert_eq!(rows[1], (2, Err(EamLineError::SameFamily)));
        assert_eq!(rows[2], (3, Err(EamLineError::Surplus("x"))));
        assert_eq!(rows[3], (4, Err(EamLineError::Prefix("192.0.2.1/24", PrefixError::HostBits))));
        assert_eq!(rows[4], (5, Err(EamLineError::Prefix("::1/129", PrefixError::TooLong))));
        assert_eq!(rows[5], (6, Err(EamLineError::Prefix("foo", PrefixError::Syntax))));
        assert!(rows[6].1.is_ok());
        assert_eq!(
            rows[3].1.unwrap_err().to_string(),
            "`192.0.2.1/24`: bits beyond the prefix length are set"
        );
    }
}
