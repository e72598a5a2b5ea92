//! Checks the host's own rules: chains that drop untracked packets, and the rule that accepts these.

use super::nft::{self, NftError};
use serde_json::Value;

/// A chain that would drop the gateway's packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The chain: family, table, name.
    pub chain: String,
    /// What it does.
    pub why: &'static str,
    /// The commands that mend it.
    pub cure: String,
}

/// Chains of the hooks `forward` and, if tunnels end here and nothing is steered past it, `input`, that drop what is untracked.
///
/// # Errors
/// nft does not tell.
pub fn obstacles(device: &str, input: bool) -> Result<Vec<Obstacle>, NftError> {
    Ok(found(&nft::ruleset()?, device, input))
}

fn found(ruleset: &Value, device: &str, input: bool) -> Vec<Obstacle> {
    let objects = ruleset["nftables"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rules: Vec<&Value> = objects.iter().map(|one| &one["rule"]).filter(|rule| rule.is_object()).collect();
    let chains = objects.iter().map(|one| &one["chain"]).filter(|chain| {
        let hook = chain["hook"].as_str().unwrap_or_default();
        let family = chain["family"].as_str().unwrap_or_default();
        (hook == "forward" || input && hook == "input") && matches!(family, "inet" | "ip" | "ip6")
    });
    chains.filter_map(|chain| obstacle(chain, &rules, device)).collect()
}

fn obstacle(chain: &Value, rules: &[&Value], device: &str) -> Option<Obstacle> {
    let same = |rule: &&&Value, key: &str, of: &str| rule[key] == chain[of];
    let in_table = rules.iter().filter(|rule| same(rule, "family", "family") && same(rule, "table", "table"));
    let in_table: Vec<&Value> = in_table.copied().collect();
    let mut own = in_table.iter().filter(|rule| rule["chain"] == chain["name"]);
    let drops_untracked = own.clone().any(|rule| drops(rule) && says_state(rule, "untracked"));
    let drops_rest = chain["policy"] == "drop" || own.any(|rule| drops(rule) && !compares(rule));
    // The rule may be in a chain that is jumped to.
    let accepted = in_table.iter().any(|rule| has(rule, "accept") && lets_pass(rule, device));
    let why = match (drops_untracked, drops_rest) {
        (true, _) => "drops untracked packets",
        (false, true) if !accepted => {
            "drops packets that no rule accepts, and the gateway's packets are not tracked"
        }
        (false, _) => return None,
    };
    Some(Obstacle { chain: name(chain), why, cure: cure(chain, device) })
}

fn expressions(rule: &Value) -> &[Value] {
    rule["expr"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn has(rule: &Value, verdict: &str) -> bool {
    expressions(rule).iter().any(|one| one.get(verdict).is_some())
}

fn drops(rule: &Value) -> bool {
    has(rule, "drop") || has(rule, "reject")
}

/// Whether it is for some packets only.
fn compares(rule: &Value) -> bool {
    expressions(rule).iter().any(|one| one.get("match").is_some() || one.get("xt").is_some())
}

fn comparisons(rule: &Value) -> impl Iterator<Item = &Value> {
    expressions(rule).iter().filter_map(|one| one.get("match"))
}

/// Whether a comparison is with this word, alone or in a set.
fn names(comparison: &Value, word: &str) -> bool {
    let right = &comparison["right"];
    let listed = |list: &Value| list.as_array().is_some_and(|all| all.iter().any(|one| one == word));
    comparison["op"] != "!=" && (right == word || listed(right) || listed(&right["set"]))
}

fn says_state(rule: &Value, state: &str) -> bool {
    comparisons(rule).any(|one| one["left"]["ct"]["key"] == "state" && names(one, state))
}

/// Whether it accepts what is untracked, or what comes from or goes to the device. Rules of iptables do not show what they compare.
fn lets_pass(rule: &Value, device: &str) -> bool {
    let of_device = |one: &Value| {
        let key = &one["left"]["meta"]["key"];
        (key == "iifname" || key == "oifname") && names(one, device)
    };
    says_state(rule, "untracked") || comparisons(rule).any(of_device)
}

fn name(chain: &Value) -> String {
    let part = |key: &str| chain[key].as_str().unwrap_or_default();
    format!("{} {} {}", part("family"), part("table"), part("name"))
}

fn cure(chain: &Value, device: &str) -> String {
    let (family, name_) =
        (chain["family"].as_str().unwrap_or_default(), chain["name"].as_str().unwrap_or_default());
    let input = chain["hook"] == "input";
    // The chains that iptables makes; it does not read rules of nft in them.
    let program = match (family, chain["table"].as_str(), name_) {
        ("ip", Some("filter"), "FORWARD" | "INPUT") => Some("iptables"),
        ("ip6", Some("filter"), "FORWARD" | "INPUT") => Some("ip6tables"),
        _ => None,
    };
    match program {
        Some(program) if input => format!("{program} -I {name_} -p 41 -j ACCEPT"),
        Some(program) => {
            format!("{program} -I {name_} -i {device} -j ACCEPT; {program} -I {name_} -o {device} -j ACCEPT")
        }
        None if input => format!("nft insert rule {} meta l4proto 41 accept", name(chain)),
        None => {
            let rule = |key: &str| format!("nft insert rule {} {key} \"{device}\" accept", name(chain));
            format!("{}; {}", rule("iifname"), rule("oifname"))
        }
    }
}

#[cfg(test)]
mod tests;
