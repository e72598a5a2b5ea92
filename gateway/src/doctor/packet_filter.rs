//! The packet filter, by experiment: this host's rules are loaded into a network namespace with interfaces of the same names, and packets
//! are sent there on every path that the gateway's packets take.

use super::facts::Facts;
use super::filter_paths::{PathRule, plan};
use super::finding::Finding;
use super::probe::{Fate, Plan};
use super::program::{run, run_within};
use crate::config::Config;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::time::Duration;

/// The name of findings of this check.
pub const CHECK: &str = "packet filter";
/// Tables that iptables makes in nftables, where it does not print what nft can read.
const OF_IPTABLES: [&str; 5] = ["filter", "nat", "mangle", "raw", "security"];

/// How long the experiment may take: what it waits for packets, twice.
const PATIENCE: Duration = Duration::from_secs(30);

/// In place of a chain.
const UNNAMED: &str = "";

pub(super) fn check(config: &Config, facts: &Facts) -> Vec<Finding> {
    let rules = match rulesets() {
        Ok(rules) if rules.is_empty() => return vec![Finding::fine(CHECK, "there are no rules")],
        Ok(rules) => rules,
        Err(why) => return vec![Finding::not_checked(CHECK, why)],
    };
    let Some((plan, paths)) = plan(config, facts, rules) else {
        let why = match config.others.teredo_client.is_empty() {
            true => {
                "no packet path to test: there is no mechanism, or no inside or outside interface; see routes"
            }
            false => {
                "packets of a Teredo client are this host's own, and no rule of forwarding sees them; see teredo_client"
            }
        };
        return vec![Finding::not_checked(CHECK, why)];
    };
    match try_out(&plan) {
        Ok(mut fates) => {
            if plan.rules.iter().any(|(program, _)| program[0].ends_with("-legacy-restore")) {
                name_legacy(&paths, &mut fates);
            }
            let sources: Vec<String> =
                plan.packets.iter().map(|packet| source(config, &packet.octets)).collect();
            judge(&paths, &fates, &sources)
        }
        Err(why) => vec![Finding::not_checked(CHECK, format!("the rules could not be tested: {why}"))],
    }
}

/// The kernel's trace does not tell of chains of the former iptables.
fn name_legacy(paths: &[PathRule], fates: &mut [Fate]) {
    for (path, fate) in paths.iter().zip(fates).filter(|(_, fate)| !fate.arrived && fate.dropped_by.is_none())
    {
        let family = if path.is_ipv6 { "ip6tables-legacy" } else { "iptables-legacy" };
        let chain = if path.is_input { "INPUT" } else { "FORWARD" };
        fate.dropped_by = Some(format!("{family} filter {chain}"));
    }
}

