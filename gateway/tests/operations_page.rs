//! `docs/operations.md` compared with the code: problems and what the DNS64 counts are there as the code has it.
//! `BLESS=1 cargo test -p sixway --test all operations_page` writes what is made.

use std::path::{Path, PathBuf};
use std::time::Instant;

use sixway::dns64::streams::Event;
use sixway::dns64::{Rates, Report};
use sixway::view::{Dns64Facts, ProblemKind, dns64_row};

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations.md")
}

fn table<'r>(title: &str, rows: impl Iterator<Item = (&'r str, &'r str)>) -> String {
    let rows: String = rows.map(|(name, help)| format!("| `{name}` | {help} |\n")).collect();
    format!("| {title} | |\n|---|---|\n{rows}")
}

/// The tables, by the mark that they follow.
fn tables() -> [(&'static str, String); 4] {
    let row = dns64_row(&Dns64Facts::default(), &Report::default(), &Rates::new(Instant::now()));
    let outcomes = row.outcomes.iter().map(|row| (&*row.outcome, &*row.help));
    let counters = row.counters.iter().map(|row| (&*row.name, row.help.trim_end_matches('.')));
    let problems = ProblemKind::ALL.iter().map(|kind| (kind.name(), kind.help().trim_end_matches('.')));
    let streams = Event::ALL.iter().map(|event| (event.name(), event.help().trim_end_matches('.')));
    [
        ("problems", table("`kind`", problems)),
        ("outcomes", table("Outcome", outcomes)),
        ("dns64 counters", table("Counter", counters)),
        ("dns64 streams", table("Counter", streams)),
    ]
}

#[test]
fn problems_and_what_the_dns64_counts_are_made_from_the_code() {
    let written = std::fs::read_to_string(page()).expect("the page is there");
    let mut made = written.clone();
    for (name, table) in tables() {
        let from = format!("<!-- {name} -->\n");
        let (before, rest) = made.split_once(&from).unwrap_or_else(|| panic!("the page has no {from}"));
        let (_, after) = rest.split_once("<!-- end -->").expect("a table ends");
        made = format!("{before}{from}{table}<!-- end -->{after}");
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(page(), &made).expect("the page can be written");
    }
    let what = "docs/operations.md is not what the code says; BLESS=1 cargo test -p sixway --test all operations_page";
    assert!(written == made || std::env::var_os("BLESS").is_some(), "{what}");
}
