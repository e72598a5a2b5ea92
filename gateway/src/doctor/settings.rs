//! The kernel's settings: forwarding, and reverse path filters.

use super::facts::Facts;
use super::filter_paths::lans4;
use super::finding::Finding;
use crate::config::Config;
use std::collections::BTreeSet;

const CHECK: &str = "forwarding";

pub(super) fn check(config: &Config, facts: &Facts) -> Vec<Finding> {
    judge(config, facts, &|name| {
        let path = format!("/proc/sys/net/{name}");
        std::fs::read_to_string(path).ok().map(|value| value.trim().to_owned())
    })
}

/// `read`: a setting below net/, as `ipv4/conf/eth0/forwarding`.
fn judge(config: &Config, facts: &Facts, read: &dyn Fn(&str) -> Option<String>) -> Vec<Finding> {
    if !config.needs_device() {
        return Vec::new();
    }
    if !facts.is_running {
        return vec![Finding::not_checked(
            CHECK,
            "the gateway does not run: it enables forwarding when it starts",
        )];
    }
    let device = config.tun.name.as_str();
    // A B4's uplink has no IPv4, and a LAN of IPv4 hosts may have no IPv6.
    let lans4 = lans4(config, facts);
    let uplink4 = facts.uplink4.iter().map(|hop| hop.interface.as_str());
    let with4: BTreeSet<&str> = uplink4.chain(lans4.iter().map(String::as_str)).chain([device]).collect();
    let uplink6 = facts.uplink6.iter().map(|hop| hop.interface.as_str());
    let inside = facts.inside.iter().map(|(_, interface)| interface.as_str());
    let with6: BTreeSet<&str> = uplink6.chain(inside).chain([device]).collect();
    let families = [
        ("ipv4", &with4, config.translates() || config.routes_ipv4()),
        ("ipv6", &with6, config.translates() || config.routes_ipv6()),
    ];
    let interfaces: BTreeSet<&str> = with4.union(&with6).copied().collect();
    let mut findings = Vec::new();
    for (family, interfaces, _) in families.into_iter().filter(|(_, _, needed)| *needed) {
        for interface in interfaces {
            let name = format!("{family}/conf/{interface}/forwarding");
            if read(&name).is_some_and(|value| value == "0") {
                findings.push(Finding::fault(
                    CHECK,
                    format!("{interface} does not forward {family} packets"),
                    format!("sysctl -w net.{}=1", name.replace('/', ".")),
                ));
            }
        }
    }
    // The kernel takes the larger of the two (ip-sysctl).
    let filter = |interface: &str| {
        read(&format!("ipv4/conf/{interface}/rp_filter")).and_then(|value| value.parse::<u8>().ok())
    };
    let strictest = filter("all").unwrap_or(0).max(filter(device).unwrap_or(0));
    // 2 is loose: whatever has a route passes, and pools have one.
    let by_device = facts.uplink4.as_ref().is_some_and(|hop| hop.interface == device);
    let has_routed_sources = match (config.b4s().next(), config.nat46()) {
        // Sources of the Internet, and the default route leads there.
        (Some(_), _) => by_device,
        // Sources of the pool.
        (None, Some(_)) => true,
        // Those of the other end's networks, and those that are lent: routes lead to both.
        (None, None) => true,
    };
    let has_others = config.translates() || config.has_nat44() || config.aftrs().next().is_some();
    let is_loose_needed = has_others || (config.routes_ipv4() && !has_routed_sources);
    if is_loose_needed && strictest == 1 {
        findings.push(Finding::fault(
            "reverse path",
            format!("the reverse path filter at {device} is strict: translated packets have sources that are not routed there"),
            format!("sysctl -w net.ipv4.conf.{device}.rp_filter=2"),
        ));
    }
    findings.extend(asymmetric(config, facts, &filter));
    if findings.is_empty() {
        let all: Vec<&str> = interfaces.into_iter().collect();
        findings.push(Finding::fine(CHECK, format!("{} forward", all.join(", "))));
    }
    findings
}

