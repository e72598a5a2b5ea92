//! The plan as a table of the packet filter.
//!
//! ```text
//!     from the provider or a tunnel, with a source of the LAN,
//!     or of this host                                                ▶ drop   (before connection tracking)
//!     from the LAN, with a source that is not routed back there      ▶ drop   (BCP 38)
//!     IPv4 from the LAN to the provider that nothing translated      ▶ drop
//!     from the provider or a tunnel: replies to inside hosts         ▶ accept
//!                                    packets of translators          ▶ accept
//!                                    ICMPv6 (RFC 4890 §4.3)          ▶ accept, at a limited rate
//!                                    all others                      ▶ drop
//!     both ways: ICMPv6 that must stay within a site (RFC 4890)       ▶ drop
//! ```
//!
//! Packets to this host itself are not filtered, except for forged sources.

use super::plan::Site;
use std::fmt::Write as _;

/// The table's name. It does not begin as the gateway's own table does (`sixway-NAME`).
pub(super) fn table_name(gateway: &str) -> String {
    format!("sixway_filter_{gateway}")
}

impl Site {
    /// The commands that make the table, or replace it.
    pub(super) fn filter(&self) -> String {
        let name = table_name(&self.name);
        let (wan, device) = (&self.wan, &self.device);
        let lans = quoted(self.lans.iter().map(|lan| lan.interface.as_str()));
        // The outside interfaces of each family. The host's own rules filter IPv4 of other interfaces, such as those of a VPN.
        let outside6 = quoted(self.outside.iter().map(String::as_str));
        let within = format!("icmpv6 type {{ {WITHIN} }} counter drop");
        let strangers4 = quoted([wan, device].map(String::as_str).into_iter());
        let all6 = quoted(self.outside.iter().chain([device]).map(String::as_str));
        let strangers4 = format!("iifname {{ {strangers4} }} meta nfproto ipv4");
        let strangers6 = format!("iifname {{ {all6} }} meta nfproto ipv6");
        let mut text = format!("table inet {name}\ndelete table inet {name}\ntable inet {name} {{\n");
        let mut chain = |name: &str, hook: &str, rules: &[String]| {
            let _ = writeln!(text, "\tchain {name} {{");
            if !hook.is_empty() {
                let _ = writeln!(text, "\t\ttype filter hook {hook}; policy accept;");
            }
            rules.iter().for_each(|rule| {
                let _ = writeln!(text, "\t\t{rule}");
            });
            text.push_str("\t}\n");
        };
        let mut forged = vec![
            format!("{strangers4} fib saddr oifname {{ {lans} }} counter drop"),
            format!("{strangers6} fib saddr oifname {{ {lans} }} counter drop"),
            // Routes to this host's own addresses lead to lo. Packets of a translator may have the public IPv4 address as their
            // source, and neighbours may have the same link-local address.
            format!("iifname \"{wan}\" meta nfproto ipv4 fib saddr type local counter drop"),
            format!("{strangers6} ip6 saddr != fe80::/10 fib saddr type local counter drop"),
        ];
        if let Some(Ok(nat64)) = &self.nat64 {
            // Its errors about packets that it could not translate, such as Packet Too Big, have a source of the LAN's prefix.
            let own = format!("iifname \"{device}\" ip6 saddr {} icmpv6 type {{ {ERRORS} }}", nat64.own);
            forged.insert(0, format!("{own} limit rate 1000/second burst 1000 packets accept"));
        }
        chain("forged", "prerouting priority -310", &forged);
        let mut asked = vec![
            format!("iifname \"{device}\" meta nfproto ipv4 accept"),
            within.clone(),
            "ct state established,related accept".into(),
            // Packets that this host's own rules forward to an inside service.
            "ct status dnat accept".into(),
            // RFC 4890 §4.3.1. Errors of tracked flows are related to these; the gateway's own are about what it forwards.
            format!(
                "iifname \"{device}\" icmpv6 type {{ {ERRORS} }} limit rate 1000/second burst 1000 packets accept"
            ),
            // §4.1: not back to where they came from, such as packets to unused parts of a delegated prefix.
            format!("meta nfproto ipv6 oifname {{ {all6} }} counter drop"),
            "icmpv6 type echo-request limit rate 100/second burst 100 packets accept".into(),
            // §4.3.2: for hosts that visit the site. Connection tracking has not seen their requests.
            format!("icmpv6 type {{ {MOBILITY_REPLIES} }} limit rate 10/second burst 10 packets accept"),
            "counter drop".into(),
        ];
        if let Some(Ok(nat64)) = &self.nat64 {
            asked.insert(1, format!("iifname \"{device}\" ip6 saddr {} accept", nat64.prefix));
        }
        chain("from_outside", "", &asked);
        let mss = "tcp flags & (syn | rst) == syn tcp option maxseg size set rt mtu";
        let forward = [
            format!("iifname {{ {lans} }} fib saddr . iif oif missing counter drop"),
            format!("iifname {{ {lans} }} oifname \"{wan}\" meta nfproto ipv4 counter drop"),
            format!("iifname {{ {lans} }} oifname {{ {all6} }} {within}"),
            format!("iifname {{ {outside6} }} meta nfproto ipv6 {mss}"),
            format!("oifname {{ {outside6} }} meta nfproto ipv6 {mss}"),
            format!("{strangers4} jump from_outside"),
            format!("{strangers6} jump from_outside"),
        ];
        chain("forward", "forward priority 0", &forward);
        text.push_str("}\n");
        text
    }
}

