//! IPv4 for IPv6-only hosts of a site: a NAT64 at other ports of the public address, and a DNS64.
//!
//! A host that has IPv4 as well prefers a synthesised AAAA record (RFC 6724 §2.1), and cannot validate it (RFC 6147 §3). So the DNS64
//! is announced only by request. The prefix always is (RFC 8781): hosts without IPv4 synthesise addresses with it themselves.

use super::facts::SiteFacts;
use super::ipv6::Ipv6;
use super::options::{Nat64Option, SiteOptions};
use sixway_wire::{Prefix4, Prefix6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// RFC 6052 §2.1: the Well-Known Prefix, which must not represent addresses that are not global (§3.1).
const WELL_KNOWN: &str = "64:ff9b::/96";
/// Of RFC 8215's prefix for local use, which may.
const LOCAL_USE: &str = "64:ff9b:1::/96";
/// RFC 6598.
const SHARED: Prefix4 = Prefix4::holding(Ipv4Addr::new(100, 64, 0, 0), 10);

/// The NAT64 for IPv6-only hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nat64 {
    /// Its prefix.
    pub prefix: &'static str,
    /// The prefixes of its hosts.
    pub inside: Vec<Prefix6>,
    /// This host's addresses there, at which a DNS64 listens.
    pub at: Vec<Ipv6Addr>,
    /// IPv4 networks that it does not translate to, although its prefix may represent them.
    pub excluded: Vec<Prefix4>,
    /// Source of the gateway's ICMPv6 errors.
    pub own: Ipv6Addr,
    /// Ports of the public address that are the NAT64's.
    pub ports: Vec<RangeInclusive<u16>>,
    /// The DNS64.
    pub dns64: Dns64,
}

/// The DNS64 at the LAN's IPv6 addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dns64 {
    /// It is announced to all hosts.
    Announced,
    /// It answers queries, but is not announced.
    Listens,
    /// None, and why.
    None(String),
}

/// The NAT64 of the site, or why there is none; `None`: it is disabled. `links`: the IPv6 connectivity of its hosts, their prefixes, and this
/// host's address in each. `public`: its current IPv4 address, and ports there.
pub(super) fn planned(
    options: &SiteOptions,
    (ipv6, links): (&Ipv6, &[(Prefix6, Ipv6Addr)]),
    (public, ports): (Option<Ipv4Addr>, Vec<RangeInclusive<u16>>),
    facts: &SiteFacts,
    faults: &mut Vec<String>,
) -> Option<Result<Nat64, String>> {
    let is_demanded = match options.nat64 {
        Nat64Option::No => {
            if options.ipv6_mostly {
                let what = "--ipv6-mostly needs a NAT64, by which hosts without IPv4 reach IPv4";
                faults.push(format!("{what}; omit --nat64=no"));
            }
            return None;
        }
        Nat64Option::Auto => options.ipv6_mostly,
        Nat64Option::Dns64 | Nat64Option::Pref64 => true,
    };
    let is_announced = is_demanded && options.nat64 != Nat64Option::Pref64;
    let mut lacks = Vec::new();
    let own = own(links);
    if own.is_none() {
        lacks.push(
            match ipv6.is_tunnelled() {
                false if is_demanded => {
                    "no interface of the LAN has a global IPv6 address with a /64; let a client of prefix delegation set one, or write --6rd or --6to4"
                }
                false => "no interface of the LAN has a global IPv6 address with a /64",
                true => "the tunnel's prefix is unknown: the public address is missing, or has no prefix",
            }
            .to_owned(),
        );
    }
    if ports.is_empty() {
        let what = "net.ipv4.ip_local_port_range leaves no ports above it";
        lacks.push(format!("{what}; sysctl -w net.ipv4.ip_local_port_range=\"32768 60999\""));
    }
    let no_dns64 = no_dns64(links, facts);
    if is_announced {
        lacks.extend(no_dns64.clone());
    }
    if is_demanded {
        // With `auto`, it is --ipv6-mostly that demands it.
        let option = if options.nat64 == Nat64Option::Auto { "--ipv6-mostly" } else { "--nat64" };
        faults.extend(lacks.iter().map(|what| format!("{option}: {what}")));
    }
    let dns64 = match no_dns64 {
        Some(why) => Dns64::None(why),
        None if is_announced => Dns64::Announced,
        None => Dns64::Listens,
    };
    Some(match own {
        Some(own) if lacks.is_empty() => {
            let prefix = prefix(public);
            let (inside, at) = links.iter().copied().unzip();
            Ok(Nat64 { prefix, inside, at, excluded: excluded(prefix, public, facts), own, ports, dns64 })
        }
        _ => Err(lacks.join("; ")),
    })
}

