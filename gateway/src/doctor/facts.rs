//! The state of the host, read once.

use super::dnsmasq_file::Dnsmasq;
use super::lease_servers::{LeaseServer, lease_servers};
use super::softwires::{Softwire, softwires};
use crate::admin::Client;
use crate::config::{Config, HostAddress, RealmRouting, Route, Siit, SixRdRole, SixToFourRole};
use crate::host::{Hop, default_interfaces, hop};
use serde_json::Value;
use sixway_wire::Prefix6;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address of the IPv4 Internet, of a network for documentation: only its route is of interest.
pub(super) const REMOTE4: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 77);
/// The same of IPv6.
pub(super) const REMOTE6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 0x77);

/// Addresses of the Internet, of servers of the DNS's root, to which nothing is sent: hosts of providers may discard what is for documentation.
const ROOT4: Ipv4Addr = Ipv4Addr::new(193, 0, 14, 129);
const ROOT6: Ipv6Addr = Ipv6Addr::new(0x2001, 0x7fd, 0, 0, 0, 0, 0, 1);

/// The kernel's route to a destination. If the kernel discards packets to networks for documentation, the route to an address of the
/// Internet.
fn toward(destination: IpAddr, hop: impl Fn(IpAddr) -> Option<Hop>) -> Option<Hop> {
    let instead = match destination {
        IpAddr::V4(REMOTE4) => Some(IpAddr::V4(ROOT4)),
        IpAddr::V6(REMOTE6) => Some(IpAddr::V6(ROOT6)),
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    };
    hop(destination).or_else(|| hop(instead?))
}

/// The state of the host.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub addresses: Vec<HostAddress>,
    /// Whether the gateway's device is there; of a gateway without one, whether it answers at its admin socket.
    pub is_running: bool,
    /// The way to the IPv4 Internet.
    pub uplink4: Option<Hop>,
    /// The way to the IPv6 Internet.
    pub uplink6: Option<Hop>,
    /// Interfaces of all IPv4 default routes.
    pub defaults4: Vec<String>,
    /// MTUs of this host's interfaces, in octets.
    pub mtus: BTreeMap<String, u32>,
    /// The interface towards IPv4: that of the default route, else the first with an IPv4 address.
    pub outside: Option<String>,
    /// The kernel's route to the first address of each of the configuration's routes.
    pub routes: Vec<(Route, Option<Hop>)>,
    /// Hosts inside, and the interfaces that they are behind.
    pub inside: Vec<(Ipv6Addr, String)>,
    /// For each SIIT, a host with a mapping.
    pub mapped: Vec<Option<Mapped>>,
    /// Tunnels of DS-Lite, of 4over6 and of IP in IP.
    pub softwires: Vec<Softwire>,
    /// Servers of leases that this host asks from a global address.
    pub lease_servers: Vec<LeaseServer>,
    /// The dnsmasq of a site.
    pub dnsmasq: Option<Dnsmasq>,
    /// The interfaces of each realm's VRF.
    pub members: BTreeMap<String, Vec<String>>,
}

/// A host with an explicit address mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapped {
    /// Its address.
    pub inside: Ipv6Addr,
    /// What IPv4 hosts see.
    pub outside: Ipv4Addr,
    /// The interface that it is behind.
    pub interface: String,
}

/// More mappings than these are not asked of the kernel.
const MAPPINGS: usize = 16;

/// The first mapped host that has a route.
fn mapped(siit: &Siit, device: &str) -> Option<Mapped> {
    siit.mappings.iter().take(MAPPINGS).find_map(|(outside, inside)| {
        let inside = inside.address();
        let interface = hop(IpAddr::V6(inside))?.interface;
        let is_host = interface != device && interface != "lo";
        is_host.then(|| Mapped { inside, outside: outside.address(), interface })
    })
}

impl Facts {
    pub fn gather(config: &Config) -> Self {
        Self::with(config, &BTreeMap::new())
    }

