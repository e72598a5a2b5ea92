//! `docs/drops.md` is what the lists in the code say; `BLESS=1 cargo test -p sixway-dataplane --test all drops_page` writes it.
#![allow(clippy::disallowed_methods, reason = "the page is a file")]

use sixway_dataplane::Counters;
use sixway_dataplane::drop_reason::{Answer, DropReason};
use std::fs;

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
             received + taken_over = forwarded + answered + punted + handed_over + held + merged + dropped, at any moment (columns that cut or make \
             packets beside it).\n\n| Counter | What it counts |\n|---|---|\n";
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
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/drops.md");
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, drops()).expect("docs/drops.md can be written");
    }
    let written = fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == drops(),
        "docs/drops.md is not what the code says; BLESS=1 cargo test -p sixway-dataplane --test all drops_page"
    );
}
