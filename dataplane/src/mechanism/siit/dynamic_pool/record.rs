//! The stored form of a dynamic pool: a line of text for each host. The newest line about an address or a host is valid, so that a file may
//! be written by appending.
//!
//! ```text
//!     172.16.19.7 2001:db8::211:22ff:fe33:4455 1767225600
//! ```

use crate::instant::Instant;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

/// A host and its address, and when it was heard last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The address that the host has on the IPv4 side.
    pub address: Ipv4Addr,
    /// The host.
    pub host: Ipv6Addr,
    /// When the host was heard last, in seconds since 1970.
    pub last_seen: u64,
}

impl fmt::Display for Record {
    /// The line, without its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.address, self.host, self.last_seen)
    }
}

/// One moment on both clocks: the caller's own, and the one on the wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClock {
    /// The moment as the core knows it.
    pub now: Instant,
    /// The same moment in seconds since 1970.
    pub unix_seconds: u64,
}

/// Why a line is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError<'a> {
    /// Not three words.
    Words(usize),
    /// The first word is not an IPv4 address.
    Address(&'a str),
    /// The second word is not an IPv6 address.
    Host(&'a str),
    /// The third word is not a number of seconds.
    Seconds(&'a str),
}

impl fmt::Display for RecordError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(count) => {
                write!(f, "{count} words; a line is an IPv4 address, an IPv6 address and seconds since 1970")
            }
            Self::Address(word) => write!(f, "`{word}` is not an IPv4 address"),
            Self::Host(word) => write!(f, "`{word}` is not an IPv6 address"),
            Self::Seconds(word) => write!(f, "`{word}` is not a number of seconds"),
        }
    }
}

impl std::error::Error for RecordError<'_> {}

/// Reads records, with the number of each one's line, from 1. Blank lines and what follows a `#` are passed over.
pub fn parse_records(text: &str) -> impl Iterator<Item = (usize, Result<Record, RecordError<'_>>)> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let line = line.split('#').next().unwrap_or(line).trim();
        (!line.is_empty()).then(|| (index + 1, parse_line(line)))
    })
}

fn parse_line(line: &str) -> Result<Record, RecordError<'_>> {
    let mut words = line.split_whitespace();
    let (Some(address), Some(host), Some(seconds), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(RecordError::Words(line.split_whitespace().count()));
    };
    Ok(Record {
        address: address.parse().map_err(|_| RecordError::Address(address))?,
        host: host.parse().map_err(|_| RecordError::Host(host))?,
        last_seen: seconds.parse().map_err(|_| RecordError::Seconds(seconds))?,
    })
}

/// Writes records, each on its line.
pub fn write_records(records: impl IntoIterator<Item = Record>, text: &mut impl fmt::Write) -> fmt::Result {
    records.into_iter().try_for_each(|record| writeln!(text, "{record}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bad_lines_are_reported_and_good_ones_kept() {
        let text = "# hosts\n172.16.0.1 2001:db8::1 17\n\n172.16.0.2 2001:db8::2\n172.16.0 ::1 1\n172.16.0.3 x 1\n172.16.0.4 ::4 -1\n172.16.0.5 ::5 18 # good\n172.16.0.6 ::6 1";
        let lines: Vec<_> = parse_records(text).collect();
        assert_eq!(lines[0].1.unwrap().to_string(), "172.16.0.1 2001:db8::1 17");
        assert_eq!(lines[1], (4, Err(RecordError::Words(2))));
        assert_eq!(lines[2], (5, Err(RecordError::Address("172.16.0"))));
        assert_eq!(lines[3], (6, Err(RecordError::Host("x"))));
        assert_eq!(lines[4], (7, Err(RecordError::Seconds("-1"))));
        assert!(lines[5].1.is_ok() && lines[6].1.is_ok());
        assert_eq!(lines.len(), 7);
    }

    proptest! {
        #[test]
        fn records_are_read_as_they_were_written(records in prop::collection::vec((any::<u32>(), any::<u128>(), any::<u64>()), 0..20)) {
            let records: Vec<_> = records.into_iter().map(|(address, host, last_seen)| Record {
                address: Ipv4Addr::from_bits(address), host: Ipv6Addr::from_bits(host), last_seen
            }).collect();
            let mut text = String::new();
            write_records(records.clone(), &mut text).unwrap();
            let read: Vec<_> = parse_records(&text).map(|(_, record)| record.unwrap()).collect();
            prop_assert_eq!(read, records);
        }

        #[test]
        fn no_text_makes_the_reader_stumble(text: String) {
            for (line, _) in parse_records(&text) {
                prop_assert!(line > 0);
            }
        }
    }
}
