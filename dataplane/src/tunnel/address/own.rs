//! IPv6 addresses which contain one of the gateway's own IPv4 addresses, though they are not its own: packets that run in a
//! circle between two automatic tunnels bear them (RFC 6324 §2, §3.3).
//!
//! Private addresses of ours are looked for only where the prefix says whose they are (§3.3.1): elsewhere they are as well
//! another network's.

use super::{Domain, embedded, isatap, six_to_four};
use core::net::{Ipv4Addr, Ipv6Addr};

/// The gateway's address in the formats of all automatic tunnels.
#[derive(Clone, Debug, Default)]
pub struct OwnAddresses {
    all: Vec<Ipv4Addr>,
    public: Vec<Ipv4Addr>,
    domains: Vec<Domain>,
    host6: Vec<Ipv6Addr>,
}

impl OwnAddresses {
    /// From this host's IPv4 addresses, and those that they become at a NAT, the 6rd domains that the gateway knows, and the IPv6
    /// addresses that this host really has.
    pub fn new(all: Vec<Ipv4Addr>, domains: Vec<Domain>, host6: Vec<Ipv6Addr>) -> Self {
        let public = all.iter().copied().filter(|address| embedded::is_public(*address)).collect();
        Self { all, public, domains, host6 }
    }

    /// The same without a 6rd domain: the one of the tunnel at hand, which sees to its addresses itself.
    pub fn without(&self, domain: Domain) -> Self {
        let mut others = self.clone();
        others.domains.retain(|other| *other != domain);
        others
    }

    /// Whether it contains one of the gateway's IPv4 addresses as 6to4, ISATAP, 6rd or Teredo write it. The caller has seen to
    /// addresses under the prefixes of the tunnel at hand, where that may be right.
    #[inline(always)]
    pub fn stand_in(&self, address: Ipv6Addr) -> bool {
        let has_a_format = six_to_four::site_of(address).is_some()
            || isatap::locator_of(address).is_some()
            || teredo_client_of(address).is_some();
        (has_a_format || !self.domains.is_empty()) && self.stand_within(address)
    }

    /// The same for the source of a packet that is to be encapsulated. What this host says itself, the kernel's ICMPv6 errors
    /// above all, does not loop, since packets to an address that this host really has end here.
    #[inline(always)]
    pub fn stand_in_source(&self, source: Ipv6Addr) -> bool {
        self.stand_in(source) && !self.host6.contains(&source)
    }

    #[inline(never)]
    fn stand_within(&self, address: Ipv6Addr) -> bool {
        let is_public = |found: Option<Ipv4Addr>| found.is_some_and(|found| self.public.contains(&found));
        let mut customer_edges = self.domains.iter().filter_map(|domain| domain.customer_edge_of(address));
        is_public(six_to_four::site_of(address))
            || is_public(isatap::locator_of(address))
            || is_public(teredo_client_of(address))
            || customer_edges.any(|found| self.all.contains(&found))
    }
}

/// The mapped IPv4 address of a Teredo client, whose bits are inverted (RFC 4380 §4).
#[inline(always)]
const fn teredo_client_of(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = address.to_bits();
    if bits >> 96 == 0x2001_0000 { Some(Ipv4Addr::from_bits(!(bits as u32))) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> OwnAddresses {
        let domain = Domain::new("2001:db8::/32".parse().unwrap(), "10.0.0.0/8".parse().unwrap()).unwrap();
        let all = ["192.0.2.8", "10.0.0.1"].map(|text| text.parse().unwrap()).to_vec();
        OwnAddresses::new(all, vec![domain], vec!["2001:dba::5efe:192.0.2.8".parse().unwrap()])
    }

    #[test]
    fn own_addresses_are_found_in_every_tunnels_format() {
        for text in [
            "2002:c000:208::1",
            "2001:dba::5efe:192.0.2.8",
            "2001:dba::200:5efe:192.0.2.8",
            "2001:0:4136:e378:8000:63bf:3fff:fdf7",
            "2001:db8:0:100::1",
        ] {
            assert!(own().stand_in(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn a_tunnels_own_domain_is_its_own_affair() {
        let domain = own().domains[0];
        assert!(!own().without(domain).stand_in("2001:db8:0:100::1".parse().unwrap()));
        assert!(own().without(domain).stand_in("2002:c000:208::1".parse().unwrap()));
    }

    #[test]
    fn an_address_that_this_host_has_may_be_a_source_and_its_neighbours_may_not() {
        assert!(!own().stand_in_source("2001:dba::5efe:192.0.2.8".parse().unwrap()));
        assert!(own().stand_in_source("2001:dba::200:5efe:192.0.2.8".parse().unwrap()));
    }

    #[test]
    fn addresses_of_others_are_let_pass() {
        for text in [
            "2002:c000:209::1",
            "2002:a00:1::1",
            "2001:dba::5efe:10.0.0.1",
            "2001:dba::5efe:192.0.2.9",
            "2001:db8:0:200::1",
            "2001:dba::c000:208",
        ] {
            assert!(!own().stand_in(text.parse().unwrap()), "{text}");
        }
    }
}
