//! The paths that the gateway's packets take through this host, a packet for each, and the rules that accept them.

use super::facts::{Facts, REMOTE4};
use super::probe::{Packet, Plan};
use super::routes::has_outside4;
use super::trial_packets::{
    Endpoint6, fragmentation_needed, ipv4, ipv6, packet_too_big, tcp4, tcp6, udp4, udp6,
};
use crate::config::{Config, FourOverSixEnd, LocalAddress, Nat64, Siit, Steering};
use sixway_control::dhcp4o6::{CLIENT_PORT, SERVER_PORT};
use sixway_dataplane::parse::{ACK, SYN};
use sixway_dataplane::translate::address::Rfc6052;
use sixway_wire::{Prefix4, Prefix6, protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

mod lan_services;
mod nat44;
mod nat46;
mod native;
mod own_errors;
mod softwires;
mod teredo;
mod teredo_server;

/// Marks begin here.
const FIRST_MARK: u16 = 40_000;
/// A server's port.
const HTTPS: u16 = 443;
/// The destination of inside hosts: routed into the device, as rules by source do with any destination. Of TEST-NET-2, as in the other
/// trials.
const REMOTE_OF_INSIDE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 78);
/// More hosts, mappings and tunnels of a kind take the same paths.
const TRIED: usize = 8;
/// More packets would take too long where all are dropped.
const MOST: usize = 150;

/// A rule names this many destinations at most.
const DESTINATIONS: usize = 16;

/// A path that packets take, and the rule that opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathRule {
    /// Where from and where to, in words.
    pub name: String,
    /// The comparison of nft.
    pub nft: String,
    /// That of iptables; each line is a rule.
    pub iptables: String,
    pub is_ipv6: bool,
    /// Whether packets end at this host.
    pub is_input: bool,
    /// A path whose rule opens this one, too.
    pub within: Option<usize>,
    /// Whether the source is a private address, behind which another NAT is normal.
    pub is_private: bool,
}

/// A translator's hosts and addresses.
struct Translated<'t> {
    /// Which one, where there are several.
    suffix: &'t str,
    /// Hosts inside, and their interfaces.
    inside: &'t [(Ipv6Addr, String)],
    /// Where the IPv4 Internet is in IPv6.
    prefix: Rfc6052,
    /// The hosts' IPv4 address, and a port.
    outside: (Ipv4Addr, u16),
    /// Destinations of returning packets; empty: they are steered, before any rule applies.
    pool: Vec<Prefix4>,
}

/// The tested paths so far.
struct Paths<'c> {
    config: &'c Config,
    facts: &'c Facts,
    /// Towards the IPv4 Internet.
    uplink: Option<String>,
    device: String,
    plan: Plan,
    rules: Vec<PathRule>,
    mark: u16,
}

/// The trials, and the paths of their packets in the same order. `None`: too little is known of the host.
pub(super) fn plan(
    config: &Config,
    facts: &Facts,
    rules: Vec<(Vec<String>, String)>,
) -> Option<(Plan, Vec<PathRule>)> {
    if lacks_a_link(config, facts) {
        return None;
    }
    let (uplink, device) = (facts.outside.clone(), config.tun.name.clone());
    let plan = Plan { rules, ..Plan::default() };
    let mut paths = Paths { config, facts, uplink, device, plan, rules: Vec::new(), mark: FIRST_MARK };
    paths.interfaces();
    paths.plan.routes.extend(paths.uplink.iter().map(|uplink| (format!("{REMOTE4}/32"), uplink.clone())));
    for (host, lan) in &facts.inside {
        paths.plan.routes.push((format!("{host}/128"), lan.clone()));
    }
    for (index, nat64) in config.nat64.iter().enumerate() {
        paths.nat64(index, nat64);
    }
    if let Some(nat44) = &config.nat44 {
        paths.nat44(nat44);
    }
    for (index, realm) in config.realms.iter().enumerate().take(TRIED) {
        paths.realm(index, realm);
    }
    if let Some(nat46) = config.nat46() {
        paths.nat46(nat46);
    }
    paths.softwires();
    for (index, siit) in config.siit.iter().enumerate().take(TRIED) {
        paths.siit(index, siit);
    }
    paths.tunnels();
    paths.teredo();
    let listened: Vec<SocketAddr> =
        config.dns64.iter().flat_map(|dns64| dns64.listening.listen.iter().copied()).collect();
    listened.into_iter().filter(|at| !at.ip().is_loopback()).for_each(|at| match at {
        SocketAddr::V4(at) => paths.queries4(*at.ip(), at.port()),
        SocketAddr::V6(at) => paths.queries6(*at.ip(), at.port()),
    });
    paths.leases();
    paths.teredo_server();
    paths.native();
    paths.lan_services();
    paths.plan.packets.truncate(MOST);
    paths.rules.truncate(MOST);
    (!paths.rules.is_empty()).then_some((paths.plan, paths.rules))
}

