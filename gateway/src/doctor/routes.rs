//! Routes: to the Internets, into the device, and those that neighbours need.

use super::facts::{Facts, REMOTE6, destination};
use super::finding::Finding;
use super::softwires::Softwire;
use crate::config::{Config, Route};
use crate::host::Hop;
use crate::show::plural;
use sixway_wire::{Prefix4, Prefix6};
use std::net::IpAddr;

const CHECK: &str = "routes";

pub(super) fn check(config: &Config, facts: &Facts) -> Vec<Finding> {
    let mut findings = uplinks(config, facts);
    findings.extend(into_the_device(config, facts));
    findings.extend(pools(config, facts));
    findings.extend(addresses_on_a_link(config, facts));
    findings.extend(prefixes_on_a_link(config, facts));
    findings
}

fn uplinks(config: &Config, facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    if has_outside4(config) {
        findings.push(match &facts.uplink4 {
            Some(Hop { interface, .. }) if *interface == config.tun.name => Finding::warning(
                CHECK,
                format!("IPv4's default route leads into {interface}: translated packets would loop"),
                "ip route add default via ROUTER dev UPLINK",
            ),
            Some(Hop { interface, .. }) => {
                Finding::fine(CHECK, format!("IPv4's default route leads to {interface}"))
            }
            None => Finding::fault(
                CHECK,
                "there is no IPv4 default route: translated packets cannot be forwarded",
                "ip route add default via ROUTER dev UPLINK, unless all IPv4 destinations have other routes",
            ),
        });
    }
    findings.extend(facts.softwires.iter().map(softwire));
    for b4 in config.b4s().filter(|b4| !facts.softwires.iter().any(|it| it.name == b4.name)) {
        let Some(interface) = b4.local.followed_interface() else { continue };
        findings.push(Finding::fault(
            CHECK,
            format!("{}: {interface} has no global IPv6 address, so the softwire has no local end", b4.name),
            format!("find out why {interface} gets none: ip -6 address show dev {interface}"),
        ));
    }
    match &facts.uplink6 {
        Some(Hop { interface, .. }) if config.nat46().is_some() => {
            findings.push(Finding::fine(CHECK, format!("IPv6's default route leads to {interface}")));
        }
        Some(_) => {}
        None if config.nat46().is_some() => findings.push(Finding::fault(
            CHECK,
            "there is no IPv6 default route: the clients of the NAT46 reach no server",
            "ip -6 route add default via ROUTER dev UPLINK, unless all servers have other routes",
        )),
        None if config.translates() || (config.routes_ipv6() && facts.softwires.is_empty()) => {
            findings.push(Finding::warning(
                CHECK,
                "there is no IPv6 default route: hosts inside reach IPv4 only",
                "ip -6 route add default via ROUTER dev UPLINK, if this host has an IPv6 uplink; else [[dns64.rule]] synthesis = \"always\", so that names lead to the translator only",
            ));
        }
        None => {}
    }
    findings
}

/// Whether a mechanism's packets leave to the IPv4 Internet. Those of a B4 and of tunnels leave by the link towards their other end, those
/// of a NAT46 to IPv6.
pub(super) fn has_outside4(config: &Config) -> bool {
    let is_concentrator = config.others.four_over_six.iter().any(|it| it.concentrator().is_some());
    config.translates() || config.has_nat44() || config.aftrs().next().is_some() || is_concentrator
}

