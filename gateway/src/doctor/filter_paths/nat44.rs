//! The paths of a NAT44's packets, and of others' hosts with IPv4 addresses.

use super::super::trial_packets::{fragmentation_needed, tcp4};
use super::{HTTPS, PathRule, Paths, REMOTE_OF_INSIDE, TRIED, neighbour, path};
use crate::config::{Nat44, Realm, RealmRouting};
use sixway_dataplane::parse::{ACK, SYN};
use sixway_wire::Prefix4;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

/// Hosts that are examined for one that no other realm's host has the address of.
const NEIGHBOURS: u32 = 64;

/// Whether an interface is one of those that Docker, Podman, libvirt and LXC make for their guests.
fn is_of_other_program(name: &str) -> bool {
    let is_network = name
        .strip_prefix("br-")
        .is_some_and(|rest| rest.len() == 12 && rest.bytes().all(|digit| digit.is_ascii_hexdigit()));
    is_network || ["docker", "virbr", "podman", "cni", "lxc", "veth"].iter().any(|it| name.starts_with(it))
}

impl Paths<'_> {
    /// Hosts behind this one whose packets enter a tunnel: not those at its links or uplinks, and not other programs' guests, whom nobody
    /// asked to connect with the other end.
    pub(super) fn hosts_of_tunnels(&self, within: &[Prefix4]) -> Vec<(Ipv4Addr, String)> {
        let facts = self.facts;
        let links = facts.softwires.iter().filter_map(|it| it.link.as_ref());
        let links: Vec<_> = links.chain(&facts.outside).chain(&facts.defaults4).collect();
        let all = facts.addresses.iter().map(|own| &own.interface);
        let hosts: Vec<String> =
            all.filter(|name| !links.contains(name) && !is_of_other_program(name)).cloned().collect();
        if hosts.is_empty() { Vec::new() } else { self.hosts4(within, &hosts) }
    }

    /// Interfaces with inside hosts, and one of these at each. `interfaces` empty: all.
    pub(super) fn hosts4(&self, within: &[Prefix4], interfaces: &[String]) -> Vec<(Ipv4Addr, String)> {
        let named = |interface: &String| interfaces.is_empty() || interfaces.contains(interface);
        let hosts = self.facts.addresses.iter().filter_map(|own| match own.address {
            IpAddr::V4(address)
                if own.length <= 30 && own.interface != self.device && !address.is_loopback() =>
            {
                let host = neighbour(address);
                let is_inside = within.iter().any(|prefix| prefix.contains(host));
                (is_inside && named(&own.interface)).then(|| (host, own.interface.clone()))
            }
            IpAddr::V4(_) | IpAddr::V6(_) => None,
        });
        let mut hosts: Vec<_> = hosts.collect();
        // One host of an interface; those of other programs' guests last, of which there may be many.
        hosts.sort_by_key(|(_, interface)| is_of_other_program(interface));
        let mut seen = BTreeSet::new();
        hosts.retain(|(_, interface)| seen.insert(interface.clone()));
        hosts.truncate(TRIED);
        hosts
    }

    /// Between hosts and the device, both ways, and an error towards the host.
    pub(super) fn inner4(&mut self, suffix: &str, hosts: Vec<(Ipv4Addr, String)>, remote: Ipv4Addr) {
        let device = self.device.clone();
        self.plan.routes.push((format!("{remote}/32"), device.clone()));
        for (host, lan) in hosts {
            // Between the same interfaces: once.
            if !self.rules.iter().any(|rule| rule.name == path(&lan, &device, false, suffix).name) {
                self.between(suffix, (host, &lan, &lan), (&device, &device), remote);
            }
        }
    }

    /// `from` and `lan`: what the interface of a host is called when its packets come in, and when they leave; the same of the device.
    fn between(
        &mut self,
        suffix: &str,
        (host, from, lan): (Ipv4Addr, &str, &str),
        (from_device, device): (&str, &str),
        remote: Ipv4Addr,
    ) {
        self.plan.routes.push((format!("{host}/32"), lan.to_owned()));
        let mark = self.next();
        let first = (host, mark);
        let about = tcp4(mark, first, (remote, HTTPS), SYN);
        self.try_path(path(from, device, false, suffix), from, Some(device), mark, about.clone());
        let mark = self.next();
        // An answer of the same connection: a rule for established ones lets it pass.
        let back = tcp4(mark, (remote, HTTPS), first, SYN | ACK);
        let rule = path(from_device, lan, false, suffix);
        let within = self.try_path(rule, from_device, Some(lan), mark, back);
        let mark = self.next();
        let error = fragmentation_needed(mark, (remote, host), &about);
        let rule: PathRule = path(from_device, lan, false, suffix);
        let rule = rule.only_errors("Fragmentation Needed", "icmp type destination-unreachable", within);
        let errors = self.try_path(rule, from_device, Some(lan), mark, error);
        self.own_error4((from_device, lan, suffix), host, &about, errors);
    }

    pub(super) fn nat44(&mut self, nat44: &Nat44) {
        let device = self.device.clone();
        let suffix = self.suffix(&nat44.name);
        self.plan.routes.push((format!("{REMOTE_OF_INSIDE}/32"), device.clone()));
        for (host, lan) in self.hosts4(&nat44.inside, &nat44.interfaces) {
            self.between(&suffix, (host, &lan, &lan), (&device, &device), REMOTE_OF_INSIDE);
        }
        self.outside_of(nat44, &suffix);
    }

    fn outside_of(&mut self, nat44: &Nat44, suffix: &str) {
        let Some(pool) = self.config.pool(&nat44.pool) else { return };
        let (Some(first), Some(ports)) = (pool.addresses.first(), pool.ports.ranges().first()) else {
            return;
        };
        let addresses = if pool.shared { Vec::new() } else { pool.addresses.clone() };
        let routes = addresses.iter().map(|prefix| (prefix.to_string(), self.device.clone()));
        self.plan.routes.extend(routes.collect::<Vec<_>>());
        self.outside4(suffix, (first.address(), *ports.end()), &addresses);
    }

    /// The hosts of a realm and its device; with a VRF, packets of both come in by the VRF. Each realm has a destination of its own: in the trial all
    /// are routed by one table.
    pub(super) fn realm(&mut self, index: usize, realm: &Realm) {
        let suffix = self.suffix(&realm.nat44.name);
        let remote = Ipv4Addr::from_bits(REMOTE_OF_INSIDE.to_bits() + 1 + index as u32);
        self.plan.routes.push((format!("{remote}/32"), realm.device.clone()));
        for (host, lan) in self.hosts_of(realm) {
            let device = realm.device.as_str();
            let (from, from_device) = match &realm.routing {
                RealmRouting::Vrf(vrf) => (vrf.as_str(), vrf.as_str()),
                RealmRouting::Table(_) => (lan.as_str(), device),
            };
            if let Some(host) = self.not_tried(host) {
                self.between(&suffix, (host, from, &lan), (from_device, device), remote);
            }
        }
        self.outside_of(&realm.nat44, &suffix);
    }

    /// A host in the network of this one that is not routed elsewhere: realms may have hosts with the same addresses, and in the trial one table
    /// routes all.
    fn not_tried(&self, host: Ipv4Addr) -> Option<Ipv4Addr> {
        let is_own = |host: Ipv4Addr| self.facts.addresses.iter().any(|own| own.address == IpAddr::V4(host));
        let is_routed = |host: Ipv4Addr| self.plan.routes.iter().any(|(to, _)| *to == format!("{host}/32"));
        let others = (1..=NEIGHBOURS).map(|step| Ipv4Addr::from_bits(host.to_bits().wrapping_add(step)));
        core::iter::once(host).chain(others).find(|host| !is_routed(*host) && !is_own(*host))
    }

    fn hosts_of(&self, realm: &Realm) -> Vec<(Ipv4Addr, String)> {
        match &realm.routing {
            RealmRouting::Table(_) => self.hosts4(&realm.nat44.inside, &realm.nat44.interfaces),
            RealmRouting::Vrf(vrf) => {
                let members = self.facts.members.get(vrf).cloned().unwrap_or_default();
                if members.is_empty() { Vec::new() } else { self.hosts4(&realm.nat44.inside, &members) }
            }
        }
    }

    /// The interfaces of realms: devices, VRFs, and those of hosts.
    pub(super) fn links_of_realms(&self) -> Vec<String> {
        let of = |realm: &Realm| {
            let vrf = match &realm.routing {
                RealmRouting::Vrf(vrf) => Some(vrf.clone()),
                RealmRouting::Table(_) => None,
            };
            let hosts = self.hosts_of(realm).into_iter().map(|(_, lan)| lan);
            hosts.chain(vrf).chain([realm.device.clone()]).collect::<Vec<_>>()
        };
        self.config.realms.iter().flat_map(of).collect()
    }
}
