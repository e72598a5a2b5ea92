//! How IPv6-only hosts of a site reach IPv4: a NAT64 at other ports of the public address, and a DNS64.
//!
//! A host that has IPv4 as well prefers a synthesised AAAA record (RFC 6724 §2.1), and loses DNSSEC (RFC 6147 §3). So the DNS64 is
//! announced only if that was asked for. The prefix always is (RFC 8781): hosts without IPv4 translate by it themselves.

use super::facts::SiteFacts;
use super::options::{Nat64Option, SiteOptions};
use sixway_wire::Prefix6;
use std::net::Ipv6Addr;
use std::ops::RangeInclusive;

/// How IPv6-only hosts reach IPv4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nat64 {
    /// Source of the gateway's ICMPv6 errors.
    pub own: Ipv6Addr,
    /// Ports of the public address that are the NAT64's.
    pub ports: Vec<RangeInclusive<u16>>,
    /// What there is of a DNS64.
    pub dns64: Dns64,
}

/// What there is of a DNS64, at the LAN's IPv6 addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dns64 {
    /// It is announced to all hosts.
    Announced,
    /// It answers hosts that ask it.
    Listens,
    /// None, and why.
    None(String),
}

/// The NAT64 of the site, with the LAN's native prefixes and this host's address in each, or why there is none; `None`: it is not wanted.
pub(super) fn planned(
    options: &SiteOptions,
    native: &[(Prefix6, Ipv6Addr)],
    ports: Vec<RangeInclusive<u16>>,
    facts: &SiteFacts,
    faults: &mut Vec<String>,
) -> Option<Result<Nat64, String>> {
    let is_demanded = match options.nat64 {
        Nat64Option::No => {
            if options.ipv6_mostly {
                let what = "--ipv6-mostly needs a NAT64, by which hosts without IPv4 reach IPv4";
                faults.push(format!("{what}; leave out --nat64=no"));
            }
            return None;
        }
        Nat64Option::Auto => options.ipv6_mostly,
        Nat64Option::Dns64 => true,
    };
    let mut lacks = Vec::new();
    let own = own(native);
    if own.is_none() {
        lacks.push("no interface of the LAN has a fixed global IPv6 address with a /64".to_owned());
    }
    if ports.is_empty() {
        let what = "net.ipv4.ip_local_port_range leaves no ports above it";
        lacks.push(format!("{what}; sysctl -w net.ipv4.ip_local_port_range=\"32768 60999\""));
    }
    let no_dns64 = no_dns64(facts);
    if is_demanded {
        lacks.extend(no_dns64.clone());
        faults.extend(lacks.iter().map(|what| format!("--nat64 and --ipv6-mostly: {what}")));
    }
    let dns64 = match no_dns64 {
        Some(why) => Dns64::None(why),
        None if is_demanded => Dns64::Announced,
        None => Dns64::Listens,
    };
    Some(match own {
        Some(own) if lacks.is_empty() => Ok(Nat64 { own, ports, dns64 }),
        _ => Err(lacks.join("; ")),
    })
}

/// Why there is no DNS64.
fn no_dns64(facts: &SiteFacts) -> Option<String> {
    if facts.host.resolvers.is_empty() {
        Some("/etc/resolv.conf has no DNS server for the DNS64 to ask".into())
    } else if facts.dns6 {
        Some("another program answers at port 53 over IPv6".into())
    } else {
        None
    }
}

/// An address of the LAN's prefix that this host does not have.
fn own(native: &[(Prefix6, Ipv6Addr)]) -> Option<Ipv6Addr> {
    let (prefix, _) = native.first()?;
    let candidates = (0xf0..=0xfe).rev().map(|last| Ipv6Addr::from_bits(prefix.address().to_bits() | last));
    candidates.into_iter().find(|one| native.iter().all(|(_, taken)| taken != one))
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
        assert_eq!(
            Site::plan(&SiteOptions { nat64: Nat64Option::No, ..options() }, &facts).unwrap().nat64,
            None
        );
    }

    #[test]
    fn a_plain_site_does_without_what_cannot_be_and_a_demand_fails() {
        let asked = SiteOptions { nat64: Nat64Option::Dns64, ..options() };
        let fails = |facts: &SiteFacts| Site::plan(&asked, facts).unwrap_err().join(" ");
        assert!(matches!(dns64(&options(), &facts()), Dns64::None(why) if why.contains("/etc/resolv.conf")));
        assert!(fails(&facts()).contains("/etc/resolv.conf"));
        let taken = SiteFacts { dns6: true, ..resolving() };
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