/// The way to a tunnel's other end.
fn softwire(it: &Softwire) -> Finding {
    let Softwire { name, remote, whose, to, .. } = it;
    let family = if remote.is_ipv6() { "-6 " } else { "" };
    match (&it.link, *remote == IpAddr::V6(REMOTE6)) {
        (Some(link), false) => {
            Finding::fine(CHECK, format!("{name}: packets to the {whose} leave by {link}"))
        }
        // That of a name, or of a lease: the gateway has it.
        (Some(link), true) => Finding::fine(
            CHECK,
            format!(
                "{name}: the address of the {whose} is not known here; IPv6's default route leads to {link}"
            ),
        ),
        (None, _) if it.is_circle => Finding::fault(
            CHECK,
            format!("{name}: packets to {remote} of the {whose} are routed into the tunnel itself"),
            format!("ip {family}route add {to} via ROUTER dev UPLINK"),
        ),
        (None, true) => Finding::fault(
            CHECK,
            format!("{name}: there is no IPv6 default route towards the {whose}"),
            "ip -6 route add default via ROUTER dev UPLINK",
        ),
        (None, false) => Finding::fault(
            CHECK,
            format!("{name}: there is no route to {to} of the {whose}"),
            format!("ip {family}route add {to} via ROUTER dev UPLINK"),
        ),
    }
}

fn into_the_device(config: &Config, facts: &Facts) -> Vec<Finding> {
    let device = &config.tun.name;
    if !config.needs_device() {
        return Vec::new();
    }
    if !facts.is_running {
        return vec![Finding::not_checked(
            CHECK,
            format!("the gateway does not run: {device} and its routes are not there"),
        )];
    }
    let mut findings = Vec::new();
    for (route, hop) in &facts.routes {
        match hop {
            Some(Hop { interface, .. }) if interface == device => {}
            // RFC 6333 §5.6: native IPv4 has precedence.
            Some(Hop { interface, .. }) if is_default4(*route) && config.b4s().next().is_some() => {
                findings.push(Finding::warning(
                    CHECK,
                    format!("IPv4's default route leads to {interface}, and has precedence over the B4's: no packets use the softwire"),
                    "remove it, unless this is meant: ip route show default",
                ));
            }
            Some(Hop { interface, .. }) => findings.push(Finding::fault(
                CHECK,
                format!("packets to {route} go to {interface}, not to {device}"),
                format!("remove the other route: ip route get {}", destination(*route)),
            )),
            None => findings.push(Finding::fault(
                CHECK,
                format!("there is no route to {route}"),
                format!("restart the gateway, or: ip route add {route} dev {device}"),
            )),
        }
    }
    if findings.is_empty() && !facts.routes.is_empty() {
        findings.push(Finding::fine(CHECK, lead_into(facts.routes.len(), device)));
    }
    findings
}

fn is_default4(route: Route) -> bool {
    matches!(route, Route::V4(prefix) if prefix.length() == 0)
}

/// Addresses of a pool that are on a link are resolved by ARP, and get no answer; the router's own is never ours.
fn pools(config: &Config, facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for pool in config.pools.iter().filter(|pool| !pool.shared) {
        if let Some(Hop { interface, gateway: Some(IpAddr::V4(router)) }) = &facts.uplink4
            && pool.holds(*router)
        {
            findings.push(Finding::fault(
                "pool",
                format!("{router} of pool {} is the router at {interface}", pool.name),
                "take it out of pool.addresses",
            ));
        }
        for own in facts.addresses.iter().filter(|own| own.length < 32 && own.interface != config.tun.name) {
            let IpAddr::V4(address) = own.address else { continue };
            let network = Prefix4::holding(address, own.length);
            // The gateway answers for them itself.
            let mut unanswered = pool.addresses.iter().filter(|_| !pool.proxy_arp);
            if let Some(prefix) = unanswered.find(|prefix| network.overlaps(**prefix)) {
                let proxy = format!("net.ipv4.conf.{}.proxy_arp", own.interface);
                let is_answered = std::fs::read_to_string(format!("/proc/sys/{}", proxy.replace('.', "/")))
                    .is_ok_and(|value| value.trim() == "1");
                if !is_answered {
                    findings.push(Finding::fault(
                        "pool",
                        format!("{prefix} of pool {} is on the link {}: the router there resolves it by ARP, and gets no answer", pool.name, own.interface),
                        format!("proxy_arp = true in the section of pool {}, or a route to {prefix} via this host at the router", pool.name),
                    ));
                }
            }
        }
    }
    findings
}