/// Interfaces of hosts with IPv4 addresses that packets are forwarded for.
pub(super) fn lans4(config: &Config, facts: &Facts) -> Vec<String> {
    let (uplink, device) = (facts.outside.clone(), config.tun.name.clone());
    let (plan, rules, mark) = (Plan::default(), Vec::new(), FIRST_MARK);
    Paths { config, facts, uplink, device, plan, rules, mark }.links4()
}

/// Whether no outgoing link of a mechanism's packets is known. The routes name each that is missing.
fn lacks_a_link(config: &Config, facts: &Facts) -> bool {
    let needs_softwire = config.b4s().next().is_some() || !facts.softwires.is_empty();
    let has_softwire = facts.softwires.iter().any(|it| it.link.is_some());
    (facts.outside.is_none() && (has_outside4(config) || config.has_tunnels()))
        || (facts.uplink6.is_none() && config.nat46().is_some())
        || (needs_softwire && !has_softwire)
}

impl Paths<'_> {
    /// The device, the uplinks and the interfaces inside, with this host's addresses there.
    fn interfaces(&mut self) {
        let facts = self.facts;
        let inside = facts.inside.iter().map(|(_, lan)| lan.as_str());
        let mapped = facts.mapped.iter().flatten().map(|mapped| mapped.interface.as_str());
        let listening = facts.addresses.iter().filter(|own| {
            let mut listened = self.config.dns64.iter().flat_map(|dns64| dns64.listening.listen.iter());
            !own.address.is_loopback() && listened.any(|at| at.ip() == own.address)
                || self.config.teredo_server.iter().any(|it| it.addresses().any(|at| at == own.address))
                || self
                    .config
                    .others
                    .teredo_relay
                    .iter()
                    .any(|it| it.local.found.map(IpAddr::V4) == Some(own.address))
        });
        let listening = listening.map(|own| own.interface.as_str());
        let links = self.links4();
        let softwires = facts.softwires.iter().filter_map(|it| it.link.as_deref());
        let (native, served) = (self.native_links(), self.served_links());
        let mut names: Vec<&str> = inside
            .chain(links.iter().chain(&native).chain(&served).map(String::as_str))
            .chain(softwires)
            .chain(facts.lease_servers.iter().map(|it| it.link.as_str()))
            .chain(mapped)
            .chain(listening)
            .chain(self.uplink.as_deref())
            .chain([self.device.as_str()])
            .collect();
        names.sort_unstable();
        names.dedup();
        for name in names.into_iter().filter(|name| *name != "lo") {
            let own = facts.addresses.iter().filter(|own| own.interface == name);
            let own = own
                .filter(|own| !matches!(own.address, IpAddr::V6(address) if address.is_unicast_link_local()));
            let own = own.map(|own| format!("{}/{}", own.address, own.length));
            self.plan.interfaces.push((name.to_owned(), own.collect()));
        }
    }

    /// Interfaces of mechanisms whose hosts have IPv4 addresses.
    fn links4(&self) -> Vec<String> {
        let config = self.config;
        let of = |hosts: Vec<(Ipv4Addr, String)>| hosts.into_iter().map(|(_, lan)| lan);
        let nat44 = config.nat44.iter().flat_map(|it| of(self.hosts4(&it.inside, &it.interfaces)));
        let b4s = config.b4s().flat_map(|it| of(self.hosts_of_tunnels(&it.inside)));
        let all = [Prefix4::holding(Ipv4Addr::UNSPECIFIED, 0)];
        let tunnelled = config.others.ip_in_ip().iter().flat_map(|_| of(self.hosts_of_tunnels(&all)));
        let all = nat44.chain(b4s).chain(tunnelled);
        all.chain(self.links_of_realms()).chain(self.links_of_nat46()).collect()
    }

    fn next(&mut self) -> u16 {
        self.mark += 1;
        self.mark
    }

    fn try_path(
        &mut self,
        rule: PathRule,
        into: &str,
        expected: Option<&str>,
        mark: u16,
        octets: Vec<u8>,
    ) -> usize {
        let expected = expected.map(str::to_owned);
        self.plan.packets.push(Packet { into: into.to_owned(), expected, mark, octets, ..Packet::default() });
        self.rules.push(rule);
        self.rules.len() - 1
    }

    fn nat64(&mut self, index: usize, nat64: &Nat64) {
        let Some(pool) = self.config.pool(&nat64.pool) else { return };
        let (Some(first), Some(ports)) = (pool.addresses.first(), pool.ports.ranges().first()) else {
            return;
        };
        // NAT64s may share a pool.
        let port = ports.end().saturating_sub(index as u16).max(*ports.start());
        if !pool.shared {
            let routes = pool.addresses.iter().map(|prefix| (prefix.to_string(), self.device.clone()));
            self.plan.routes.extend(routes);
        }
        let facts = self.facts;
        self.translated(&Translated {
            suffix: &self.suffix(&nat64.name),
            inside: &facts.inside,
            prefix: nat64.prefix,
            outside: (first.address(), port),
            pool: if pool.shared { Vec::new() } else { pool.addresses.clone() },
        });
    }

    /// A host with a mapping, or the first of the dynamic pool. Without a prefix the Internet has no addresses in IPv6.
    fn siit(&mut self, index: usize, siit: &Siit) {
        let facts = self.facts;
        let (inside, outside) = match (facts.mapped.get(index).cloned().flatten(), siit.dynamic_pool) {
            (Some(mapped), _) => {
                (vec![(mapped.inside, mapped.interface)], Prefix4::holding(mapped.outside, 32))
            }
            (None, Some(pool)) => (facts.inside.iter().take(1).cloned().collect(), pool),
            (None, None) => return,
        };
        let Some(prefix) = siit.prefix.filter(|_| !inside.is_empty()) else { return };
        self.plan.routes.extend(inside.iter().map(|(host, lan)| (format!("{host}/128"), lan.clone())));
        self.plan.routes.push((outside.to_string(), self.device.clone()));
        self.translated(&Translated {
            suffix: &self.suffix(&siit.name),
            inside: &inside,
            prefix,
            outside: (outside.address(), HTTPS),
            pool: siit
                .mappings
                .iter()
                .take(DESTINATIONS + 1)
                .map(|(outside, _)| outside)
                .chain(siit.dynamic_pool)
                .collect(),
        });
    }

    /// Which translator, if there are several.
    fn suffix(&self, name: &str) -> String {
        let config = self.config;
        let others = config.aftrs().count() + config.others.four_over_six.len() + config.nat46().iter().len();
        match config.nat64.len() + config.siit.len() + config.nat44s().count() + others {
            0 | 1 => String::new(),
            _ => format!(" ({name})"),
        }
    }

    fn translated(&mut self, it: &Translated<'_>) {
        let remote6 = it.prefix.embed_any(REMOTE4);
        self.plan.routes.push((it.prefix.prefix().to_string(), self.device.clone()));
        for (host, lan) in it.inside.iter().take(TRIED) {
            self.inner(it.suffix, (*host, lan), (remote6, HTTPS));
        }
        self.outside4(it.suffix, it.outside, &it.pool);
    }

    /// Between the device and the IPv4 Internet, both ways, an error from there, and one of the gateway to there. The source and its port are a host's outside; `pool`
    /// are the destinations of returning packets, empty if they are steered, before any rule applies.
    fn outside4(&mut self, suffix: &str, outside: (Ipv4Addr, u16), pool: &[Prefix4]) {
        let (device, Some(uplink)) = (self.device.clone(), self.uplink.clone()) else { return };
        let about = tcp4(self.mark, outside, (REMOTE4, HTTPS), SYN);
        let mark = self.next();
        let out = tcp4(mark, outside, (REMOTE4, HTTPS), SYN);
        let is_private = outside.0.is_private();
        let rule = PathRule { is_private, ..path(&device, &uplink, false, suffix) };
        let outward = self.try_path(rule, &device, Some(&uplink), mark, out);
        if pool.is_empty() {
            return;
        }
        let mark = self.next();
        let back = tcp4(mark, (REMOTE4, mark), outside, SYN | ACK);
        let rule = path(&uplink, &device, false, suffix).only_to(pool);
        let within = self.try_path(rule, &uplink, Some(&device), mark, back);
        let mark = self.next();
        let error = fragmentation_needed(mark, (REMOTE4, outside.0), &about);
        let rule = path(&uplink, &device, false, suffix).only_to(pool);
        let rule = rule.only_errors("Fragmentation Needed", "icmp type destination-unreachable", within);
        self.try_path(rule, &uplink, Some(&device), mark, error);
        // An answer of the connection that went out: a rule for related packets lets the error pass.
        let answer = tcp4(mark, (REMOTE4, HTTPS), outside, ACK);
        self.own_error4((&device, &uplink, suffix), REMOTE4, &answer, outward);
    }

    /// Between a host inside and the device, both ways, and an error towards the host.
    fn inner(&mut self, suffix: &str, (host, lan): (Ipv6Addr, &str), remote: Endpoint6) {
        let device = self.device.clone();
        let mark = self.next();
        let first = (host, mark);
        let about = tcp6(mark, first, remote, SYN);
        self.try_path(path(lan, &device, true, suffix), lan, Some(&device), mark, about.clone());
        let mark = self.next();
        // An answer of the same connection: a rule for established ones lets it pass.
        let back = tcp6(mark, remote, first, SYN | ACK);
        let within = self.try_path(path(&device, lan, true, suffix), &device, Some(lan), mark, back);
        let mark = self.next();
        let error = packet_too_big(mark, (remote.0, host), &about);
        let rule = path(&device, lan, true, suffix);
        let rule = rule.only_errors("Packet Too Big", "icmpv6 type packet-too-big", within);
        let errors = self.try_path(rule, &device, Some(lan), mark, error);
        self.own_error6((&device, lan, suffix), host, &about, errors);
    }

    /// Tunnels of protocol 41: outer packets out of the device, those that come in where nothing steers them, and what is in them.
    fn tunnels(&mut self) {
        let config = self.config;
        // 2002:c633:644d::/48 is REMOTE4's.
        let six_to_four = Ipv6Addr::new(0x2002, 0xc633, 0x644d, 0, 0, 0, 0, 1);
        let first = |prefix: &Prefix6| Ipv6Addr::from_bits(prefix.address().to_bits() | 1);
        let to_four = config.six_to_four.iter().map(|it| (&it.local, Some(six_to_four)));
        let rd = config.six_rd.iter().map(|it| (&it.local, Some(first(&it.prefix))));
        let configured =
            config.configured_tunnels.iter().map(|it| (&it.local, it.prefixes.first().map(first)));
        let isatap = config.isatap.iter().map(|it| (&it.local, it.prefix.as_ref().map(first)));
        let all: Vec<(&LocalAddress, Option<Ipv6Addr>)> =
            to_four.chain(rd).chain(configured).chain(isatap).take(TRIED).collect();
        for (local, remote) in all {
            self.outer(local.found);
            let Some(remote) = remote else { continue };
            self.plan.routes.push((format!("{remote}/128"), self.device.clone()));
            let facts = self.facts;
            for (host, lan) in facts.inside.iter().take(TRIED) {
                // Between the same interfaces: once.
                if !self.rules.iter().any(|rule| rule.name == path(lan, &self.device, true, "").name) {
                    self.inner("", (*host, lan), (remote, HTTPS));
                }
            }
        }
    }

    fn outer(&mut self, local: Option<Ipv4Addr>) {
        let (device, Some(uplink)) = (self.device.clone(), self.uplink.clone()) else { return };
        let rule = path(&device, &uplink, false, "").only_protocol_41();
        let Some(local) = local.filter(|_| !self.rules.iter().any(|one| one.name == rule.name)) else {
            return;
        };
        // A header without a next one (RFC 8200 §4.7).
        let empty = ipv6(0, (Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST), protocol::NO_NEXT_HEADER, &[]);
        let mark = self.next();
        let out = ipv4(mark, (local, REMOTE4), protocol::IPV6, &empty);
        self.try_path(rule, &device, Some(&uplink), mark, out);
        let is_own = self.facts.addresses.iter().any(|own| own.address == local && own.interface == uplink);
        if self.config.tunnels.steering != Steering::Off || !is_own {
            return;
        }
        let mark = self.next();
        let octets = ipv4(mark, (REMOTE4, local), protocol::IPV6, &empty);
        let rule = PathRule {
            name: format!("packets of protocol 41 from {uplink} to {local}"),
            nft: format!("iifname \"{uplink}\" ip daddr {local} meta l4proto 41 accept"),
            iptables: format!("-i {uplink} -d {local} -p 41 -j ACCEPT"),
            is_ipv6: false,
            is_input: true,
            within: None,
            is_private: false,
        };
        self.plan.packets.push(Packet {
            into: uplink,
            tunnel_end: Some(local),
            mark,
            octets,
            ..Packet::default()
        });
        self.rules.push(rule);
    }

    fn queries6(&mut self, listen: Ipv6Addr, port: u16) {
        let facts = self.facts;
        let Some((host, lan)) = facts.inside.first() else { return };
        // Of any address, one of the LAN will do.
        let of_lan = facts.addresses.iter().find_map(|it| match it.address {
            IpAddr::V6(address) if it.interface == *lan && !address.is_unicast_link_local() => Some(address),
            IpAddr::V4(_) | IpAddr::V6(_) => None,
        });
        let own = if listen.is_unspecified() { of_lan } else { Some(listen) };
        let Some(own) = own else { return };
        let mark = self.next();
        let octets = udp6(mark, (*host, mark), (own, port));
        self.service(lan, SocketAddr::from((own, port)), SocketAddr::from((listen, port)), (mark, octets));
    }

    /// The client is another host of the network of this host's address.
    fn queries4(&mut self, listen: Ipv4Addr, port: u16) {
        let facts = self.facts;
        let with_ipv4 = self.links4();
        let is_uplink = |name: &String| facts.uplink6.as_ref().is_some_and(|hop| hop.interface == *name);
        let with_ipv4: Vec<_> = with_ipv4.into_iter().filter(|name| !is_uplink(name)).collect();
        let is_inside =
            |name: &String| facts.inside.iter().any(|(_, lan)| lan == name) || with_ipv4.contains(name);
        let own = facts.addresses.iter().find_map(|it| match it.address {
            IpAddr::V4(address) if it.length <= 30 && it.interface != self.device => {
                let is_it = address == listen || listen.is_unspecified() && is_inside(&it.interface);
                is_it.then_some((address, &it.interface))
            }
            IpAddr::V4(_) | IpAddr::V6(_) => None,
        });
        let Some((own, lan)) = own else { return };
        let host = neighbour(own);
        let mark = self.next();
        let octets = udp4(mark, (host, mark), (own, port));
        self.service(lan, SocketAddr::from((own, port)), SocketAddr::from((listen, port)), (mark, octets));
    }

    /// Queries of hosts for leases (RFC 7341), at an address of the link that their tunnels come from.
    fn leases(&mut self) {
        let (config, facts) = (self.config, self.facts);
        for it in &config.others.four_over_six {
            let FourOverSixEnd::Concentrator(end) = &it.end else { continue };
            let Some(softwire) = facts.softwires.iter().find(|softwire| softwire.name == it.name) else {
                continue;
            };
            let (Some(link), IpAddr::V6(host)) = (&softwire.link, softwire.remote) else { continue };
            let of_link = facts.addresses.iter().filter_map(|own| match own.address {
                IpAddr::V6(address) if own.interface == *link && !address.is_unicast_link_local() => {
                    Some(address)
                }
                IpAddr::V4(_) | IpAddr::V6(_) => None,
            });
            // Of all addresses, one of the link will do.
            let is_heard = |own: &Ipv6Addr| end.listen.iter().any(|at| at == own || at.is_unspecified());
            let Some(own) = of_link.clone().find(is_heard) else { continue };
            self.dhcp("queries", link, (host, CLIENT_PORT), (own, SERVER_PORT));
            if let (true, Some(rule)) =
                (end.listen.iter().any(Ipv6Addr::is_unspecified), self.rules.last_mut())
            {
                // Hosts may ask at any of them.
                rule.nft = rule.nft.replace(&format!("ip6 daddr {own} "), "");
                rule.iptables = rule.iptables.replace(&format!("-d {own} "), "");
            }
        }
        // A server answers to the port of clients.
        for it in facts.lease_servers.iter().take(TRIED) {
            self.plan.routes.push((format!("{}/128", it.server), it.link.clone()));
            self.dhcp("answers", &it.link, (it.server, SERVER_PORT), (it.own, CLIENT_PORT));
        }
    }

    fn dhcp(&mut self, what: &str, link: &str, from: (Ipv6Addr, u16), (own, port): (Ipv6Addr, u16)) {
        let mark = self.next();
        let octets = udp6(mark, from, (own, port));
        let service = Some(SocketAddr::from((own, port)).to_string());
        self.plan.packets.push(Packet { into: link.to_owned(), service, mark, octets, ..Packet::default() });
        self.rules.push(PathRule {
            name: format!("DHCP {what} from {link} to {own}"),
            nft: format!("iifname \"{link}\" ip6 daddr {own} udp dport {port} accept"),
            iptables: format!("-i {link} -d {own} -p udp --dport {port} -j ACCEPT"),
            is_ipv6: true,
            is_input: true,
            within: None,
            is_private: false,
        });
    }

    fn service(&mut self, lan: &str, own: SocketAddr, listen: SocketAddr, (mark, octets): (u16, Vec<u8>)) {
        let (into, port) = (lan.to_owned(), own.port());
        self.plan.packets.push(Packet {
            into,
            service: Some(own.to_string()),
            mark,
            octets,
            ..Packet::default()
        });
        self.rules.push(PathRule {
            name: format!("queries from {lan} to DNS64 at {listen}"),
            nft: format!("iifname \"{lan}\" meta l4proto {{ tcp, udp }} th dport {port} accept"),
            iptables: format!(
                "-i {lan} -p udp --dport {port} -j ACCEPT\n-i {lan} -p tcp --dport {port} -j ACCEPT"
            ),
            is_ipv6: own.is_ipv6(),
            is_input: true,
            within: None,
            is_private: false,
        });
    }
}

