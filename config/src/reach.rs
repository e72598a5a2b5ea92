//! What the tunnels need of the host's kernel, with the current addresses: as plain data, which the daemon sets and removes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sixway_wire::{IPV6_MIN_MTU, Prefix4, Prefix6};

use crate::config::Config;
use crate::encapsulation::{Encapsulation, TunnelMtu};
use crate::four_over_six::FourOverSix;
use crate::isatap::IsatapRole;
use crate::nat44::Nat44;
use crate::route::{DEFAULT_ROUTE6, Route, aggregated};
use crate::siit::EamRoutes;
use crate::six_rd::SixRdRole;
use crate::six_to_four::SixToFourRole;
use crate::source_rule::SourceRule;
use crate::surroundings::Surroundings;

/// Shorter IPv4 prefixes that are routed into the device are halves of a default route rather than addresses of hosts.
const SHORTEST_RANGE: u8 = 8;

/// RFC 7723 §4.1.
const PCP_ANYCAST4: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 9);
/// RFC 7723 §4.2.
const PCP_ANYCAST6: Ipv6Addr = Ipv6Addr::new(0x2001, 1, 0, 0, 0, 0, 0, 1);
const LOOPBACK: &str = "lo";

/// A destination that is routed into the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TunnelRoute {
    /// The destination.
    pub prefix: Prefix6,
    /// The MTU of the route, with which this host's own connections begin; set if the tunnel's MTU is fixed.
    pub mtu: Option<u16>,
    /// Whether routes of others to the same destination have precedence.
    pub is_last: bool,
}

/// An address that this host gets on an interface, and with it a route to its network there, if it has one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkAddress {
    /// The interface.
    pub interface: String,
    /// The address.
    pub address: IpAddr,
    /// Length of its network's prefix in bits.
    pub length: u8,
}

impl LinkAddress {
    /// Whether it is a whole address without a network: others ask this host there, and it begins nothing with it.
    pub fn is_anycast(&self) -> bool {
        self.length == if self.address.is_ipv4() { 32 } else { 128 }
    }
}

/// An address for which this host answers ARP requests or neighbour solicitations on an interface.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProxyNeighbour {
    /// The interface.
    pub interface: String,
    /// The address.
    pub address: IpAddr,
}

/// What the tunnels need of the host's kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Routes into the device.
    pub routes: Vec<TunnelRoute>,
    /// Destinations that are unreachable except by longer routes, so that no packet loops (RFC 3056 §5.11, RFC 5969 §12).
    pub unreachable: Vec<Prefix6>,
    /// IPv4 addresses of pools and of the gateway, which are unreachable once the device is gone, so that packets to them do not loop.
    pub blackholes: Vec<Prefix4>,
    /// Addresses of this host on the device.
    pub addresses: Vec<IpAddr>,
    /// Addresses of this host on other interfaces.
    pub link_addresses: Vec<LinkAddress>,
    /// What is routed by its source: what is excepted first.
    pub rules: Vec<SourceRule>,
    /// Addresses of pools and of tunnels' local ends for which others send ARP requests or neighbour solicitations on a link.
    pub proxies: Vec<ProxyNeighbour>,
}

impl Config {
    /// What the tunnels need of the host's kernel.
    pub fn reach(&self, now: &Surroundings) -> Reach {
        let mut reach = Reach::default();
        self.six_to_four_reach(now, &mut reach);
        self.six_rd_reach(now, &mut reach);
        for tunnel in self.configured_tunnels.iter().filter(|it| it.local.now(now).is_some()) {
            tunnel.prefixes.iter().for_each(|prefix| reach.route(*prefix, &tunnel.encapsulation));
            reach.addresses.extend(tunnel.ipv6_address.map(IpAddr::V6));
        }
        self.isatap_reach(now, &mut reach);
        self.b4_reach(now, &mut reach);
        for address in self.aftrs().flat_map(|aftr| &aftr.addresses) {
            reach.routes.push(TunnelRoute {
                prefix: Prefix6::holding(*address, 128),
                mtu: None,
                is_last: false,
            });
        }
        self.teredo_reach(now, &mut reach);
        self.link_reach(now, &mut reach);
        self.anycast_reach(&mut reach);
        self.siit_reach(&mut reach);
        self.pool_reach(now, &mut reach);
        let lent = self.others.four_over_six.iter().filter_map(FourOverSix::concentrator);
        reach.blackholes.extend(lent.flat_map(|it| aggregated(it.pool.clone())));
        let leased = self.others.all().into_iter().filter_map(|it| it.address4(now));
        reach.addresses.extend(leased.map(IpAddr::V4));
        reach.rules = self.others.source_rules();
        reach.rules.extend(self.nat44.iter().flat_map(Nat44::source_rules));
        if !self.tun.routes.auto {
            reach.routes.clear();
            reach.rules.clear();
            reach.blackholes.clear();
        }
        reach.tidy();
        reach
    }

