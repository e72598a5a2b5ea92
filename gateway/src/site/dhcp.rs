//! DHCPv4 for the LAN, by dnsmasq: its configuration.

use super::dhcp_program::DhcpProgram;
use super::plan::{DhcpDns, Site};
use sixway_wire::Prefix4;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;

/// Names that hosts look up by themselves, to be told of a proxy or of a tunnel's router. A host with such a name would get what the others
/// send (CERT VU#598349).
const LOOKED_UP: [&str; 2] = ["wpad", "isatap"];
/// RFC 8925 §3.4: V6ONLY_WAIT, 1,800 s, in octets.
const V6ONLY_WAIT: &str = "0:0:7:8";

impl Site {
    /// The configuration of dnsmasq, with this file for its leases, if it is to run.
    pub(super) fn dnsmasq(&self, leases: &Path) -> Option<String> {
        let dhcp = self.dhcp.as_ref().filter(|dhcp| dhcp.program == DhcpProgram::Dnsmasq)?;
        let mut text = String::from(
            "# Of `sixway up`.\nbind-dynamic\nno-hosts\npid-file\nlog-facility=-\ndhcp-authoritative\n",
        );
        let (port, others): (_, &[Ipv4Addr]) = match &dhcp.dns {
            DhcpDns::Dnsmasq | DhcpDns::DnsmasqLater | DhcpDns::Hosts(_) | DhcpDns::None => (53, &[]),
            DhcpDns::Other(servers) => (0, servers),
        };
        let _ = writeln!(text, "port={port}\ndhcp-leasefile={}", leases.display());
        let networks = self.lans.iter().flat_map(|lan| lan.own.iter().zip(&lan.networks));
        for (number, (own, network)) in networks.enumerate() {
            // Not the interface: its IPv6 addresses may be the DNS64's.
            let _ = writeln!(text, "listen-address={own}");
            let (first, last) = range(*network);
            let _ = match others.get(number) {
                None => writeln!(text, "dhcp-range={first},{last},12h"),
                // With port 0, dnsmasq announces no DNS server by default.
                Some(server) => writeln!(
                    text,
                    "dhcp-range=set:lan{number},{first},{last},12h\ndhcp-option=tag:lan{number},6,{server}"
                ),
            };
        }
        for name in LOOKED_UP {
            let _ = writeln!(text, "dhcp-name-match=set:looked-up,{name}");
        }
        // Nor does the provider say who has a name without a dot.
        text.push_str("dhcp-ignore-names=tag:looked-up\ndomain-needed\n");
        if dhcp.ipv6_mostly {
            let _ = writeln!(text, "dhcp-option=108,{V6ONLY_WAIT}");
        }
        Some(text)
    }
}

/// The upper three quarters of a network: lower addresses are for static configuration.
pub(super) fn range(network: Prefix4) -> (Ipv4Addr, Ipv4Addr) {
    let (first, last) = (network.address().to_bits(), network.last().to_bits());
    let quarter = (last - first) / 4 + 1;
    (Ipv4Addr::from_bits(first + quarter), Ipv4Addr::from_bits(last - 1))
}

#[cfg(test)]
mod tests {
    use super::super::facts::SiteFacts;
    use super::super::options::SiteOptions;
    use super::super::plan::tests::{facts, options};
    use super::*;
    use crate::config::HostAddress;

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
        // Other servers have their own addresses, also at interfaces that come later; hosts do not see the names of /etc/hosts; and a host
        // that asks for the address of another network is refused immediately.
        for line in ["bind-dynamic", "no-hosts", "dhcp-authoritative"] {
            assert!(text.contains(&format!("\n{line}\n")), "{text}");
        }
        // Its file would be /run/dnsmasq.pid, which nobody removes.
        assert!(text.contains("\npid-file\n"), "{text}");
        assert!(
            text.contains("dhcp-range=192.168.1.64,192.168.1.254,12h\n") && !text.contains("108"),
            "{text}"
        );
        for name in ["wpad", "isatap"] {
            assert!(text.contains(&format!("dhcp-name-match=set:looked-up,{name}\n")), "{text}");
        }
        assert!(text.contains("dhcp-ignore-names=tag:looked-up\ndomain-needed\n"), "{text}");
        // Of libvirt's network: nothing of ours.
        facts.dns.insert("192.168.122.1".parse().unwrap());
        let text = Site::plan(&with, &facts).unwrap().dnsmasq(Path::new("/run/x.leases")).unwrap();
        assert!(text.contains("port=53\n"), "{text}");
        assert_eq!(Site::plan(&options(), &facts).unwrap().dnsmasq(Path::new("x")), None);
    }

    /// With `port=0`, dnsmasq announces no DNS server unless it is configured.
    #[test]
    fn hosts_get_the_dns_server_that_has_the_port_already() {
        let mut facts = facts();
        facts.host.interfaces.push("eth2".into());
        facts.host.addresses.push(HostAddress {
            interface: "eth2".into(),
            address: "192.168.2.1".parse().unwrap(),
            length: 24,
        });
        let lans = vec!["eth1".into(), "eth2".into()];
        let with = SiteOptions { dhcp: true, lans, ..options() };
        for (taken, servers) in
            [("0.0.0.0", ["192.168.1.1", "192.168.2.1"]), ("192.168.2.1", ["192.168.2.1", "192.168.2.1"])]
        {
            facts.dns = [taken.parse().unwrap()].into();
            let site = Site::plan(&with, &facts).unwrap();
            let text = site.dnsmasq(Path::new("/run/x.leases")).unwrap();
            for (number, server) in servers.iter().enumerate() {
                let told = format!("dhcp-option=tag:lan{number},6,{server}\n");
                assert!(text.contains("port=0\n") && text.contains(&told), "{told}{text}");
                assert!(text.contains(&format!("dhcp-range=set:lan{number},192.168.")), "{text}");
            }
            let summary = site.summary(Path::new("x"));
            assert!(
                summary.contains(&format!("DNS by another program of this host, at {}", servers[0])),
                "{summary}"
            );
        }
        facts.dns.clear();
        let summary = |facts: &SiteFacts| Site::plan(&with, facts).unwrap().summary(Path::new("x"));
        assert!(summary(&facts).contains("DNS as soon as /etc/resolv.conf has a server"));
        facts.host.resolvers = vec!["192.0.2.53:53".parse().unwrap()];
        assert!(summary(&facts).contains("IPv4 addresses and DNS by dnsmasq"));
    }

    #[test]
    fn hosts_are_not_asked_to_do_without_ipv4_where_they_cannot() {
        let with = SiteOptions { dhcp: true, ipv6_mostly: true, ..options() };
        let faults = Site::plan(&with, &facts()).unwrap_err().join(" ");
        assert!(faults.contains("--ipv6-mostly: "), "{faults}");
    }
}
