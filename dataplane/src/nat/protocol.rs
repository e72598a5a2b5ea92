//! The protocols that a NAT keeps state for (RFC 6146 §3): each has a BIB and a session table of its own.

use core::fmt;
use sixway_wire::protocol;

/// A protocol with bindings and sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum NatProtocol {
    /// TCP.
    Tcp = 0,
    /// UDP.
    Udp = 1,
    /// ICMP Query messages: echo requests and replies, whose identifier is used as the port.
    Icmp = 2,
}

impl NatProtocol {
    /// Every protocol.
    pub const ALL: [Self; 3] = [Self::Tcp, Self::Udp, Self::Icmp];

    /// The protocol of a number in an IPv4 or IPv6 header; ICMP has one in each family.
    #[inline]
    pub const fn of(number: u8) -> Option<Self> {
        match number {
            protocol::TCP => Some(Self::Tcp),
            protocol::UDP => Some(Self::Udp),
            protocol::ICMPV4 | protocol::ICMPV6 => Some(Self::Icmp),
            _ => None,
        }
    }

    /// Its name in configuration and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Icmp => "icmp",
        }
    }
}

impl fmt::Display for NatProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
