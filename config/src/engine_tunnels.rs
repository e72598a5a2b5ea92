//! The engines' tunnels from the configuration and the current addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sixway_control::isatap_host::HostSettings;
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::configured::ConfiguredConfig;
use sixway_dataplane::mechanism::isatap::IsatapConfig;
use sixway_dataplane::mechanism::six_rd::SixRdConfig;
use sixway_dataplane::mechanism::six_to_four::SixToFourConfig;
use sixway_dataplane::tunnel;

use crate::config::Config;
use crate::configured_tunnel::{ConfiguredTunnel, Remote};
use crate::encapsulation::Encapsulation;
use crate::isatap::Isatap;
use crate::six_rd::{SixRd, SixRdRole};
use crate::six_to_four::SixToFour;
use crate::surroundings::Surroundings;

impl Config {
    /// The tunnels that are possible at the moment, with their names: those with a known local address. They are in the order in which
    /// an endpoint asks them whose packet it is.
    pub fn tunnels(&self, now: &Surroundings) -> Vec<(&str, TunnelConfig)> {
        let configured = self.configured_tunnels.iter().map(|it| (&*it.name, it.engine(now)));
        let six_rd = self.six_rd.iter().map(|it| (&*it.name, it.engine(now)));
        let six_to_four = self.six_to_four.iter().map(|it| (&*it.name, it.engine(now)));
        let isatap = self.isatap.iter().map(|it| (&*it.name, it.engine(now)));
        let b4s = self.b4s().map(|it| (&*it.name, it.engine(now)));
        let all = configured.chain(six_rd).chain(six_to_four).chain(isatap).chain(b4s);
        let all = all.filter_map(|(name, config)| Some((name, config?)));
        all.chain(self.others.changing(now)).collect()
    }

    /// The gateway's own IPv6 address: as written, else one that a tunnel gives it.
    pub fn ipv6_address(&self, now: &Surroundings) -> Option<Ipv6Addr> {
        let first = |prefix: sixway_wire::Prefix6| Ipv6Addr::from_bits(prefix.address().to_bits() | 1);
        let written = || self.gateway.ipv6_address;
        let site = || self.six_to_four.iter().find_map(|it| it.site(it.now(now)?)).map(first);
        let edges = || self.six_rd.iter().filter(|it| it.role == SixRdRole::CustomerEdge);
        let edge = || edges().find_map(|it| it.delegated(it.local.now(now)?)).map(first);
        let configured = || self.configured_tunnels.iter().find_map(|it| it.ipv6_address);
        let isatap = || self.isatap.iter().find_map(|it| it.addresses(now).first().copied());
        written().or_else(site).or_else(edge).or_else(configured).or_else(isatap)
    }

    /// The IPv6 addresses that this host has because of the gateway: the gateway's own, and those on the device and on links. The kernel
    /// uses them as sources of its ICMPv6 errors.
    pub fn host6(&self, now: &Surroundings) -> Vec<Ipv6Addr> {
        let reach = self.reach(now);
        let on_device = reach.addresses.iter().filter_map(|address| match address {
            IpAddr::V6(address) => Some(*address),
            IpAddr::V4(_) => None,
        });
        let on_links = reach.link_addresses.iter().filter(|it| !it.is_anycast());
        let on_links = on_links.filter_map(|it| match it.address {
            IpAddr::V6(address) => Some(address),
            IpAddr::V4(_) => None,
        });
        on_device.chain(on_links).chain(self.ipv6_address(now)).collect()
    }
}

impl SixToFour {
    fn engine(&self, now: &Surroundings) -> Option<TunnelConfig> {
        let config = SixToFourConfig {
            role: self.role,
            address: self.now(now)?,
            nat_address: self.nat_address,
            relay: self.relay,
            native_sources: self.native_sources.clone(),
            subnets: now.subnets(),
            policy: self.encapsulation.engine(),
        };
        config.check().ok()?;
        Some(TunnelConfig::SixToFour(config))
    }
}

impl SixRd {
    fn engine(&self, now: &Surroundings) -> Option<TunnelConfig> {
        let address = self.local.now(now)?;
        let config = SixRdConfig {
            domain: self.domain(address)?,
            role: self.role,
            address,
            border_relays: self.border_relays.clone(),
            other_relays: self.other_relays.clone(),
            subnets: now.subnets(),
            policy: self.encapsulation.engine(),
        };
        config.check().ok()?;
        Some(TunnelConfig::SixRd(config))
    }
}

impl ConfiguredTunnel {
    /// The other end at the moment.
    pub fn remote_now(&self, now: &Surroundings) -> Option<Ipv4Addr> {
        match &self.remote {
            Remote::Address(address) => Some(*address),
            Remote::Name(_) => now.remotes.get(&self.name).copied(),
        }
    }

    fn engine(&self, now: &Surroundings) -> Option<TunnelConfig> {
        let config = ConfiguredConfig {
            local: self.local.now(now)?,
            remote: self.remote_now(now),
            prefixes: self.prefixes.clone(),
            strict_sources: self.strict_sources,
            policy: self.encapsulation.engine(),
        };
        config.check().ok()?;
        Some(TunnelConfig::Configured(config))
    }
}

impl Isatap {
    /// The prefixes on the link: as written, else as learnt.
    pub fn prefixes(&self, now: &Surroundings) -> Vec<sixway_wire::Prefix6> {
        let learnt = || now.learnt.get(&self.name).map(|learnt| learnt.prefixes.clone()).unwrap_or_default();
        self.prefix.map_or_else(learnt, |prefix| vec![prefix])
    }

    /// The gateway's addresses on the link (RFC 5214 §6.2).
    pub fn addresses(&self, now: &Surroundings) -> Vec<Ipv6Addr> {
        let Some(local) = self.local.now(now) else { return Vec::new() };
        let prefixes = self.prefixes(now).into_iter();
        prefixes.map(|prefix| tunnel::address::isatap::address(prefix, local)).collect()
    }

    /// The router that a host uses; `None` until one has advertised itself.
    pub fn router(&self, now: &Surroundings) -> Option<Ipv4Addr> {
        now.learnt.get(&self.name)?.router
    }

    /// The potential routers, that in use first.
    fn routers(&self, now: &Surroundings) -> Vec<Ipv4Addr> {
        let in_use = self.router(now);
        let others = self.potential_routers.iter().copied().filter(|router| Some(*router) != in_use);
        in_use.into_iter().chain(others).collect()
    }

    /// The settings of an ISATAP host, which solicits its routers from `local` (RFC 5214 §8.3).
    pub fn host_settings(&self, local: Ipv4Addr) -> HostSettings {
        let usual = HostSettings::new(local);
        let min_solicit_interval = self.min_solicit_interval.unwrap_or(usual.min_solicit_interval);
        HostSettings { min_solicit_interval, ..usual }
    }

    fn engine(&self, now: &Surroundings) -> Option<TunnelConfig> {
        Some(TunnelConfig::Isatap(IsatapConfig {
            role: self.role,
            address: self.local.now(now)?,
            prefixes: self.prefixes(now),
            routers: self.routers(now),
            locators: self.locators.clone(),
            subnets: now.subnets(),
            policy: self.encapsulation.engine(),
        }))
    }
}

impl Encapsulation {
    pub(crate) fn engine(&self) -> tunnel::TunnelPolicy {
        tunnel::TunnelPolicy {
            ttl: self.ttl,
            traffic_class: self.traffic_class,
            ecn: self.ecn,
            mtu: self.mtu,
            outer_fragments: self.outer_fragments,
            clamp_mss: self.clamp_mss,
            ..tunnel::TunnelPolicy::default()
        }
    }
}