/// Names as nft reads them.
fn quoted<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// ICMPv6 errors.
const ERRORS: &str = "destination-unreachable, packet-too-big, time-exceeded, parameter-problem";

/// RFC 4890 §4.3.5: Router Renumbering, Node Information, and types for experiments and extensions. §4.3.4: Seamoby.
const WITHIN: &str = "100, 101, 127, 138, 139, 140, 150, 200, 201, 255";

/// Home Agent Address Discovery Reply and Mobile Prefix Advertisement (RFC 6275 §6.6, §6.8).
const MOBILITY_REPLIES: &str = "145, 147";

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{facts, options};
    use super::*;

    #[test]
    fn the_table_drops_what_nobody_asked_for_and_names_the_interfaces() {
        let text = Site::plan(&options(), &facts()).unwrap().filter();
        assert!(
            text.starts_with("table inet sixway_filter_site\ndelete table inet sixway_filter_site\n"),
            "{text}"
        );
        for rule in [
            "iifname { \"eth0\", \"sixway0\" } meta nfproto ipv4 fib saddr oifname { \"eth1\" } counter drop",
            "iifname { \"eth0\", \"sixway0\" } meta nfproto ipv6 fib saddr oifname { \"eth1\" } counter drop",
            "iifname \"eth0\" meta nfproto ipv4 fib saddr type local counter drop",
            "iifname { \"eth0\", \"sixway0\" } meta nfproto ipv6 ip6 saddr != fe80::/10 fib saddr type local counter drop",
            "iifname { \"eth0\", \"sixway0\" } meta nfproto ipv4 jump from_outside",
            "iifname { \"eth0\", \"sixway0\" } meta nfproto ipv6 jump from_outside",
        ] {
            assert!(text.contains(rule), "{rule}\nin\n{text}");
        }
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}\nin\n{text}"));
        let returned = "meta nfproto ipv6 oifname { \"eth0\", \"sixway0\" } counter drop";
        assert!(at("ct state established,related accept") < at(returned));
        assert!(at(returned) < at("echo-request limit rate"));
        // Also about a flow.
        let within = format!("icmpv6 type {{ {WITHIN} }} counter drop");
        assert!(at(&format!("\t\t{within}")) < at("ct state established,related accept"));
        assert!(
            text.contains(&format!("iifname {{ \"eth1\" }} oifname {{ \"eth0\", \"sixway0\" }} {within}"))
        );
        assert!(at("echo-request limit rate") < at("\t\tcounter drop"));
        assert!(!text.contains("hook input"), "the box's own services are not filtered: {text}");
    }

    #[test]
    fn the_translators_own_errors_are_not_forged() {
        let text = Site::plan(&options(), &facts()).unwrap().filter();
        let own = "iifname \"sixway0\" ip6 saddr 2001:db8:1::fe icmpv6 type { destination-unreachable, packet-too-big, time-exceeded, parameter-problem } limit rate 1000/second burst 1000 packets accept";
        let drop = "meta nfproto ipv6 fib saddr oifname { \"eth1\" } counter drop";
        assert!(text.find(own).unwrap_or_else(|| panic!("{text}")) < text.find(drop).unwrap(), "{text}");
    }

    /// The host's own rules apply to IPv4 of a VPN that has IPv6's default route.
    #[test]
    fn by_another_default_route_of_ipv6_only_ipv6_comes_from_outside() {
        let mut facts = facts();
        facts.defaults6 = vec!["wg0".into()];
        let text = Site::plan(&options(), &facts).unwrap().filter();
        let named: Vec<&str> = text.lines().filter(|line| line.contains("wg0")).collect();
        let is_ipv6 = |line: &&str| line.contains("meta nfproto ipv6") || line.contains("icmpv6 type");
        assert!(named.len() == 7 && named.iter().all(is_ipv6), "{text}");
    }
}
