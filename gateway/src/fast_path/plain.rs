//! Whether the kernel's routes follow from destination and ingress, so that a lookup can be cached by these.

use super::octets::{attribute, attributes, number32, text};
use sixway_wire::{Prefix4, Prefix6};
use std::net::{Ipv4Addr, Ipv6Addr};

/// `struct fib_rule_hdr`.
const HEADER: usize = 12;
const FRA_DST: u16 = 1;
const FRA_SRC: u16 = 2;
const FRA_IIFNAME: u16 = 3;
const FRA_PRIORITY: u16 = 6;
const FRA_SUPPRESS_PREFIXLEN: u16 = 14;
const FRA_TABLE: u16 = 15;
const FRA_PROTOCOL: u16 = 21;
const FR_ACT_TO_TBL: u8 = 1;
/// The rule holds for what it does not match.
const FIB_RULE_INVERT: u32 = 2;

/// The fields that the kernel's routes depend on because of a policy rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PolicyRule {
    /// Nothing but destination and ingress.
    Plain,
    /// Sources in this prefix, too.
    BySource4(Prefix4),
    /// The same of IPv6.
    BySource6(Prefix6),
    /// Something else: the rule in a few words.
    Other(String),
}

impl PolicyRule {
    /// Of a rule's message. `tun` is the name of the gateway's device.
    pub(super) fn of(body: &[u8], tun: &str) -> Self {
        let octet = |at: usize| body.get(at).copied().unwrap_or_default();
        let (family, is_v6) = (i32::from(octet(0)), i32::from(octet(0)) == nix::libc::AF_INET6);
        // Multicast routing has rules of its own.
        if family != nix::libc::AF_INET && !is_v6 {
            return Self::Plain;
        }
        let rest = body.get(HEADER..).unwrap_or_default();
        let priority = attribute(rest, FRA_PRIORITY).and_then(|value| number32(value, 0)).unwrap_or(0);
        let (source_length, table) = (octet(2), octet(4));
        // local, main, default: linux/rtnetlink.h.
        let is_usual = matches!((priority, table), (0, 255) | (32_766, 254) | (32_767, 253));
        // This host's own addresses come before everything else.
        let is_known = is_usual || (priority != 0 && table != 255);
        let family = if is_v6 { "-6 " } else { "" };
        let other = || Self::Other(format!("the policy rule of priority {priority} (ip {family}rule)"));
        if !is_known || !is_simple(body, rest, tun) {
            return other();
        }
        if source_length == 0 {
            return Self::Plain;
        }
        match (attribute(rest, FRA_SRC).unwrap_or_default(), is_v6) {
            (source, false) => by_source4(source, source_length),
            (source, true) => by_source6(source, source_length),
        }
        .unwrap_or_else(other)
    }
}

/// Whether a rule leads to a table, and asks for addresses and the incoming interface alone. Not for the loopback interface's, as which the
/// kernel's reverse path filter asks, nor the gateway's device's, as which the programs do.
fn is_simple(body: &[u8], rest: &[u8], tun: &str) -> bool {
    let is_plain = body.get(3) == Some(&0) && body.get(7) == Some(&FR_ACT_TO_TBL);
    let is_inverted = number32(body, 8).is_none_or(|flags| flags & FIB_RULE_INVERT != 0);
    let is_known = |(kind, value): (u16, &[u8])| match kind {
        FRA_DST | FRA_SRC | FRA_PRIORITY | FRA_TABLE | FRA_PROTOCOL => true,
        FRA_IIFNAME => !["lo", tun].contains(&&*text(value)),
        FRA_SUPPRESS_PREFIXLEN => number32(value, 0) == Some(u32::MAX),
        _ => false,
    };
    is_plain && !is_inverted && attributes(rest).all(is_known)
}

