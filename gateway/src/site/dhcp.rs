//! DHCPv4 for the LAN, by dnsmasq: its configuration.

use super::plan::Site;
use sixway_wire::Prefix4;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;

/// RFC 8925 §3.4: V6ONLY_WAIT, 1,800 s, in octets.
const V6ONLY_WAIT: &str = "0:0:7:8";

impl Site {
    /// The configuration of dnsmasq, with this file for its leases.
    pub(super) fn dnsmasq(&self, leases: &Path) -> Option<String> {
        let dhcp = self.dhcp.as_ref()?;
        let mut text =
            String::from("# Of `sixway up`.\nbind-dynamic\nno-hosts\nlog-facility=-\ndhcp-authoritative\n");
        let _ = writeln!(text, "port={}", if dhcp.answers_dns { 53 } else { 0 });
        let _ = writeln!(text, "dhcp-leasefile={}", leases.display());
        for (own, network) in self.lans.iter().flat_map(|lan| lan.own.iter().zip(&lan.networks)) {
            // Not the interface: its IPv6 addresses may be the DNS64's.
            let _ = writeln!(text, "listen-address={own}");
            let (first, last) = range(*network);
            let _ = writeln!(text, "dhcp-range={first},{last},12h");
        }
        if dhcp.ipv6_mostly {
            let _ = writeln!(text, "dhcp-option=108,{V6ONLY_WAIT}");
        }
        Some(text)
    }
}

/// The upper three quarters of a network: those below stay for addresses by hand.
fn range(network: Prefix4) -> (Ipv4Addr, Ipv4Addr) {
    let (first, last) = (network.address().to_bits(), network.last().to_bits());
    let quarter = (last - first) / 4 + 1;
    (Ipv4Addr::from_bits(first + quarter), Ipv4Addr::from_bits(last - 1))
}

#[cfg(test)]
mod tests {
    use super::super::options::SiteOptions;
    use super::super::plan::tests::{facts, options};
    use super::*;

    #[test]
    fn leases_come_from_the_upper_three_quarters_of_the_network() {
        let of = |text: &str| range(text.parse().unwrap());
        let pair = |first: &str, last: &str| (first.parse().unwrap(), last.parse().unwrap());
        assert_eq!(of("192.168.1.0/24"), pair("192.168.1.64", "192.168.1.254"));
        assert_eq!(of("10.0.0.8/29"), pair("10.0.0.10", "10.0.0.14"));
    }

    #[test]
    fn dnsmasq_listens_on_the_lan_alone_and_leaves_dns_to_another_server() {
        let with = SiteOptions { dhcp: true, ..options() };
        let mut facts = facts();
        let text = Site::plan(&with, &facts).unwrap().dnsmasq(Path::new("/run/x.leases")).unwrap();
        assert!(text.contains("listen-address=192.168.1.1\n") && text.contains("port=53\n"), "{text}");
        assert!(
            text.contains("dhcp-range=192.168.1.64,192.168.1.254,12h\n") && !text.contains("108"),
            "{text}"
        );
        facts.dns4 = true;
        let text = Site::plan(&with, &facts).unwrap().dnsmasq(Path::new("/run/x.leases")).unwrap();
        assert!(text.contains("port=0\n"), "{text}");
        assert_eq!(Site::plan(&options(), &facts).unwrap().dnsmasq(Path::new("x")), None);
    }

    #[test]
    fn hosts_are_not_asked_to_do_without_ipv4_where_they_cannot() {
        let with = SiteOptions { dhcp: true, ipv6_mostly: true, ..options() };
        let faults = Site::plan(&with, &facts()).unwrap_err().join(" ");
        assert!(faults.contains("--nat64"), "{faults}");
    }
}
