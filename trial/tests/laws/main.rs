//! The house's laws, as far as a machine can check them in addition to clippy: each rule is a function over the tree's files, tried on samples that
//! break it before it is trusted with the tree.

mod arrows;
mod crates;
mod documents;
mod rules;
mod tree;

use rules::{Fault, Rule};
use tree::{File, tree};

/// Every fault of one rule in the whole tree.
fn faults_of(rule: Rule) -> Vec<Fault> {
    tree().iter().flat_map(rule).collect()
}

fn nothing_breaks(rule: Rule) {
    let faults = faults_of(rule);
    let lines: String = faults.iter().map(|fault| format!("  {fault}\n")).collect();
    assert!(faults.is_empty(), "{} faults:\n{lines}", faults.len());
}

#[test]
fn the_tree_is_found_with_every_crate() {
    let files = tree();
    for path in [
        "wire/src/lib.rs",
        "dataplane/src/lib.rs",
        "dnssec/src/lib.rs",
        "control/src/lib.rs",
        "link/src/lib.rs",
        "fastpath/src/lib.rs",
        "gateway/src/main.rs",
        "lab/src/lib.rs",
    ] {
        assert!(files.iter().any(|file| file.path == path), "{path} was not found");
    }
    assert!(!files.iter().any(|file: &File| file.path.starts_with("target/")));
}

#[test]
fn no_file_is_longer_than_one_idea() {
    nothing_breaks(rules::length);
}

#[test]
fn file_names_say_something() {
    nothing_breaks(rules::name);
}

#[test]
fn nothing_is_left_open() {
    nothing_breaks(rules::left_open);
}

#[test]
fn unsafe_lives_in_its_rooms() {
    nothing_breaks(rules::unsafe_room);
}

#[test]
fn drops_are_counted_by_the_engine() {
    nothing_breaks(rules::drop_counted);
}

#[test]
fn mechanisms_do_not_import_one_another() {
    nothing_breaks(rules::mechanism_imports);
}

#[test]
fn doors_hold_no_logic() {
    nothing_breaks(rules::door);
}

#[test]
fn every_test_tests() {
    nothing_breaks(rules::idle_test);
}

#[test]
fn no_path_of_somebodys_machine_is_written_down() {
    nothing_breaks(rules::private_path);
}
