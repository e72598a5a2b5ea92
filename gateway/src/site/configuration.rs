//! The plan as a configuration file: `sixway up` runs what `sixway run` would make of it.

use super::nat64::{Dns64, Nat64};
use super::plan::{Ipv6, Site, device_mtu};
use super::ports;
use std::fmt::Write as _;

/// RFC 6052 §2.1: the Well-Known Prefix.
pub(super) const NAT64_PREFIX: &str = "64:ff9b::/96";

/// RFC 9096 §4: ND_VALID_LIMIT and ND_PREFERRED_LIMIT.
const LIFETIMES: &str = "valid_lifetime = \"90 min\", preferred_lifetime = \"45 min\"";

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
        }
        self.nat64(&mut text);
        self.tunnel(&mut text);
        self.advertisements(&mut text);
        if self.fast_path {
            text.push_str("\n[fastpath]\nmode = \"auto\"\n");
        }
        text
    }

    /// The same with the ports of an earlier configuration of it: programs that listen since then are no reason to end sessions.
    pub(super) fn with_ports_of(mut self, before: &str) -> Self {
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

    /// Whether there is a NAT64.
    pub(super) const fn translates_ipv6(&self) -> bool {
        matches!(self.nat64, Some(Ok(_)))
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
        let inside = self.lans.iter().flat_map(|lan| &lan.prefixes).map(|prefix| format!("\"{prefix}\""));
        let listen = self.lans.iter().flat_map(|lan| &lan.addresses).map(|address| format!("\"{address}\""));
        let _ = writeln!(
            text,
            "\n[nat64]\nprefix = \"{NAT64_PREFIX}\"\ninside = [{}]\npool = \"nat64\"\nfiltering = \"address-dependent\"",
            listed(inside)
        );
        match nat64.dns64 {
            Dns64::Announced | Dns64::Listens => {
                let _ = writeln!(text, "\n[dns64]\nlisten = [{}]\nupstream = \"system\"", listed(listen));
            }
            Dns64::None(_) => {}
        }
    }

    fn tunnel(&self, text: &mut String) {
        let wan = &self.wan;
        match &self.ipv6 {
            Ipv6::Native | Ipv6::None(_) => {}
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
            let prefixes: Vec<String> = match &self.ipv6 {
                Ipv6::None(_) => continue,
                Ipv6::Native => {
                    // The provider may delegate another one tomorrow.
                    let entry = |prefix| format!("{{ prefix = \"{prefix}\", {LIFETIMES} }}");
                    lan.prefixes.iter().map(entry).collect()
                }
                Ipv6::SixRd(_) => vec![format!("{{ from = \"six_rd\", subnet = {number} }}")],
                Ipv6::SixToFour(_) => vec![format!("{{ from = \"six_to_four\", subnet = {number} }}")],
            };
            if prefixes.is_empty() {
                continue;
            }
            let interface = &lan.interface;
            let _ = writeln!(
                text,
                "\n[[router_advertisement]]\ninterface = {interface:?}\nprefixes = [{}]",
                prefixes.join(", ")
            );
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

fn listed(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::facts::SiteFacts;
    use super::super::options::{Nat64Option, SiteOptions};
    use super::super::plan::tests::{facts, options};
    use super::*;
    use crate::config::Config;
    use std::path::Path;

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
        // Hosts that keep IPv4 are not told of the DNS64 unasked.
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
        assert_eq!(again.with_ports_of(&before).configuration(), before);
    }

    #[test]
    fn tunnels_of_ipv6_follow_the_address_of_the_interface() {
        let domain = "2001:db8::/32,0,198.51.100.1".parse().unwrap();
        let six_rd = config(&SiteOptions { six_rd: Some(domain), ..options() });
        assert_eq!((six_rd.six_rd.len(), six_rd.router_advertisements.len()), (1, 1));
        let relay = "192.88.99.1".parse().ok();
        let six_to_four = config(&SiteOptions { six_to_four: relay, ..options() });
        assert_eq!((six_to_four.six_to_four.len(), six_to_four.router_advertisements.len()), (1, 1));
    }
}
