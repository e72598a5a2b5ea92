//! The query of `GET /v1/live`, and its filter.

use super::filter::{PROTOCOLS, protocol_number};
use serde::{Deserialize, Serialize};
use sixway_dataplane::parse::{Addresses, Transport, parse};
use std::net::IpAddr;

/// A request lasts at most this number of seconds; connections end soon after.
pub const MAX_LIVE: u64 = 50;

/// Which packets are watched, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveQuery {
    /// The source.
    pub from: Option<IpAddr>,
    /// The destination.
    pub to: Option<IpAddr>,
    /// `tcp`, `udp` or `icmp`.
    pub protocol: Option<String>,
    /// A port, or an ICMP identifier.
    pub port: Option<u16>,
    /// Only what is dropped.
    pub drops: Option<bool>,
    /// For how many seconds.
    pub seconds: Option<u64>,
}

/// Which packets are watched. `None` matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveFilter {
    /// The source as the packet arrives.
    pub from: Option<IpAddr>,
    /// The destination as it arrives.
    pub to: Option<IpAddr>,
    /// The protocol number; ICMP is any of its two.
    pub protocol: Option<u8>,
    /// A port, or an ICMP identifier.
    pub port: Option<u16>,
    /// Only what is dropped.
    pub dropped: bool,
}

impl LiveQuery {
    /// The filter; else what is wrong.
    pub fn filter(&self) -> Result<LiveFilter, String> {
        let number = |name: &String| {
            protocol_number(name).ok_or_else(|| format!("protocol {}: not {PROTOCOLS}", name.escape_debug()))
        };
        Ok(LiveFilter {
            from: self.from,
            to: self.to,
            protocol: self.protocol.as_ref().map(number).transpose()?,
            port: self.port,
            dropped: self.drops.unwrap_or(false),
        })
    }
}

impl LiveFilter {
    /// Whether it lets a packet through, given as octets from the IP header on.
    pub fn admits(&self, octets: &[u8]) -> bool {
        if *self == (Self { dropped: self.dropped, ..Self::default() }) {
            return true;
        }
        let Ok(packet) = parse(octets) else { return false };
        let (source, destination): (IpAddr, IpAddr) = match packet.addresses {
            Addresses::V4 { source, destination } => (source.into(), destination.into()),
            Addresses::V6 { source, destination } => (source.into(), destination.into()),
        };
        let has_port = |port: u16| match packet.transport {
            Transport::Ports { source, destination, .. } => [source, destination].contains(&port),
            Transport::IcmpQuery { identifier, .. } => identifier == port,
            Transport::IcmpError { .. } | Transport::Opaque => false,
        };
        self.from.is_none_or(|from| from == source)
            && self.to.is_none_or(|to| to == destination)
            && self.protocol.is_none_or(|wanted| wanted == icmp_is_one(packet.protocol))
            && self.port.is_none_or(has_port)
    }
}

/// ICMPv6 is ICMP.
fn icmp_is_one(number: u8) -> u8 {
    use sixway_wire::protocol::{ICMPV4, ICMPV6};
    if number == ICMPV6 { ICMPV4 } else { number }
}
