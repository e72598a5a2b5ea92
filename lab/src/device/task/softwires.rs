//! Tasks of IPv4 over an IPv6 network.

use std::net::Ipv6Addr;
use std::time::Duration;

/// The AFTR of DS-Lite (RFC 6333): softwires inside, IPv4 outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aftr {
    /// Where softwires end; routed to the host, but not on an interface.
    pub address: Ipv6Addr,
    /// Networks of B4s.
    pub clients: String,
    /// IPv4 addresses that the hosts share, routed to the device.
    pub pool: Vec<String>,
}

/// The B4 of DS-Lite: IPv4 hosts inside, an IPv6 network outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct B4 {
    /// The AFTR.
    pub aftr: Ipv6Addr,
}

/// The concentrator of 4over6 (RFC 7040): tunnels inside, IPv4 outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concentrator {
    /// Where tunnels end; routed to the host, but not on an interface.
    pub address: Ipv6Addr,
    /// Networks of hosts.
    pub clients: String,
    /// IPv4 addresses for leases, routed to the device.
    pub pool: Vec<String>,
    /// The time of a lease, if not the device's default.
    pub lease: Option<Duration>,
}

/// A host of 4over6 that leases its IPv4 address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasingHost {
    /// Its end of the tunnel; routed to the host, but not on an interface.
    pub local: Ipv6Addr,
    /// The concentrator.
    pub concentrator: Ipv6Addr,
    /// An IPv6 address of the concentrator's host, at which leases are requested.
    pub server: Ipv6Addr,
    /// IPv4 prefixes that are reached by the tunnel; without any, all of IPv4 is.
    pub destinations: Vec<String>,
}
