//! Documents: their links and anchors, the index of the decisions, and their language. Pages that are generated from lists in the code are
//! compared with them by tests whose names end with `_page`.

use crate::tree::{File, top, tree};
use std::collections::{BTreeMap, BTreeSet};

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

/// Links of a document to headings: the path, empty for this document itself, and the anchor.
fn links_to_headings(file: &File) -> Vec<(&str, &str)> {
    let targets = file.text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let local = targets.filter(|target| !target.contains("://") && !target.contains(' '));
    local.filter_map(|target| target.split_once('#')).filter(|(path, _)| is_markdown(path)).collect()
}

/// Whether a link's path, which is empty for the document itself, leads to a document.
fn is_markdown(path: &str) -> bool {
    path.is_empty() || path.ends_with(".md")
}

/// The anchor that GitHub makes of a heading: lower case, hyphens for spaces, no punctuation.
fn slug(heading: &str) -> String {
    let is_kept = |c: &char| c.is_alphanumeric() || ['-', '_', ' '].contains(c);
    let kept: String = heading.trim().chars().filter(is_kept).collect();
    kept.to_lowercase().replace(' ', "-")
}

/// The heading in a line, if it is one.
fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - text.len())).then(|| text.strip_prefix(' ')).flatten()
}

/// The anchors of a document's headings. If a slug occurs again, a number is appended.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut used: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let Some(heading) = heading(line).filter(|_| !is_code) else { continue };
        let slug = slug(heading);
        let times = used.entry(slug.clone()).or_default();
        anchors.insert(if *times == 0 { slug } else { format!("{slug}-{times}") });
        *times += 1;
    }
    anchors
}

#[test]
fn anchors_of_links_exist_in_their_documents() {
    let mut broken = Vec::new();
    for file in tree().iter().filter(|file| file.path.ends_with(".md")) {
        let here = top().join(&file.path);
        let folder = here.parent().expect("a file has a folder");
        for (path, anchor) in links_to_headings(file) {
            let target = if path.is_empty() { here.clone() } else { folder.join(path) };
            let text = std::fs::read_to_string(target).unwrap_or_default();
            if !anchors(&text).contains(anchor) {
                broken.push(format!("{}: {path}#{anchor}", file.path));
            }
        }
    }
    assert!(broken.is_empty(), "links to headings that do not exist:\n  {}", broken.join("\n  "));
}

#[test]
fn anchors_are_read_from_a_sample() {
    let file = File::sample("docs/x.md", "[a](b.md#c) [d](https://e.md#f) [g](#h-i) [j](k.rs#L1) [l](m.md)");
    assert_eq!(links_to_headings(&file), [("b.md", "c"), ("", "h-i")]);

    assert_eq!(slug("A site behind one box: `sixway up`"), "a-site-behind-one-box-sixway-up");
    assert_eq!(
        slug("`block_size`, and what 4over6 – or SIIT-DC – does"),
        "block_size-and-what-4over6--or-siit-dc--does"
    );
    let found = anchors("# One\n## Two\n```sh\n# A comment\n```\n#No heading\n### Two\ntext # Three\n");
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["one", "two", "two-1"]);
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
    let mut numbers = BTreeSet::new();
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

/// The longest line of prose, in characters.
const LONGEST_LINE: usize = 160;

/// Pages whose text is in the code.
const GENERATED: [&str; 2] = ["docs/drops.md", "docs/conformance/dns64-peers.md"];
/// Reports of the lab, each in a folder of its own.
const REPORTS: &str = "docs/results/";

/// Phrases that are not used, each with its replacement. They have no use in plain English but for those in [`PLAIN`].
const IDIOM: [(&str, &str); 32] = [
    ("anew", "again"),
    ("at once", "immediately, together"),
    ("beside", "next to, in addition to"),
    ("carried on", "forwarded"),
    ("carries on", "forwards"),
    ("comes to its end", "ends"),
    ("farewell", "final router advertisement"),
    ("hangs at", "is attached to"),
    ("hangs on", "is attached to"),
    ("hangs there", "is attached"),
    ("heed", "follow"),
    ("in silence", "silently, without an ICMP error"),
    ("is asked for", "is queried, is requested"),
    ("is no ", "is not a"),
    ("is none", "is not one"),
    ("are none", "there are none"),
    ("is to be had", "is available"),
    ("is told", "is notified, gets an ICMP error"),
    ("are told", "are notified, get an ICMP error"),
    ("kept back", "quarantined"),
    ("look-up", "lookup"),
    ("of its own accord", "without a request"),
    ("so many", "the number of"),
    ("so long a", "how long"),
    ("stands in", "is stored in"),
    ("super-frame", "GSO packet"),
    ("taken back", "withdrawn, deprecated"),
    ("the gateway before", "the previous process"),
    ("the process before", "the previous process"),
    ("the way in", "inbound"),
    ("the way out", "outbound"),
    ("what it makes", "what it synthesises"),
];

/// Plain English that contains a phrase of the list.
const PLAIN: [&str; 4] = ["there is no ", "there is none", "there are none", "is no longer"];

