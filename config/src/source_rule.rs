//! A rule by source that routes packets into the device.

use sixway_wire::{Prefix4, Prefix6, PrefixError};
use std::fmt;
use std::str::FromStr;

/// A prefix of either family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Network {
    /// IPv4 addresses.
    V4(Prefix4),
    /// IPv6 addresses.
    V6(Prefix6),
}

impl FromStr for Network {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        text.parse().map(Self::V4).or_else(|_| text.parse().map(Self::V6))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(prefix) => prefix.fmt(f),
            Self::V6(prefix) => prefix.fmt(f),
        }
    }
}

/// Packets with these sources are routed into the device, or by the main table if they go to `except`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceRule {
    /// The sources.
    pub from: Network,
    /// Destinations that are not routed into the device, of the same family; `None`: all others are.
    pub except: Option<Network>,
    /// Only packets that come in by this interface; `None`: by any, and this host's own.
    pub interface: Option<String>,
}
