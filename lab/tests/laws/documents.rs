//! Documents that stand beside a list in the code: one is made from the other, or compared with it here.
//! `BLESS=1 cargo test -p sixway-lab --test laws` writes those that are made.

use crate::tree::{File, top, tree};
use sixway_dataplane::counters::{Counters, conservation};
use sixway_dataplane::drop_reason::{Answer, DropReason};

fn drops() -> String {
    let mut text = "# Counters and reasons to drop\n\nMade from the lists in the code (`drop_reason.rs` and `counters.rs` in `dataplane/src`); a test holds \
         them together.\n\n## Why a packet is dropped\n\nThe last column is the ICMP error that the sender gets, rate-limited: type and code.\n\n\
         | Reason | What it means | Answered with |\n|---|---|---|\n"
        .to_owned();
    for reason in DropReason::ALL {
        text +=
            &format!("| `{}` | {} | {} |\n", reason.name(), reason.help(), answered_with(reason.answer()));
    }
    text += &format!(
        "\n## Other counters\n\nAt any moment `{}`.\n\n| Counter | What it counts |\n|---|---|\n",
        conservation()
    );
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

#[test]
fn the_table_of_dns64_peers_is_made_from_the_code() {
    let path = top().join("docs/conformance/dns64-peers.md");
    let document = sixway_lab::dns64::document::document();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &document).expect("docs/conformance/dns64-peers.md can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == document,
        "docs/conformance/dns64-peers.md is not what the code says; BLESS=1 cargo test -p sixway-lab --test laws"
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

#[test]
fn links_are_read_from_a_sample() {
    assert_eq!(links(&File::sample("docs/x.md", "[a](b.md#c) [d](https://e) [f](#g)")), ["b.md"]);
}

/// The records of decisions, by file name.
fn records() -> Vec<String> {
    let paths = tree().iter().filter_map(|file| file.path.strip_prefix("docs/decisions/"));
    paths.filter(|name| *name != "README.md").map(str::to_owned).collect()
}

#[test]
fn decisions_have_numbers_of_their_own_and_stand_in_the_index() {
    let records = records();
    let index = std::fs::read_to_string(top().join("docs/decisions/README.md")).expect("there is an index");
    let mut numbers = std::collections::BTreeSet::new();
    for record in &records {
        let number = record.split('-').next().unwrap_or(record);
        assert!(number.len() == 4 && number.parse::<u16>().is_ok(), "{record} has no number");
        assert!(numbers.insert(number), "{number} is taken twice");
        assert!(index.contains(&format!("[{number}]({record})")), "{record} is not in the index");
        let text = std::fs::read_to_string(top().join("docs/decisions").join(record)).unwrap_or_default();
        assert!(text.starts_with(&format!("# {number}: ")), "{record} does not begin with its number");
    }
    assert!(records.len() >= 10, "{records:?}");
}
