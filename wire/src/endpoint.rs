//! Transport endpoints: an address with a port, or with an ICMP identifier in its place (RFC 6146 §2, "transport address").

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

/// An IPv4 address with a port or ICMP identifier; the port is 0 where the protocol has none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint4 {
    /// The address.
    pub address: Ipv4Addr,
    /// The port or ICMP identifier.
    pub port: u16,
}

/// An IPv6 address with a port or ICMP identifier; the port is 0 where the protocol has none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint6 {
    /// The address.
    pub address: Ipv6Addr,
    /// The port or ICMP identifier.
    pub port: u16,
}

impl Endpoint4 {
    /// Joins an address and a port.
    #[inline]
    pub const fn new(address: Ipv4Addr, port: u16) -> Self {
        Self { address, port }
    }
}

impl Endpoint6 {
    /// Joins an address and a port.
    #[inline]
    pub const fn new(address: Ipv6Addr, port: u16) -> Self {
        Self { address, port }
    }
}

impl fmt::Display for Endpoint4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.address, self.port)
    }
}

impl fmt::Display for Endpoint6 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]:{}", self.address, self.port)
    }
}

impl fmt::Debug for Endpoint4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Endpoint6 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
