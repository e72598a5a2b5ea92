//! How a run ends: cells that failed, a run that measured nothing, and one that was interrupted.

use crate::failure::{Failure, Result};
use crate::results::{Results, Sample};
use std::path::Path;

/// Why a cell failed, in one line, if it did.
pub(super) fn failure(sample: &Sample) -> Option<String> {
    let why = sample.failed.as_deref()?;
    Some(format!("  failed: {}", why.lines().next().unwrap_or_default()))
}

/// How many cells failed, and where the reasons are; `None` if all were measured.
///
/// # Errors
/// Not one cell was measured.
pub(super) fn summary(results: &Results, folder: &Path) -> Result<Option<String>> {
    let failed: Vec<_> = results.samples.iter().filter(|sample| sample.failed.is_some()).collect();
    let folder = folder.display();
    let text = failed.first().map(|first| {
        let cells = if failed.len() == 1 { "cell" } else { "cells" };
        let key = first.cell.key();
        format!(
            "{} {cells} failed: see \"failed\" in {folder}/report.md and {folder}/raw/{key}",
            failed.len()
        )
    });
    match (failed.len() == results.samples.len(), text) {
        (false, text) => Ok(text),
        (true, Some(text)) => Err(Failure::Unexpected(format!("nothing was measured: {text}"))),
        (true, None) => {
            Err(Failure::Unexpected("nothing was measured: the time was too short for a cell".to_owned()))
        }
    }
}

/// What remains after a signal, of a command that writes to this folder if it is a run.
pub fn interrupted(run: Option<&Path>) -> String {
    match run.filter(|folder| folder.join("run.json").exists()) {
        Some(folder) => {
            let folder = folder.display();
            format!(
                "interrupted; what was measured is in {folder}: the same command continues the run, and \"sixway-lab report {folder}\" makes its report"
            )
        }
        None => "interrupted; everything was removed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Header};

    fn results(failures: &[Option<&str>]) -> Results {
        let sample = |(repeat, failed): (u32, &Option<&str>)| {
            let cell = Cell {
                experiment: "e".to_owned(),
                series: "s".to_owned(),
                device: "d".to_owned(),
                point: [("hosts".to_owned(), 1.0)].into(),
                repeat,
            };
            Sample { failed: failed.map(str::to_owned), ..Sample::failed(cell, "") }
        };
        Results { header: Header::default(), samples: (0..).zip(failures).map(sample).collect() }
    }

    #[test]
    fn cells_that_failed_are_counted_and_a_run_of_them_alone_is_an_error() {
        let said = |failures: &[Option<&str>]| {
            summary(&results(failures), Path::new("out")).map_err(|failure| failure.to_string())
        };
        let place = "see \"failed\" in out/report.md and out/raw/e/s/d/hosts=1#";
        assert_eq!(said(&[None, None]), Ok(None));
        assert_eq!(said(&[None, Some("it broke")]), Ok(Some(format!("1 cell failed: {place}1"))));
        assert_eq!(said(&[Some("a"), None, Some("b")]), Ok(Some(format!("2 cells failed: {place}0"))));
        assert_eq!(said(&[Some("a"); 2]), Err(format!("nothing was measured: 2 cells failed: {place}0")));
        assert!(said(&[]).is_err_and(|said| said.starts_with("nothing was measured: ")));
    }

    #[test]
    fn the_first_line_of_a_failure_is_said() {
        let said = |why| failure(&results(&[why]).samples[0]);
        assert_eq!(said(Some("`ip` failed: no\nmore of it")).as_deref(), Some("  failed: `ip` failed: no"));
        assert_eq!(said(None), None);
    }

    #[test]
    fn an_interrupted_run_names_its_folder() {
        let folder = std::env::temp_dir().join(format!("sixway-lab-interrupted-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert_eq!(interrupted(None), "interrupted; everything was removed");
        assert_eq!(interrupted(Some(&folder)), "interrupted; everything was removed", "it had not begun");
        std::fs::write(folder.join("run.json"), "{}").unwrap();
        let said = interrupted(Some(&folder));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(said.contains(&format!("is in {}: the same command continues", folder.display())), "{said}");
        assert!(said.contains(&format!("\"sixway-lab report {}\"", folder.display())), "{said}");
    }
}
