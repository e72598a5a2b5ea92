//! The plan for a reader: what was found, and what is done, in ten lines at most.

use super::filter::table_name;
use super::ipv6::Ipv6;
use super::nat64::Dns64;
use super::plan::{Site, device_mtu};
use super::ports;
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
        line("IPv4", format!("{} by NAT44 behind {behind}, ports {ports}", networks.join(", ")));
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
                        let at = self.lans.iter().flat_map(|lan| &lan.addresses).next();
                        let at = at.map(ToString::to_string).unwrap_or_default();
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
            (Ipv6::Native, _) if self.announces_dns64() => {
                Some("router advertisements, with this host's DNS64".to_owned())
            }
            (Ipv6::None(_), _) => None,
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
            let dns = if dhcp.answers_dns { " and DNS" } else { "" };
            let mostly = if dhcp.ipv6_mostly { "; hosts may do without (RFC 8925)" } else { "" };
            line("DHCP", format!("IPv4 addresses{dns} by dnsmasq{mostly}"));
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
                false => format!("none: whoever sends to {} may reach the LAN by IPv6", self.wan),
            },
        );
        if self.pcp {
            line("mappings", "by PCP and NAT-PMP, for hosts that ask; --no-pcp".to_owned());
        }
        line("configuration", file.display().to_string());
        line(
            "end",
            match self.name.as_str() {
                "site" => "sixway down, or a signal".to_owned(),
                name => format!("sixway down --name {name}, or a signal"),
            },
        );
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{facts, options};
    use super::*;

    #[test]
    fn what_is_done_is_told_in_ten_lines() {
        let mut facts = facts();
        facts.mtus.insert("eth0".into(), 1_492);
        let told = Site::plan(&options(), &facts).unwrap().summary(Path::new("/run/sixway/site.toml"));
        assert!(told.lines().count() <= 10, "{told}");
        for part in [
            "192.168.1.0/24 by NAT44 behind 203.0.113.1",
            "native: 2001:db8:1::/64",
            "1492",
            "sixway_filter_site",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
}
