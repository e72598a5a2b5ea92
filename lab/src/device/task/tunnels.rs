//! Tasks of tunnels between IPv4 and IPv6, and of gateways that have them. Tunnels over IPv4 have an MTU of 1,480 octets.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// A 6to4 relay (RFC 3056 §5.2) between 6to4 hosts inside and native IPv6 outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relay6to4 {
    /// Its IPv4 address, which the host has.
    pub address: Ipv4Addr,
}

/// The 6to4 router of a site (RFC 3056 §5.1): hosts inside have addresses of the site's prefix, outside is IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Router6to4 {
    /// Its IPv4 address, which the host has.
    pub address: Ipv4Addr,
    /// The relay to native IPv6.
    pub relay: Ipv4Addr,
    /// The address of a NAT in front of it that forwards protocol 41, from which the site's prefix comes then.
    pub nat: Option<Ipv4Addr>,
}

/// A 6to4 host without a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host6to4 {
    /// Its IPv4 address, which the host has.
    pub address: Ipv4Addr,
    /// The relay to native IPv6.
    pub relay: Ipv4Addr,
}

/// One end of a configured tunnel of IPv6 in IPv4 (RFC 4213).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configured {
    /// Its IPv4 address, which the host has.
    pub local: Ipv4Addr,
    /// That of the other end.
    pub remote: Ipv4Addr,
    /// IPv6 prefixes behind the other end.
    pub prefixes: Vec<String>,
}

/// One end of a tunnel of IPv4 or IPv6 in IPv6 (RFC 2473).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpInIp {
    /// Its IPv6 address, which is routed to the host but is not on an interface: the device puts it there if it must.
    pub local: Ipv6Addr,
    /// That of the other end.
    pub remote: Ipv6Addr,
    /// Prefixes behind the other end.
    pub prefixes: Vec<String>,
}

/// An ISATAP router (RFC 5214) between its hosts inside and native IPv6 outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsatapRouter {
    /// Its IPv4 address, which the host has.
    pub address: Ipv4Addr,
    /// The hosts' prefix, 64 bits long.
    pub prefix: String,
    /// How long hosts keep the router, if not for the device's default.
    pub lifetime: Option<Duration>,
}

/// An ISATAP host. Its router is at work before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsatapHost {
    /// Its IPv4 address, which the host has.
    pub address: Ipv4Addr,
    /// The router's.
    pub router: Ipv4Addr,
    /// Whether it solicits as often as it may, and not at most every two minutes.
    pub is_eager: bool,
}

/// A site's gateway with one IPv4 address: NAT44, 6to4 router, and router advertisements on the first link inside, whose prefix is the
/// site's subnet 1. The gateway's address there ends in `::1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteGateway {
    /// Its IPv4 address, which the host has on its first outside link.
    pub address: Ipv4Addr,
    /// The relay to native IPv6.
    pub relay: Ipv4Addr,
    /// IPv4 networks inside.
    pub inside: Vec<String>,
    /// The address of its own NAT through which the tunnel's packets pass, and from which the site's prefix comes then. It is routed to the
    /// gateway, and on no interface; [`SiteGateway::address`] is a private one then, of the first link inside.
    pub nat: Option<Ipv4Addr>,
}

/// A Teredo relay (RFC 4380 §5.4) between clients outside and native IPv6 inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeredoRelay {
    /// Its IPv4 address, which the host has.
    pub address: Ipv4Addr,
    /// An IPv6 address of the host.
    pub address6: Ipv6Addr,
}

/// A Teredo server (RFC 4380 §5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeredoServer {
    /// Its first IPv4 address; the second is the next one. The host has both.
    pub address: Ipv4Addr,
}

/// A Teredo client (RFC 4380 §5.2) on the first link outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeredoClient {
    /// The server's first address.
    pub server: Ipv4Addr,
    /// The refresh interval, if not the device's default.
    pub interval: Option<Duration>,
}
