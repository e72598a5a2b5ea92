//! What is the engine's of this host's own addresses.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

/// The most local addresses that are steered, as many as the program's map has room for.
pub const ADDRESSES: usize = 1_024;

/// The most ranges of ports of one address; the program looks at each.
pub const RANGES: usize = 8;

/// What is steered of one of this host's own IPv4 addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAddress {
    /// The address.
    pub address: Ipv4Addr,
    /// Whether protocol 41 is.
    pub tunnels: bool,
    /// Ports of TCP and UDP, and ICMP identifiers, in the machine's order.
    pub ports: Vec<RangeInclusive<u16>>,
}

impl OwnAddress {
    /// Protocol 41 alone.
    pub fn of_tunnels(address: Ipv4Addr) -> Self {
        Self { address, tunnels: true, ports: Vec::new() }
    }

    /// These ports alone.
    pub fn of_ports(address: Ipv4Addr, ports: Vec<RangeInclusive<u16>>) -> Self {
        Self { address, tunnels: false, ports }
    }
}