/// Has another process try it in a network namespace of its own. What that starts ends with it: it is the first process of its own
/// process namespace.
fn try_out(plan: &Plan) -> Result<Vec<Fate>, String> {
    // Not the program's file: that may have been replaced or removed since the gateway started.
    let program = format!("/proc/{}/exe", std::process::id());
    let text = serde_json::to_vec(plan).map_err(|error| error.to_string())?;
    let mut command = Command::new("unshare");
    command.args([
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        "mount -t sysfs sysfs /sys 2>/dev/null; exec \"$0\" doctor-probe",
    ]);
    let said = run_within(command.arg(program), &text, PATIENCE)?;
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
            (_, _) => own.push_str(&without_owner(&text)),
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

/// A table that a process owns, as firewalld does, would end with the process that loads it.
fn without_owner(text: &str) -> String {
    let line = |line: &str| {
        let flags = line.trim().strip_prefix("flags ").filter(|flags| flags.contains("owner"));
        let Some(flags) = flags else { return format!("{line}\n") };
        let others: Vec<&str> = flags
            .trim_end_matches(';')
            .split(',')
            .map(str::trim)
            .filter(|flag| !matches!(*flag, "owner" | "persist"))
            .collect();
        if others.is_empty() { String::new() } else { format!("flags {};\n", others.join(",")) }
    };
    text.lines().map(line).collect()
}

/// Where a packet comes from, as iptables writes it: the addresses of its pool, or itself.
fn source(config: &Config, octets: &[u8]) -> String {
    let part = |from: usize, to: usize| octets.get(from..to);
    match octets.first().map(|first| first >> 4) {
        Some(4) => {
            let octets = part(12, 16).and_then(|it| <[u8; 4]>::try_from(it).ok()).unwrap_or_default();
            let own = Ipv4Addr::from(octets);
            let pool = config.pools.iter().find(|pool| pool.addresses.iter().any(|it| it.contains(own)));
            let all = pool.map(|pool| pool.addresses.iter().map(ToString::to_string).collect::<Vec<_>>());
            all.map_or_else(|| own.to_string(), |all| all.join(","))
        }
        _ => {
            let octets = part(8, 24).and_then(|it| <[u8; 16]>::try_from(it).ok()).unwrap_or_default();
            Ipv6Addr::from(octets).to_string()
        }
    }
}

/// `sources`: of each path's packet, as iptables writes it.
fn judge(paths: &[PathRule], fates: &[Fate], sources: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut blocked: BTreeMap<String, Vec<&PathRule>> = BTreeMap::new();
    let is_blocked = |place: usize| fates.get(place).is_some_and(|fate| !fate.arrived);
    for (place, (path, fate)) in paths.iter().zip(fates).enumerate() {
        // The other path's rule opens this one.
        if path.within.is_some_and(is_blocked) {
            continue;
        }
        if !fate.arrived {
            let chain = fate.dropped_by.clone().unwrap_or_else(|| UNNAMED.into());
            blocked.entry(chain).or_default().push(path);
        } else if fate.translated && !path.is_private {
            let chain = fate.translated_by.as_deref();
            let by = chain.map_or_else(String::new, |chain| format!(" ({chain})"));
            findings.push(Finding::warning(
                CHECK,
                format!("{} get another source address{by}: another NAT is behind the gateway", path.name),
                spared(chain, path, sources.get(place).map_or("", String::as_str)),
            ));
        }
    }
    if let Some(unknown) = blocked.remove(UNNAMED) {
        let names = names(unknown);
        let what = format!(
            "{}: a test packet did not arrive, and the kernel's trace names no chain that dropped it",
            names.join("; ")
        );
        findings.push(Finding::not_checked(CHECK, what));
    }
    for (chain, paths) in blocked {
        let names = names(paths.iter().copied());
        let mut cures: Vec<String> = Vec::new();
        for cure in paths.iter().map(|path| cure(&chain, path)) {
            // Several translators take the same path.
            if !cures.contains(&cure) {
                cures.push(cure);
            }
        }
        findings.push(Finding::fault(CHECK, format!("{chain} drops {}", names.join("; ")), cures.join("; ")));
    }
    if findings.is_empty() {
        let names = names(paths);
        findings.push(Finding::fine(CHECK, format!("lets pass {}", names.join("; "))));
    }
    findings
}

/// The rule to insert before the masquerading one, for this path only. iptables cannot match the incoming interface there.
fn spared(chain: Option<&str>, path: &PathRule, source: &str) -> String {
    let words: Vec<&str> = chain.into_iter().flat_map(|chain| chain.split(' ')).collect();
    let is_upper = |name: &str| name.bytes().all(|octet| !octet.is_ascii_lowercase());
    match (words.as_slice(), path.iptables.splitn(3, ' ').collect::<Vec<_>>().as_slice()) {
        ([_, "nat", name], ["-i", _, rest]) if is_upper(name) => {
            let program = if path.is_ipv6 { "ip6tables" } else { "iptables" };
            format!("{program} -t nat -I {name} -s {source} {rest}")
        }
        ([_, _, _], _) => format!("nft insert rule {} {}", words.join(" "), path.nft),
        (_, _) => format!(
            "accept these packets before the rule that masquerades, from {source} alone; its chain is not known: iptables-legacy -t nat -S, nft list ruleset"
        ),
    }
}

/// The names of paths; several hosts inside take the same.
fn names<'p>(paths: impl IntoIterator<Item = &'p PathRule>) -> Vec<&'p str> {
    let mut names: Vec<&str> = Vec::new();
    for path in paths {
        if !names.contains(&&*path.name) {
            names.push(&path.name);
        }
    }
    names
}