    fn six_to_four_reach(&self, now: &Surroundings, reach: &mut Reach) {
        for it in &self.six_to_four {
            let Some(address) = it.now(now) else { continue };
            it.routes().into_iter().for_each(|prefix| reach.route(prefix, &it.encapsulation));
            let Some(site) = it.site(address) else { continue };
            reach.unreachable.push(site);
            match it.role {
                SixToFourRole::Host => reach.addresses.push(first_of(site).into()),
                SixToFourRole::Router | SixToFourRole::Relay => {}
            }
        }
    }

    fn six_rd_reach(&self, now: &Surroundings, reach: &mut Reach) {
        for it in &self.six_rd {
            let Some(address) = it.local.now(now) else { continue };
            it.routes().into_iter().for_each(|prefix| reach.route(prefix, &it.encapsulation));
            let Some(delegated) = it.delegated(address) else { continue };
            reach.unreachable.push(delegated);
            match it.role {
                // Unless a LAN gives it one, so that it can send packets itself.
                SixRdRole::CustomerEdge if !self.is_advertised(&it.name) => {
                    reach.addresses.push(first_of(delegated).into());
                }
                SixRdRole::CustomerEdge => {}
                // RFC 5969 §12: the Subnet-Router anycast address is excepted; customers use it to test whether the relay is reachable
                // (§8).
                SixRdRole::BorderRelay => reach.addresses.push(delegated.address().into()),
            }
        }
    }

    fn isatap_reach(&self, now: &Surroundings, reach: &mut Reach) {
        for it in self.isatap.iter().filter(|it| it.local.now(now).is_some()) {
            let prefixes = it.prefixes(now);
            if it.role == IsatapRole::Host && it.router(now).is_some() {
                reach.route(DEFAULT_ROUTE6, &it.encapsulation);
            }
            prefixes.into_iter().for_each(|prefix| reach.route(prefix, &it.encapsulation));
            reach.addresses.extend(it.addresses(now).into_iter().map(IpAddr::V6));
        }
    }

    /// A Teredo client's route to the rest of IPv6 has the lowest precedence (RFC 4380 §5.5).
    fn teredo_reach(&self, now: &Surroundings, reach: &mut Reach) {
        let addresses = self.others.teredo_client.iter().filter_map(|client| client.in_use(now));
        for address in addresses {
            reach.addresses.push(address.into());
            let mtu = Some(IPV6_MIN_MTU as u16);
            reach.routes.push(TunnelRoute { prefix: DEFAULT_ROUTE6, mtu, is_last: true });
        }
    }

    /// The B4's end is routed into the device, and resolved on the link with its prefix.
    fn b4_reach(&self, now: &Surroundings, reach: &mut Reach) {
        for it in self.b4s() {
            reach.addresses.push(it.ipv4_address.into());
            let Some(local) = it.local.now(now) else { continue };
            reach.routes.push(TunnelRoute {
                prefix: Prefix6::holding(local, 128),
                mtu: None,
                is_last: false,
            });
            reach.proxies.extend(
                it.local.followed_interface().map(|interface| ProxyNeighbour {
                    interface: interface.to_owned(),
                    address: local.into(),
                }),
            );
        }
    }

    /// IPv4 addresses that are routed to a SIIT belong to IPv6 hosts, which have narrower routes. A packet for one without a host would be
    /// translated to IPv4, routed to the device again and translated back, until its hop limit is exhausted.
    fn siit_reach(&self, reach: &mut Reach) {
        let written: Vec<Prefix4> = (self.tun.routes.further.iter())
            .filter_map(|route| match route {
                Route::V4(prefix) if prefix.length() >= SHORTEST_RANGE => Some(*prefix),
                Route::V4(_) | Route::V6(_) => None,
            })
            .collect();
        for siit in self.siit.iter().filter(|siit| siit.eam_routes != EamRoutes::Ipv6) {
            let Some(prefix) = siit.prefix else { continue };
            let ranges = written.iter().filter(|range| !self.is_mapped(**range));
            reach.unreachable.extend(ranges.map(|range| prefix.embed_prefix(*range)));
        }
    }

    /// Addresses of pools: those that are unreachable without the device, and those that are in the network of an interface.
    fn pool_reach(&self, now: &Surroundings, reach: &mut Reach) {
        // The prefixes of the routes into the device: a narrower one would have precedence over these.
        let routed = self.used_pools().filter(|pool| !pool.shared);
        reach.blackholes.extend(routed.flat_map(|pool| aggregated(pool.addresses.clone())));
        reach.blackholes.extend(self.siit.iter().filter_map(|siit| siit.dynamic_pool));
        reach.blackholes.extend(self.nat46().map(|nat46| nat46.pool));
        reach.blackholes.extend(self.own_routes.iter().filter_map(|route| match route {
            Route::V4(prefix) => Some(*prefix),
            Route::V6(_) => None,
        }));
        for pool in self.used_pools().filter(|pool| pool.proxy_arp) {
            let addresses = pool.addresses.iter().flat_map(|prefix| {
                (prefix.address().to_bits()..=prefix.last().to_bits()).map(Ipv4Addr::from_bits)
            });
            reach.proxies.extend(addresses.filter_map(|address| {
                let interface = now.link_of(address).filter(|name| *name != self.tun.name)?.to_owned();
                Some(ProxyNeighbour { interface, address: address.into() })
            }));
        }
    }

