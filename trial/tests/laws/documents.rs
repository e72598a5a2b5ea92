//! Documents among themselves: their links, and the index of the decisions. Those that are made from lists in the code are held beside the code, by tests
//! whose names end with `_page`.

use crate::tree::{File, top, tree};

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
