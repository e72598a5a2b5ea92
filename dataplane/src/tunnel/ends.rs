//! The ends of a tunnel of IP in IP, in either family.

use crate::parse::Addresses;
use crate::verdict::Outer;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use sixway_wire::Prefix6;

/// The ends of a tunnel, and what it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelEnds {
    /// This end.
    pub local: IpAddr,
    /// The remote end, if it is known.
    pub remote: Option<IpAddr>,
    /// Whether it carries IPv4 packets.
    pub takes_v4: bool,
    /// Whether it carries IPv6 packets.
    pub takes_v6: bool,
}

/// Where many tunnels of IPv4 in IPv6 end, softwires: no remote end is known when they are configured, their prefixes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concentrator {
    /// This end's addresses.
    pub locals: Vec<Ipv6Addr>,
    /// Prefixes of the remote ends, of which the mechanism may know which ones exist.
    pub clients: Vec<Prefix6>,
    /// Remote ends at a time, at most.
    pub most: u32,
    /// Bits of the prefix that one subscriber has: limits count for it.
    pub subscriber_bits: u8,
}

/// The local ends of all tunnels over IPv4.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends4 {
    /// Of IPv6 in IPv4.
    pub six_in_four: Vec<Ipv4Addr>,
    /// Of IPv4 in IPv4.
    pub four_in_four: Vec<Ipv4Addr>,
}

impl Ends4 {
    /// No tunnels.
    pub const NONE: Self = Self { six_in_four: Vec::new(), four_in_four: Vec::new() };
}

/// Source and destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    /// Source.
    pub source: IpAddr,
    /// Destination.
    pub destination: IpAddr,
}

impl Pair {
    /// Those of a packet.
    pub const fn of(addresses: Addresses) -> Self {
        match addresses {
            Addresses::V4 { source, destination } => {
                Self { source: IpAddr::V4(source), destination: IpAddr::V4(destination) }
            }
            Addresses::V6 { source, destination } => {
                Self { source: IpAddr::V6(source), destination: IpAddr::V6(destination) }
            }
        }
    }

    /// The outer header between them; `None` if they are of two families.
    pub const fn header(self) -> Option<Outer> {
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Some(Outer::V4 { source, destination }),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Some(Outer::V6 { source, destination }),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => None,
        }
    }
}
