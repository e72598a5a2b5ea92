//! The plan as a configuration file, which `sixway run` can run as well.

use super::dhcp_program::DhcpProgram;
use super::ipv6::Ipv6;
use super::lan::Lan;
use super::nat64::{Dns64, Nat64};
use super::plan::{Site, device_mtu};
use super::{dns64_bounds, ports};
use crate::config::Sources;
use crate::host;
use sixway_wire::Prefix4;
use std::fmt::Write as _;
use std::path::Path;

/// RFC 9096 §3.4: ND_VALID_LIMIT, 90 min, and ND_PREFERRED_LIMIT, 45 min.
const ND_LIMITS: &str = "valid_lifetime = \"90 min\", preferred_lifetime = \"45 min\"";
/// ND_VALID_LIMIT in seconds.
const ND_VALID_LIMIT: u32 = 5_400;
/// The default MaxRtrAdvInterval (RFC 4861 §6.2.1), and the least, in seconds.
const MAX_INTERVAL: u32 = 600;
const LEAST_INTERVAL: u32 = 4;

impl Site {
    /// The configuration file.
    pub fn configuration(&self) -> String {
        let mut text =
            String::from("# As `sixway up` derived it. The packet filter's table is not part of it.\n\n");
        let (name, own) = (&self.name, self.own);
        let _ = writeln!(
            text,
            "[gateway]\nname = {name:?}\nipv4_address = \"{own}\" # the source of ICMP errors"
        );
        if let Some(Ok(nat64)) = &self.nat64 {
            let _ = writeln!(text, "ipv6_address = \"{}\"", nat64.own);
        }
        if let Some(mtu) = device_mtu(self) {
            let _ = writeln!(text, "\n[tun]\nmtu = {mtu} # {}'s", self.wan);
        }
        let (wan, ports) = (&self.wan, ports::written(&self.ports));
        let _ = writeln!(
            text,
            "\n[[pool]]\nname = \"nat44\"\ninterface = {wan:?}\nshared = true # with this host's own services\nports = \"{ports}\""
        );
        let inside = self.lans.iter().flat_map(|lan| &lan.networks).map(|network| format!("\"{network}\""));
        let interfaces = self.lans.iter().map(|lan| format!("{:?}", lan.interface));
        let _ = writeln!(
            text,
            "\n[nat44]\ninside = [{}]\ninterfaces = [{}]\npool = \"nat44\"\nfiltering = \"address-dependent\" # nothing unsolicited",
            listed(inside),
            listed(interfaces.clone())
        );
        if self.pcp {
            let _ = writeln!(text, "\n[pcp]\ninterfaces = [{}]", listed(interfaces));
            if let Some(dhcp) = &self.dhcp {
                let whose = match dhcp.program {
                    DhcpProgram::Dnsmasq => "dnsmasq's",
                    DhcpProgram::Kea => "Kea's",
                };
                let _ = writeln!(text, "lease_file = \"{name}.leases\" # {whose}");
            }
        }
        self.nat64(&mut text);
        self.tunnel(&mut text);
        self.advertisements(&mut text);
        if self.fast_path {
            text.push_str("\n[fastpath]\nmode = \"auto\"\n");
        }
        text
    }

    /// Checks whether the configuration is valid.
    ///
    /// # Errors
    /// The faults of the configuration.
    pub fn check(&self, file: &Path) -> Result<(), String> {
        let sources = Sources { file: file.into(), text: self.configuration(), others: Vec::new() };
        let checked = sources.config(&host::host_facts()).map(drop);
        checked.map_err(|faults| faults.to_string().trim_end().to_owned())
    }

    /// The same plan after an earlier configuration. Ports stay: sessions do not end because of programs that listen since then. Links that
    /// were advertised stay, so that hosts get advertisements that deprecate what has ended.
    pub(super) fn continuing(mut self, before: &str) -> Self {
        for lan in &mut self.lans {
            lan.was_advertised = before.contains(&advertisement(&lan.interface));
        }
        if let (Some(Ok(nat64)), None) = (&mut self.nat64, self.public) {
            nat64.keep_prefix_of(before);
        }
        let written = before.lines().filter_map(|line| line.strip_prefix("ports = \"")?.strip_suffix('"'));
        let mut parts = written.filter_map(ports::read);
        if let Some(ports) = parts.next() {
            self.ports = ports;
        }
        if let (Some(Ok(nat64)), Some(ports)) = (&mut self.nat64, parts.next()) {
            nat64.ports = ports;
        }
        self
    }

