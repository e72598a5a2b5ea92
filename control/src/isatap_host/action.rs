//! Inputs and outputs of an ISATAP host other than messages.

use super::host_address::HostAddress;
use super::reachability::Reachability;
use crate::neighbour_discovery::Transmission;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;

/// What the operator decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSettings {
    /// The interface's locator: its own IPv4 address.
    pub local: Ipv4Addr,
    /// MinRouterSolicitInterval: the least time between two events of solicitation of one router; 2 min.
    pub min_solicit_interval: Duration,
    /// PrlRefreshInterval: when the potential router list is looked up again; 1 h. `None`: never.
    pub refresh_interval: Option<Duration>,
}

impl HostSettings {
    /// The RFC's defaults.
    pub const fn new(local: Ipv4Addr) -> Self {
        let refresh_interval = Some(Duration::from_secs(3_600));
        Self { local, min_solicit_interval: Duration::from_secs(120), refresh_interval }
    }
}

/// The route to the IPv6 world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultRoute {
    /// The router's link-local address, the next hop.
    pub gateway: Ipv6Addr,
    /// The router's IPv4 address, where packets are sent through the tunnel.
    pub router: Ipv4Addr,
    /// The MTU that it advertises, if it does.
    pub mtu: Option<u32>,
    /// The hop limit that it advertises, if it does.
    pub hop_limit: Option<u8>,
}

/// What the daemon is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAction {
    /// Send this through the tunnel to its `outer_destination`, which is always there.
    Transmit(Transmission),
    /// Look the potential routers up and give them to [`set_potential_routers`](super::IsatapHost::set_potential_routers); on failure do nothing: the action is repeated.
    LookUpRouters,
    /// Add this address, or give it these lifetimes.
    SetAddress(HostAddress),
    /// Remove this address.
    RemoveAddress(Ipv6Addr),
    /// Set the default route, replacing the previous one.
    SetDefaultRoute(DefaultRoute),
    /// Remove the default route: no router is left.
    RemoveDefaultRoute,
}

/// The result of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostHeard {
    /// An advertisement of a potential router, which was taken.
    Advertisement,
    /// An advertisement of a node that is not on the potential router list (RFC 5214 §8.3.3): ignored.
    Stranger,
    /// A neighbour advertisement of one of the routers.
    Neighbour,
    /// A neighbour solicitation, which is answered.
    Solicitation,
    /// A solicitation beyond the rate limit of answers.
    TooMany,
    /// A valid message that does not concern this host.
    NotForUs,
}

/// A potential router, as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PotentialRouter {
    /// Its IPv4 address.
    pub address: Ipv4Addr,
    /// Remaining lifetime as a default router; `None`: not a default router.
    pub lifetime: Option<Duration>,
    /// Its reachability.
    pub reachability: Reachability,
    /// Whether its last probes were not answered.
    pub failed: bool,
    /// Whether it is the default router in use.
    pub in_use: bool,
}
