//! Records about port blocks: the subscriber of each, and how a translator allocates them.

use crate::inside_endpoint;
use serde::Deserialize;
use sixway_dataplane::nat::{Deterministic, LARGEST_BLOCK, SMALLEST_BLOCK};
use sixway_wire::{Endpoint4, Prefix4, Prefix6};
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The longest line: one about how a translator gives port blocks. Others have less than 400 octets.
pub(super) const LONGEST_LINE: usize = 16 << 10;
/// Octets of lists that a line has at most, so that it can be read again: of inside prefixes, of addresses and of ports.
const ROOM: [usize; 3] = [6 << 10, 6 << 10, 2 << 10];
const _: () = assert!(ROOM[0] + ROOM[1] + ROOM[2] + 1_024 < LONGEST_LINE);
/// The same of a syslog message, so that it is not longer than receivers have to take (RFC 5424 §6.1).
pub(super) const ROOM_OF_MESSAGE: [usize; 3] = [600, 600, 200];

/// A port block of a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PortBlock {
    /// The translator's name.
    pub(super) translator: Arc<str>,
    /// The subscriber's prefix; an IPv4 one as that of the mapped addresses.
    pub(super) subscriber: Prefix6,
    pub(super) address: Ipv4Addr,
    /// The first port.
    pub(super) first: u16,
    /// How many ports: a power of two.
    pub(super) size: u16,
}

impl PortBlock {
    /// The block of this size that an outside endpoint lies in.
    pub(super) const fn at(outside: Endpoint4, size: u16) -> (Ipv4Addr, u16) {
        (outside.address, outside.port & !(size - 1))
    }

    /// The last port.
    pub(super) const fn last(&self) -> u16 {
        self.first + (self.size - 1)
    }

    /// The subscriber, for people.
    pub(super) fn who(&self) -> String {
        inside_endpoint::prefix_text(self.subscriber.address(), self.subscriber.length())
    }
}

/// How a translator gives ports to its subscribers: the part of the configuration that a log must contain (RFC 7422 §3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortMapping {
    /// The translator's name.
    pub translator: Arc<str>,
    /// Ports of a block.
    pub block_size: u16,
    /// Length of a subscriber's prefix, as that of an IPv6 address.
    pub bits: u8,
    /// Prefixes of the inside hosts; those of IPv4 as those of their mapped addresses.
    pub inside: Vec<Prefix6>,
    /// Addresses of the pool.
    pub pool: Vec<Prefix4>,
    /// Its ports.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Whether blocks follow from this (RFC 7422).
    pub deterministic: bool,
    /// Whether prefixes, addresses or ports are missing here: the record had no room for all.
    pub is_cut: bool,
}

/// The prefixes, addresses and ports of a mapping that fit, as text.
pub(super) struct Lists {
    pub(super) inside: Vec<String>,
    pub(super) pool: Vec<String>,
    pub(super) ports: Vec<String>,
    /// Whether that is not all.
    pub(super) is_cut: bool,
}

/// Its line, without what all lines have.
#[derive(Deserialize)]
struct Line {
    block_size: u16,
    subscriber_prefix_length: u8,
    inside_prefixes: Vec<String>,
    pool: Vec<String>,
    ports: String,
    deterministic: bool,
    #[serde(default)]
    cut: bool,
}

impl PortMapping {
    /// Whether an outside endpoint is one of the pool. Other ports of the address may be another translator's.
    pub(super) fn holds(&self, outside: Endpoint4) -> bool {
        self.pool.iter().any(|prefix| prefix.contains(outside.address))
            && self.ports.iter().any(|range| range.contains(&outside.port))
    }

    /// The subscriber that an outside port belongs to by the mapping.
    pub fn subscriber_of(&self, outside: Endpoint4) -> Option<String> {
        let pool = (&self.pool[..], &self.ports[..]);
        let mapping = Deterministic::new(&self.inside, self.bits, pool, self.block_size).ok()?;
        let (address, bits) = mapping.subscriber_of(outside).filter(|_| self.deterministic)?;
        Some(inside_endpoint::prefix_text(address, bits))
    }

    /// Its lists, as far as there is room for each.
    pub(super) fn lists(&self, room: [usize; 3]) -> Lists {
        let text = |prefix: &Prefix6| inside_endpoint::prefix_text(prefix.address(), prefix.length());
        let range = |range: &RangeInclusive<u16>| format!("{}-{}", range.start(), range.end());
        let inside = fitting(self.inside.iter().map(text), room[0]);
        let pool = fitting(self.pool.iter().map(ToString::to_string), room[1]);
        let ports = fitting(self.ports.iter().map(range), room[2]);
        let lengths = [inside.len(), pool.len(), ports.len()];
        let is_cut = self.is_cut || lengths != [self.inside.len(), self.pool.len(), self.ports.len()];
        Lists { inside, pool, ports, is_cut }
    }