    /// Whether the DNS64 is announced to hosts, instead of other DNS servers.
    pub(super) const fn announces_dns64(&self) -> bool {
        matches!(self.nat64, Some(Ok(Nat64 { dns64: Dns64::Announced, .. })))
    }

    fn nat64(&self, text: &mut String) {
        let Some(Ok(nat64)) = &self.nat64 else { return };
        let (wan, ports) = (&self.wan, ports::written(&nat64.ports));
        let _ = writeln!(
            text,
            "\n[[pool]]\nname = \"nat64\"\ninterface = {wan:?}\nshared = true\nports = \"{ports}\""
        );
        let inside = nat64.inside.iter().map(|prefix| format!("\"{prefix}\""));
        let listen = nat64.at.iter().map(|address| format!("\"{address}\""));
        let _ = writeln!(
            text,
            "\n[nat64]\nprefix = \"{}\"\ninside = [{}]\npool = \"nat64\"\nfiltering = \"address-dependent\"",
            nat64.prefix,
            listed(inside)
        );
        if !nat64.excluded.is_empty() {
            let networks = listed(nat64.excluded.iter().map(|network| format!("\"{network}\"")));
            let _ = writeln!(text, "exclude_ipv4 = [{networks}]");
        }
        match nat64.dns64 {
            Dns64::Announced | Dns64::Listens => {
                let _ = writeln!(text, "\n[dns64]\nlisten = [{}]\nupstream = \"system\"", listed(listen));
                text.push_str(&dns64_bounds::written(self.descriptors));
            }
            Dns64::None(_) => {}
        }
    }

    fn tunnel(&self, text: &mut String) {
        let wan = &self.wan;
        match &self.ipv6 {
            Ipv6::Native | Ipv6::None(_) => {}
            Ipv6::LeasedSixRd(offer) => {
                let relays = listed(offer.domain.relays.iter().map(|relay| format!("\"{relay}\"")));
                let (prefix, length) = (offer.domain.prefix, offer.domain.mask_length);
                // With another address prefix, the domain of another lease would be computed incorrectly.
                let common = Prefix4::holding(offer.address, length);
                let _ = writeln!(
                    text,
                    "\n[six_rd] # from the lease of {}\nrole = \"customer_edge\"\nprefix = \"{prefix}\"\nipv4_mask_length = {length}\nipv4_common = \"{common}\"\ninterface = {wan:?}\nborder_relays = [{relays}]",
                    offer.address
                );
            }
            Ipv6::SixRd(domain) => {
                let relays = listed(domain.relays.iter().map(|relay| format!("\"{relay}\"")));
                let (prefix, length) = (domain.prefix, domain.mask_length);
                let _ = writeln!(
                    text,
                    "\n[six_rd]\nrole = \"customer_edge\"\nprefix = \"{prefix}\"\nipv4_mask_length = {length}\ninterface = {wan:?}\nborder_relays = [{relays}]"
                );
            }
            Ipv6::SixToFour(relay) => {
                let _ = writeln!(
                    text,
                    "\n[six_to_four]\nrole = \"router\"\ninterface = {wan:?}\nrelay = \"{relay}\""
                );
            }
        }
    }

