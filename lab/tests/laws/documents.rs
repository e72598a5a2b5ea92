//! Documents that stand beside a list in the code: one is made from the other, or compared with it here.
//! `BLESS=1 cargo test -p sixway-lab --test laws` writes those that are made.

use crate::tree::{File, top, tree};
use sixway_dataplane::Counters;
use sixway_dataplane::drop_reason::{Answer, DropReason};
use std::collections::BTreeSet;

fn drops() -> String {
    let mut text = "# Counters and reasons to drop\n\nMade from the lists in the code (`drop_reason.rs` and `counters.rs` in `dataplane/src`); a test holds \
         them together.\n\n## Why a packet is dropped\n\nThe last column is the ICMP error that the sender gets, rate-limited: type and code.\n\n\
         | Reason | What it means | Answered with |\n|---|---|---|\n"
        .to_owned();
    for reason in DropReason::ALL {
        text +=
            &format!("| `{}` | {} | {} |\n", reason.name(), reason.help(), answered_with(reason.answer()));
    }
    text += "\n## What is counted beside the drops\n\n\
             received + taken_over = forwarded + answered + punted + handed_over + held + dropped, at any moment (columns that cut or join packets \
             beside it).\n\n| Counter | What it counts |\n|---|---|\n";
    for (name, help, _) in Counters::default().named() {
        text += &format!("| `{name}` | {help} |\n");
    }
    text
}

fn answered_with(answer: Answer) -> String {
    let side =
        |family: &str, error: Option<(u8, u8)>| error.map(|(kind, code)| format!("{family} {kind}/{code}"));
    let sides: Vec<_> =
        [side("ICMPv4", answer.icmpv4), side("ICMPv6", answer.icmpv6)].into_iter().flatten().collect();
    if sides.is_empty() { "silence".to_owned() } else { sides.join(", ") }
}

#[test]
fn the_list_of_drops_and_counters_is_made_from_the_code() {
    let path = top().join("docs/drops.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, drops()).expect("docs/drops.md can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == drops(),
        "docs/drops.md is not what the code says; BLESS=1 cargo test -p sixway-lab --test laws"
    );
}

/// Relative links of a document.
fn links(file: &File) -> Vec<String> {
    let targets = file.text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let local =
        targets.filter(|target| !target.contains("://") && !target.starts_with('#') && !target.contains(' '));
    local.map(|target| target.split('#').next().unwrap_or(target).to_owned()).collect()
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut broken = Vec::new();
    for file in tree().iter().filter(|file| file.path.ends_with(".md")) {
        let here = top().join(&file.path);
        let folder = here.parent().expect("a file has a folder");
        broken.extend(
            links(file).into_iter().filter(|link| !folder.join(link).exists()).map(|link| (&file.path, link)),
        );
    }
    assert!(broken.is_empty(), "links to nowhere: {broken:?}");
}

/// Words in backquotes that look like names of tests: at least three words joined by `_`, the last part of a path.
fn named_tests(file: &File) -> Vec<String> {
    let quoted = file.text.split('`').skip(1).step_by(2);
    let names = quoted.filter_map(|words| words.rsplit("::").next());
    let is_test = |name: &&str| {
        name.matches('_').count() >= 3
            && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_')
    };
    names.filter(is_test).map(str::to_owned).collect()
}

#[test]
fn every_test_that_conformance_names_exists() {
    let sources: Vec<_> = tree().iter().filter(|file| file.is_rust()).collect();
    let defined: BTreeSet<&str> = sources
        .iter()
        .flat_map(|file| file.text.split("fn ").skip(1))
        .filter_map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next())
        .collect();
    let pages = tree().iter().filter(|file| file.path.starts_with("docs/conformance/"));
    let missing: Vec<_> = pages
        .flat_map(|page| named_tests(page).into_iter().map(|name| (page.path.clone(), name)))
        .filter(|(_, name)| !defined.contains(name.as_str()))
        .collect();
    assert!(missing.is_empty(), "tests that are named and do not exist: {missing:?}");
}

#[test]
fn links_and_named_tests_are_read_from_samples() {
    let page = File::sample(
        "docs/x.md",
        "[a](b.md#c) [d](https://e) `dataplane/tests/x.rs::a_packet_is_dropped` `lowest_ipv6_mtu`",
    );
    assert_eq!(links(&page), ["b.md"]);
    assert_eq!(named_tests(&page), ["a_packet_is_dropped"]);
}