/// The same of addresses that belong to no pool: mappings of a SIIT, its pools, and the gateway's own.
fn addresses_on_a_link(config: &Config, facts: &Facts) -> Vec<Finding> {
    let is_pools = |prefix: Prefix4| {
        config.pools.iter().any(|pool| pool.addresses.iter().any(|own| own.overlaps(prefix)))
    };
    let routed = config.routes().into_iter().filter_map(|route| match route {
        Route::V4(prefix) if !is_pools(prefix) => Some(prefix),
        Route::V4(_) | Route::V6(_) => None,
    });
    let routed: Vec<Prefix4> = routed.collect();
    let mut findings = Vec::new();
    for own in facts.addresses.iter().filter(|own| own.length < 32 && own.interface != config.tun.name) {
        let IpAddr::V4(address) = own.address else { continue };
        let network = Prefix4::holding(address, own.length);
        let mut on_link = routed.iter().filter(|prefix| {
            !address.is_loopback() && prefix.length() >= own.length && network.overlaps(**prefix)
        });
        let Some(prefix) = on_link.next() else { continue };
        let more = match on_link.count() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let proxy = format!("net.ipv4.conf.{}.proxy_arp", own.interface);
        let is_answered = std::fs::read_to_string(format!("/proc/sys/{}", proxy.replace('.', "/")))
            .is_ok_and(|value| value.trim() == "1");
        if !is_answered {
            findings.push(Finding::fault(
                "address",
                format!("{prefix}{more} of the gateway is on the link {}: hosts there resolve it by ARP, and get no answer", own.interface),
                format!("sysctl -w {proxy}=1, or a route to {prefix} via this host at the router there"),
            ));
        }
    }
    findings
}

/// Hosts of a link look for each of its addresses there, and not at their router.
fn prefixes_on_a_link(config: &Config, facts: &Facts) -> Vec<Finding> {
    let prefixes = config.nat64.iter().map(|nat64| nat64.prefix.prefix());
    let prefixes: Vec<Prefix6> = prefixes
        .chain(config.siit.iter().filter_map(|siit| Some(siit.prefix?.prefix())))
        .chain(config.nat46().map(|nat46| nat46.prefix.prefix()))
        .collect();
    let mut findings = Vec::new();
    for own in facts.addresses.iter().filter(|own| own.interface != config.tun.name) {
        let IpAddr::V6(address) = own.address else { continue };
        let network = Prefix6::holding(address, own.length);
        let on_link = prefixes.iter().filter(|prefix| own.length < 128 && network.overlaps(**prefix));
        for prefix in on_link {
            findings.push(Finding::fault(
                "prefix",
                format!("{prefix} overlaps {network}, which is on the link {}: hosts there look for its addresses by neighbour discovery", own.interface),
                "use a prefix outside of it, such as 64:ff9b::/96 or another /64 of the site",
            ));
        }
    }
    findings
}

