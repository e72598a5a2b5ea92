//! `docs/drops.md` is what the lists in the code say; `BLESS=1 cargo test -p sixway-dataplane --test all drops_page` writes it.
#![allow(clippy::disallowed_methods, reason = "the page is a file")]

use sixway_dataplane::counters::{Counters, conservation};
use sixway_dataplane::drop_reason::{Answer, DropReason};
use std::fs;

fn drops() -> String {
    let mut text = "# Counters and drop reasons\n\nGenerated from the lists in the code (`drop_reason.rs` and `counters.rs` in `dataplane/src`).\n\n\
         ## Drop reasons\n\nThe last column is the ICMP error that the sender gets, rate-limited: type and code.\n\n\
         | Reason | Meaning | ICMP error |\n|---|---|---|\n"
        .to_owned();
    for reason in DropReason::ALL {
        text +=
            &format!("| `{}` | {} | {} |\n", reason.name(), reason.help(), answered_with(reason.answer()));
    }
    text += &format!(
        "\n## Other counters\n\nAt any time `{}`. The remaining counters are not part of this sum.\n\n\
         | Counter | What it counts |\n|---|---|\n",
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
    if sides.is_empty() { "none".to_owned() } else { sides.join(", ") }
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

#[test]
fn documents_state_the_conservation_of_frames_as_the_code_has_it() {
    for name in ["CONTRIBUTING.md", "docs/architecture.md"] {
        let path = format!("{}/../{name}", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(path).expect("the document can be read");
        let sum = format!("`{}`", conservation());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&sum), "{name} does not have {sum}");
    }
}