/// Behind a provider's or another router's NAT, IPv6-only hosts may need servers in that network, and reach each other by its addresses.
const fn prefix(public: Option<Ipv4Addr>) -> &'static str {
    match public {
        Some(address) if is_private(address) => LOCAL_USE,
        Some(_) | None => WELL_KNOWN,
    }
}

const fn is_private(address: Ipv4Addr) -> bool {
    address.is_private() || SHARED.contains(address)
}

/// This host's private networks, except for the outside network: as with the well-known prefix, IPv6-only hosts do not reach them.
fn excluded(prefix: &str, public: Option<Ipv4Addr>, facts: &SiteFacts) -> Vec<Prefix4> {
    let mut networks = Vec::new();
    for own in facts.host.addresses.iter().filter(|_| prefix == LOCAL_USE) {
        let IpAddr::V4(address) = own.address else { continue };
        let network = Prefix4::holding(address, own.length.min(32));
        let is_outside = public.is_some_and(|public| network.contains(public));
        if is_private(address) && !is_outside && !networks.contains(&network) {
            networks.push(network);
        }
    }
    networks
}

impl Nat64 {
    /// While there is no public address, the prefix of an earlier configuration stays.
    pub(super) fn keep_prefix_of(&mut self, before: &str) {
        if before.lines().any(|line| line == format!("prefix = {LOCAL_USE:?}")) {
            let excluded =
                before.lines().find_map(|line| line.strip_prefix("exclude_ipv4 = [")?.strip_suffix(']'));
            let networks = excluded.unwrap_or_default().split(", ").map(|network| network.trim_matches('"'));
            self.excluded = networks.filter_map(|network| network.parse().ok()).collect();
            self.prefix = LOCAL_USE;
        }
    }
}

/// Why there is no DNS64.
fn no_dns64(links: &[(Prefix6, Ipv6Addr)], facts: &SiteFacts) -> Option<String> {
    if facts.host.resolvers.is_empty() {
        Some("/etc/resolv.conf has no DNS server for the DNS64 to ask".into())
    } else if links.iter().any(|(_, address)| facts.answers_dns(IpAddr::V6(*address))) {
        Some("another program answers at port 53 over IPv6".into())
    } else {
        None
    }
}

/// An address of the LAN's prefix that this host does not have.
fn own(links: &[(Prefix6, Ipv6Addr)]) -> Option<Ipv6Addr> {
    let (prefix, _) = links.first()?;
    let candidates = (0xf0..=0xfe).rev().map(|last| Ipv6Addr::from_bits(prefix.address().to_bits() | last));
    candidates.into_iter().find(|one| links.iter().all(|(_, taken)| taken != one))
}

#[cfg(test)]
mod tests {
    use super::super::plan::Site;
    use super::super::plan::tests::{facts, options};
    use super::*;

    fn resolving() -> SiteFacts {
        let mut facts = facts();
        facts.host.resolvers = vec!["192.0.2.53:53".parse().unwrap()];
        facts
    }

    /// The source of the gateway's errors is not an address of this host.
    #[test]
    fn the_gateways_address_is_another_one_than_the_hosts() {
        let mut facts = facts();
        facts.host.addresses[3].address = "2001:db8:1::fe".parse().unwrap();
        let nat64 = Site::plan(&options(), &facts).unwrap().nat64.unwrap().unwrap();
        assert_eq!(nat64.own, "2001:db8:1::fd".parse::<Ipv6Addr>().unwrap());
    }

    fn dns64(options: &SiteOptions, facts: &SiteFacts) -> Dns64 {
        Site::plan(options, facts).unwrap().nat64.unwrap().unwrap().dns64
    }