/// A neighbour of this host: neither the network's address nor broadcast, in networks of four addresses and more.
fn neighbour(own: Ipv4Addr) -> Ipv4Addr {
    let of = |last| Ipv4Addr::from_bits(own.to_bits() & !3 | last);
    if own == of(1) { of(2) } else { of(1) }
}

fn path(from: &str, to: &str, is_ipv6: bool, suffix: &str) -> PathRule {
    let family = if is_ipv6 { "IPv6" } else { "IPv4" };
    PathRule {
        name: format!("{family} packets from {from} to {to}{suffix}"),
        nft: format!("iifname \"{from}\" oifname \"{to}\" accept"),
        iptables: format!("-i {from} -o {to} -j ACCEPT"),
        is_ipv6,
        is_input: false,
        within: None,
        is_private: false,
    }
}

impl PathRule {
    fn only(self, nft: &str, iptables: &str) -> Self {
        Self {
            nft: self.nft.replace(" accept", &format!(" {nft} accept")),
            iptables: self.iptables.replace(" -j", &format!(" {iptables} -j")),
            ..self
        }
    }

    /// For answers of what went out, which connection tracking knows.
    fn only_answers(self) -> Self {
        self.only("ct state established,related", "-m conntrack --ctstate ESTABLISHED,RELATED")
    }

    /// If there are many destinations, none is named: only these are routed into the device.
    fn only_to(self, destinations: &[Prefix4]) -> Self {
        let all = destinations.iter().map(ToString::to_string).collect::<Vec<_>>();
        match all.len() {
            0 => self,
            1..=DESTINATIONS => {
                self.only(&format!("ip daddr {{ {} }}", all.join(", ")), &format!("-d {}", all.join(",")))
            }
            _ => self,
        }
    }

    fn only_protocol_41(self) -> Self {
        let rule = self.only("meta l4proto 41", "-p 41");
        Self { name: rule.name.replace("IPv4 packets", "packets of protocol 41"), ..rule }
    }

    fn only_errors(self, what: &str, nft: &str, within: usize) -> Self {
        let iptables = if self.is_ipv6 { "-p icmpv6 --icmpv6-type 2" } else { "-p icmp --icmp-type 3" };
        let family = if self.is_ipv6 { "IPv6" } else { "IPv4" };
        let rule = self.only(nft, iptables);
        Self { name: rule.name.replace(&format!("{family} packets"), what), within: Some(within), ..rule }
    }
}

#[cfg(test)]
mod tests;
