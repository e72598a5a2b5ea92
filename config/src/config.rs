//! A configuration without faults: the values of every section, and values derived from them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;

use serde::Serialize;
use sixway_dataplane::nat;
use sixway_wire::{Endpoint4, Endpoint6, Prefix4};

use crate::configured_tunnel::ConfiguredTunnel;
use crate::dns64::Dns64;
use crate::ds_lite::{Aftr, B4, DsLite};
use crate::event_log::EventLog;
use crate::fast_path::FastPath;
use crate::gateway::{Fragments, Gateway, Tun};
use crate::isatap::{Isatap, IsatapRole};
use crate::mechanism::Mechanism;
use crate::mechanisms::Mechanisms;
use crate::nat44::Nat44;
use crate::nat64::Nat64;
use crate::pcp::Pcp;
use crate::pool::Pool;
use crate::ports::Ports;
use crate::realm::Realm;
use crate::route::{DEFAULT_ROUTE4, Route, aggregated};
use crate::router_advertisement::RouterAdvertisement;
use crate::siit::{EamRoutes, Siit};
use crate::six_rd::SixRd;
use crate::six_to_four::{SixToFour, SixToFourRole};
use crate::surroundings::Surroundings;
use crate::teredo_server::TeredoServer;
use crate::tunnels::Tunnels;

/// A configuration without faults, every default filled in.
///
/// Its `Display` is a configuration file again, which reads as the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Config {
    /// What the process is.
    pub gateway: Gateway,
    /// The device.
    pub tun: Tun,
    /// Fragments that wait.
    pub fragments: Fragments,
    /// Outside addresses.
    #[serde(rename = "pool")]
    pub pools: Vec<Pool>,
    /// NAT64s.
    pub nat64: Vec<Nat64>,
    /// The NAT44.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nat44: Option<Nat44>,
    /// Realms: NAT44s for hosts behind devices of their own.
    #[serde(rename = "realm")]
    pub realms: Vec<Realm>,
    /// Stateless translators.
    pub siit: Vec<Siit>,
    /// Mechanisms that need only their section.
    #[serde(flatten)]
    pub others: Mechanisms,
    /// How the tunnels' packets come in.
    pub tunnels: Tunnels,
    /// 6to4.
    pub six_to_four: Vec<SixToFour>,
    /// 6rd domains.
    pub six_rd: Vec<SixRd>,
    /// Configured tunnels.
    #[serde(rename = "tunnel")]
    pub configured_tunnels: Vec<ConfiguredTunnel>,
    /// ISATAP interfaces.
    pub isatap: Vec<Isatap>,
    /// Elements of DS-Lite.
    pub ds_lite: Vec<DsLite>,
    /// The Teredo server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub teredo_server: Option<TeredoServer>,
    /// The PCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcp: Option<Pcp>,
    /// Router advertisements.
    #[serde(rename = "router_advertisement")]
    pub router_advertisements: Vec<RouterAdvertisement>,
    /// The DNS64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns64: Option<Dns64>,
    /// What is logged of the translators.
    #[serde(rename = "log", skip_serializing_if = "Option::is_none")]
    pub event_log: Option<EventLog>,
    /// What the kernel forwards.
    #[serde(rename = "fastpath", skip_serializing_if = "Option::is_none")]
    pub fast_path: Option<FastPath>,
    /// The gateway's own addresses that are not this host's.
    #[serde(skip)]
    pub(crate) own_routes: Vec<Route>,
}

/// Maximum number of routes for the mappings of a SIIT.
pub(crate) const MAX_EAM_ROUTES: usize = 4_096;

