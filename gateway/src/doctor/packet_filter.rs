//! The packet filter, by experiment: this host's rules are loaded into a network namespace with interfaces of the same names, and packets
//! are sent there on every path that the gateway's packets take.

use super::facts::{Facts, REMOTE4};
use super::finding::Finding;
use super::probe::{Fate, Packet, Plan};
use super::program::run;
use crate::config::{Config, Pool};
use sixway_dataplane::parse::{ACK, SYN};
use sixway_wire::{Ipv4Header, Ipv6Header, TcpHeader, UdpHeader, protocol};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::Command;

const CHECK: &str = "packet filter";
/// Tables that iptables makes in nftables, where it does not print what nft can read.
const OF_IPTABLES: [&str; 5] = ["filter", "nat", "mangle", "raw", "security"];

/// In place of a chain.
const UNNAMED: &str = "";

/// A path that packets take, and the rule that opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PathRule {
    /// Where from and where to, in words.
    name: String,
    /// The comparison of nft.
    nft: String,
    /// That of iptables.
    iptables: String,
    is_ipv6: bool,
}

pub(super) fn check(config: &Config, facts: &Facts) -> Vec<Finding> {
    let rules = match rulesets() {
        Ok(rules) if rules.is_empty() => return vec![Finding::fine(CHECK, "there are no rules")],
        Ok(rules) => rules,
        Err(why) => return vec![Finding::not_checked(CHECK, why)],
    };
    let Some((plan, paths)) = plan(config, facts, rules) else {
        let why = "no [nat64], or no interface inside or outside is known: see routes";
        return vec![Finding::not_checked(CHECK, why)];
    };
    match try_out(&plan) {
        Ok(mut fates) => {
            if plan.rules.iter().any(|(program, _)| program[0].ends_with("-legacy-restore")) {
                name_legacy(&paths, &mut fates);
            }
            judge(config, &paths, &fates)
        }
        Err(why) => vec![Finding::not_checked(CHECK, format!("the rules could not be tried out: {why}"))],
    }
}

/// The kernel's trace does not tell of chains of the former iptables.
fn name_legacy(paths: &[PathRule], fates: &mut [Fate]) {
    for (path, fate) in paths.iter().zip(fates).filter(|(_, fate)| !fate.arrived && fate.dropped_by.is_none())
    {
        let family = if path.is_ipv6 { "ip6tables-legacy" } else { "iptables-legacy" };
        let chain = if path.name.starts_with("queries") { "INPUT" } else { "FORWARD" };
        fate.dropped_by = Some(format!("{family} filter {chain}"));
    }
}

/// Has another process try it in a network namespace of its own.
fn try_out(plan: &Plan) -> Result<Vec<Fate>, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let text = serde_json::to_vec(plan).map_err(|error| error.to_string())?;
    let mut command = Command::new("unshare");
    command.args([
        "--net",
        "--mount",
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        "mount -t sysfs sysfs /sys 2>/dev/null; exec \"$0\" doctor-probe",
    ]);
    let said = run(command.arg(program), &text)?;
    serde_json::from_str(&said).map_err(|error| error.to_string())
}

/// This host's rules, each with the program that reads them.
fn rulesets() -> Result<Vec<(Vec<String>, String)>, String> {
    let tables = run(Command::new("nft").args(["-j", "list", "tables"]), &[])?;
    let tables: serde_json::Value = serde_json::from_str(&tables).map_err(|error| error.to_string())?;
    let (mut own, mut of_iptables) = (String::new(), Vec::new());
    for table in tables["nftables"].as_array().into_iter().flatten().map(|one| &one["table"]) {
        let (Some(family), Some(name)) = (table["family"].as_str(), table["name"].as_str()) else { continue };
        let text = run(Command::new("nft").args(["-s", "list", "table", family, name]), &[])?;
        let by_iptables = OF_IPTABLES.contains(&name)
            && (text.contains("xt match") || text.contains("xt target") || text.contains("iptables-nft"));
        match (by_iptables, family) {
            (true, "ip") => of_iptables.push("iptables"),
            (true, "ip6") => of_iptables.push("ip6tables"),
            (_, _) => own.push_str(&text),
        }
    }
    let mut rules = Vec::new();
    if !own.is_empty() {
        rules.push((vec!["nft".to_owned(), "-f".to_owned(), "-".to_owned()], own));
    }
    of_iptables.sort_unstable();
    of_iptables.dedup();
    for program in of_iptables {
        let text = run(&mut Command::new(format!("{program}-nft-save")), &[])?;
        rules.push((vec![format!("{program}-nft-restore")], text));
    }
    for (program, names) in [("iptables", "ip_tables_names"), ("ip6tables", "ip6_tables_names")] {
        let is_used =
            std::fs::read_to_string(format!("/proc/net/{names}")).is_ok_and(|names| !names.trim().is_empty());
        if is_used {
            let text = run(&mut Command::new(format!("{program}-legacy-save")), &[])?;
            rules.push((vec![format!("{program}-legacy-restore")], text));
        }
    }
    Ok(rules)
}

