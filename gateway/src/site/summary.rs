//! The plan in ten lines at most: what was found, and what is done.

use super::dhcp_program::DhcpProgram;
use super::filter::table_name;
use super::ipv6::Ipv6;
use super::nat64::Dns64;
use super::plan::{Dhcp, DhcpDns, Site, device_mtu};
use super::ports;
use std::net::Ipv4Addr;
use std::path::Path;

impl Site {
    /// The lines, with the file that has the configuration.
    pub fn summary(&self, file: &Path) -> String {
        let lans = self.lans.iter().map(|lan| lan.interface.as_str()).collect::<Vec<_>>().join(", ");
        let mut lines = vec![format!("site {}: {lans} inside, {} outside", self.name, self.wan)];
        let mut line = |what: &str, how: String| lines.push(format!("  {what:<13}  {how}"));
        let networks: Vec<String> =
            self.lans.iter().flat_map(|lan| &lan.networks).map(ToString::to_string).collect();
        let behind = match self.public {
            Some(address) => address.to_string(),
            None => format!("the address of {}, which has none yet", self.wan),
        };
        let ports = ports::written(&self.ports);
        let without_dhcp = if self.dhcp.is_none() { "; no DHCP server without --dhcp" } else { "" };
        let networks = networks.join(", ");
        line("IPv4", format!("{networks} by NAT44 behind {behind}, ports {ports}{without_dhcp}"));
        let by = match &self.ipv6 {
            Ipv6::Native => {
                let prefixes = self.lans.iter().flat_map(|lan| &lan.prefixes).map(ToString::to_string);
                format!("native: {}", prefixes.collect::<Vec<_>>().join(", "))
            }
            Ipv6::SixRd(domain) => format!("by 6rd in {}", domain.prefix),
            Ipv6::LeasedSixRd(offer) => {
                format!(
                    "by 6rd in {}, as the provider's DHCP server offers it; --6rd=no",
                    offer.domain.prefix
                )
            }
            Ipv6::SixToFour(relay) => format!("by 6to4 and the relay {relay}"),
            Ipv6::None(why) => format!("none: {why}; --6rd or --6to4"),
        };
        line("IPv6", by);
        match &self.nat64 {
            Some(Ok(nat64)) => {
                let ports = ports::written(&nat64.ports);
                let dns64 = match &nat64.dns64 {
                    Dns64::Announced => "DNS64 for all hosts".to_owned(),
                    Dns64::Listens => {
                        let at = nat64.at.first().map(ToString::to_string).unwrap_or_default();
                        format!("DNS64 at {at}, announced with --nat64")
                    }
                    Dns64::None(why) => format!("no DNS64: {why}"),
                };
                line("IPv6-only", format!("NAT64 behind the same address, ports {ports}; {dns64}"));
            }
            Some(Err(why)) => line("IPv6-only", format!("no NAT64: {why}")),
            None => {}
        }
        let advertised = match (&self.ipv6, self.dns.is_empty()) {
            (Ipv6::None(_), _) => None,
            (_, _) if self.announces_dns64() => {
                Some("router advertisements, with this host's DNS64".to_owned())
            }
            (_, true) => {
                Some("router advertisements, without a DNS server: this host has none with IPv6".to_owned())
            }
            (_, false) => {
                Some(format!("router advertisements, with the DNS servers of this host ({})", self.dns.len()))
            }
        };
        if let Some(advertised) = advertised {
            line("hosts", advertised);
        }
        if let Some(dhcp) = &self.dhcp {
            line("DHCP", addressed(dhcp));
        }
        if let Some(mtu) = device_mtu(self) {
            line("MTU", format!("{mtu}, that of {}: TCP's MSS is lowered", self.wan));
        }
        line(
            "packet filter",
            match self.firewall {
                true => {
                    format!("table inet {}: nothing unsolicited from {}", table_name(&self.name), self.wan)
                }
                false => format!("none: any host behind {} can reach the LAN by IPv6", self.wan),
            },
        );
        if self.pcp {
            line("mappings", "by PCP and NAT-PMP, by request of hosts; none with --no-pcp".to_owned());
        }
        if self.pcp_taken {
            line("mappings", "none: another program has port 5351; end it, or write --no-pcp".to_owned());
        }
        let end = match self.name.as_str() {
            "site" => "sixway down".to_owned(),
            name => format!("sixway down --name {name}"),
        };
        line("configuration", format!("{}; to end: {end}, or a signal", file.display()));
        lines.join("\n")
    }
}