/// The lines of a document's own prose, numbered from 1: no code, nothing that is generated. Tables on demand.
fn prose(file: &File, tables: bool) -> Vec<(usize, &str)> {
    let (mut code, mut generated) = (false, false);
    let mut own = |line: &str| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        if line.starts_with("<!-- ") {
            generated = line != "<!-- end -->";
        }
        !code && !fence && !generated && !line.starts_with("    ") && (tables || !line.starts_with('|'))
    };
    file.text.lines().enumerate().map(|(at, line)| (at + 1, line)).filter(|(_, line)| own(line)).collect()
}

fn is_document(file: &File) -> bool {
    let own = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].contains(&&*file.path);
    let page = file.path.starts_with("docs/") && file.path.ends_with(".md");
    let report = file.path.strip_prefix(REPORTS).is_some_and(|name| name.contains('/'));
    (own || page) && !report && !GENERATED.contains(&&*file.path)
}

fn long_lines(file: &File) -> Vec<String> {
    let is_link =
        |line: &str| line.starts_with('[') && line.ends_with(')') && line.matches("](").count() == 1;
    let long = prose(file, false)
        .into_iter()
        .filter(|(_, line)| line.chars().count() > LONGEST_LINE && !is_link(line.trim()));
    long.map(|(at, line)| format!("{}:{at}  {} characters", file.path, line.chars().count())).collect()
}

/// A line without its code spans, in lower case, and with those words blanked that are plain English.
fn words(line: &str) -> String {
    let prose = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
    PLAIN.iter().fold(prose.to_lowercase(), |line, plain| line.replace(plain, "·"))
}

/// A source file whose comments follow the rules of language. The laws' own samples break them.
fn is_source(file: &File) -> bool {
    [".rs", ".c", ".h"].iter().any(|end| file.path.ends_with(end))
        && !file.path.starts_with("trial/tests/laws/")
}

/// What follows the first `//` of a line that is not within a string.
fn comment(line: &str) -> Option<&str> {
    let is_string = |before: &str| before.matches('"').count() % 2 == 1;
    let (at, _) = line.match_indices("//").find(|(at, _)| !line.get(..*at).is_some_and(is_string))?;
    line.get(at + 2..)
}

/// The comments of a source file, with their lines numbered from 1.
fn comments(file: &File) -> Vec<(usize, &str)> {
    let lines = file.text.lines().enumerate();
    lines.filter_map(|(at, line)| comment(line).map(|text| (at + 1, text))).collect()
}

fn idiom(file: &File) -> Vec<String> {
    let text = if is_source(file) { comments(file) } else { prose(file, true) };
    let begins_word = |line: &str, at: usize| {
        line.get(..at).is_some_and(|before| !before.ends_with(|c: char| c.is_alphanumeric() || c == '-'))
    };
    let mut found = Vec::new();
    for (at, line) in text {
        let line = words(line);
        let used = IDIOM
            .iter()
            .filter(|(phrase, _)| line.match_indices(phrase).any(|(start, _)| begins_word(&line, start)));
        found.extend(used.map(|(phrase, better)| format!("{}:{at}  {phrase:?}: {better}", file.path)));
    }
    found
}

fn none_has(is_meant: fn(&File) -> bool, breaks: fn(&File) -> Vec<String>) {
    let found: Vec<_> = tree().iter().filter(|file| is_meant(file)).flat_map(breaks).collect();
    assert!(found.is_empty(), "{} faults:\n  {}", found.len(), found.join("\n  "));
}

#[test]
fn lines_of_documents_are_short() {
    none_has(is_document, long_lines);
}

#[test]
fn idiom_is_not_used() {
    none_has(|file| is_document(file) || is_source(file), idiom);
}

#[test]
fn long_lines_and_idiom_are_found_in_samples() {
    let long = "word ".repeat(40);
    let lines = |text: &str| long_lines(&File::sample("docs/x.md", text)).len();
    assert_eq!(lines(&format!("{long}\nshort\n- {long}")), 2);
    assert_eq!(lines(&format!("| {long} |\n```text\n{long}\n```\n[{long}](x.md)\n    {long}")), 0);

    let phrases = |text: &str| idiom(&File::sample("docs/x.md", text)).len();
    assert_eq!(phrases("It is made anew.\n| Super-frames | beside it |\nThat is no router."), 4);
    assert_eq!(
        phrases("There is no route. It is no longer used. `super-frame`, and https://x/12-anew.md"),
        0
    );
    assert_eq!(phrases("<!-- keys: x -->\n| anew |\n<!-- end -->\n```\nbeside\n```\n"), 0);

    let comments = |text: &str| idiom(&File::sample("wire/src/x.rs", text)).len();
    assert_eq!(comments("//! It is made anew.\n/// Not `beside`.\nfn x() {} // at once\n"), 2);
    assert_eq!(comments("let anew = \"beside\";\nlet url = \"https://beside\";\n"), 0);
    assert_eq!(idiom(&File::sample("fastpath/bpf/x.h", "int anew; // beside it")).len(), 1);
}