/// What is tried, and the paths of its packets in the same order. `None`: too little is known of the host.
fn plan(config: &Config, facts: &Facts, rules: Vec<(Vec<String>, String)>) -> Option<(Plan, Vec<PathRule>)> {
    let nat64 = config.nat64.first()?;
    let pool = config.pool(&nat64.pool)?;
    let outside = pool.addresses.first()?.address();
    let port = pool.ports.ranges().first().map(|range| *range.end())?;
    let uplink = facts.outside.clone()?;
    let device = config.tun.name.clone();
    let remote6 = nat64.prefix.embed_any(REMOTE4);
    let mut plan = Plan { rules, ..Plan::default() };
    let mut names: Vec<&str> =
        facts.inside.iter().map(|(_, lan)| lan.as_str()).chain([uplink.as_str(), &device]).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let own = facts.addresses.iter().filter(|own| own.interface == name);
        let own =
            own.filter(|own| !matches!(own.address, IpAddr::V6(address) if address.is_unicast_link_local()));
        plan.interfaces
            .push((name.to_owned(), own.map(|own| format!("{}/{}", own.address, own.length)).collect()));
    }
    plan.routes =
        vec![(format!("{REMOTE4}/32"), uplink.clone()), (nat64.prefix.prefix().to_string(), device.clone())];
    if !pool.shared {
        plan.routes.extend(pool.addresses.iter().map(|prefix| (prefix.to_string(), device.clone())));
    }
    let mut paths = Vec::new();
    let mut mark = 40_000;
    let mut next = || {
        mark += 1;
        mark
    };
    for (host, lan) in &facts.inside {
        plan.routes.push((format!("{host}/128"), lan.clone()));
        let (mark, back) = (next(), next());
        plan.packets.push(forwarded(lan, &device, mark, tcp6((*host, mark), (remote6, 443), SYN)));
        paths.push(path(lan, &device, true, ""));
        plan.packets.push(forwarded(&device, lan, back, tcp6((remote6, back), (*host, mark), SYN | ACK)));
        paths.push(path(&device, lan, true, ""));
    }
    plan.packets.push(forwarded(&device, &uplink, port, tcp4((outside, port), (REMOTE4, 443), SYN)));
    paths.push(path(&device, &uplink, false, ""));
    // To a shared pool, packets are steered before any rule sees them.
    if !pool.shared {
        let back = next();
        plan.packets.push(forwarded(
            &uplink,
            &device,
            back,
            tcp4((REMOTE4, back), (outside, port), SYN | ACK),
        ));
        paths.push(path(&uplink, &device, false, &addresses(pool)));
    }
    let listened = config.dns64.iter().flat_map(|dns64| dns64.listening.listen.iter());
    for (listen, (host, lan)) in listened.filter_map(|listen| Some((*listen, facts.inside.first()?))) {
        let SocketAddr::V6(mut own) = listen else { continue };
        if own.ip().is_loopback() {
            continue;
        }
        if own.ip().is_unspecified() {
            // Any address of the LAN will do.
            let of_lan = facts.addresses.iter().find_map(|it| match it.address {
                IpAddr::V6(address) if it.interface == *lan && !address.is_unicast_link_local() => {
                    Some(address)
                }
                IpAddr::V4(_) | IpAddr::V6(_) => None,
            });
            let Some(of_lan) = of_lan else { continue };
            own.set_ip(of_lan);
        }
        let mark = next();
        let octets = udp6((*host, mark), (*own.ip(), own.port()));
        plan.packets.push(Packet {
            into: lan.clone(),
            expected: None,
            service: Some(own.to_string()),
            mark,
            octets,
        });
        let port = own.port();
        paths.push(PathRule {
            name: format!("queries from {lan} to DNS64 at {listen}"),
            nft: format!("iifname \"{lan}\" meta l4proto {{ tcp, udp }} th dport {port} accept"),
            iptables: format!("-i {lan} -p udp --dport {port} -j ACCEPT"),
            is_ipv6: true,
        });
    }
    Some((plan, paths))
}

