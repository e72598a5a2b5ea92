use super::*;
use serde_json::json;

fn chain(hook: &str, policy: &str) -> Value {
    json!({"chain": {"family": "inet", "table": "filter", "name": hook, "type": "filter", "hook": hook, "policy": policy}})
}

fn rule(expr: Value) -> Value {
    json!({"rule": {"family": "inet", "table": "filter", "chain": "forward", "expr": expr}})
}

fn state(states: Value) -> Value {
    json!({"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": states}})
}

fn device(key: &str) -> Value {
    json!({"match": {"op": "==", "left": {"meta": {"key": key}}, "right": "sixway0"}})
}

fn seen(objects: &[Value]) -> Vec<String> {
    let ruleset = json!({"nftables": objects});
    found(&ruleset, "sixway0", false)
        .into_iter()
        .map(|one| format!("{} {}: {}", one.chain, one.why, one.cure))
        .collect()
}

const CURE: &str = "nft insert rule inet filter forward iifname \"sixway0\" accept; \
                    nft insert rule inet filter forward oifname \"sixway0\" accept";

#[test]
fn a_chain_that_drops_what_no_rule_accepts_is_named_with_the_rule_to_add() {
    let known = rule(json!([state(json!(["established", "related"])), {"accept": null}]));
    let said = format!(
        "inet filter forward drops packets that no rule accepts, and the gateway's packets are not tracked: {CURE}"
    );
    assert_eq!(seen(&[chain("forward", "drop"), known.clone()]), std::slice::from_ref(&said));
    let last = rule(json!([{"counter": {"packets": 0, "bytes": 0}}, {"reject": {}}]));
    assert_eq!(seen(&[chain("forward", "accept"), known.clone(), last]), [said]);
    for expr in [
        json!([state(json!(["established", "untracked"])), {"accept": null}]),
        json!([state(json!("untracked")), {"accept": null}]),
        json!([device("oifname"), {"accept": null}]),
    ] {
        assert_eq!(seen(&[chain("forward", "drop"), known.clone(), rule(expr)]), [""; 0]);
    }
}

#[test]
fn a_chain_that_drops_what_is_invalid_is_none_and_one_that_drops_what_is_untracked_is() {
    let invalid = rule(json!([state(json!("invalid")), {"drop": null}]));
    assert_eq!(seen(&[chain("forward", "accept"), invalid.clone()]), [""; 0]);
    let untracked = rule(json!([state(json!(["invalid", "untracked"])), {"drop": null}]));
    let said = format!("inet filter forward drops untracked packets: {CURE}");
    assert_eq!(seen(&[chain("forward", "accept"), untracked]), [said]);
    assert_eq!(seen(&[chain("input", "drop"), chain("output", "drop"), invalid]), [""; 0]);
    assert_eq!(found(&json!({"nftables": [chain("input", "drop")]}), "sixway0", true).len(), 1);
    assert_eq!(found(&Value::Null, "sixway0", true), []);
}

#[test]
fn chains_of_iptables_are_cured_by_iptables() {
    let forward = json!({"chain": {"family": "ip6", "table": "filter", "name": "FORWARD", "hook": "forward", "policy": "drop"}});
    let obstacles = found(&json!({"nftables": [forward]}), "sixway0", false);
    let cure = "ip6tables -I FORWARD -i sixway0 -j ACCEPT; ip6tables -I FORWARD -o sixway0 -j ACCEPT";
    assert_eq!(obstacles[0].cure, cure);
}