fn lead_into(routes: usize, device: &str) -> String {
    let verb = if routes == 1 { "leads" } else { "lead" };
    format!("{} {verb} into {device}", plural(routes as u64, "route"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostAddress;
    use crate::doctor::Verdict;

    fn config(pool: &str, prefix: &str) -> Config {
        let text = format!(
            "[gateway]\nipv4_address = \"192.0.2.254\"\nipv6_address = \"2001:db8::fe\"\n[[pool]]\nname = \"main\"\naddresses = [\"{pool}\"]\n[nat64]\nprefix = \"{prefix}\"\npool = \"main\"\n"
        );
        crate::sample::config(&text)
    }

    fn facts() -> Facts {
        let own = |interface: &str, address: &str, length| HostAddress {
            interface: interface.into(),
            address: address.parse().unwrap(),
            length,
        };
        Facts {
            addresses: vec![own("eth0", "203.0.113.2", 24), own("lan0", "2001:db8:1::1", 64)],
            uplink4: Some(Hop { interface: "eth0".into(), gateway: "203.0.113.1".parse().ok() }),
            uplink6: Some(Hop { interface: "eth0".into(), gateway: None }),
            ..Facts::default()
        }
    }

    fn said(config: &Config, facts: &Facts) -> Vec<String> {
        let bad = |finding: &Finding| matches!(finding.verdict, Verdict::Fault | Verdict::Warning);
        check(config, facts).into_iter().filter(bad).map(|finding| finding.what).collect()
    }

    #[test]
    fn a_pool_and_a_prefix_elsewhere_are_fine() {
        assert_eq!(said(&config("192.0.2.0/28", "64:ff9b::/96"), &facts()), [""; 0]);
    }

    #[test]
    fn a_default_route_into_the_device_is_found() {
        let uplink4 = Some(Hop { interface: "sixway0".into(), gateway: None });
        let looped = Facts { uplink4, ..facts() };
        let said = said(&config("192.0.2.0/28", "64:ff9b::/96"), &looped);
        assert_eq!(said, ["IPv4's default route leads into sixway0: translated packets would loop"]);
    }

    #[test]
    fn a_pool_on_a_link_and_the_routers_address_are_found() {
        let said = said(&config("203.0.113.0/29", "64:ff9b::/96"), &facts());
        assert!(said[0].contains("203.0.113.1 of pool main is the router at eth0"), "{said:?}");
        assert!(said[1].contains("203.0.113.0/29 of pool main is on the link eth0"), "{said:?}");
        let mut config = config("203.0.113.8/29", "64:ff9b::/96");
        let cure = check(&config, &facts()).into_iter().find_map(|finding| finding.cure).unwrap();
        assert!(cure.starts_with("proxy_arp = true in the section of pool main"), "{cure}");
        config.pools[0].proxy_arp = true;
        assert!(check(&config, &facts()).iter().all(|finding| finding.check != "pool"));
    }

    #[test]
    fn a_mapping_and_the_gateways_address_on_a_link_are_found_once() {
        let text = "[gateway]\nipv4_address = \"203.0.113.9\"\nipv6_address = \"2001:db8::fe\"\n[[siit]]\n[[siit.eam]]\nipv4 = \"203.0.113.10\"\nipv6 = \"2001:db8:2::10\"\n";
        let said = said(&crate::sample::config(text), &facts());
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].starts_with("203.0.113.9/32 and 1 more of the gateway is on the link eth0"),
            "{said:?}"
        );
    }

    #[test]
    fn a_prefix_on_a_link_is_found() {
        let said = said(&config("192.0.2.0/28", "2001:db8:1::/96"), &facts());
        assert!(
            said[0].contains("2001:db8:1::/96 overlaps 2001:db8:1::/64, which is on the link lan0"),
            "{said:?}"
        );
    }

    #[test]
    fn without_default_routes_nothing_leaves() {
        let none = Facts { uplink4: None, uplink6: None, ..facts() };
        let said = said(&config("192.0.2.0/28", "64:ff9b::/96"), &none);
        assert!(
            said[0].contains("no IPv4 default route") && said[1].contains("no IPv6 default route"),
            "{said:?}"
        );
    }

    #[test]
    fn a_route_that_leads_elsewhere_is_found() {
        let config = config("192.0.2.0/28", "64:ff9b::/96");
        let hop = |interface: &str| Some(Hop { interface: interface.into(), gateway: None });
        let routes = config.routes();
        let facts = Facts {
            is_running: true,
            routes: vec![(routes[0], hop("sixway0")), (routes[1], hop("eth0")), (routes[2], None)],
            ..facts()
        };
        let said = said(&config, &facts);
        assert!(said[0].contains("go to eth0, not to sixway0"), "{said:?}");
        assert!(said[1].contains("there is no route to"), "{said:?}");
        assert_eq!(said.len(), 2);
    }

    #[test]
    fn one_route_leads_and_several_lead() {
        assert_eq!(lead_into(1, "sixway0"), "1 route leads into sixway0");
        assert_eq!(lead_into(2, "sixway0"), "2 routes lead into sixway0");
    }
}