    /// With these AFTRs of B4s with names that were resolved.
    pub fn with(config: &Config, aftrs: &BTreeMap<String, Ipv6Addr>) -> Self {
        let device = config.tun.name.clone();
        let host = crate::host::host_facts();
        let uplink4 = toward(IpAddr::V4(REMOTE4), hop);
        let uplink6 = toward(IpAddr::V6(REMOTE6), hop);
        let routes =
            config.routes().into_iter().map(|route| (route, toward(destination(route), hop))).collect();
        let with_ipv4 = host.addresses.iter().find(|own| {
            // At lo are anycast addresses of PCP.
            let is_link = own.interface != device && own.interface != "lo";
            is_link && matches!(own.address, IpAddr::V4(address) if !address.is_loopback())
        });
        let uplink = uplink4.as_ref().map(|hop| hop.interface.clone()).filter(|name| *name != device);
        // A B4's LAN has IPv4, and is not the way to the Internet.
        let with_ipv4 = with_ipv4.filter(|_| config.b4s().next().is_none());
        let outside = uplink.or_else(|| Some(with_ipv4?.interface.clone()));
        let of_ipv6 = uplink6.as_ref().map(|hop| hop.interface.as_str());
        let behind = outside.as_deref().or(of_ipv6);
        let inside = inside_hosts(config, &host.addresses, &device, behind);
        let mtus = host.interfaces.iter();
        let mtus = mtus.filter_map(|name| Some((name.clone(), sixway_link::interface::mtu(name).ok()?)));
        Self {
            defaults4: default_interfaces(),
            mtus: mtus.collect(),
            mapped: config.siit.iter().map(|siit| mapped(siit, &device)).collect(),
            softwires: softwires(config, (&host.addresses, aftrs), (REMOTE6, |to| toward(to, hop))),
            lease_servers: lease_servers(config, hop),
            dnsmasq: Dnsmasq::of(&config.gateway.admin_socket),
            members: members(config, &host.interfaces),
            outside,
            is_running: match config.needs_device() {
                true => host.interfaces.contains(&device),
                false => answers(config),
            },
            addresses: host.addresses,
            uplink4,
            uplink6,
            routes,
            inside,
        }
    }
}

/// Whether a gateway of this name answers at the admin socket.
pub(super) fn answers(config: &Config) -> bool {
    let status = Client::new(&config.gateway.admin_socket).get::<Value>("/v1/status", &[]);
    status.is_ok_and(|status| status["name"].as_str() == Some(&config.gateway.name))
}

/// An address in a route's prefix that no more specific route of this host usually covers: not 0.0.0.0, which is this host.
pub(super) fn destination(route: Route) -> IpAddr {
    const ONE: Ipv4Addr = Ipv4Addr::new(1, 0, 0, 1);
    match route {
        Route::V4(prefix) if prefix.address().is_unspecified() && prefix.contains(REMOTE4) => {
            IpAddr::V4(REMOTE4)
        }
        // 0.0.0.0/1 ends in loopback addresses.
        Route::V4(prefix) if prefix.address().is_unspecified() && prefix.contains(ONE) => IpAddr::V4(ONE),
        Route::V4(prefix) if prefix.address().is_unspecified() => IpAddr::V4(prefix.last()),
        Route::V4(prefix) => IpAddr::V4(prefix.address()),
        Route::V6(prefix) if prefix.address().is_unspecified() => IpAddr::V6(REMOTE6),
        Route::V6(prefix) => IpAddr::V6(prefix.address()),
    }
}

/// The interfaces of each realm's VRF, by sysfs.
fn members(config: &Config, interfaces: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut members: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for realm in &config.realms {
        let RealmRouting::Vrf(vrf) = &realm.routing else { continue };
        let own = interfaces.iter().filter(|name| {
            let master = std::fs::read_link(format!("/sys/class/net/{name}/master"));
            **name != realm.device && master.is_ok_and(|master| master.ends_with(vrf))
        });
        members.insert(vrf.clone(), own.cloned().collect());
    }
    members
}