/// A strict filter drops what comes by another uplink than the best route to its source leads to: with two default routes, all of the
/// Internet's packets that come by the second.
fn asymmetric(config: &Config, facts: &Facts, filter: &dyn Fn(&str) -> Option<u8>) -> Vec<Finding> {
    let Some(best) = facts.uplink4.as_ref().map(|hop| hop.interface.as_str()) else { return Vec::new() };
    if !(config.translates() || config.routes_ipv4() || config.has_tunnels()) {
        return Vec::new();
    }
    let others: BTreeSet<&str> =
        facts.defaults4.iter().map(String::as_str).filter(|name| *name != best).collect();
    let is_strict = |name: &&str| filter("all").unwrap_or(0).max(filter(name).unwrap_or(0)) == 1;
    others
        .into_iter()
        .filter(|name| *name != config.tun.name)
        .filter(is_strict)
        .map(|name| {
            Finding::fault(
                "reverse path",
                format!("the reverse path filter at {name} is strict, and the best default route leads to {best}: packets of the IPv4 Internet that come by {name} are dropped"),
                format!("sysctl -w net.ipv4.conf.{name}.rp_filter=2"),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostAddress;
    use crate::doctor::Verdict;
    use crate::host::Hop;

    #[test]
    fn what_does_not_forward_and_what_filters_is_found() {
        let text = "[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/28\"]\n[nat64]\nprefix = \"64:ff9b::/96\"\npool = \"main\"\n";
        let config = crate::sample::config(text);
        let facts = Facts {
            is_running: true,
            uplink4: Some(Hop { interface: "eth0".into(), gateway: None }),
            inside: vec![("2001:db8::5157".parse().unwrap(), "lan0".into())],
            ..Facts::default()
        };
        let good = |name: &str| Some(if name.ends_with("rp_filter") { "0" } else { "1" }.to_owned());
        let found = judge(&config, &facts, &good);
        assert_eq!(found, [Finding::fine("forwarding", "eth0, lan0, sixway0 forward")]);
        let bad = |name: &str| match name {
            "ipv4/conf/eth0/forwarding" | "ipv6/conf/lan0/forwarding" => Some("0".to_owned()),
            "ipv4/conf/all/rp_filter" => Some("1".to_owned()),
            other => good(other),
        };
        let found = judge(&config, &facts, &bad);
        let said: Vec<&str> = found.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(said[..2], ["eth0 does not forward ipv4 packets", "lan0 does not forward ipv6 packets"]);
        assert!(said[2].starts_with("the reverse path filter at sixway0 is strict"), "{said:?}");
        let loose = |name: &str| if name.ends_with("rp_filter") { Some("2".to_owned()) } else { good(name) };
        assert_eq!(judge(&config, &facts, &loose)[0].verdict, Verdict::Fine);
        assert!(found.iter().all(|one| one.verdict == Verdict::Fault && one.cure.is_some()));
    }

    #[test]
    fn a_lan_of_ipv4_hosts_forwards_ipv4_and_an_uplink_of_a_b4_need_not() {
        let text = "[ds_lite]\nrole = \"b4\"\nlocal = \"2001:db8:99::b4\"\naftr = \"2001:db8:a::1\"\n";
        let own = |interface: &str, address: &str, length| HostAddress {
            interface: interface.into(),
            address: address.parse().unwrap(),
            length,
        };
        let facts = Facts {
            is_running: true,
            addresses: vec![own("lan0", "192.168.1.1", 24), own("wan0", "2001:db8:99::1", 64)],
            uplink6: Some(Hop { interface: "wan0".into(), gateway: None }),
            ..Facts::default()
        };
        let none = |name: &str| Some(if name.starts_with("ipv6") { "1" } else { "0" }.to_owned());
        let found = judge(&crate::sample::config(text), &facts, &none);
        let said: Vec<&str> = found.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(said, ["lan0 does not forward ipv4 packets", "sixway0 does not forward ipv4 packets"]);
    }

    #[test]
    fn a_strict_filter_at_a_second_uplink_is_found() {
        let text = "[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/28\"]\n[nat64]\nprefix = \"64:ff9b::/96\"\npool = \"main\"\n";
        let config = crate::sample::config(text);
        let facts = Facts {
            is_running: true,
            uplink4: Some(Hop { interface: "eth0".into(), gateway: None }),
            defaults4: vec!["eth0".into(), "eth1".into()],
            ..Facts::default()
        };
        let strict = |name: &str| {
            let filters = name.ends_with("eth0/rp_filter") || name.ends_with("eth1/rp_filter");
            Some(if filters || !name.ends_with("rp_filter") { "1" } else { "0" }.to_owned())
        };
        let found = judge(&config, &facts, &strict);
        assert_eq!(found.len(), 1, "the filter at the best uplink drops nothing: {found:?}");
        assert!(found[0].what.starts_with("the reverse path filter at eth1 is strict"), "{found:?}");
        assert_eq!(found[0].cure.as_deref(), Some("sysctl -w net.ipv4.conf.eth1.rp_filter=2"));
    }
}
