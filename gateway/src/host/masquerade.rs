//! The host's own address translation next to a pool that shares its address: masquerading gives connections any port of the address,
//! including those of the pool, and the gateway receives the answers.

use super::nft::{self, NftError};
use serde_json::Value;
use std::ops::RangeInclusive;

/// A rule that may use ports of the gateway's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masquerade {
    /// The chain: family, table, name.
    pub chain: String,
    /// The command that limits its ports.
    pub cure: String,
}

/// The rules that masquerade to ports of these ranges at one of these interfaces (none: at any). Rules of iptables do not show their ports and are left out.
///
/// # Errors
/// nft does not tell.
pub fn masquerades(pool: &[RangeInclusive<u16>], interfaces: &[&str]) -> Result<Vec<Masquerade>, NftError> {
    let ruleset = nft::ruleset()?;
    let mut found = Vec::new();
    for rule in conflicts(&ruleset, pool, interfaces) {
        let part = |key: &str| rule[key].as_str().unwrap_or_default();
        let chain = format!("{} {} {}", part("family"), part("table"), part("chain"));
        let listing = nft::chain(&chain)?;
        let cure = rule["handle"].as_u64().and_then(|handle| cure(&chain, &listing, handle, pool));
        found.push(Masquerade { cure: cure.unwrap_or_else(|| limited(pool)), chain });
    }
    Ok(found)
}

fn conflicts<'r>(ruleset: &'r Value, pool: &[RangeInclusive<u16>], interfaces: &[&str]) -> Vec<&'r Value> {
    let objects = ruleset["nftables"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rules = objects.iter().map(|one| &one["rule"]).filter(|rule| {
        let expressions = rule["expr"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ip4 = matches!(rule["family"].as_str(), Some("ip" | "inet"));
        let has_ports = !expressions.iter().any(|one| excludes_ports(&one["match"]));
        let is_elsewhere = expressions.iter().any(|one| excludes_interfaces(&one["match"], interfaces));
        ip4 && has_ports
            && !is_elsewhere
            && expressions.iter().filter_map(|one| one.get("masquerade")).any(|it| overlaps(it, pool))
    });
    rules.collect()
}

/// Whether a comparison with the name of the interface that a packet leaves by leaves out all of these.
fn excludes_interfaces(comparison: &Value, interfaces: &[&str]) -> bool {
    let key = &comparison["left"]["meta"]["key"];
    if interfaces.is_empty() || (key != "oifname" && key != "oif") {
        return false;
    }
    let right = &comparison["right"];
    let one = std::slice::from_ref(right);
    let listed = right["set"].as_array().map_or(one, Vec::as_slice);
    // A name may end with an asterisk; anything else, such as the name of a set, may be any.
    let names = |interface: &str| {
        listed.iter().any(|it| match it.as_str() {
            Some(name) if name.starts_with('@') => true,
            Some(name) => match name.strip_suffix('*') {
                Some(start) => interface.starts_with(start),
                None => interface == name,
            },
            None => true,
        })
    };
    match comparison["op"].as_str() {
        Some("!=") => {
            let plain = listed.iter().all(|it| it.as_str().is_some_and(|name| !name.starts_with('@')));
            plain && interfaces.iter().all(|interface| names(interface))
        }
        _ => !interfaces.iter().any(|interface| names(interface)),
    }
}

/// Whether a comparison leaves out TCP and UDP.
fn excludes_ports(comparison: &Value) -> bool {
    if comparison["left"]["meta"]["key"] != "l4proto" {
        return false;
    }
    let right = &comparison["right"];
    let one = std::slice::from_ref(right);
    let listed = right["set"].as_array().map_or(one, Vec::as_slice);
    let has = |protocol: &str| listed.iter().any(|it| it == protocol);
    match comparison["op"].as_str() {
        Some("!=") => has("tcp") && has("udp"),
        _ => !has("tcp") && !has("udp"),
    }
}

/// Whether a masquerade statement may choose a port of the pool: without ports it may choose any.
fn overlaps(masquerade: &Value, pool: &[RangeInclusive<u16>]) -> bool {
    let number = |value: &Value| value.as_u64().and_then(|port| u16::try_from(port).ok());
    let port = &masquerade["port"];
    let ports = match (number(port), number(&port["range"][0]), number(&port["range"][1])) {
        (Some(port), _, _) => port..=port,
        (None, Some(first), Some(last)) => first..=last,
        (None, _, _) => return true,
    };
    pool.iter().any(|of_pool| ports.start() <= of_pool.end() && of_pool.start() <= ports.end())
}

/// The command that gives a rule ports, from the chain as nft lists it. A rule for all protocols becomes two: only those with ports
/// can have a range.
fn cure(chain: &str, listing: &str, handle: u64, pool: &[RangeInclusive<u16>]) -> Option<String> {
    let mark = format!(" # handle {handle}");
    let rule = listing.lines().find_map(|line| line.trim().strip_suffix(&mark))?;
    // A quoted name may contain the word, and a quote of the shell's would end the command.
    let (before, after) = split_at_word(rule, "masquerade").filter(|_| !rule.contains('\''))?;
    let with_ports = limited(pool);
    Some(match after.trim_start().strip_prefix("to :") {
        Some(ports) => {
            let after = ports.split_once(' ').map_or(String::new(), |(_, rest)| format!(" {rest}"));
            format!("nft 'replace rule {chain} handle {handle} {before}{with_ports}{after}'")
        }
        None => format!(
            "nft 'insert rule {chain} position {handle} {before}meta l4proto {{ tcp, udp }} {with_ports}{after}; replace rule {chain} handle {handle} {before}meta l4proto != {{ tcp, udp }} masquerade{after}'"
        ),
    })
}

/// What is before and behind a word that stands outside of quotes.
fn split_at_word<'t>(text: &'t str, word: &str) -> Option<(&'t str, &'t str)> {
    let mut quoted = false;
    let mut at = 0;
    for part in text.split_inclusive([' ', '"']) {
        if !quoted && part.trim_end() == word {
            return Some((&text[..at], &text[at + word.len()..]));
        }
        quoted ^= part.ends_with('"');
        at += part.len();
    }
    None
}