fn addresses(pool: &Pool) -> String {
    pool.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn path(from: &str, to: &str, is_ipv6: bool, destinations: &str) -> PathRule {
    let family = if is_ipv6 { "IPv6" } else { "IPv4" };
    let only =
        if destinations.is_empty() { String::new() } else { format!("ip daddr {{ {destinations} }} ") };
    let first = destinations.split(", ").next().filter(|first| !first.is_empty());
    let only_iptables = first.map_or_else(String::new, |first| format!("-d {first} "));
    PathRule {
        name: format!("{family} packets from {from} to {to}"),
        nft: format!("iifname \"{from}\" oifname \"{to}\" {only}accept"),
        iptables: format!("-i {from} -o {to} {only_iptables}-j ACCEPT"),
        is_ipv6,
    }
}

fn forwarded(into: &str, expected: &str, mark: u16, octets: Vec<u8>) -> Packet {
    Packet { into: into.to_owned(), expected: Some(expected.to_owned()), service: None, mark, octets }
}

fn tcp6(source: (Ipv6Addr, u16), destination: (Ipv6Addr, u16), flags: u8) -> Vec<u8> {
    let header = TcpHeader { window: 64_000, ..TcpHeader::new(source.1, destination.1, flags) };
    let header = TcpHeader { acknowledgment: u32::from(flags & ACK != 0), ..header };
    let octets = header.with_checksum6(source.0, destination.0, &[]).octets();
    let ip = Ipv6Header::new(source.0, destination.0, protocol::TCP, octets.len());
    [&Ipv6Header { hop_limit: 64, ..ip }.octets()[..], &octets].concat()
}

fn tcp4(source: (Ipv4Addr, u16), destination: (Ipv4Addr, u16), flags: u8) -> Vec<u8> {
    let header = TcpHeader { window: 64_000, ..TcpHeader::new(source.1, destination.1, flags) };
    let header = TcpHeader { acknowledgment: u32::from(flags & ACK != 0), ..header };
    let octets = header.with_checksum4(source.0, destination.0, &[]).octets();
    let ip = Ipv4Header::new(source.0, destination.0, protocol::TCP, octets.len());
    [&Ipv4Header { ttl: 64, ..ip }.octets()[..], &octets].concat()
}

fn udp6(source: (Ipv6Addr, u16), destination: (Ipv6Addr, u16)) -> Vec<u8> {
    let data = b"sixway doctor";
    let octets = UdpHeader::new(source.1, destination.1, data.len())
        .with_checksum6(source.0, destination.0, data)
        .octets();
    let ip = Ipv6Header::new(source.0, destination.0, protocol::UDP, octets.len() + data.len());
    [&Ipv6Header { hop_limit: 64, ..ip }.octets()[..], &octets, data].concat()
}

fn judge(config: &Config, paths: &[PathRule], fates: &[Fate]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut blocked: BTreeMap<String, Vec<&PathRule>> = BTreeMap::new();
    for (path, fate) in paths.iter().zip(fates) {
        if !fate.arrived {
            let chain = fate.dropped_by.clone().unwrap_or_else(|| UNNAMED.into());
            blocked.entry(chain).or_default().push(path);
        } else if fate.translated {
            findings.push(Finding::warning(
                CHECK,
                format!("{} get another source address: a NAT behind the NAT64", path.name),
                format!("leave the gateway's packets out of the masquerading: nft insert rule TABLE CHAIN iifname \"{}\" accept", config.tun.name),
            ));
        }
    }
    if let Some(unknown) = blocked.remove(UNNAMED) {
        let names: Vec<&str> = unknown.iter().map(|path| path.name.as_str()).collect();
        let what = format!(
            "{}: a packet of the trial did not arrive, and the kernel's trace names no chain that dropped it",
            names.join("; ")
        );
        findings.push(Finding::not_checked(CHECK, what));
    }
    for (chain, paths) in blocked {
        let names: Vec<&str> = paths.iter().map(|path| path.name.as_str()).collect();
        let cures: Vec<String> = paths.iter().map(|path| cure(&chain, path)).collect();
        findings.push(Finding::fault(CHECK, format!("{chain} drops {}", names.join("; ")), cures.join("; ")));
    }
    if findings.is_empty() {
        let names: Vec<&str> = paths.iter().map(|path| path.name.as_str()).collect();
        findings.push(Finding::fine(CHECK, format!("lets pass {}", names.join("; "))));
    }
    findings
}

/// The rule to add to a chain, which opens this path alone.
fn cure(chain: &str, path: &PathRule) -> String {
    let words: Vec<&str> = chain.split(' ').collect();
    let is_upper = |name: &str| name.bytes().all(|octet| !octet.is_ascii_lowercase());
    match words.as_slice() {
        [program @ ("iptables-legacy" | "ip6tables-legacy"), _, name] => {
            format!("{program} -I {name} {}", path.iptables)
        }
        ["ip" | "ip6", "filter", name] if is_upper(name) => {
            // A chain that others maintain is not written into: what it returns to is.
            let program = if path.is_ipv6 { "ip6tables" } else { "iptables" };
            let name = if name.starts_with("DOCKER") { "DOCKER-USER" } else { name };
            format!("{program} -I {name} {}", path.iptables)
        }
        _ => format!("nft insert rule {chain} {}", path.nft),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostAddress;
    use crate::doctor::Verdict;

    fn config() -> Config {
        let text = "[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/28\"]\n[nat64]\nprefix = \"64:ff9b::/96\"\npool = \"main\"\n";
        crate::sample::config(text)
    }

    fn facts() -> Facts {
        Facts {
            addresses: vec![HostAddress {
                interface: "lan0".into(),
                address: "2001:db8:1::1".parse().unwrap(),
                length: 64,
            }],
            outside: Some("eth0".into()),
            inside: vec![("2001:db8:1::5157".parse().unwrap(), "lan0".into())],
            ..Facts::default()
        }
    }

    #[test]
    fn every_path_is_tried_once_and_is_opened_by_a_rule_of_its_own() {
        let (plan, paths) = plan(&config(), &facts(), Vec::new()).unwrap();
        let names: Vec<&str> = paths.iter().map(|path| path.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "IPv6 packets from lan0 to sixway0",
                "IPv6 packets from sixway0 to lan0",
                "IPv4 packets from sixway0 to eth0",
                "IPv4 packets from eth0 to sixway0",
            ]
        );
        assert_eq!(plan.packets.len(), paths.len());
        let mut marks: Vec<u16> = plan.packets.iter().map(|packet| packet.mark).collect();
        marks.sort_unstable();
        marks.dedup();
        assert_eq!(marks.len(), plan.packets.len());
        let fate =
            |arrived, chain: &str| Fate { arrived, translated: false, dropped_by: Some(chain.to_owned()) };
        let found = judge(
            &config(),
            &paths,
            &[
                fate(false, "inet filter forward"),
                fate(true, ""),
                fate(true, ""),
                fate(false, "ip filter FORWARD"),
            ],
        );
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].what, "inet filter forward drops IPv6 packets from lan0 to sixway0");
        assert_eq!(
            found[0].cure.as_deref(),
            Some("nft insert rule inet filter forward iifname \"lan0\" oifname \"sixway0\" accept")
        );
        assert_eq!(
            found[1].cure.as_deref(),
            Some("iptables -I FORWARD -i eth0 -o sixway0 -d 192.0.2.0/28 -j ACCEPT")
        );
        let masqueraded = Fate { arrived: true, translated: true, dropped_by: None };
        let all = [fate(true, ""), fate(true, ""), masqueraded, fate(true, "")];
        assert_eq!(judge(&config(), &paths, &all)[0].verdict, Verdict::Warning);
        let all = [fate(true, ""), fate(true, ""), fate(true, ""), fate(true, "")];
        assert_eq!(judge(&config(), &paths, &all)[0].verdict, Verdict::Fine);
    }

    #[test]
    fn without_an_uplink_nothing_can_be_tried() {
        assert_eq!(plan(&config(), &Facts { outside: None, ..facts() }, Vec::new()), None);
    }
}
