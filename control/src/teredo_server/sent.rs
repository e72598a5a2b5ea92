//! The messages that a server sends.

use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::Endpoint4;

/// The messages that a server sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The octets as a datagram, from this address of the server and its port.
    Udp {
        /// Source.
        from: Ipv4Addr,
        /// Destination.
        to: Endpoint4,
    },
    /// The octets as an IPv6 packet to this destination, by the host's routing.
    Native(Ipv6Addr),
}
