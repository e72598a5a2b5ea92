//! Which crate may know which: the arrows of the house, read from Cargo itself.

use crate::tree::{File, top, tree};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// What each of our crates may depend on among our own; an arrow that is not here does not exist.
const ARROWS: [(&str, &[&str]); 13] = [
    ("sixway-wire", &[]),
    ("sixway-dataplane", &["sixway-wire"]),
    ("sixway-dnssec", &[]),
    ("sixway-control", &["sixway-dataplane", "sixway-dnssec", "sixway-wire"]),
    ("sixway-link", &["sixway-dataplane", "sixway-wire"]),
    ("sixway-fastpath", &["sixway-dataplane", "sixway-wire"]),
    ("sixway-dns64", &["sixway-control", "sixway-dataplane", "sixway-link"]),
    ("sixway-config", &["sixway-control", "sixway-dataplane", "sixway-dnssec", "sixway-wire"]),
    (
        "sixway",
        &[
            "sixway-config",
            "sixway-control",
            "sixway-dataplane",
            "sixway-dns64",
            "sixway-dnssec",
            "sixway-fastpath",
            "sixway-link",
            "sixway-wire",
        ],
    ),
    ("sixway-lab", &["sixway-dataplane", "sixway-link", "sixway-wire"]),
    ("sixway-trial", &["sixway-trial-attribute"]),
    ("sixway-trial-attribute", &[]),
    (
        "sixway-fuzz",
        &[
            "sixway",
            "sixway-config",
            "sixway-control",
            "sixway-dataplane",
            "sixway-dns64",
            "sixway-dnssec",
            "sixway-fastpath",
            "sixway-link",
            "sixway-trial",
            "sixway-wire",
        ],
    ),
];

/// All that the core may use of other people's: none of it does I/O or reads a clock.
const CORE: [(&str, &[&str]); 4] = [
    ("sixway-wire", &[]),
    ("sixway-dataplane", &["arrayvec", "foldhash"]),
    ("sixway-dnssec", &["domain"]),
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
    for name in ["control", "dnssec"] {
        assert_eq!(read("dataplane/clippy.toml"), read(&format!("{name}/clippy.toml")), "{name}");
    }
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
    for name in
        ["wire", "dataplane", "dnssec", "control", "config", "dns64", "gateway", "trial", "trial/attribute"]
    {
        assert!(
            read(&format!("{name}/Cargo.toml")).contains("[lints]\nworkspace = true"),
            "{name} inherits the lints"
        );
    }
    assert!(read("lab/Cargo.toml").contains("unsafe_code = \"deny\""));
}

/// Files of tests that no program of their crate holds: they would not run.
fn tests_of_no_program(files: &[&File], folder: &str, manifest: &str) -> Vec<String> {
    let holds = |holder: String, name: &str| {
        let file = files.iter().find(|file| file.path == holder);
        file.is_some_and(|file| {
            file.text.lines().any(|line| line.trim_start_matches("pub ") == format!("mod {name};"))
        })
    };
    let is_lost = |path: &str| {
        let within = path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix(".rs")).unwrap_or(path);
        let (above, name) = within.rsplit_once('/').unwrap_or(("", within));
        let is_program = match above {
            "" => name == "main" || manifest.contains(&format!("[[test]]\nname = \"{name}\"\n")),
            _ => manifest.contains(&format!("path = \"tests/{within}.rs\"")),
        };
        let holders = match above {
            "" => vec![format!("{folder}main.rs")],
            _ => ["/mod.rs", "/main.rs", ".rs"].map(|end| format!("{folder}{above}{end}")).to_vec(),
        };
        !is_program && !holders.into_iter().any(|holder| holds(holder, name))
    };
    let paths = files.iter().filter(|file| file.is_rust()).filter_map(|file| {
        file.path.strip_prefix(folder).filter(|path| is_lost(path)).map(|_| file.path.clone())
    });
    paths.collect()
}

/// The folders of the crates, each with its manifest.
fn manifests() -> Vec<(String, String)> {
    let paths =
        tree().iter().filter(|file| file.path.ends_with("/Cargo.toml") && !file.path.starts_with("fuzz/"));
    paths.map(|file| (file.path.replace("Cargo.toml", ""), file.text.clone())).collect()
}

#[test]
fn every_file_of_tests_is_part_of_a_program_that_runs() {
    let files: Vec<_> = tree().iter().collect();
    for (folder, manifest) in manifests() {
        let lost = tests_of_no_program(&files, &format!("{folder}tests/"), &manifest);
        assert!(lost.is_empty(), "in no program, they do not run: {lost:?}");
    }
}

#[test]
fn a_file_of_tests_that_is_in_no_program_is_seen() {
    let files = [
        File::sample("a/tests/main.rs", "mod one;\nmod two;\n"),
        File::sample("a/tests/one.rs", ""),
        File::sample("a/tests/two/mod.rs", "pub mod three;\n"),
        File::sample("a/tests/two/three.rs", ""),
        File::sample("a/tests/two/four.rs", ""),
        File::sample("a/tests/five/main.rs", ""),
        File::sample("a/tests/six/main.rs", ""),
        File::sample("a/tests/alone.rs", ""),
        File::sample("a/tests/lost.rs", ""),
    ];
    let manifest = "[[test]]\nname = \"alone\"\n\n[[test]]\nname = \"five\"\npath = \"tests/five/main.rs\"\n";
    let lost = tests_of_no_program(&files.iter().collect::<Vec<_>>(), "a/tests/", manifest);
    assert_eq!(lost, ["a/tests/two/four.rs", "a/tests/six/main.rs", "a/tests/lost.rs"]);
}

/// Our harness knows no test of another attribute, and would leave it out without a word.
#[test]
fn tests_of_our_harness_have_its_attribute() {
    for (folder, _) in manifests().iter().filter(|(_, manifest)| manifest.contains("harness = false")) {
        for file in tree().iter().filter(|file| file.path.starts_with(&format!("{folder}tests/"))) {
            assert!(!file.text.lines().any(|line| line.trim() == "#[tokio::test]"), "{}", file.path);
            let is_ours = file.text.contains("\nfn main() {") && file.text.contains("sixway_trial::main");
            let takes = file.text.contains("#[macro_use]\nextern crate sixway_trial;\n");
            assert!(!is_ours || takes, "{}: its tests are the standard ones, which nobody runs", file.path);
        }
    }
}

/// Whether documentation holds an example that `cargo test` would run.
fn has_example(file: &File) -> bool {
    let comments = file.text.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
    });
    let mut within = false;
    comments.filter_map(|line| line.trim_start().strip_prefix("```")).any(|language| {
        within = !within;
        within && (language.is_empty() || language.starts_with("rust") || language.contains("no_run"))
    })
}

#[test]
fn crates_whose_examples_are_not_run_have_none() {
    for (folder, _) in manifests().iter().filter(|(_, manifest)| manifest.contains("doctest = false")) {
        let with =
            tree().iter().filter(|file| file.is_rust() && file.path.starts_with(&format!("{folder}src/")));
        let with: Vec<_> = with.filter(|file| has_example(file)).map(|file| &file.path).collect();
        assert!(with.is_empty(), "{with:?}");
    }
    assert!(has_example(&File::sample("a.rs", "/// ```\n/// x();\n/// ```\n")));
    assert!(!has_example(&File::sample("a.rs", "/// ```text\n/// x();\n/// ```\n")));
}