/// One host in each network inside: those of `nat64.inside`, else the networks of this host's interfaces. `outside`: the uplink, behind
/// which has no inside hosts, unless there is no other interface; to a relay, native IPv6 may come from there.
fn inside_hosts(
    config: &Config,
    addresses: &[HostAddress],
    device: &str,
    outside: Option<&str>,
) -> Vec<(Ipv6Addr, String)> {
    let listed: Vec<Prefix6> = config.nat64.iter().flat_map(|nat64| nat64.inside.iter().copied()).collect();
    let host_in = |prefix: Prefix6| Ipv6Addr::from_bits(prefix.address().to_bits() | 0x5157);
    if !listed.is_empty() {
        let hosts = listed.into_iter().map(host_in);
        return hosts.filter_map(|host| Some((host, hop(IpAddr::V6(host))?.interface))).collect();
    }
    let global = addresses.iter().filter_map(|own| match own.address {
        IpAddr::V6(address)
            if own.interface != device
                && !address.is_loopback()
                && !address.is_unicast_link_local()
                && own.length <= 64 =>
        {
            Some((host_in(Prefix6::holding(address, own.length)), own.interface.clone()))
        }
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    });
    let mut hosts: Vec<_> = global.collect();
    let is_relay = !config.others.teredo_relay.is_empty()
        || config.six_rd.iter().any(|it| it.role == SixRdRole::BorderRelay)
        || config.six_to_four.iter().any(|it| it.role == SixToFourRole::Relay);
    let is_inside = |(_, interface): &(Ipv6Addr, String)| outside != Some(interface.as_str());
    if !is_relay && hosts.iter().any(is_inside) {
        hosts.retain(is_inside);
    }
    hosts.dedup_by(|one, other| one.1 == other.1);
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_addresses_for_documentation_are_discarded_one_of_the_internet_tells_the_route() {
        let hop = |to: IpAddr| {
            let is_discarded = [IpAddr::V4(REMOTE4), IpAddr::V6(REMOTE6)].contains(&to) || to == ONE_OF_SITE;
            (!is_discarded).then(|| Hop { interface: "eth0".into(), gateway: None })
        };
        const ONE_OF_SITE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        for (to, is_found) in [(IpAddr::V4(REMOTE4), true), (IpAddr::V6(REMOTE6), true), (ONE_OF_SITE, false)]
        {
            assert_eq!(toward(to, hop).is_some(), is_found, "{to}");
        }
        assert_eq!(toward(IpAddr::V4(REMOTE4), |_| None), None);
    }

    #[test]
    fn nobody_inside_is_behind_the_uplink_unless_there_is_no_other_interface() {
        let own = |interface: &str, address: &str| HostAddress {
            interface: interface.into(),
            address: address.parse().unwrap(),
            length: 64,
        };
        let (uplink, lan) = (own("eth0", "2001:db8:ff::2"), own("lan0", "2001:db8:1::1"));
        let edge = "[six_rd]\nrole = \"customer_edge\"\nprefix = \"2001:db8::/32\"\nipv4_mask_length = 8\naddress = \"10.100.100.1\"\nborder_relays = [\"10.0.0.1\"]\n";
        let relay =
            edge.replace("customer_edge", "border_relay").replace("border_relays = [\"10.0.0.1\"]\n", "");
        let behind = |text: &str, addresses: &[HostAddress]| {
            let hosts = inside_hosts(&crate::sample::config(text), addresses, "sixway0", Some("eth0"));
            hosts.into_iter().map(|(_, interface)| interface).collect::<Vec<_>>()
        };
        let both = [uplink.clone(), lan];
        assert_eq!(behind(edge, &both), ["lan0"]);
        assert_eq!(behind(edge, &[uplink]), ["eth0"]);
        assert_eq!(behind(&relay, &both), ["eth0", "lan0"]);
    }
}
