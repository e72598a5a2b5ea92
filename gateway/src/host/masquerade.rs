//! The host's own address translation next to a pool that shares its address: masquerading gives connections any port of the address,
//! also those of the pool, and the gateway takes the answers.

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

/// The rules that masquerade to ports of these ranges. Rules of iptables do not show their ports and are left out.
///
/// # Errors
/// nft does not tell.
pub fn masquerades(pool: &[RangeInclusive<u16>]) -> Result<Vec<Masquerade>, NftError> {
    let ruleset = nft::ruleset()?;
    let mut found = Vec::new();
    for rule in conflicts(&ruleset, pool) {
        let part = |key: &str| rule[key].as_str().unwrap_or_default();
        let chain = format!("{} {} {}", part("family"), part("table"), part("chain"));
        let listing = nft::chain(&chain)?;
        let cure = rule["handle"].as_u64().and_then(|handle| cure(&chain, &listing, handle, pool));
        found.push(Masquerade { cure: cure.unwrap_or_else(|| limited(pool)), chain });
    }
    Ok(found)
}

fn conflicts<'r>(ruleset: &'r Value, pool: &[RangeInclusive<u16>]) -> Vec<&'r Value> {
    let objects = ruleset["nftables"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rules = objects.iter().map(|one| &one["rule"]).filter(|rule| {
        let expressions = rule["expr"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ip4 = matches!(rule["family"].as_str(), Some("ip" | "inet"));
        ip4 && expressions.iter().filter_map(|one| one.get("masquerade")).any(|it| overlaps(it, pool))
    });
    rules.collect()
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

/// The command that replaces the rule by one with ports, from the chain as nft lists it.
fn cure(chain: &str, listing: &str, handle: u64, pool: &[RangeInclusive<u16>]) -> Option<String> {
    let mark = format!(" # handle {handle}");
    let rule = listing.lines().find_map(|line| line.trim().strip_suffix(&mark))?;
    let (before, after) = rule.split_once("masquerade")?;
    let after = after
        .trim_start()
        .strip_prefix("to :")
        .map_or(after, |rest| rest.split_once(' ').map_or("", |(_, rest)| rest));
    let rule = format!(
        "{before}{}{}{after}",
        limited(pool),
        if after.starts_with(' ') || after.is_empty() { "" } else { " " }
    );
    Some(format!("nft 'replace rule {chain} handle {handle} {}'", rule.trim_end()))
}

/// The longest range of unprivileged ports that the pool leaves.
fn limited(pool: &[RangeInclusive<u16>]) -> String {
    let mut ranges: Vec<_> = pool.to_vec();
    ranges.sort_by_key(|range| *range.start());
    let (mut best, mut from) = (1_024..=1_024, 1_024_u32);
    for range in ranges.iter().chain([&(u16::MAX..=u16::MAX)]) {
        let end = u32::from(*range.start()).saturating_sub(u32::from(range.start() != &u16::MAX));
        if end > from && end - from > u32::from(best.end() - best.start()) {
            best = from as u16..=end as u16;
        }
        from = from.max(u32::from(*range.end()) + 1);
    }
    format!("masquerade to :{}-{}", best.start(), best.end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_whose_ports_may_be_the_pools_are_found() {
        let rule = |family: &str, masquerade: Value| json!({ "rule": { "family": family, "expr": [{ "masquerade": masquerade }] } });
        let cases = [
            (rule("ip", Value::Null), true),
            (rule("inet", json!({ "flags": "random" })), true),
            (rule("ip6", Value::Null), false),
            (rule("ip", json!({ "port": { "range": [1024, 60999] } })), false),
            (rule("ip", json!({ "port": { "range": [1024, 61000] } })), true),
            (rule("ip", json!({ "port": 61000 })), true),
            (rule("ip", json!({ "port": 60999 })), false),
            (json!({ "rule": { "family": "ip", "expr": [{ "accept": null }] } }), false),
            (json!({ "chain": { "family": "ip", "name": "masquerade" } }), false),
        ];
        for (object, is_found) in cases {
            let ruleset = json!({ "nftables": [object] });
            assert_eq!(!conflicts(&ruleset, &[61_000..=65_535]).is_empty(), is_found, "{ruleset}");
        }
    }

    #[test]
    fn the_cure_is_the_same_rule_with_the_other_ports() {
        let pool = [61_000..=65_535];
        let listing = "table ip nat {\n\tchain post { # handle 1\n\t\toifname \"eth0\" counter packets 3 bytes 4 masquerade # handle 4\n\t\t\
                       masquerade to :1024-65535 random # handle 5\n\t\tmasquerade random # handle 6\n\t}\n}\n";
        let cured = |handle| cure("ip nat post", listing, handle, &pool);
        let expected = "nft 'replace rule ip nat post handle 4 oifname \"eth0\" counter packets 3 bytes 4 masquerade to :1024-60999'";
        assert_eq!(cured(4).as_deref(), Some(expected));
        assert_eq!(
            cured(5).as_deref(),
            Some("nft 'replace rule ip nat post handle 5 masquerade to :1024-60999 random'")
        );
        assert_eq!(
            cured(6).as_deref(),
            Some("nft 'replace rule ip nat post handle 6 masquerade to :1024-60999 random'")
        );
        assert_eq!(cured(7), None);
    }

    #[test]
    fn the_longest_range_that_is_left_is_chosen() {
        for (pool, range) in [
            (vec![61_000..=65_535], "1024-60999"),
            (vec![1_024..=32_767], "32768-65535"),
            (vec![10_000..=20_000, 50_000..=60_000], "20001-49999"),
            (vec![50_000..=60_000, 443..=443], "1024-49999"),
        ] {
            assert_eq!(limited(&pool), format!("masquerade to :{range}"), "{pool:?}");
        }
    }
}
