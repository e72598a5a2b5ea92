//! A mechanism that needs only its section of the configuration, and only routes of the host.

use std::net::{IpAddr, Ipv4Addr};

use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_wire::Prefix6;

use crate::route::Route;
use crate::section::Reader;
use crate::surroundings::Surroundings;
use crate::tunnel_context::TunnelContext;

/// Such a mechanism.
pub trait Mechanism {
    /// Its name.
    fn name(&self) -> &str;
    /// What its engine is built from.
    fn engine(&self) -> MechanismConfig;
    /// What it serves, in words.
    fn serves(&self) -> String;
    /// Destinations that are routed into the device.
    fn routes(&self) -> Vec<Route>;
    /// Sources that are routed into the device, and the destinations for which they are not.
    fn inside_sources(&self) -> Option<(Prefix6, &[Prefix6])> {
        None
    }
    /// The addresses at which tunnels end, which this host must not have on an interface.
    fn locals(&self) -> Vec<IpAddr> {
        Vec::new()
    }
    /// The current settings of its engine, if they can change while the gateway runs; it is then a tunnel.
    fn changing(&self, _now: &Surroundings) -> Option<TunnelConfig> {
        None
    }
    /// The IPv4 address that this host has on the device because of it.
    fn address4(&self, _now: &Surroundings) -> Option<Ipv4Addr> {
        None
    }
    /// Whether hosts with IPv4 addresses send packets to it.
    fn serves_ipv4(&self) -> bool;
    /// The same of IPv6.
    fn serves_ipv6(&self) -> bool;
}

/// A mechanism that can be read; `before` are those of its kind above it.
pub(crate) trait FromSection: Mechanism + Sized {
    fn read(
        section: &Reader,
        default_name: String,
        before: &[Option<Self>],
        context: TunnelContext,
    ) -> Option<Self>;
}