impl Config {
    /// The pool of this name.
    pub fn pool(&self, name: &str) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.name == name)
    }

    /// The NAT44s, in the order of the engine: the main one, and those of realms.
    pub fn nat44s(&self) -> impl Iterator<Item = &Nat44> {
        self.nat44.iter().chain(self.realms.iter().map(|realm| &realm.nat44))
    }

    /// The AFTRs of DS-Lite.
    pub fn aftrs(&self) -> impl Iterator<Item = &Aftr> {
        self.ds_lite.iter().filter_map(|it| match it {
            DsLite::Aftr(aftr) => Some(&**aftr),
            DsLite::B4(_) => None,
        })
    }

    /// The B4s of DS-Lite.
    pub fn b4s(&self) -> impl Iterator<Item = &B4> {
        self.ds_lite.iter().filter_map(|it| match it {
            DsLite::B4(b4) => Some(b4),
            DsLite::Aftr(_) => None,
        })
    }

    /// The gateway's own IPv4 address: as written, else a B4's.
    pub fn ipv4_address(&self) -> Option<Ipv4Addr> {
        self.gateway.ipv4_address.or_else(|| self.b4s().map(|b4| b4.ipv4_address).next())
    }

    /// Whether there is a NAT44.
    pub fn has_nat44(&self) -> bool {
        self.nat44s().next().is_some()
    }

    /// The pools of the stateful translators, in their order.
    pub fn used_pools(&self) -> impl Iterator<Item = &Pool> {
        let nat64 = self.nat64.iter().map(|nat64| &nat64.pool);
        let aftrs = self.aftrs().map(|aftr| &aftr.pool);
        let all = nat64.chain(self.nat44s().map(|nat44| &nat44.pool)).chain(aftrs);
        all.filter_map(|name| self.pool(name))
    }

    /// The addresses of all pools that translators use, as the fewest prefixes.
    pub fn pool_prefixes(&self) -> Vec<Prefix4> {
        aggregated(self.used_pools().flat_map(|pool| pool.addresses.iter().copied()).collect())
    }

    /// The IPv4 sources that are subscribers of a translator, as the fewest prefixes.
    pub fn subscribers4(&self) -> Vec<Prefix4> {
        aggregated(self.nat44.iter().flat_map(|nat44| nat44.inside.iter().copied()).collect())
    }

    /// Prefix lengths of subscribers with IPv6 and with IPv4 addresses, by which the kernel steers packets to workers: with several NAT64s and AFTRs
    /// of different lengths, those of the first.
    pub fn subscriber_bits(&self) -> (u8, u8) {
        let six = self.nat64.first().map(|nat64| nat64.subscribers.prefix_length);
        let six = six.or_else(|| self.aftrs().next().map(|aftr| aftr.subscribers.prefix_length));
        let four = self.nat44.as_ref().map(|nat44| nat44.subscribers.prefix_length);
        (
            six.unwrap_or(nat::Config::<Endpoint6>::SUBSCRIBER_BITS),
            four.unwrap_or(nat::Config::<Endpoint4>::SUBSCRIBER_BITS),
        )
    }

    /// Ports of a block that moves between workers, by which the kernel steers packets to them: with several stateful translators, of the first.
    pub fn ports_per_block(&self) -> u16 {
        let policy = match self.nat64.first() {
            Some(nat64) => nat64.subscribers.engine(&nat64.inside, self.pool(&nat64.pool)).blocks,
            None => match self.nat44s().next() {
                Some(nat44) => nat44.subscribers.engine(&nat44.inside, self.pool(&nat44.pool)).blocks,
                None => self
                    .aftrs()
                    .next()
                    .and_then(|aftr| aftr.subscribers.engine(&aftr.clients, self.pool(&aftr.pool)).blocks),
            },
        };
        policy.map_or(nat::PORTS_PER_BLOCK, |policy| policy.size)
    }

    /// Whether there is a translator between the families.
    pub fn translates(&self) -> bool {
        !self.nat64.is_empty() || !self.siit.is_empty()
    }

    /// Whether this host is a router between the tunnels, or advertised links, and others; hosts at the end of a tunnel are not.
    pub fn routes_ipv6(&self) -> bool {
        self.six_to_four.iter().any(|it| it.role != SixToFourRole::Host)
            || self.isatap.iter().any(|it| it.role != IsatapRole::Host)
            || !self.six_rd.is_empty()
            || !self.configured_tunnels.is_empty()
            || !self.router_advertisements.is_empty()
            || self.others.are_reached_by_ipv6()
            || !self.ds_lite.is_empty()
    }

    /// Whether this host forwards IPv4 packets for its mechanisms.
    pub fn routes_ipv4(&self) -> bool {
        self.translates() || self.has_nat44() || self.others.are_reached_by_ipv4() || !self.ds_lite.is_empty()
    }

    /// Whether there is a tunnel.
    pub fn has_tunnels(&self) -> bool {
        !(self.six_to_four.is_empty()
            && self.six_rd.is_empty()
            && self.configured_tunnels.is_empty()
            && self.isatap.is_empty())
    }

    /// Whether a device is needed: a DNS64 or a Teredo server alone needs none, and does not change routes and forwarding.
    pub fn needs_device(&self) -> bool {
        self.translates()
            || self.has_nat44()
            || self.routes_ipv6()
            || self.has_tunnels()
            || !self.others.is_empty()
            || !self.ds_lite.is_empty()
    }

    /// The queues of the device: as written, else one for each worker.
    pub fn queues(&self) -> u8 {
        self.tun.queues.unwrap_or(self.gateway.workers)
    }

    /// The routes that lead into the device, without doubles: what `tun.routes` says. Those of tunnels are in [`Config::reach`].
    pub fn routes(&self) -> Vec<Route> {
        if !self.needs_device() {
            return Vec::new();
        }
        let mut routes = self.tun.routes.further.clone();
        if self.tun.routes.auto {
            routes.extend(self.own_routes.iter().copied());
            for nat64 in &self.nat64 {
                routes.push(Route::V6(nat64.prefix.prefix()));
            }
            for pool in self.used_pools().filter(|pool| !pool.shared) {
                routes.extend(aggregated(pool.addresses.clone()).into_iter().map(Route::V4));
            }
            for siit in &self.siit {
                routes.extend(siit.routed_prefix().map(Route::V6));
                routes.extend(siit.dynamic_pool.map(Route::V4));
                routes.extend(eam_routes(siit).unwrap_or_default());
            }
            routes.extend(self.others.all().into_iter().flat_map(Mechanism::routes));
            routes.extend(self.b4s().map(|_| Route::V4(DEFAULT_ROUTE4)));
        }
        routes.sort_unstable();
        routes.dedup();
        routes
    }

    /// Whether the kernel is to forward packets.
    pub fn is_offloaded(&self) -> bool {
        self.needs_device() && self.fast_path.as_ref().is_some_and(FastPath::is_on)
    }

    /// The maximum number of sessions in all.
    pub fn sessions(&self) -> u64 {
        let nat44 = self.nat44s().map(|nat44| nat44.limits.sessions);
        let aftrs = self.aftrs().map(|aftr| aftr.limits.sessions);
        let nat64 = self.nat64.iter().map(|nat64| nat64.limits.sessions);
        nat64.chain(nat44).chain(aftrs).map(u64::from).sum()
    }

    /// This host's own addresses, each with the ports that are the translators'.
    pub fn shared_ports(&self) -> Vec<(Ipv4Addr, Ports)> {
        let mut of_address: BTreeMap<Ipv4Addr, Vec<&Ports>> = BTreeMap::new();
        for pool in self.used_pools().filter(|pool| pool.shared) {
            for prefix in &pool.addresses {
                of_address.entry(prefix.address()).or_default().push(&pool.ports);
            }
        }
        of_address.into_iter().map(|(address, ports)| (address, Ports::union(ports))).collect()
    }

    /// The interfaces of a NAT44's inside hosts, if its pool has this host's own address: they reach each other by its ports there.
    pub fn inside_of_shared(&self, now: &Surroundings) -> Vec<String> {
        let nat44 = self.nat44.iter().filter(|nat44| self.pool(&nat44.pool).is_some_and(|pool| pool.shared));
        nat44.flat_map(|nat44| nat44.inner_interfaces(now)).collect()
    }

    /// Where the IPv4 hosts inside are, if a pool has this host's own address: their prefixes, and the interfaces that lead to them. A packet to
    /// shared ports with such a source is forged if it comes by another interface. No interfaces: it is not known which these are.
    pub fn inside_of_nat44(&self, now: &Surroundings) -> (Vec<Prefix4>, Vec<String>) {
        let Some(nat44) = self.nat44.as_ref().filter(|_| self.used_pools().any(|pool| pool.shared)) else {
            return Default::default();
        };
        (nat44.inside.clone(), nat44.inner_interfaces(now))
    }

    /// The pools that follow an interface with a changed address, with the new address.
    pub fn moved_pools<'c>(&'c self, now: &Surroundings) -> impl Iterator<Item = (&'c Pool, Ipv4Addr)> {
        self.pools.iter().filter_map(move |pool| {
            let address = now.ipv4_of(pool.interface.as_ref()?)?;
            (!pool.holds(address)).then_some((pool, address))
        })
    }
}

/// Where the mappings lead into the device; as an error, how many routes that would be, if they are too many.
pub(crate) fn eam_routes(siit: &Siit) -> Result<Vec<Route>, usize> {
    let routes: Vec<Route> = match siit.eam_routes {
        EamRoutes::Ipv4 => {
            aggregated(siit.mappings.iter().map(|(v4, _)| v4).collect()).into_iter().map(Route::V4).collect()
        }
        EamRoutes::Ipv6 => {
            aggregated(siit.mappings.iter().map(|(_, v6)| v6).collect()).into_iter().map(Route::V6).collect()
        }
        EamRoutes::None => Vec::new(),
    };
    if routes.len() > MAX_EAM_ROUTES { Err(routes.len()) } else { Ok(routes) }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&toml::to_string(self).map_err(|_| fmt::Error)?)
    }
}
