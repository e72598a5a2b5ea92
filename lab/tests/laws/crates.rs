//! Which crate may know which: the arrows of the house, read from Cargo itself.

use crate::tree::top;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// What each of our crates may depend on among our own; an arrow that is not here does not exist.
const ARROWS: [(&str, &[&str]); 11] = [
    ("sixway-wire", &[]),
    ("sixway-dataplane", &["sixway-wire"]),
    ("sixway-control", &["sixway-dataplane", "sixway-wire"]),
    ("sixway-link", &["sixway-dataplane", "sixway-wire"]),
    ("sixway-fastpath", &["sixway-dataplane", "sixway-wire"]),
    ("sixway-dns64", &["sixway-control", "sixway-dataplane", "sixway-link"]),
    ("sixway-config", &["sixway-control", "sixway-dataplane", "sixway-wire"]),
    (
        "sixway",
        &[
            "sixway-config",
            "sixway-control",
            "sixway-dataplane",
            "sixway-dns64",
            "sixway-fastpath",
            "sixway-link",
            "sixway-wire",
        ],
    ),
    ("sixway-lab", &["sixway-dataplane", "sixway-link", "sixway-wire"]),
    ("sixway-trial", &["sixway-trial-attribute"]),
    ("sixway-trial-attribute", &[]),
];

/// All that the core may use of other people's: none of it does I/O or reads a clock.
const CORE: [(&str, &[&str]); 3] = [
    ("sixway-wire", &[]),
    ("sixway-dataplane", &["arrayvec", "foldhash"]),
    ("sixway-control", &["domain", "foldhash", "hashbrown", "rand", "arrayvec"]),
];

fn packages() -> Vec<Value> {
    let said = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(top())
        .output()
        .expect("cargo metadata runs");
    let metadata: Value = serde_json::from_slice(&said.stdout).expect("cargo metadata speaks JSON");
    metadata["packages"].as_array().expect("there are packages").clone()
}

fn depends_on(packages: &[Value], name: &str) -> BTreeSet<String> {
    let package = packages.iter().find(|package| package["name"] == name).expect("the crate is there");
    let dependencies = package["dependencies"].as_array().expect("it has a list of dependencies");
    let used = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
    used.filter_map(|dependency| dependency["name"].as_str().map(str::to_owned)).collect()
}

/// Dependencies that are ours or not, beyond those allowed.
fn beyond(used: &BTreeSet<String>, ours: bool, allowed: &[&str]) -> Vec<String> {
    let is_ours = |name: &str| name == "sixway" || name.starts_with("sixway-");
    used.iter().filter(|name| is_ours(name) == ours && !allowed.contains(&name.as_str())).cloned().collect()
}

#[test]
fn arrows_between_crates_point_down() {
    let packages = packages();
    for (name, allowed) in ARROWS {
        assert_eq!(
            beyond(&depends_on(&packages, name), true, allowed),
            Vec::<String>::new(),
            "{name} must not know them"
        );
    }
    let known: BTreeSet<_> = ARROWS.iter().map(|(name, _)| *name).collect();
    let all: BTreeSet<_> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    assert_eq!(all, known, "each crate has its row above");
}

#[test]
fn the_core_uses_nothing_that_could_do_io() {
    let packages = packages();
    for (name, allowed) in CORE {
        assert_eq!(
            beyond(&depends_on(&packages, name), false, allowed),
            Vec::<String>::new(),
            "{name} is pure"
        );
    }
}

#[test]
fn the_core_is_forbidden_the_same_calls_everywhere() {
    let read = |path: &str| std::fs::read_to_string(top().join(path)).expect("it is there");
    assert!(read("dataplane/clippy.toml").contains("std::time::Instant::now"));
    assert_eq!(read("dataplane/clippy.toml"), read("control/clippy.toml"));
}

#[test]
fn a_dependency_too_many_is_seen() {
    let used = BTreeSet::from(["sixway-link".to_owned(), "tokio".to_owned(), "arrayvec".to_owned()]);
    assert_eq!(beyond(&used, true, &["sixway-wire"]), ["sixway-link"]);
    assert_eq!(beyond(&used, false, &["arrayvec"]), ["tokio"]);
}

#[test]
fn unsafe_is_forbidden_by_the_compiler_where_it_has_no_room() {
    let read = |path: &str| std::fs::read_to_string(top().join(path)).expect("it is there");
    assert!(read("Cargo.toml").contains("unsafe_code = \"forbid\""));
    for name in ["wire", "dataplane", "control", "config", "dns64", "gateway", "trial", "trial/attribute"] {
        assert!(
            read(&format!("{name}/Cargo.toml")).contains("[lints]\nworkspace = true"),
            "{name} inherits the lints"
        );
    }
    assert!(read("lab/Cargo.toml").contains("unsafe_code = \"deny\""));
}