    #[test]
    fn the_dns64_is_announced_to_hosts_with_ipv4_only_if_asked_for() {
        let facts = resolving();
        assert_eq!(dns64(&options(), &facts), Dns64::Listens);
        let asked = SiteOptions { nat64: Nat64Option::Dns64, ..options() };
        assert_eq!(dns64(&asked, &facts), Dns64::Announced);
        let mostly = SiteOptions { dhcp: true, ipv6_mostly: true, ..options() };
        assert_eq!(dns64(&mostly, &facts), Dns64::Announced);
        // Hosts that have CLAT need the prefix alone.
        let by_prefix = SiteOptions { nat64: Nat64Option::Pref64, ..mostly };
        assert_eq!(dns64(&by_prefix, &facts), Dns64::Listens);
        assert_eq!(
            Site::plan(&SiteOptions { nat64: Nat64Option::No, ..options() }, &facts).unwrap().nat64,
            None
        );
    }

    /// RFC 6052 §3.1, RFC 8215 §4.
    #[test]
    fn behind_another_nat_the_prefix_may_represent_private_addresses() {
        for (address, expected) in [
            ("203.0.113.1", "64:ff9b::/96"),
            ("192.168.0.7", "64:ff9b:1::/96"),
            ("10.0.0.1", "64:ff9b:1::/96"),
            ("100.64.0.1", "64:ff9b:1::/96"),
            ("100.128.0.1", "64:ff9b::/96"),
        ] {
            let mut facts = resolving();
            facts.host.addresses[1].address = address.parse().unwrap();
            let site = Site::plan(&options(), &facts).unwrap();
            let text = site.configuration();
            assert!(text.contains(&format!("prefix = \"{expected}\"\ninside")), "{text}");
            // The LAN is not reached by it, which would be a warning.
            let excluded = if expected == WELL_KNOWN { "" } else { "exclude_ipv4 = [\"192.168.1.0/24\"]\n" };
            assert_eq!(text.contains("exclude_ipv4"), !excluded.is_empty());
            assert!(text.contains(excluded), "{text}");
            assert!(site.filter().contains(&format!("ip6 saddr {expected} accept")));
            // The uplink is lost for a while.
            facts.host.addresses.remove(1);
            let lost = Site::plan(&options(), &facts).unwrap().continuing(&text);
            assert_eq!(lost.configuration(), text);
        }
    }

    #[test]
    fn a_plain_site_does_without_what_cannot_be_and_a_demand_fails() {
        let asked = SiteOptions { nat64: Nat64Option::Dns64, ..options() };
        let fails = |facts: &SiteFacts| Site::plan(&asked, facts).unwrap_err().join(" ");
        assert!(matches!(dns64(&options(), &facts()), Dns64::None(why) if why.contains("/etc/resolv.conf")));
        assert!(fails(&facts()).contains("/etc/resolv.conf"));
        // For which no DNS64 is needed.
        let by_prefix = SiteOptions { nat64: Nat64Option::Pref64, ..options() };
        assert!(matches!(dns64(&by_prefix, &facts()), Dns64::None(_)));
        let taken = SiteFacts { dns: ["::".parse().unwrap()].into(), ..resolving() };
        let elsewhere = SiteFacts { dns: ["fe80::1".parse().unwrap()].into(), ..resolving() };
        assert_eq!(dns64(&options(), &elsewhere), Dns64::Listens);
        assert!(matches!(dns64(&options(), &taken), Dns64::None(why) if why.contains("port 53")));
        assert!(fails(&taken).contains("port 53"));
        let mut bare = resolving();
        bare.host.addresses.retain(|own| own.address.is_ipv4());
        let site = Site::plan(&options(), &bare).unwrap();
        assert!(site.nat64.unwrap().unwrap_err().contains("global IPv6 address"));
        assert!(fails(&bare).contains("global IPv6 address"));
        let mut narrow = resolving();
        narrow.host.local_ports = Some(32_768..=u16::MAX);
        let site = Site::plan(&options(), &narrow).unwrap();
        assert!(site.nat64.unwrap().unwrap_err().contains("ip_local_port_range"));
        let no = SiteOptions { nat64: Nat64Option::No, dhcp: true, ipv6_mostly: true, ..options() };
        assert!(Site::plan(&no, &resolving()).unwrap_err().join(" ").contains("--ipv6-mostly"));
    }
}
