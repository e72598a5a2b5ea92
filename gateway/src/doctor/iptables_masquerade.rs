//! Masquerading rules of iptables, which may give connections the ports of a shared pool. The start does not see them.

use super::facts::Facts;
use super::finding::Finding;
use super::program::run;
use crate::config::Config;
use crate::host::ports_left;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::process::Command;

const CHECK: &str = "masquerading";

pub(super) fn check(config: &Config, facts: &Facts) -> Vec<Finding> {
    let shared = config.shared_ports();
    if shared.is_empty() {
        return Vec::new();
    }
    // Without the program there are none of its rules.
    let Ok(rules) = run(Command::new("iptables-save").args(["-t", "nat"]), &[]) else { return Vec::new() };
    let holder = |address| facts.addresses.iter().find(|own| own.address == IpAddr::V4(address));
    let interfaces: Vec<&str> =
        shared.iter().filter_map(|(address, _)| Some(&*holder(*address)?.interface)).collect();
    let ports: Vec<_> = shared.iter().flat_map(|(_, ports)| ports.ranges().iter().cloned()).collect();
    findings(&rules, &interfaces, &ports)
}

fn findings(rules: &str, interfaces: &[&str], pool: &[RangeInclusive<u16>]) -> Vec<Finding> {
    let left = ports_left(pool);
    let mut before: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for rule in rules.lines() {
        before.push(rule);
        let Some((chain, conditions)) = unlimited(rule) else { continue };
        let words: Vec<&str> = conditions.split_whitespace().collect();
        let is_elsewhere = words.windows(2).any(|pair| pair[0] == "-o" && !interfaces.contains(&pair[1]))
            && !conditions.contains("! -o ");
        let limited = |protocol: &str| {
            let first = format!("-A {chain}{conditions} -p {protocol} ");
            before.iter().any(|rule| rule.starts_with(&first) && rule.contains("--to-ports"))
        };
        if is_elsewhere || words.contains(&"-p") || limited("tcp") && limited("udp") {
            continue;
        }
        let cures = ["tcp", "udp"].map(|protocol| {
            format!("iptables -t nat -I {chain}{conditions} -p {protocol} -j MASQUERADE --to-ports {left}")
        });
        found.push(Finding::warning(
            CHECK,
            format!(
                "{rule}: connections may use ports of a shared pool, and the gateway would receive their answers"
            ),
            cures.join("; "),
        ));
    }
    found
}

/// The chain of a masquerading rule without ports, and its conditions, with the space before them.
fn unlimited(rule: &str) -> Option<(&str, &str)> {
    let (before, after) = rule.strip_prefix("-A ")?.split_once(" -j MASQUERADE")?;
    let at = before.find(' ').unwrap_or(before.len());
    (!after.contains("--to-ports")).then(|| before.split_at(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCKER: &str = "-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE";

    fn found(rules: &str) -> Vec<Finding> {
        findings(rules, &["eth0"], &[61_000..=65_535])
    }

    #[test]
    fn a_rule_without_ports_is_found_and_the_rules_before_it_mend_it() {
        let rules = format!("*nat\n:POSTROUTING ACCEPT [0:0]\n{DOCKER}\nCOMMIT\n");
        let warned = found(&rules);
        assert_eq!(warned.len(), 1, "{warned:?}");
        let cure = warned[0].cure.clone().unwrap();
        let of = |protocol: &str| {
            format!(
                "POSTROUTING -s 172.17.0.0/16 ! -o docker0 -p {protocol} -j MASQUERADE --to-ports 1024-60999"
            )
        };
        assert_eq!(cure, format!("iptables -t nat -I {}; iptables -t nat -I {}", of("tcp"), of("udp")));
        let mended = format!("*nat\n-A {}\n-A {}\n{DOCKER}\nCOMMIT\n", of("udp"), of("tcp"));
        assert_eq!(found(&mended), []);
        for protocol in ["udp", "tcp"] {
            assert_eq!(found(&format!("*nat\n-A {}\n{DOCKER}\n", of(protocol))).len(), 1);
        }
        assert_eq!(found(&format!("*nat\n{DOCKER}\n-A {}\n-A {}\n", of("udp"), of("tcp"))).len(), 1);
    }

    #[test]
    fn a_rule_of_another_interface_is_not_found_and_one_of_all_is() {
        assert_eq!(found("-A POSTROUTING -o eth1 -j MASQUERADE\n"), []);
        assert_eq!(found("-A POSTROUTING -o eth0 -j MASQUERADE\n").len(), 1);
        let all = found("-A POSTROUTING -j MASQUERADE --random\n");
        assert!(
            all[0]
                .cure
                .as_deref()
                .unwrap()
                .starts_with("iptables -t nat -I POSTROUTING -p tcp -j MASQUERADE")
        );
    }
}