/// The rule to add to a chain, which opens this path alone.
fn cure(chain: &str, path: &PathRule) -> String {
    let words: Vec<&str> = chain.split(' ').collect();
    let is_upper = |name: &str| name.bytes().all(|octet| !octet.is_ascii_lowercase());
    let is_ufw = |name: &str| name.starts_with("ufw");
    let of_iptables = |program: &str, name: &str| {
        let rules = path.iptables.lines().map(|rule| format!("{program} -I {name} {rule}"));
        rules.collect::<Vec<_>>().join("; ")
    };
    match words.as_slice() {
        [program @ ("iptables-legacy" | "ip6tables-legacy"), _, name] => of_iptables(program, name),
        ["ip" | "ip6", "filter", name] if is_upper(name) || is_ufw(name) => {
            // A chain that others maintain is not written into: what it returns to is.
            let program = if path.is_ipv6 { "ip6tables" } else { "iptables" };
            let name = match name {
                name if name.starts_with("DOCKER") => "DOCKER-USER",
                name if is_ufw(name) && path.is_input => "INPUT",
                name if is_ufw(name) => "FORWARD",
                name => name,
            };
            of_iptables(program, name)
        }
        _ => format!("nft insert rule {chain} {}", path.nft),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    fn path(name: &str, within: Option<usize>, is_input: bool) -> PathRule {
        PathRule {
            name: name.into(),
            nft: format!("iifname \"{name}\" accept"),
            iptables: format!("-i {name} -j ACCEPT"),
            is_ipv6: false,
            is_input,
            within,
            is_private: false,
        }
    }

    fn fate(arrived: bool, chain: &str) -> Fate {
        Fate { arrived, dropped_by: Some(chain.to_owned()), ..Fate::default() }
    }

    #[test]
    fn a_blocked_path_has_a_rule_for_its_chain() {
        let paths = [path("a", None, false), path("b", None, false), path("c", None, true)];
        let fates = [fate(false, "inet filter forward"), fate(false, "ip filter FORWARD"), fate(true, "")];
        let found = judge(&paths, &fates, &[]);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].what, "inet filter forward drops a");
        assert_eq!(
            found[0].cure.as_deref(),
            Some("nft insert rule inet filter forward iifname \"a\" accept")
        );
        assert_eq!(found[1].cure.as_deref(), Some("iptables -I FORWARD -i b -j ACCEPT"));
        let cure = |chain: &str, path: &PathRule| super::cure(chain, path);
        assert_eq!(cure("ip filter ufw-before-forward", &paths[0]), "iptables -I FORWARD -i a -j ACCEPT");
        assert_eq!(cure("ip filter ufw-user-input", &paths[2]), "iptables -I INPUT -i c -j ACCEPT");
        assert_eq!(cure("ip filter DOCKER-FORWARD", &paths[0]), "iptables -I DOCKER-USER -i a -j ACCEPT");
    }

    #[test]
    fn errors_are_named_only_where_the_rest_of_the_path_is_open() {
        let paths = [path("a", None, false), path("errors", Some(0), false)];
        let both = [fate(false, "inet f forward"), fate(false, "inet f forward")];
        assert_eq!(judge(&paths, &both, &[])[0].what, "inet f forward drops a");
        let errors = [fate(true, ""), fate(false, "inet f forward")];
        assert_eq!(judge(&paths, &errors, &[])[0].what, "inet f forward drops errors");
    }

    #[test]
    fn a_table_that_a_process_owns_is_loaded_without_its_owner() {
        let set = "\tset s {\n\t\tflags interval\n\t}\n";
        let table = |flags: &str| format!("table inet f {{ # progname firewalld\n{flags}{set}}}\n");
        assert_eq!(without_owner(&table("\tflags owner\n")), table(""));
        assert_eq!(without_owner(&table("\tflags owner,persist\n")), table(""));
        assert_eq!(without_owner(&table("\tflags dormant,owner\n")), table("flags dormant;\n"));
    }

    #[test]
    fn a_masquerade_is_named_with_the_rule_that_leaves_the_gateways_packets_out() {
        let by = |chain: Option<&str>| {
            let path = PathRule {
                nft: "iifname \"sixway0\" oifname \"out0\" accept".into(),
                iptables: "-i sixway0 -o out0 -j ACCEPT".into(),
                ..path("packets", None, false)
            };
            let translated_by = chain.map(str::to_owned);
            let fate = Fate { arrived: true, translated: true, translated_by, ..Fate::default() };
            let found = judge(&[path], &[fate], &["192.0.2.0/28".to_owned()]);
            (found[0].what.clone(), found[0].cure.clone().unwrap())
        };
        let (what, cure) = by(Some("ip nat post"));
        assert_eq!(
            what,
            "packets get another source address (ip nat post): another NAT is behind the gateway"
        );
        assert_eq!(cure, "nft insert rule ip nat post iifname \"sixway0\" oifname \"out0\" accept");
        let (_, cure) = by(Some("ip nat POSTROUTING"));
        assert_eq!(cure, "iptables -t nat -I POSTROUTING -s 192.0.2.0/28 -o out0 -j ACCEPT");
        assert!(by(None).1.starts_with("accept these packets before the rule that masquerades"));
    }

    #[test]
    fn another_source_is_a_warning_and_none_is_fine() {
        let paths = [path("a", None, false)];
        let masqueraded = Fate { arrived: true, translated: true, ..Fate::default() };
        assert_eq!(judge(&paths, std::slice::from_ref(&masqueraded), &[])[0].verdict, Verdict::Warning);
        let private = [PathRule { is_private: true, ..path("a", None, false) }];
        assert_eq!(judge(&private, &[masqueraded], &[])[0].verdict, Verdict::Fine);
        assert_eq!(judge(&paths, &[fate(true, "")], &[])[0].verdict, Verdict::Fine);
    }
}