/// The programs that lease IPv4 addresses and answer DNS queries.
fn addressed(dhcp: &Dhcp) -> String {
    let by = match dhcp.program {
        DhcpProgram::Dnsmasq => "dnsmasq",
        DhcpProgram::Kea => "Kea",
    };
    let how = match &dhcp.dns {
        DhcpDns::Dnsmasq => format!("IPv4 addresses and DNS by {by}"),
        DhcpDns::DnsmasqLater => {
            format!("IPv4 addresses by {by}, and DNS as soon as /etc/resolv.conf has a server")
        }
        DhcpDns::Other(servers) => {
            let at = addresses(servers);
            format!("IPv4 addresses by {by}, and DNS by another program of this host, at {at}")
        }
        DhcpDns::Hosts(servers) => {
            format!("IPv4 addresses by {by}, and this host's DNS servers ({})", addresses(servers))
        }
        DhcpDns::None => {
            format!(
                "IPv4 addresses by {by}, and no DNS server: hosts reach none of /etc/resolv.conf; install dnsmasq-base"
            )
        }
    };
    let mostly = if dhcp.ipv6_mostly { "; hosts may do without (RFC 8925)" } else { "" };
    format!("{how}{mostly}")
}

/// Each once.
fn addresses(servers: &[Ipv4Addr]) -> String {
    let mut all: Vec<String> = servers.iter().map(ToString::to_string).collect();
    all.dedup();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::facts::SiteFacts;
    use super::super::options::{Nat64Option, SiteOptions};
    use super::super::plan::tests::{facts, options};
    use super::*;

    /// PPPoE.
    fn narrow() -> SiteFacts {
        let mut facts = facts();
        facts.mtus.insert("eth0".into(), 1_492);
        facts
    }

    #[test]
    fn the_summary_lists_what_is_found_and_what_is_done() {
        let told = Site::plan(&options(), &narrow()).unwrap().summary(Path::new("/run/sixway/site.toml"));
        for part in [
            "192.168.1.0/24 by NAT44 behind 203.0.113.1",
            "; no DHCP server without --dhcp",
            "native: 2001:db8:1::/64",
            "1492",
            "sixway_filter_site",
            "/run/sixway/site.toml; to end: sixway down, or a signal",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }

    #[test]
    fn a_taken_port_of_pcp_is_told() {
        let told = |options: &SiteOptions, facts: &SiteFacts| {
            Site::plan(options, facts).unwrap().summary(Path::new("/run/sixway/site.toml"))
        };
        let mut taken = facts();
        assert!(told(&options(), &taken).contains("by PCP and NAT-PMP"));
        taken.listening.insert(5_351);
        assert!(told(&options(), &taken).contains("none: another program has port 5351"));
        assert!(!told(&SiteOptions { pcp: false, ..options() }, &taken).contains("5351"));
    }

    /// The hosts that a site may be on: with and without a small MTU, native IPv6 and DNS servers.
    fn hosts() -> Vec<SiteFacts> {
        let mut all = vec![facts(), narrow()];
        for facts in all.clone() {
            let mut without = facts;
            without.host.addresses.retain(|own| own.address.is_ipv4());
            all.push(without);
        }
        for facts in all.clone() {
            let mut resolving = facts;
            let servers = ["192.0.2.53:53", "[2001:db8::53]:53"];
            resolving.host.resolvers = servers.map(|server| server.parse().unwrap()).to_vec();
            all.push(resolving);
        }
        for facts in all.clone() {
            all.push(SiteFacts { dns: ["0.0.0.0".parse().unwrap()].into(), ..facts });
        }
        all
    }

    #[test]
    fn ten_lines_are_enough_whatever_is_done() {
        let (mut most, mut sites) = (0, 0);
        for facts in hosts() {
            for bits in 0_u8..64 {
                let is = |bit: u8| bits >> bit & 1 == 1;
                for nat64 in [Nat64Option::Auto, Nat64Option::Dns64, Nat64Option::No] {
                    let wanted = SiteOptions {
                        nat64,
                        firewall: is(0),
                        fast_path: is(1),
                        pcp: is(2),
                        dhcp: is(3),
                        ipv6_mostly: is(3) && is(4),
                        six_to_four: is(5).then_some(Ipv4Addr::new(192, 88, 99, 1)),
                        ..options()
                    };
                    let Ok(site) = Site::plan(&wanted, &facts) else { continue };
                    let told = site.summary(Path::new("/run/sixway/site.toml"));
                    assert!(told.lines().count() <= 10, "{told}");
                    (most, sites) = (most.max(told.lines().count()), sites + 1);
                }
            }
        }
        assert!(most == 10 && sites > 1_000, "{most} lines of {sites} sites");
    }
}
