//! The keys in which two configurations differ.

use serde_json::Value;
use std::collections::BTreeSet;

/// A key whose value changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its path; sections of a list are named: `pool[main].addresses`, but for the name that is also the key's.
    pub key: String,
    /// The value in force; `None`: it has none.
    pub old: Option<String>,
    /// The value after the reload.
    pub new: Option<String>,
}

/// The keys in which a configuration in force and a new one differ, both as `GET /v1/config` writes them.
pub fn changes(old: &Value, new: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare("", Some(old), Some(new), &mut found);
    found
}

fn compare(key: &str, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<Change>) {
    if old == new {
        return;
    }
    match (parts(old), parts(new)) {
        (Some(olds), Some(news)) if !(olds.is_empty() && news.is_empty()) => {
            let names: BTreeSet<&String> = olds.iter().chain(&news).map(|(name, _)| name).collect();
            let of = |parts: &[(String, &Value)], name: &String| {
                parts.iter().find(|(part, _)| part == name).map(|(_, value)| (*value).clone())
            };
            for name in names {
                let path = match (key, name.starts_with('[')) {
                    ("", _) => name.clone(),
                    // The only section, with the name that it has by default.
                    (key, true) if *name == format!("[{key}]") => key.to_owned(),
                    (key, true) => format!("{key}{name}"),
                    (key, false) => format!("{key}.{name}"),
                };
                compare(&path, of(&olds, name).as_ref(), of(&news, name).as_ref(), found);
            }
        }
        _ => found.push(Change { key: key.into(), old: old.map(shown), new: new.map(shown) }),
    }
}

/// The parts of a section: its keys, or the sections of a list by their names. An absent section has none.
fn parts(value: Option<&Value>) -> Option<Vec<(String, &Value)>> {
    match value {
        None => Some(Vec::new()),
        Some(Value::Object(keys)) => Some(keys.iter().map(|(key, value)| (key.clone(), value)).collect()),
        Some(Value::Array(list)) => {
            list.iter().map(|section| Some((format!("[{}]", section["name"].as_str()?), section))).collect()
        }
        Some(_) => None,
    }
}

/// A value as it is written: a list without its brackets.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(old: Value, new: Value) -> Vec<String> {
        let text = |value: Option<String>| value.unwrap_or_else(|| "–".into());
        let changes = changes(&old, &new).into_iter();
        changes.map(|it| format!("{} {} → {}", it.key, text(it.old), text(it.new))).collect()
    }

    #[test]
    fn keys_are_compared_one_by_one_and_sections_by_their_names() {
        let old = json!({
            "tun": { "mtu": 1500, "name": "sixway0" },
            "pool": [{ "name": "a", "addresses": ["192.0.2.0/28"] }, { "name": "b", "addresses": ["192.0.2.16/28"] }]
        });
        let new = json!({
            "tun": { "mtu": 1480, "name": "sixway0" },
            "pool": [{ "name": "b", "addresses": ["192.0.2.16/28", "192.0.2.32/28"] }, { "name": "a", "addresses": ["192.0.2.0/28"] }],
            "dns64": { "listen": [] }
        });
        assert_eq!(
            told(old.clone(), new),
            [
                "dns64.listen – → ",
                "pool[b].addresses 192.0.2.16/28 → 192.0.2.16/28, 192.0.2.32/28",
                "tun.mtu 1500 → 1480"
            ]
        );
        assert_eq!(told(old.clone(), old.clone()), Vec::<String>::new());
        let without = json!({ "tun": { "mtu": 1500, "name": "sixway0" }, "pool": [{ "name": "a", "addresses": ["192.0.2.0/28"] }] });
        assert_eq!(told(old, without), ["pool[b].addresses 192.0.2.16/28 → –", "pool[b].name b → –"]);
    }

    #[test]
    fn a_section_with_the_name_that_it_has_by_default_is_told_as_it_is_written() {
        let of = |aftr: &str| json!({ "ds_lite": [{ "name": "ds_lite", "aftr": aftr }] });
        assert_eq!(told(of("2001:db8::1"), of("2001:db8::2")), ["ds_lite.aftr 2001:db8::1 → 2001:db8::2"]);
        let named = |mtu: u32| json!({ "ds_lite": [{ "name": "ds_lite", "mtu": 1280 }, { "name": "west", "mtu": mtu }] });
        assert_eq!(told(named(1400), named(1500)), ["ds_lite[west].mtu 1400 → 1500"]);
    }
}
