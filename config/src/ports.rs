//! Sets of ports: `"1024-65535"`, `"80,443,1024-65535"`.

use std::fmt;
use std::ops::RangeInclusive;

/// Ports from 1 to 65535, as ranges in ascending order that neither overlap nor touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports(Vec<RangeInclusive<u16>>);

impl Ports {
    /// Reads numbers and ranges, separated by commas.
    ///
    /// # Errors
    /// What is wrong and how to fix it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut ranges = Vec::new();
        for item in text.split(',').map(str::trim) {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let range = port(first, text)?..=port(last, text)?;
            if range.is_empty() {
                return Err(format!("{item} is reversed; write {}-{}", range.end(), range.start()));
            }
            ranges.push(range);
        }
        ranges.sort_by_key(|range| *range.start());
        for pair in ranges.windows(2) {
            if let [one, other] = pair
                && one.end() >= other.start()
            {
                let (one, other) = (Range(one), Range(other));
                return Err(format!("{one} and {other} overlap; write each port once"));
            }
        }
        Ok(Self::joined(ranges))
    }

    /// The ports of all of them.
    pub fn union<'p>(all: impl IntoIterator<Item = &'p Self>) -> Self {
        Self::joined(all.into_iter().flat_map(|ports| ports.0.iter().cloned()).collect())
    }

    fn joined(mut ranges: Vec<RangeInclusive<u16>>) -> Self {
        ranges.sort_by_key(|range| *range.start());
        let mut joined: Vec<RangeInclusive<u16>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if last.end().saturating_add(1) >= *range.start() => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                Some(_) | None => joined.push(range),
            }
        }
        Self(joined)
    }

    /// Those that are not in the other set; possibly none.
    pub(crate) fn without(&self, others: &Self) -> Self {
        let mut left = self.0.clone();
        for other in &others.0 {
            let cut = |range: RangeInclusive<u16>| {
                let below = other.start().checked_sub(1).map(|end| *range.start()..=end.min(*range.end()));
                let above = other.end().checked_add(1).map(|start| start.max(*range.start())..=*range.end());
                [below, above].into_iter().flatten().filter(|part| !part.is_empty())
            };
            left = left.into_iter().flat_map(cut).collect();
        }
        Self(left)
    }

    /// The lower half of them, and the upper one.
    pub(crate) fn halves(&self) -> [Self; 2] {
        let (mut lower, mut left) = (Vec::new(), self.count() / 2);
        for range in &self.0 {
            let count = u32::from(range.end() - range.start()) + 1;
            let taken = u16::try_from(count.min(left)).unwrap_or(u16::MAX);
            if taken > 0 {
                lower.push(*range.start()..=range.start() + (taken - 1));
            }
            left -= u32::from(taken);
        }
        let lower = Self(lower);
        let upper = self.without(&lower);
        [lower, upper]
    }

    /// Whether it is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ranges, ascending.
    pub fn ranges(&self) -> &[RangeInclusive<u16>] {
        &self.0
    }

    /// The number of ports.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|range| u32::from(range.end() - range.start()) + 1).sum()
    }

    /// Whether the port is one of them.
    pub fn contain(&self, port: u16) -> bool {
        self.0.iter().any(|range| range.contains(&port))
    }

    /// The first range that shares a port with this one.
    pub fn overlap(&self, other: &RangeInclusive<u16>) -> Option<RangeInclusive<u16>> {
        let shared = self.0.iter().map(|r| *r.start().max(other.start())..=*r.end().min(other.end()));
        shared.filter(|range| !range.is_empty()).min_by_key(|range| *range.start())
    }
}

fn port(text: &str, whole: &str) -> Result<u16, String> {
    match text.trim().parse::<u16>() {
        Ok(0) => Err("port 0 is not valid; write 1 to 65535".into()),
        Ok(port) => Ok(port),
        Err(_) if !text.trim().is_empty() && text.trim().bytes().all(|b| b.is_ascii_digit()) => {
            Err(format!("{} is not a valid port; write 1 to 65535", text.trim()))
        }
        Err(_) if whole.trim().is_empty() => Err("is empty; write ports such as 1024-65535".into()),
        Err(_) => {
            Err("is not a valid list of ports; write numbers and ranges such as 80,443,1024-65535".into())
        }
    }
}

/// A range as it is written: `80` or `1024-65535`.
pub(crate) struct Range<'a>(pub &'a RangeInclusive<u16>);

impl fmt::Display for Range<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.start() == self.0.end() {
            true => write!(f, "{}", self.0.start()),
            false => write!(f, "{}-{}", self.0.start(), self.0.end()),
        }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            Range(range).fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_numbers_and_ranges_in_any_order() {
        let ports = Ports::parse("1024-65535, 443,80,81").unwrap();
        assert_eq!(ports.to_string(), "80-81,443,1024-65535");
        assert_eq!(ports.count(), 2 + 1 + 64_512);
        assert_eq!(ports.overlap(&(32_768..=60_999)), Some(32_768..=60_999));
        assert_eq!(ports.overlap(&(444..=1_023)), None);
    }

    #[test]
    fn ports_are_added_taken_away_and_halved() {
        let ports = |text: &str| Ports::parse(text).unwrap();
        let union = |one: &str, other: &str| Ports::union([&ports(one), &ports(other)]).to_string();
        assert_eq!(union("61000-62999", "63000-65535"), "61000-65535");
        assert_eq!(union("80,61000-62999", "70-90,65535"), "70-90,61000-62999,65535");
        let without = |one: &str, other: &str| ports(one).without(&ports(other)).to_string();
        assert_eq!(without("1024-65535", "1024-32767"), "32768-65535");
        assert_eq!(without("1-65535", "1,80-90,65535"), "2-79,91-65534");
        assert_eq!(without("1024-2048", "1-65535"), "");
        let halves = ports("80,1024-65535").halves().map(|half| half.to_string());
        assert_eq!(halves, ["80,1024-33278", "33279-65535"]);
        assert_eq!(ports("80").halves().map(|half| half.to_string()), ["", "80"]);
    }

    #[test]
    fn what_is_not_a_list_of_ports_says_why() {
        for (text, why) in [
            ("", "is empty; write ports such as 1024-65535"),
            ("0-1023", "port 0 is not valid; write 1 to 65535"),
            ("1-65536", "65536 is not a valid port; write 1 to 65535"),
            ("90-80", "90-80 is reversed; write 80-90"),
            ("80-90,85", "80-90 and 85 overlap; write each port once"),
            ("http", "is not a valid list of ports; write numbers and ranges such as 80,443,1024-65535"),
            ("80,", "is not a valid list of ports; write numbers and ranges such as 80,443,1024-65535"),
            ("-5", "is not a valid list of ports; write numbers and ranges such as 80,443,1024-65535"),
        ] {
            assert_eq!(Ports::parse(text), Err(why.to_owned()), "{text:?}");
        }
    }
}