/// `None`: questions that name no source would be taken for ones from this prefix.
fn by_source4(source: &[u8], length: u8) -> Option<PolicyRule> {
    let prefix = Prefix4::holding(Ipv4Addr::from(<[u8; 4]>::try_from(source).ok()?), length);
    (!prefix.contains(Ipv4Addr::UNSPECIFIED)).then_some(PolicyRule::BySource4(prefix))
}

/// The same of IPv6.
fn by_source6(source: &[u8], length: u8) -> Option<PolicyRule> {
    let prefix = Prefix6::holding(Ipv6Addr::from(<[u8; 16]>::try_from(source).ok()?), length);
    (!prefix.contains(Ipv6Addr::UNSPECIFIED)).then_some(PolicyRule::BySource6(prefix))
}

/// The known data about the routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Routing {
    /// A policy rule by which routes depend on more than addresses and the incoming interface.
    pub rule: Option<String>,
    /// A multipath route exists, or one that depends on more than the destination.
    pub several: bool,
    /// Sources that policy rules name.
    pub sources4: Vec<Prefix4>,
    /// The same of IPv6.
    pub sources6: Vec<Prefix6>,
}

impl Routing {
    /// Adds a policy rule.
    pub fn note(&mut self, rule: PolicyRule) {
        match rule {
            PolicyRule::Plain => {}
            PolicyRule::BySource4(source) => self.sources4.push(source),
            PolicyRule::BySource6(source) => self.sources6.push(source),
            PolicyRule::Other(what) => self.rule = self.rule.take().or(Some(what)),
        }
    }

