//! Tasks of translators. Prefixes are written as in `2001:db8::/32`.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Stateful NAT64 (RFC 6146) between IPv6-only hosts inside and IPv4 outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nat64 {
    /// The translation prefix.
    pub prefix: String,
    /// IPv4 addresses that the hosts share, routed to the device; without any, the device's own on its first outside link.
    pub pool: Vec<String>,
    /// The most sessions that it has at a time, if not the device's own limit.
    pub sessions: Option<u64>,
}

/// Stateless translation (RFC 7915): each host inside has an IPv4 address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Siit {
    /// The translation prefix.
    pub prefix: String,
    /// Hosts with their IPv4 addresses.
    pub hosts: Vec<(Ipv4Addr, Ipv6Addr)>,
    /// Other hosts get an address from this prefix.
    pub dynamic_pool: Option<String>,
}

/// The CLAT of 464XLAT (RFC 6877): IPv4 hosts inside, an IPv6 network with a NAT64 outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clat {
    /// The prefix of the NAT64.
    pub prefix: String,
    /// Hosts with the IPv6 addresses that they have outside, which are routed to the device.
    pub hosts: Vec<(Ipv4Addr, Ipv6Addr)>,
}

/// NAT44 for IPv4 hosts inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nat44 {
    /// Their networks.
    pub inside: Vec<String>,
    /// As in [`Nat64`].
    pub pool: Vec<String>,
    /// The end of a tunnel inside. A NAT that would otherwise drop them forwards packets of protocol 41 from outside to it.
    pub tunnel_end: Option<Ipv4Addr>,
}

/// NAT46: IPv4-only clients inside, IPv6-only servers outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nat46 {
    /// The clients' network.
    pub clients: String,
    /// IPv4 addresses that represent servers.
    pub pool: String,
    /// Servers see clients in this prefix.
    pub prefix: String,
    /// Servers with the addresses that represent them.
    pub servers: Vec<(Ipv4Addr, Ipv6Addr)>,
}

/// DNS64 (RFC 6147).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dns64 {
    /// Where it listens: an address of its host.
    pub listen: Ipv6Addr,
    /// The authority of all names, which answers at port 53.
    pub authority: Ipv4Addr,
    /// The translation prefix.
    pub prefix: String,
}