    fn advertisements(&self, text: &mut String) {
        for (number, lan) in self.lans.iter().enumerate() {
            let lease_time = match &self.ipv6 {
                Ipv6::LeasedSixRd(offer) => offer.lease_time,
                Ipv6::Native | Ipv6::SixRd(_) | Ipv6::SixToFour(_) | Ipv6::None(_) => None,
            };
            // RFC 5969 §4: no longer than the lease of the IPv4 address. Others have the limits of RFC 9096.
            let short = lease_time.filter(|seconds| *seconds < ND_VALID_LIMIT);
            let lifetimes =
                short.map_or_else(String::new, |seconds| format!(", valid_lifetime = \"{seconds} s\""));
            let prefixes: Vec<String> = match &self.ipv6 {
                Ipv6::None(_) => Vec::new(),
                Ipv6::Native => {
                    let written = lan.prefixes.iter();
                    written.map(|prefix| format!("{{ prefix = \"{prefix}\", {ND_LIMITS} }}")).collect()
                }
                Ipv6::SixRd(_) | Ipv6::LeasedSixRd(_) => {
                    vec![format!("{{ from = \"six_rd\", subnet = {number}{lifetimes} }}")]
                }
                Ipv6::SixToFour(_) => vec![format!("{{ from = \"six_to_four\", subnet = {number} }}")],
            };
            if prefixes.is_empty() {
                withdraw(lan, text);
                continue;
            }
            let _ = writeln!(
                text,
                "\n[[router_advertisement]]\n{}prefixes = [{}]",
                advertisement(&lan.interface),
                prefixes.join(", ")
            );
            if let Some(seconds) = short.filter(|seconds| *seconds < 3 * MAX_INTERVAL) {
                // Lifetimes must be longer than two lost advertisements.
                let _ = writeln!(text, "max_interval = \"{} s\"", (seconds / 3).max(LEAST_INTERVAL));
            }
            // Without this, the DNS64 is announced.
            if !self.announces_dns64() {
                let servers = listed(self.dns.iter().map(|server| format!("\"{server}\"")));
                let _ = writeln!(text, "rdnss = [{servers}]");
            }
            if let (Ipv6::Native, Some(mtu)) = (&self.ipv6, device_mtu(self)) {
                let _ = writeln!(text, "mtu = {mtu}");
            }
        }
    }
}

/// How a link's section begins.
fn advertisement(interface: &str) -> String {
    format!("interface = {interface:?} # its hosts\n")
}

/// RFC 9096 §3.5: prefixes of this link are deprecated, and this host is no longer their router.
fn withdraw(lan: &Lan, text: &mut String) {
    if lan.was_advertised {
        let section = advertisement(&lan.interface);
        let _ = writeln!(
            text,
            "\n[[router_advertisement]]\n{section}prefixes = []\nrouter_lifetime = \"0 s\"\nrdnss = []"
        );
    }
}