    /// Why answers may not be remembered by destination and ingress.
    pub fn why_not(&self) -> Option<String> {
        let route = "a multipath route, or one that depends on more than the destination";
        self.rule.clone().or_else(|| self.several.then(|| route.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast_path::octets::write_attribute;

    /// An attribute: its type and value.
    type Attribute<'a> = (u16, &'a [u8]);

    const FRA_FWMARK: u16 = 10;
    const FRA_OIFNAME: u16 = 17;

    /// A rule to a table, with these attributes behind the priority.
    fn rule(family: u8, lengths: [u8; 2], table: u8, priority: u32, more: &[Attribute<'_>]) -> Vec<u8> {
        let mut body = vec![family, lengths[0], lengths[1], 0, table, 0, 0, FR_ACT_TO_TBL, 0, 0, 0, 0];
        write_attribute(FRA_PRIORITY, &priority.to_ne_bytes(), &mut body);
        write_attribute(FRA_SUPPRESS_PREFIXLEN, &u32::MAX.to_ne_bytes(), &mut body);
        write_attribute(FRA_TABLE, &u32::from(table).to_ne_bytes(), &mut body);
        write_attribute(FRA_PROTOCOL, &[2], &mut body);
        more.iter().for_each(|(kind, value)| write_attribute(*kind, value, &mut body));
        body
    }

    fn said(priority: u32, family: &str) -> PolicyRule {
        PolicyRule::Other(format!("the policy rule of priority {priority} (ip {family}rule)"))
    }

    fn read(body: &[u8]) -> PolicyRule {
        PolicyRule::of(body, "sixway0")
    }

    #[test]
    fn the_usual_rules_are_plain_and_so_are_those_by_addresses_and_incoming_interface() {
        for (family, table, priority) in
            [(2, 255, 0), (2, 254, 32_766), (2, 253, 32_767), (10, 255, 0), (10, 254, 32_766)]
        {
            assert_eq!(read(&rule(family, [0, 0], table, priority, &[])), PolicyRule::Plain);
        }
        assert_eq!(read(&[129, 0, 0, 0, 254, 0, 0, 1, 0, 0, 0, 0]), PolicyRule::Plain, "multicast routing's");
        // The first one has no priority.
        assert_eq!(read(&[2, 0, 0, 0, 255, 0, 0, 1, 0, 0, 0, 0]), PolicyRule::Plain);
        let lan: Attribute<'_> = (FRA_IIFNAME, b"lan0\0");
        let to: Attribute<'_> = (FRA_DST, &[192, 0, 2, 0]);
        assert_eq!(read(&rule(2, [0, 0], 100, 1_000, &[lan])), PolicyRule::Plain);
        assert_eq!(read(&rule(10, [0, 0], 100, 1_000, &[lan])), PolicyRule::Plain);
        assert_eq!(read(&rule(2, [24, 0], 100, 1_000, &[to])), PolicyRule::Plain);
    }

    #[test]
    fn a_rule_names_the_sources_that_routes_depend_on() {
        let (lan, to): (Attribute<'_>, Attribute<'_>) = ((FRA_IIFNAME, b"lan0\0"), (FRA_DST, &[10, 0, 0, 0]));
        let from4: Attribute<'_> = (FRA_SRC, &[192, 168, 0, 0]);
        let private = PolicyRule::BySource4("192.168.0.0/16".parse().unwrap());
        for more in [&[from4][..], &[from4, lan], &[from4, lan, to]] {
            assert_eq!(read(&rule(2, [0, 16], 100, 6_297, more)), private);
        }
        let site: Ipv6Addr = "2001:db8:5::".parse().unwrap();
        let from6 = rule(10, [0, 48], 100, 6_297, &[(FRA_SRC, &site.octets())]);
        assert_eq!(read(&from6), PolicyRule::BySource6("2001:db8:5::/48".parse().unwrap()));
        // A question without a source would be from there.
        assert_eq!(read(&rule(2, [0, 1], 100, 5, &[(FRA_SRC, &[0; 4])])), said(5, ""));
        assert_eq!(read(&rule(10, [0, 3], 100, 5, &[(FRA_SRC, &[0; 16])])), said(5, "-6 "));
        assert_eq!(read(&rule(2, [0, 16], 100, 5, &[])), said(5, ""), "which source?");
    }

    #[test]
    fn every_other_rule_is_named() {
        let lan: Attribute<'_> = (FRA_IIFNAME, b"lan0\0");
        for more in [
            &[(FRA_FWMARK, &[1, 0, 0, 0][..])][..],
            &[lan, (FRA_OIFNAME, b"wan0\0")],
            &[(FRA_IIFNAME, b"lo\0")],
            &[(FRA_IIFNAME, b"sixway0\0")],
            &[(FRA_SUPPRESS_PREFIXLEN, &[0; 4])],
        ] {
            assert_eq!(read(&rule(2, [0, 0], 100, 1_000, more)), said(1_000, ""), "{more:?}");
        }
        // Even with the usual priorities.
        assert_eq!(read(&rule(2, [0, 0], 254, 32_766, &[(FRA_FWMARK, &[1, 0, 0, 0])])), said(32_766, ""));
        // Before or instead of the table of this host's own addresses.
        assert_eq!(read(&rule(2, [0, 0], 100, 0, &[lan])), said(0, ""));
        assert_eq!(read(&rule(10, [0, 0], 255, 100, &[])), said(100, "-6 "));
        for (at, value) in [(3, 16), (7, 6), (8, FIB_RULE_INVERT as u8)] {
            let mut body = rule(2, [0, 0], 254, 32_766, &[]);
            body[at] = value;
            assert_eq!(read(&body), said(32_766, ""), "octet {at}");
        }
    }

    #[test]
    fn the_first_rule_that_is_in_the_way_is_reported_and_all_sources_are_kept() {
        let mut routing = Routing::default();
        let source = "192.168.0.0/16".parse().unwrap();
        for rule in [PolicyRule::Plain, PolicyRule::BySource4(source), said(7, ""), said(8, "")] {
            routing.note(rule);
        }
        assert_eq!(routing.sources4, [source]);
        assert_eq!(routing.why_not(), Some("the policy rule of priority 7 (ip rule)".to_owned()));
    }
}
