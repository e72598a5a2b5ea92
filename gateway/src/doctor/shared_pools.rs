//! Addresses of shared pools: this host must have them on the interface towards the Internet.

use super::facts::Facts;
use super::finding::Finding;
use crate::config::{Config, Pool};
use crate::host::Hop;
use std::net::{IpAddr, Ipv4Addr};

const CHECK: &str = "pool";

pub(super) fn check(config: &Config, facts: &Facts) -> Vec<Finding> {
    let shared = config.pools.iter().filter(|pool| pool.shared);
    shared.flat_map(|pool| of_pool(pool, facts)).collect()
}

fn of_pool(pool: &Pool, facts: &Facts) -> Vec<Finding> {
    match &pool.interface {
        Some(interface) if pool.addresses.is_empty() => vec![Finding::fault(
            CHECK,
            format!("{} has no IPv4 address, and pool {} therefore no ports", interface, pool.name),
            format!("check that {interface} is up and gets one (ip -4 address show dev {interface})"),
        )],
        Some(_) | None => {
            pool.addresses.iter().filter_map(|own| of_address(pool, own.address(), facts)).collect()
        }
    }
}

fn of_address(pool: &Pool, address: Ipv4Addr, facts: &Facts) -> Option<Finding> {
    let name = &pool.name;
    let holder = facts.addresses.iter().find(|own| own.address == IpAddr::V4(address));
    let Some(holder) = holder.map(|own| &own.interface) else {
        return Some(Finding::fault(
            CHECK,
            format!("no interface has {address} of the shared pool {name}"),
            format!(
                "ip address add {address}/32 dev INTERFACE, or interface = \"INTERFACE\" in place of addresses"
            ),
        ));
    };
    let Some(Hop { interface: uplink, .. }) = &facts.uplink4 else { return None };
    if holder == uplink || holder == "lo" || facts.defaults4.contains(holder) {
        return None;
    }
    let what = format!(
        "pool {name} shares {address} of {holder}, but packets to the Internet leave by {uplink}: answers to {address} do not come back there"
    );
    let cure = match &pool.interface {
        Some(_) => format!("interface = \"{uplink}\" in the section of pool {name}"),
        None => format!(
            "the address of {uplink} in the section of pool {name}: interface = \"{uplink}\" in place of addresses"
        ),
    };
    // Networks beyond the uplink may have a route to a public address of another interface, hardly to a private one.
    Some(match address.is_private() {
        true => Finding::fault(CHECK, what, cure),
        false => Finding::warning(
            CHECK,
            what,
            format!("{cure}; nothing, if the routers beyond {uplink} have a route to {address}"),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostAddress;
    use crate::doctor::Verdict;

    fn found(pool: &str, uplink: &str) -> Vec<(Verdict, String, String)> {
        let text = format!(
            "[gateway]\nipv4_address = \"192.0.2.254\"\nipv6_address = \"2001:db8::fe\"\n[[pool]]\nname = \"main\"\nshared = true\nports = \"61000-65535\"\n\
             {pool}\n[nat64]\nprefix = \"64:ff9b::/96\"\ninside = [\"2001:db8:1::/64\"]\npool = \"main\"\n"
        );
        let own = |interface: &str, address: &str| HostAddress {
            interface: interface.into(),
            address: address.parse().unwrap(),
            length: 24,
        };
        let facts = Facts {
            addresses: vec![
                own("eth0", "203.0.113.2"),
                own("lan0", "192.168.1.1"),
                own("eth1", "198.51.100.2"),
            ],
            uplink4: Some(Hop { interface: uplink.into(), gateway: None }),
            defaults4: vec![uplink.into()],
            ..Facts::default()
        };
        let findings = check(&crate::sample::config(&text), &facts);
        findings.into_iter().map(|one| (one.verdict, one.what, one.cure.unwrap_or_default())).collect()
    }

    #[test]
    fn an_address_of_the_uplink_is_fine() {
        assert_eq!(found("addresses = [\"203.0.113.2\"]", "eth0"), []);
    }

    #[test]
    fn an_address_of_another_interface_or_of_none_is_found() {
        let lan = found("addresses = [\"192.168.1.1\"]", "eth0");
        assert_eq!(lan.len(), 1, "{lan:?}");
        assert_eq!(lan[0].0, Verdict::Fault);
        assert!(
            lan[0].1.starts_with(
                "pool main shares 192.168.1.1 of lan0, but packets to the Internet leave by eth0"
            )
        );
        assert!(lan[0].2.contains("interface = \"eth0\" in place of addresses"), "{lan:?}");
        assert_eq!(found("addresses = [\"198.51.100.2\"]", "eth0")[0].0, Verdict::Warning);
        let none = found("addresses = [\"203.0.113.9\"]", "eth0");
        assert_eq!(none[0].1, "no interface has 203.0.113.9 of the shared pool main");
        let waits = found("interface = \"ppp0\"", "eth0");
        assert_eq!(waits[0].1, "ppp0 has no IPv4 address, and pool main therefore no ports");
    }
}