    /// Whether the IPv4 side of a range, or of a part of it, is here: mappings and pools hairpin such packets.
    fn is_mapped(&self, range: Prefix4) -> bool {
        let by_siit = self.siit.iter().any(|siit| {
            siit.dynamic_pool.is_some_and(|pool| pool.overlaps(range))
                || siit.mappings.iter().any(|(ipv4, _)| ipv4.overlaps(range))
        });
        by_siit
            || self.used_pools().flat_map(|pool| &pool.addresses).any(|prefix| prefix.overlaps(range))
            || self.gateway.ipv4_address.is_some_and(|own| range.contains(own))
    }

    /// This host's part of what it advertises.
    fn link_reach(&self, now: &Surroundings, reach: &mut Reach) {
        for advertisement in &self.router_advertisements {
            let Some(interface) = &advertisement.interface else { continue };
            for row in &advertisement.prefixes {
                let Some(subnet) = row.from.as_ref().and_then(|from| self.subnet(from, row.subnet, now))
                else {
                    continue;
                };
                let address = first_of(subnet).into();
                reach.link_addresses.push(LinkAddress { interface: interface.clone(), address, length: 64 });
            }
        }
    }

    /// The addresses at which every PCP server may be asked (RFC 7723 §2.2), of the families that have clients. They are the loopback
    /// interface's, which is always there: no neighbour is asked whether it has them as well.
    fn anycast_reach(&self, reach: &mut Reach) {
        if !self.pcp.as_ref().is_some_and(|pcp| pcp.anycast) {
            return;
        }
        let mut add = |address: IpAddr, length| {
            reach.link_addresses.push(LinkAddress { interface: LOOPBACK.into(), address, length });
        };
        if self.nat44.is_some() {
            add(PCP_ANYCAST4.into(), 32);
        }
        if !self.nat64.is_empty() {
            add(PCP_ANYCAST6.into(), 128);
        }
    }

    /// The /64 of this number in the prefix of the mechanism of this name.
    pub fn subnet(&self, from: &str, number: u32, now: &Surroundings) -> Option<Prefix6> {
        let prefix = self.delegated(from, now)?;
        let bits = 64_u8.checked_sub(prefix.length())?;
        let fits = bits >= 32 || number >> bits == 0;
        let address = prefix.address().to_bits() | u128::from(number) << 64;
        fits.then(|| Prefix6::holding(address.into(), 64))
    }

    /// The current prefix of the mechanism of this name.
    pub fn delegated(&self, name: &str, now: &Surroundings) -> Option<Prefix6> {
        let of = |address: Option<Ipv4Addr>, prefix: &dyn Fn(Ipv4Addr) -> Option<Prefix6>| prefix(address?);
        let six_to_four = self.six_to_four.iter().filter(|it| it.name == name);
        let mut six_to_four = six_to_four.filter_map(|it| of(it.now(now), &|address| it.site(address)));
        let six_rd = self.six_rd.iter().filter(|it| it.name == name);
        let mut six_rd = six_rd.filter_map(|it| of(it.local.now(now), &|address| it.delegated(address)));
        six_to_four.next().or_else(|| six_rd.next())
    }

    fn is_advertised(&self, name: &str) -> bool {
        let mut prefixes = self.router_advertisements.iter().flat_map(|one| &one.prefixes);
        prefixes.any(|row| row.from.as_deref() == Some(name))
    }
}

impl Reach {
    fn route(&mut self, prefix: Prefix6, encapsulation: &Encapsulation) {
        let mtu = match encapsulation.mtu {
            TunnelMtu::Static(octets) => Some(octets),
            TunnelMtu::Dynamic => None,
        };
        self.routes.push(TunnelRoute { prefix, mtu, is_last: false });
    }

    fn tidy(&mut self) {
        self.routes.sort_unstable();
        self.routes.dedup_by_key(|route| route.prefix);
        self.unreachable.sort_unstable();
        self.unreachable.dedup();
        self.blackholes.sort_unstable();
        self.blackholes.dedup();
        self.addresses.sort_unstable();
        self.addresses.dedup();
        self.link_addresses.sort_unstable();
        self.link_addresses.dedup();
        self.rules.sort_unstable_by_key(|rule| (rule.except.is_none(), rule.clone()));
        self.rules.dedup();
        self.proxies.sort_unstable();
        self.proxies.dedup();
    }
}

fn first_of(prefix: Prefix6) -> Ipv6Addr {
    Ipv6Addr::from_bits(prefix.address().to_bits() | 1)
}