    /// Appends the fields of its line after the time and the name.
    pub(super) fn write_json(&self, out: &mut Vec<u8>) {
        let Lists { inside, pool, ports, is_cut } = self.lists(ROOM);
        // Strings have no reason to fail, nor has writing to memory.
        let list = |texts: &[String]| serde_json::to_string(texts).unwrap_or_default();
        let _ = write!(
            out,
            ",\"block_size\":{},\"subscriber_prefix_length\":{},\"inside_prefixes\":{},\"pool\":{},\"ports\":\"{}\",\"deterministic\":{}",
            self.block_size,
            self.bits,
            list(&inside),
            list(&pool),
            ports.join(","),
            self.deterministic
        );
        if is_cut {
            out.extend_from_slice(b",\"cut\":true");
        }
    }

    /// That of a line.
    pub(super) fn read_json(translator: &str, line: &[u8]) -> Option<Self> {
        let line: Line = serde_json::from_slice(line).ok()?;
        let inside =
            line.inside_prefixes.iter().map(|text| inside_endpoint::side(text).map(|(prefix, _)| prefix));
        let range = |text: &str| {
            let (first, last) = text.split_once('-')?;
            Some(first.parse().ok()?..=last.parse().ok()?)
                .filter(|range: &RangeInclusive<u16>| !range.is_empty())
        };
        // Whoever may write the file may have written this.
        let is_size =
            line.block_size.is_power_of_two() && (SMALLEST_BLOCK..=LARGEST_BLOCK).contains(&line.block_size);
        if !is_size || line.subscriber_prefix_length > 128 {
            return None;
        }
        Some(Self {
            translator: translator.into(),
            block_size: line.block_size,
            bits: line.subscriber_prefix_length,
            inside: inside.collect::<Option<_>>()?,
            pool: line.pool.iter().map(|text| text.parse().ok()).collect::<Option<_>>()?,
            ports: line.ports.split(',').map(range).collect::<Option<_>>()?,
            deterministic: line.deterministic,
            is_cut: line.cut,
        })
    }
}

/// As many of the texts as there is room for, with quotes and a comma for each.
fn fitting(texts: impl Iterator<Item = String>, mut room: usize) -> Vec<String> {
    let fits = |text: &String| {
        let fits = text.len() + 3 <= room;
        room = room.saturating_sub(text.len() + 3);
        fits
    };
    texts.take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::mapping;
    use super::super::record::{Event, Record};
    use super::*;

    #[test]
    fn a_line_that_no_gateway_wrote_is_not_a_mapping() {
        let line = |size: &str, bits: &str, ports: &str| {
            format!(
                "{{\"block_size\":{size},\"subscriber_prefix_length\":{bits},\"inside_prefixes\":[\"10.0.0.0/24\"],\"pool\":[\"192.0.2.0/28\"],\"ports\":\"{ports}\",\"deterministic\":true}}"
            )
        };
        let read = |line: String| PortMapping::read_json("nat44", line.as_bytes());
        assert!(read(line("512", "128", "1024-65535")).is_some());
        for (size, bits, ports) in [
            ("0", "128", "1024-65535"),
            ("1", "128", "1024-65535"),
            ("513", "128", "1024-65535"),
            ("32768", "128", "1024-65535"),
            ("512", "129", "1024-65535"),
            ("512", "255", "1024-65535"),
            ("512", "128", "65535-1024"),
            ("512", "128", "-"),
            ("512", "128", ""),
        ] {
            assert_eq!(read(line(size, bits, ports)), None, "{size} {bits} {ports}");
        }
    }

    #[test]
    fn a_line_with_more_than_has_room_says_that_it_is_cut_and_can_be_read() {
        let whole = mapping(true);
        let long = |change: &dyn Fn(&mut PortMapping)| {
            let mut mapping = whole.clone();
            change(&mut mapping);
            mapping
        };
        let prefix = |n: u32| Prefix6::holding(Ipv4Addr::from_bits(n << 8).to_ipv6_mapped(), 120);
        let inside = long(&|it| it.inside = (0..5_000).map(prefix).collect());
        let address = |n: u32| Prefix4::holding(Ipv4Addr::from_bits(n * 2), 32);
        let pool = long(&|it| it.pool = (0..5_000).map(address).collect());
        let ports = long(&|it| it.ports = (1_024..9_000).map(|n| n * 5..=n * 5 + 1).collect());
        for (mapping, is_cut) in [(whole.clone(), false), (inside, true), (pool, true), (ports, true)] {
            let mut line = Vec::new();
            let event = Event::Mapping(mapping.clone());
            Record { micros: 1_763_640_000_123_456, event }.write_json(&mut line);
            assert!(line.len() < LONGEST_LINE, "{}", line.len());
            let Some(Record { event: Event::Mapping(read), .. }) = Record::read_json(&line) else { panic!() };
            assert_eq!(read.is_cut, is_cut);
            assert_eq!(read == mapping, !is_cut);
            let begin_alike =
                mapping.inside.starts_with(&read.inside) && mapping.pool.starts_with(&read.pool);
            assert!(begin_alike && mapping.ports.starts_with(&read.ports));
        }
    }
}
