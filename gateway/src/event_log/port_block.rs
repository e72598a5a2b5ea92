//! What the log says about port blocks: whose each is, and how a translator gives them.

use crate::inside_endpoint;
use serde::Deserialize;
use sixway_dataplane::nat::Deterministic;
use sixway_wire::{Endpoint4, Prefix4, Prefix6};
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Octets of prefixes that a line has at most, so that it can be read again.
const MOST_OCTETS: usize = 3_500;

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

/// How a translator gives ports to its subscribers: what a log has to keep of the configuration (RFC 7422 §3).
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
}

impl PortMapping {
    /// Whether an outside address is one of the pool.
    pub(super) fn holds(&self, address: Ipv4Addr) -> bool {
        self.pool.iter().any(|prefix| prefix.contains(address))
    }

    /// The subscriber that an outside port belongs to by the mapping.
    pub fn subscriber_of(&self, outside: Endpoint4) -> Option<String> {
        let pool = (&self.pool[..], &self.ports[..]);
        let mapping = Deterministic::new(&self.inside, self.bits, pool, self.block_size).ok()?;
        let (address, bits) = mapping.subscriber_of(outside).filter(|_| self.deterministic)?;
        Some(inside_endpoint::prefix_text(address, bits))
    }

    /// Appends what its line has beyond its time and name.
    pub(super) fn write_json(&self, out: &mut Vec<u8>) {
        let text = |prefix: &Prefix6| inside_endpoint::prefix_text(prefix.address(), prefix.length());
        let ports = self.ports.iter().map(|range| format!("{}-{}", range.start(), range.end()));
        let _ = write!(
            out,
            ",\"block_size\":{},\"subscriber_prefix_length\":{},\"inside_prefixes\":{},\"pool\":{},\"ports\":\"{}\",\"deterministic\":{}",
            self.block_size,
            self.bits,
            list(self.inside.iter().map(text)),
            list(self.pool.iter().map(ToString::to_string)),
            ports.collect::<Vec<_>>().join(","),
            self.deterministic
        );
    }

    /// That of a line.
    pub(super) fn read_json(translator: &str, line: &[u8]) -> Option<Self> {
        let line: Line = serde_json::from_slice(line).ok()?;
        let inside =
            line.inside_prefixes.iter().map(|text| inside_endpoint::side(text).map(|(prefix, _)| prefix));
        let range = |text: &str| {
            let (first, last) = text.split_once('-')?;
            Some(first.parse().ok()?..=last.parse().ok()?)
        };
        Some(Self {
            translator: translator.into(),
            block_size: line.block_size,
            bits: line.subscriber_prefix_length,
            inside: inside.collect::<Option<_>>()?,
            pool: line.pool.iter().map(|text| text.parse().ok()).collect::<Option<_>>()?,
            ports: line.ports.split(',').map(range).collect::<Option<_>>()?,
            deterministic: line.deterministic,
        })
    }
}

/// Strings as an array of JSON, as many as a line has room for.
fn list(texts: impl Iterator<Item = String>) -> String {
    let mut room = MOST_OCTETS / 2;
    let fitting = texts.take_while(|text| {
        let fits = text.len() + 3 <= room;
        room = room.saturating_sub(text.len() + 3);
        fits
    });
    // Strings have no reason to fail.
    serde_json::to_string(&fitting.collect::<Vec<_>>()).unwrap_or_default()
}
