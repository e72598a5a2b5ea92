//! The ends of a tunnel of IP in IP, in either family.

use crate::parse::Addresses;
use crate::verdict::Outer;
use core::net::IpAddr;

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