/// What masquerades to the ports that the pool leaves.
fn limited(pool: &[RangeInclusive<u16>]) -> String {
    format!("masquerade to :{}", ports_left(pool))
}

/// The longest range of unprivileged ports that the pool leaves, as both programs write it: `1024-60999`.
pub fn ports_left(pool: &[RangeInclusive<u16>]) -> String {
    let mut ranges: Vec<_> = pool.to_vec();
    ranges.sort_by_key(|range| *range.start());
    let (mut best, mut from) = (1_024..=1_024, 1_024_u32);
    let starts = ranges.iter().map(|range| (u32::from(*range.start()), u32::from(*range.end())));
    for (start, last) in starts.chain([(u32::from(u16::MAX) + 1, u32::from(u16::MAX))]) {
        let end = start - 1;
        if end > from && end - from > u32::from(best.end() - best.start()) {
            best = from as u16..=end as u16;
        }
        from = from.max(last + 1);
    }
    format!("{}-{}", best.start(), best.end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_whose_ports_may_be_the_pools_are_found() {
        let rule = |family: &str, masquerade: Value| json!({ "rule": { "family": family, "expr": [{ "masquerade": masquerade }] } });
        let of_protocols = |op: &str, right: Value| {
            let comparison =
                json!({ "match": { "op": op, "left": { "meta": { "key": "l4proto" } }, "right": right } });
            json!({ "rule": { "family": "ip", "expr": [comparison, { "masquerade": null }] } })
        };
        let cases = [
            (rule("ip", Value::Null), true),
            (rule("inet", json!({ "flags": "random" })), true),
            (rule("ip6", Value::Null), false),
            (rule("ip", json!({ "port": { "range": [1024, 60999] } })), false),
            (rule("ip", json!({ "port": { "range": [1024, 61000] } })), true),
            (rule("ip", json!({ "port": 61000 })), true),
            (rule("ip", json!({ "port": 60999 })), false),
            (json!({ "rule": { "family": "ip", "expr": [{ "accept": null }] } }), false),
            (of_protocols("!=", json!({ "set": ["tcp", "udp"] })), false),
            (of_protocols("!=", json!("icmp")), true),
            (of_protocols("==", json!("icmp")), false),
            (of_protocols("==", json!({ "set": ["icmp", "udp"] })), true),
            (json!({ "chain": { "family": "ip", "name": "masquerade" } }), false),
        ];
        for (object, is_found) in cases {
            let ruleset = json!({ "nftables": [object] });
            assert_eq!(!conflicts(&ruleset, &[61_000..=65_535], &[]).is_empty(), is_found, "{ruleset}");
        }
    }

    #[test]
    fn a_rule_for_another_interface_is_no_conflict() {
        let conflict = |key: &str, op: &str, right: Value| {
            let comparison =
                json!({ "match": { "op": op, "left": { "meta": { "key": key } }, "right": right } });
            let rule = json!({ "rule": { "family": "ip", "expr": [comparison, { "masquerade": null }] } });
            let ruleset = json!({ "nftables": [rule] });
            !conflicts(&ruleset, &[61_000..=65_535], &["eth0"]).is_empty()
        };
        assert!(!conflict("oifname", "==", json!("wg0")));
        assert!(!conflict("oif", "==", json!({ "set": ["wg0", "wg1"] })));
        assert!(!conflict("oifname", "!=", json!("eth0")));
        assert!(conflict("oifname", "==", json!("eth0")));
        assert!(conflict("oifname", "==", json!("eth*")));
        assert!(conflict("oifname", "!=", json!("wg0")));
        assert!(conflict("oifname", "==", json!("@wans")));
        assert!(conflict("oifname", "!=", json!("@lans")));
        assert!(conflict("iifname", "==", json!("wg0")), "where it came from says nothing");
    }

    #[test]
    fn the_cure_is_the_same_rule_with_the_other_ports() {
        let pool = [61_000..=65_535];
        let listing = "table ip nat {\n\tchain post { # handle 1\n\t\toifname \"eth0\" counter packets 3 bytes 4 masquerade # handle 4\n\t\t\
                       masquerade to :1024-65535 random # handle 5\n\t\tmasquerade random # handle 6\n\t}\n}\n";
        let cured = |handle| cure("ip nat post", listing, handle, &pool).unwrap();
        assert_eq!(
            cured(4),
            "nft 'insert rule ip nat post position 4 oifname \"eth0\" counter packets 3 bytes 4 meta l4proto { tcp, udp } masquerade to :1024-60999; \
             replace rule ip nat post handle 4 oifname \"eth0\" counter packets 3 bytes 4 meta l4proto != { tcp, udp } masquerade'"
        );
        assert_eq!(cured(5), "nft 'replace rule ip nat post handle 5 masquerade to :1024-60999 random'");
        assert_eq!(
            cured(6),
            "nft 'insert rule ip nat post position 6 meta l4proto { tcp, udp } masquerade to :1024-60999 random; \
             replace rule ip nat post handle 6 meta l4proto != { tcp, udp } masquerade random'"
        );
        assert_eq!(cure("ip nat post", listing, 7, &pool), None);
        // Names may contain the word, and a comment a quote, which the shell would take for its own.
        let listing = "\t\toifname \"masquerade 0\" masquerade # handle 8\n\t\tmasquerade comment \"it's\" # handle 9\n";
        let cured = cure("ip nat post", listing, 8, &pool).unwrap();
        assert!(
            cured.contains(
                "position 8 oifname \"masquerade 0\" meta l4proto { tcp, udp } masquerade to :1024-60999;"
            ),
            "{cured}"
        );
        assert_eq!(cure("ip nat post", listing, 9, &pool), None);
    }

    #[test]
    fn the_longest_range_that_is_left_is_chosen() {
        for (pool, range) in [
            (vec![61_000..=65_535], "1024-60999"),
            (vec![1_024..=32_767], "32768-65535"),
            (vec![1_024..=32_767, 65_535..=65_535], "32768-65534"),
            (vec![65_535..=65_535], "1024-65534"),
            (vec![10_000..=20_000, 50_000..=60_000], "20001-49999"),
            (vec![50_000..=60_000, 443..=443], "1024-49999"),
        ] {
            assert_eq!(limited(&pool), format!("masquerade to :{range}"), "{pool:?}");
        }
    }
}
