//! The paths of tunnels of DS-Lite, of 4over6 and of IP in IP: outer packets between the device and a link, both ways, and what is in them.

use super::super::facts::REMOTE4;
use super::super::softwires::Softwire;
use super::super::trial_packets::{fragmentation_needed, ipv4, ipv6, packet_too_big};
use super::{HTTPS, PathRule, Paths, REMOTE_OF_INSIDE, TRIED, path};
use crate::config::{Config, FourOverSixEnd, Route};
use sixway_wire::{Prefix4, protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host at the other end of a tunnel to everywhere.
const REMOTE6_OF_INSIDE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 0x78);

impl Paths<'_> {
    pub(super) fn softwires(&mut self) {
        let facts = self.facts;
        for softwire in facts.softwires.iter().take(TRIED) {
            self.outer_of(softwire);
        }
        for b4 in self.config.b4s() {
            let hosts = self.hosts_of_tunnels(&b4.inside);
            self.inner4("", hosts, REMOTE_OF_INSIDE);
        }
        for aftr in self.config.aftrs() {
            let Some(pool) = self.config.pool(&aftr.pool) else { continue };
            let (Some(first), Some(ports)) = (pool.addresses.first(), pool.ports.ranges().first()) else {
                continue;
            };
            let addresses = if pool.shared { Vec::new() } else { pool.addresses.clone() };
            self.pool4(&aftr.name, (first.address(), *ports.end()), &addresses);
        }
        let config: &Config = self.config;
        for it in &config.others.four_over_six {
            let FourOverSixEnd::Concentrator(end) = &it.end else { continue };
            let Some(first) = end.pool.first() else { continue };
            self.pool4(&it.name, (first.address(), HTTPS), &end.pool);
        }
        for it in config.others.ip_in_ip() {
            self.inner_of(&it.prefixes);
        }
    }

    /// Addresses that are routed into the device, and the IPv4 Internet.
    fn pool4(&mut self, name: &str, outside: (Ipv4Addr, u16), pool: &[Prefix4]) {
        let routes = pool.iter().map(|prefix| (prefix.to_string(), self.device.clone()));
        self.plan.routes.extend(routes.collect::<Vec<_>>());
        let suffix = self.suffix(name);
        self.outside4(&suffix, outside, pool);
    }

    fn inner_of(&mut self, prefixes: &[Route]) {
        let facts = self.facts;
        let first4 = prefixes.iter().find_map(|it| match it {
            Route::V4(prefix) => Some(if prefix.length() == 0 { REMOTE_OF_INSIDE } else { prefix.last() }),
            Route::V6(_) => None,
        });
        if let Some(remote) = first4 {
            let hosts = self.hosts_of_tunnels(&[Prefix4::holding(Ipv4Addr::UNSPECIFIED, 0)]);
            self.inner4("", hosts, remote);
        }
        let first6 = prefixes.iter().find_map(|it| match it {
            // ::1 is this host.
            Route::V6(prefix) if prefix.address().is_unspecified() => Some(REMOTE6_OF_INSIDE),
            Route::V6(prefix) => Some(Ipv6Addr::from_bits(prefix.address().to_bits() | 1)),
            Route::V4(_) => None,
        });
        let Some(remote) = first6 else { return };
        self.plan.routes.push((format!("{remote}/128"), self.device.clone()));
        let links: Vec<&String> = facts.softwires.iter().filter_map(|it| it.link.as_ref()).collect();
        for (host, lan) in facts.inside.iter().filter(|(_, lan)| !links.contains(&lan)).take(TRIED) {
            // Between the same interfaces: once.
            if !self.rules.iter().any(|rule| rule.name == path(lan, &self.device, true, "").name) {
                self.inner("", (*host, lan), (remote, HTTPS));
            }
        }
    }

    /// Outer packets out, those that come back, and an error from a router on the way.
    fn outer_of(&mut self, it: &Softwire) {
        let Some(link) = it.link.clone() else { return };
        let device = self.device.clone();
        let (is_ipv6, families) = (it.local.is_ipv6(), (it.has_ipv4, it.has_ipv6));
        let out = outer_rule(path(&device, &link, is_ipv6, ""), families);
        if self.rules.iter().any(|rule| rule.name == out.name) {
            return;
        }
        for (end, interface) in [(it.local, &device), (it.remote, &link)] {
            let length = if end.is_ipv6() { 128 } else { 32 };
            self.plan.routes.push((format!("{end}/{length}"), interface.clone()));
        }
        let mark = self.next();
        let octets = outer_packet(mark, (it.local, it.remote), it.has_ipv4);
        self.try_path(out, &device, Some(&link), mark, octets.clone());
        let mark = self.next();
        let back = outer_rule(path(&link, &device, is_ipv6, ""), families);
        let packet = outer_packet(mark, (it.remote, it.local), it.has_ipv4);
        let within = self.try_path(back.clone(), &link, Some(&device), mark, packet);
        let mark = self.next();
        let (what, nft, error) = match (it.remote, it.local) {
            (IpAddr::V6(remote), IpAddr::V6(local)) => {
                let error = packet_too_big(mark, (remote, local), &octets);
                ("Packet Too Big", "icmpv6 type packet-too-big", error)
            }
            (IpAddr::V4(remote), IpAddr::V4(local)) => {
                let error = fragmentation_needed(mark, (remote, local), &octets);
                ("Fragmentation Needed", "icmp type destination-unreachable", error)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return,
        };
        let rule = path(&link, &device, is_ipv6, "").only_errors(what, nft, within);
        self.try_path(rule, &link, Some(&device), mark, error);
    }
}

/// The rule of a tunnel's outer packets, and of errors about them.
fn outer_rule(rule: PathRule, (has_ipv4, has_ipv6): (bool, bool)) -> PathRule {
    let of = [(has_ipv4, "4", "IPv4"), (has_ipv6, "41", "IPv6")];
    let of: Vec<_> = of.into_iter().filter(|(is_in, ..)| *is_in).collect();
    let inner = of.iter().map(|(.., family)| *family).collect::<Vec<_>>().join(" and ");
    let (outer, icmp) = if rule.is_ipv6 { ("IPv6", "ipv6-icmp") } else { ("IPv4", "icmp") };
    let protocols: Vec<&str> = of.iter().map(|(_, number, _)| *number).chain([icmp]).collect();
    let lines = protocols.iter().map(|it| rule.iptables.replace(" -j", &format!(" -p {it} -j")));
    PathRule {
        name: rule.name.replacen(&format!("{outer} packets"), &format!("{inner} in {outer}"), 1),
        nft: rule.nft.replace(" accept", &format!(" meta l4proto {{ {} }} accept", protocols.join(", "))),
        iptables: lines.collect::<Vec<_>>().join("\n"),
        ..rule
    }
}

fn outer_packet(mark: u16, path: (IpAddr, IpAddr), has_ipv4: bool) -> Vec<u8> {
    // Without anything in it (RFC 8200 §4.7).
    let (number, inner) = match has_ipv4 {
        true => (protocol::IPV4, ipv4(0, (Ipv4Addr::LOCALHOST, REMOTE4), protocol::NO_NEXT_HEADER, &[])),
        false => (
            protocol::IPV6,
            ipv6(0, (Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST), protocol::NO_NEXT_HEADER, &[]),
        ),
    };
    match path {
        (IpAddr::V6(from), IpAddr::V6(to)) => ipv6(mark, (from, to), number, &inner),
        (IpAddr::V4(from), IpAddr::V4(to)) => ipv4(mark, (from, to), number, &inner),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => Vec::new(),
    }
}
