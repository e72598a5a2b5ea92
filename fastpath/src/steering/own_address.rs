//! The packets to this host's own addresses that belong to the engine.

use sixway_wire::Prefix4;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

/// Maximum local addresses that are steered, the size of the program's map.
pub const ADDRESSES: usize = 1_024;

/// Maximum port ranges of one address; the program checks each of them.
pub const RANGES: usize = 8;

/// Maximum interfaces that lead to inside hosts, the size of the program's map.
pub const INNER_INTERFACES: usize = 1_024;

/// Where inside hosts are. A packet with a source of theirs that arrives elsewhere is forged: it is left to the host, which has reverse path
/// filtering and a packet filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InsideHosts {
    /// Their prefixes.
    pub prefixes: Vec<Prefix4>,
    /// The interfaces that lead to them. None: it is not known which these are, and their sources are accepted everywhere.
    pub interfaces: Vec<String>,
}

/// Which packets to one of this host's own IPv4 addresses are steered.
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
