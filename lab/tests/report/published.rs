//! Published reports are those that the lab makes of the published data.

use sixway_lab::report::{html, markdown};
use sixway_lab::results::read;
use sixway_lab::run::chapters;
use std::path::{Path, PathBuf};

/// Folders of runs in docs/results.
fn folders() -> Vec<PathBuf> {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/results");
    let entries = std::fs::read_dir(results).expect("docs/results").flatten().map(|entry| entry.path());
    let mut all: Vec<PathBuf> = entries.filter(|path| path.join("run.json").is_file()).collect();
    all.sort();
    all
}

/// Whether the folder's reports are those that its data give now; with `BLESS` they are written.
fn is_current(folder: &Path) -> bool {
    let results = read(folder).expect("run.json and data.csv of a published run");
    let chapters = chapters(&results);
    let reports = [("report.md", markdown(&results, &chapters)), ("report.html", html(&results, &chapters))];
    reports.into_iter().all(|(name, text)| {
        let path = folder.join(name);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &text).expect("a report is written");
        }
        std::fs::read_to_string(&path).is_ok_and(|published| published == text)
    })
}

/// A statement in them is what the same figures would say in a run of today. `make pages` writes them again.
#[test]
fn published_reports_are_those_of_the_published_data() {
    let folders = folders();
    assert!(folders.len() > 5, "{folders:?}");
    let old: Vec<_> = folders.iter().filter(|folder| !is_current(folder)).collect();
    assert!(old.is_empty(), "`make pages` writes these again: {old:?}");
}
