//! Why a client has no address, in words.

use super::refused::Refused;
use core::fmt;
use core::net::Ipv4Addr;

/// Why a client has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It has not been started.
    NotStarted,
    /// No server is configured.
    NoServer,
    /// This host has no IPv4 address to send from.
    NoLocalAddress,
    /// The host's IPv4 address changed.
    Moved,
    /// This host has IPv6 by other means (RFC 4380 §5.5).
    NativeIpv6,
    /// The server in use does not answer.
    NoAnswer(Ipv4Addr),
    /// The server's first address answers, and its second one does not.
    NoSecondAnswer(Ipv4Addr),
    /// None of several servers answers.
    Blocked(u16),
    /// The answer was refused.
    BadAnswer(Refused),
    /// The NAT is symmetric, and RFC 6081 is off.
    Symmetric,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted => f.write_str("not started"),
            Self::NoServer => f.write_str("no server is configured"),
            Self::NoLocalAddress => f.write_str("this host has no IPv4 address"),
            Self::Moved => f.write_str("the IPv4 address of this host changed"),
            Self::NativeIpv6 => f.write_str("this host has native IPv6"),
            Self::NoAnswer(server) => write!(f, "no answer from server {server}"),
            Self::NoSecondAnswer(address) => {
                write!(f, "no answer from the server's second address {address}")
            }
            Self::Blocked(servers) => {
                write!(f, "no answer from any of {servers} servers: UDP to port 3544 is probably blocked")
            }
            Self::BadAnswer(refused) => write!(f, "the answer was refused: {refused}"),
            Self::Symmetric => f.write_str("the NAT is symmetric, and support for it is off"),
        }
    }
}
