//! The pages of `docs/conformance/` and the tests that they name are held together here.
//!
//! A row is `| clause | requirement | mark | tests or why not |`; a test is named by its file and its name, as in
//! `dataplane/tests/siit.rs::a_packet_is_translated`; an interop test by the name in its list.
#![allow(clippy::disallowed_methods, reason = "the pages and the sources are files")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const MARKS: [&str; 4] = ["✅", "⚠️", "❌", "–"];

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Rows of the tables on all pages about an RFC: where it is, and its cells.
fn rows() -> Vec<(String, Vec<String>)> {
    let mut rows = Vec::new();
    for entry in fs::read_dir(top().join("docs/conformance")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("rfc") {
            continue;
        }
        for (line, text) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            let is_row = text.starts_with('|') && !text.starts_with("|--") && !text.starts_with("| Clause");
            if is_row {
                let cells = text.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
                rows.push((format!("{name}:{}", line + 1), cells));
            }
        }
    }
    rows
}

/// Tests named in a cell: file and function.
fn named(cell: &str) -> impl Iterator<Item = (&str, &str)> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|word| word.split_once("::"))
        .filter(|(path, _)| path.ends_with(".rs"))
}

/// Whether the function exists there with a test's attribute above it, or an interop test of this name is listed there.
fn is_test(source: &str, name: &str) -> bool {
    let listed = source.split_once(&format!("\"{name}\""));
    if listed.is_some_and(|(before, _)| before.trim_end().ends_with("Interop::new(")) {
        return true;
    }
    let Some((before, _)) = source.split_once(&format!("fn {name}(")) else { return false };
    let mut above = before.rsplit('\n').skip(1).take_while(|line| line.trim_start().starts_with('#'));
    above.any(|line| matches!(line.trim(), "#[test]" | "#[tokio::test]"))
}

#[test]
fn every_named_test_is_a_test_in_the_named_file() {
    let (mut sources, mut wrong) = (BTreeMap::new(), Vec::new());
    for (place, cells) in rows() {
        for (path, name) in cells.iter().flat_map(|cell| named(cell)) {
            let source: &String = sources
                .entry(path.to_owned())
                .or_insert_with(|| fs::read_to_string(top().join(path)).unwrap_or_default());
            if !is_test(source, name) {
                wrong.push(format!("{place}: {path} has no test {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_has_a_mark_and_what_is_done_is_proved() {
    let mut wrong = Vec::new();
    for (place, cells) in rows() {
        let [clause, requirement, mark, proof] = &cells[..] else {
            wrong.push(format!("{place}: {} cells; a row has four", cells.len()));
            continue;
        };
        if clause.is_empty() || requirement.is_empty() || proof.is_empty() {
            wrong.push(format!("{place}: an empty cell"));
        }
        if !MARKS.contains(&mark.as_str()) {
            wrong.push(format!("{place}: {mark:?} is no mark"));
        }
        if mark == "✅" && named(proof).next().is_none() {
            wrong.push(format!("{place}: done, and no test proves it"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn samples_of_tests_are_told_from_what_is_not_one() {
    let source = "#[test]\nfn good() {}\n\nfn helper() {}\n    #[test]\n    #[should_panic]\n    fn also(\n#[tokio::test]\nasync fn too() {";
    assert!(is_test(source, "good") && is_test(source, "also") && is_test(source, "too"));
    assert!(!is_test(source, "helper") && !is_test(source, "absent"));
    assert_eq!(named("`a/b.rs::x_y`, and `Z::W`").collect::<Vec<_>>(), [("a/b.rs", "x_y")]);
}