fn listed(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::facts::SiteFacts;
    use super::super::lease::LeasedSixRd;
    use super::super::options::{Nat64Option, SiteOptions};
    use super::super::plan::tests::{facts, options};
    use super::*;
    use crate::config::{Config, Lifetime};
    use sixway_control::option_6rd::SixRdOffer;
    use sixway_dataplane::nat::Filtering;
    use std::time::Duration;

    fn config(options: &SiteOptions) -> Config {
        let facts = facts();
        let text = Site::plan(options, &facts).unwrap().configuration();
        let mut none = |_: &Path| Err(std::io::Error::other("no files"));
        let parsed = Config::parse("site.toml", &text, &facts.host, &mut none);
        parsed.unwrap_or_else(|faults| panic!("{faults}\nin\n{text}")).0
    }

    #[test]
    fn a_site_is_a_nat44_behind_ports_of_the_boxs_own_address() {
        let config = config(&options());
        let nat44 = config.nat44.as_ref().unwrap();
        assert_eq!(nat44.interfaces, ["eth1"]);
        assert_eq!(nat44.inside, ["192.168.1.0/24".parse().unwrap()]);
        // RFC 4787 REQ-8, RFC 6146 §3.5: nothing unsolicited comes in.
        let of_nat64 = config.nat64[0].filtering;
        assert_eq!([nat44.filtering, of_nat64], [Filtering::AddressDependent; 2]);
        let pool = config.pool(&nat44.pool).unwrap();
        assert!(pool.shared && pool.interface.as_deref() == Some("eth0"), "{pool:?}");
        assert_eq!(config.router_advertisements.len(), 1);
    }

    #[test]
    fn a_nat64_has_other_ports_of_the_same_address() {
        let mut facts = facts();
        facts.host.resolvers = vec!["192.0.2.53:53".parse().unwrap()];
        let site = Site::plan(&SiteOptions { nat64: Nat64Option::Dns64, ..options() }, &facts).unwrap();
        let text = site.configuration();
        assert!(
            text.contains("ports = \"20000-32767\"") && text.contains("ports = \"61000-65535\""),
            "{text}"
        );
        assert!(text.contains("ipv6_address = \"2001:db8:1::fe\"") && !text.contains("rdnss"), "{text}");
        assert!(site.filter().contains("ip6 saddr 64:ff9b::/96 accept"), "{}", site.filter());
        // The DNS64 is not announced to hosts with IPv4 by default.
        let text = Site::plan(&options(), &facts).unwrap().configuration();
        assert!(text.contains("[dns64]") && text.contains("rdnss = []"), "{text}");
        facts.host.resolvers.clear();
        let text = Site::plan(&options(), &facts).unwrap().configuration();
        assert!(text.contains("[nat64]") && !text.contains("[dns64]"), "{text}");
    }

    #[test]
    fn mappings_by_pcp_are_for_the_lan_and_can_be_left_out() {
        let with = config(&options()).pcp.unwrap();
        assert_eq!(with.interfaces, ["eth1"]);
        assert!(config(&SiteOptions { pcp: false, ..options() }).pcp.is_none());
        // Another program's server stays.
        let taken = SiteFacts { listening: [5_351].into(), ..facts() };
        assert!(!Site::plan(&options(), &taken).unwrap().configuration().contains("[pcp]"));
    }

    #[test]
    fn ports_stay_when_the_plan_is_made_again() {
        let mut facts = facts();
        let before = Site::plan(&options(), &facts).unwrap().configuration();
        facts.listening = [25_565].into();
        let again = Site::plan(&options(), &facts).unwrap();
        assert_ne!(again.configuration(), before);
        assert_eq!(again.continuing(&before).configuration(), before);
    }

    /// Of a box without native IPv6 whose provider leases it an address for this long, with a 6rd domain.
    fn leased(seconds: u32) -> SiteFacts {
        let mut facts = facts();
        facts.host.addresses.retain(|own| own.address.is_ipv4());
        let text = format!(
            "lease {{\ninterface \"eth0\";\nfixed-address 203.0.113.1;\noption dhcp-lease-time {seconds};\n\
             option option-6rd 24 40 2001:db9:: 203.0.113.2;\n}}\n"
        );
        let offer = SixRdOffer::in_dhclient_leases(&text, "eth0").unwrap();
        facts.six_rd = vec![LeasedSixRd { interface: "eth0".into(), offer }];
        facts
    }

    fn parsed(text: &str, facts: &SiteFacts) -> Config {
        let mut none = |_: &Path| Err(std::io::Error::other("no files"));
        let (config, warnings) = Config::parse("site.toml", text, &facts.host, &mut none).unwrap();
        assert!(warnings.is_empty(), "{warnings:?}\nin\n{text}");
        config
    }

    /// RFC 5969 §4. A short lease causes no warning.
    #[test]
    fn a_prefix_of_6rd_is_not_advertised_for_longer_than_the_lease() {
        let seconds = Duration::from_secs;
        for (lease, valid, interval) in
            [(86_400, 5_400, 600), (5_399, 5_399, 600), (1_200, 1_200, 400), (30, 30, 10)]
        {
            let facts = leased(lease);
            // Its address is for documentation, and the well-known prefix must not represent it.
            let without = SiteOptions { nat64: Nat64Option::No, ..options() };
            let text = Site::plan(&without, &facts).unwrap().configuration();
            let config = parsed(&text, &facts);
            let told = &config.router_advertisements[0];
            assert_eq!(told.prefixes[0].valid_lifetime, Lifetime::For(seconds(valid)), "{text}");
            assert_eq!(told.max_interval, seconds(interval), "{text}");
            assert!(text.contains("ipv4_common = \"203.0.113.0/24\""), "{text}");
        }
    }

    /// RFC 9096 §3.4.
    #[test]
    fn a_native_prefix_is_forgotten_soon_when_the_provider_takes_it_away() {
        let told = &config(&options()).router_advertisements[0].prefixes[0];
        assert_eq!(told.valid_lifetime, Lifetime::For(Duration::from_secs(5_400)));
        assert_eq!(told.preferred_lifetime, Lifetime::For(Duration::from_secs(2_700)));
    }

    /// RFC 9096 §3.5: the section stays, so that prefixes are deprecated; a link that was never advertised has none.
    #[test]
    fn a_link_that_was_advertised_is_told_that_ipv6_is_gone() {
        let with = leased(3_600);
        let before = Site::plan(&options(), &with).unwrap().configuration();
        let without = SiteFacts { six_rd: Vec::new(), ..with };
        let fresh = Site::plan(&options(), &without).unwrap();
        assert!(parsed(&fresh.configuration(), &without).router_advertisements.is_empty());
        let text = fresh.continuing(&before).configuration();
        let config = parsed(&text, &without);
        assert!(config.six_rd.is_empty() && config.router_advertisements[0].prefixes.is_empty(), "{text}");
        assert_eq!(config.router_advertisements[0].router_lifetime, Duration::ZERO, "{text}");
        // It stays so.
        let later = Site::plan(&options(), &without).unwrap().continuing(&text).configuration();
        assert_eq!(later, text);
    }

    /// Its prefix and the DNS64's address are those of the tunnel, which the gateway configures on the LAN's interface itself.
    #[test]
    fn a_nat64_behind_a_tunnel_has_the_tunnels_prefix_without_warnings() {
        let mut facts = leased(86_400);
        // A global one, so that the well-known prefix may represent it.
        facts.host.addresses[1].address = "5.6.7.8".parse().unwrap();
        facts.host.resolvers = vec!["192.0.2.53:53".parse().unwrap()];
        let six_rd = "2001:db9::/32,0,5.6.7.1".parse().unwrap();
        let six_to_four = "5.6.7.1".parse().ok();
        for (tunnel, prefix) in [
            (SiteOptions { six_rd, ..options() }, "2001:db9:506:708:"),
            (SiteOptions { six_to_four, ..options() }, "2002:506:708:"),
        ] {
            for nat64 in [Nat64Option::Auto, Nat64Option::Dns64] {
                let site = Site::plan(&SiteOptions { nat64, ..tunnel.clone() }, &facts).unwrap();
                let text = site.configuration();
                parsed(&text, &facts);
                for line in [
                    format!("ipv6_address = \"{prefix}:fe\"\n"),
                    format!("inside = [\"{prefix}:/64\"]\n"),
                    format!("listen = [\"{prefix}:1\"]\n"),
                ] {
                    assert!(text.contains(&line), "{line}{text}");
                }
                assert!(
                    site.filter().contains(&format!("ip6 saddr {prefix}:fe icmpv6")),
                    "{}",
                    site.filter()
                );
                let at = if site.announces_dns64() {
                    "for all hosts".to_owned()
                } else {
                    format!("at {prefix}:1")
                };
                let summary = site.summary(Path::new("x"));
                assert!(summary.contains(&format!("DNS64 {at}")), "{summary}");
            }
            // Without the public address it is not known.
            let mut without = facts.clone();
            without.host.addresses.remove(1);
            let site = Site::plan(&tunnel, &without).unwrap();
            assert!(site.nat64.unwrap().unwrap_err().contains("public address"));
        }
    }

    #[test]
    fn tunnels_of_ipv6_follow_the_address_of_the_interface() {
        let six_rd = "2001:db8::/32,0,198.51.100.1".parse().unwrap();
        let six_rd = config(&SiteOptions { six_rd, ..options() });
        assert_eq!((six_rd.six_rd.len(), six_rd.router_advertisements.len()), (1, 1));
        let relay = "192.88.99.1".parse().ok();
        let six_to_four = config(&SiteOptions { six_to_four: relay, ..options() });
        assert_eq!((six_to_four.six_to_four.len(), six_to_four.router_advertisements.len()), (1, 1));
    }
}
