//! The command `compare`.

use crate::analyse::{Change, Difference, Direction, compare};
use crate::failure::{Failure, Result};
use crate::results::read;
use crate::terminal::{printable, table};
use std::fmt::Write as _;
use std::path::Path;

/// What a comparison found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The comparison as text.
    pub text: String,
    /// What became worse by more than was allowed.
    pub failed: Option<String>,
}

/// Compares two runs; `fail_above` is the factor by which a value may become worse.
///
/// # Errors
/// A folder holds no run, or what the runs measured differs by more than the program, and a limit is to be judged.
pub fn comparison(first: &Path, second: &Path, fail_above: Option<f64>) -> Result<Outcome> {
    let comparison = compare(&read(first)?, &read(second)?);
    if fail_above.is_some() {
        can_be_judged(&comparison.differences)?;
    }
    let mut text = in_what_they_differ(&comparison.differences);
    if let Some(why) = &comparison.by_ratio {
        writeln!(text, "Values are compared as ratios to plain forwarding of each run, since {why}.\n").ok();
    }
    let rows: Vec<_> = comparison.changes.iter().filter(|change| is_shown(change)).map(row).collect();
    let heading = ["CELL", "VALUE", "FIRST", "SECOND", "SECOND / FIRST", "", "HOW CERTAIN"];
    match rows.is_empty() {
        true => text.push_str("The runs have nothing in common that can be compared.\n"),
        false => text.push_str(&table(&heading, &rows, false)),
    }
    let count = |direction| comparison.changes.iter().filter(|change| change.direction == direction).count();
    writeln!(
        text,
        "\n{} better, {} worse, {} without a difference beyond the noise, {} that cannot be compared",
        count(Direction::Better),
        count(Direction::Worse),
        count(Direction::Same),
        count(Direction::Unknown)
    )
    .ok();
    text += &why_not(&comparison.changes);
    comparison.unmatched.iter().for_each(|cell| text += &format!("{cell}\n"));
    let limit = fail_above.unwrap_or(f64::INFINITY);
    let too_much: Vec<_> = comparison
        .changes
        .iter()
        .filter(|change| change.worse_by().is_some_and(|factor| factor > limit))
        .map(|change| format!("{} {}", change.cell, change.value))
        .collect();
    let failed = fail_above.filter(|_| !too_much.is_empty());
    let failed = failed.map(|limit| format!("worse by more than {limit}: {}", too_much.join(", ")));
    Ok(Outcome { text: printable(&text), failed })
}

/// The conditions in which two runs differ, each in a line.
fn in_what_they_differ(differences: &[Difference]) -> String {
    let lines: Vec<_> = differences.iter().map(|difference| format!("- {}\n", difference.text())).collect();
    if lines.is_empty() { String::new() } else { format!("The runs differ:\n{}\n", lines.concat()) }
}

/// That a change of a value can be one of the program.
fn can_be_judged(differences: &[Difference]) -> Result<()> {
    let others: Vec<_> =
        differences.iter().filter(|it| it.changes_the_measurement).map(Difference::text).collect();
    match others.is_empty() {
        true => Ok(()),
        false => Err(Failure::Unexpected(format!(
            "--fail-above needs two runs that measure the same, and these differ: {}",
            others.join("; ")
        ))),
    }
}

/// Each reason for which values cannot be compared, with their number; the most frequent one first.
fn why_not(changes: &[Change]) -> String {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for why in changes.iter().filter_map(Change::unknown) {
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, count)) => *count += 1,
            None => reasons.push((why, 1)),
        }
    }
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    reasons.iter().map(|(why, count)| format!("- {count}: {why}\n")).collect()
}

fn is_shown(change: &Change) -> bool {
    change.direction != Direction::Unknown
}

fn row(change: &Change) -> Vec<String> {
    let figure = |value: f64| crate::report::figure(value, change.unit);
    let direction = match change.direction {
        Direction::Better => "better",
        Direction::Worse => "worse",
        Direction::Same | Direction::Unknown => "",
    };
    let value = match change.unit.text() {
        "" => change.value.clone(),
        unit => format!("{}, {unit}", change.value),
    };
    vec![
        change.cell.clone(),
        value,
        figure(change.means.0.mean),
        figure(change.means.1.mean),
        change.bearing.text(),
        direction.to_owned(),
        change.bearing.explained(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::{Bearing, Estimate};
    use crate::results::{Asked, Header, Machine, SCHEMA, Unit};
    use std::path::PathBuf;

    /// A run in which nothing was measured.
    fn folder(name: &str, asked: Asked, kernel: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("sixway-lab-compared-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let machine = Machine { kernel: kernel.to_owned(), ..Machine::default() };
        let header = Header { schema: SCHEMA, asked, machine, ..Header::default() };
        std::fs::write(folder.join("run.json"), serde_json::to_string(&header).unwrap()).unwrap();
        std::fs::write(folder.join("samples.jsonl"), "").unwrap();
        folder
    }

    #[test]
    fn differences_are_said_first_and_those_of_the_measurement_cannot_be_judged() {
        let set = [("hosts".to_owned(), "1".to_owned())].into();
        let folders = [
            folder("usual", Asked::default(), "6.1"),
            folder("kernel", Asked { scale: 0.5, ..Asked::default() }, "6.18"),
            folder("set", Asked { set, ..Asked::default() }, "6.1"),
        ];
        let compared = |second: usize, fail_above| {
            comparison(&folders[0], &folders[second], fail_above).map_err(|failure| failure.to_string())
        };
        let same = compared(0, Some(1.05)).unwrap().text;
        let kernel = compared(1, Some(1.05)).unwrap().text;
        let (shown, refused) = (compared(2, None).unwrap().text, compared(2, Some(1.05)).unwrap_err());
        folders.iter().for_each(|folder| std::fs::remove_dir_all(folder).unwrap());
        assert!(same.starts_with("The runs have nothing in common"), "{same}");
        let first = "The runs differ:\n- scale: 0 in the first run, 0.5 in the second one\n- kernel: 6.1 in the first run, 6.18 in";
        assert!(kernel.starts_with(first), "{kernel}");
        assert!(
            shown.starts_with("The runs differ:\n- set: nothing in the first run, hosts=1 in"),
            "{shown}"
        );
        assert!(
            refused.starts_with("--fail-above needs two runs that measure the same, and these differ: set: "),
            "{refused}"
        );
    }

    #[test]
    fn each_reason_is_printed_with_its_number() {
        let mean = Estimate { mean: 1.0, half_width: None, n: 3 };
        let change = |why: &str, direction| Change {
            cell: String::new(),
            value: String::new(),
            unit: Unit::Lost,
            means: (mean, mean),
            bearing: Bearing::Nothing(why.to_owned()),
            direction,
        };
        let unknown = |why| change(why, Direction::Unknown);
        let wide = "the rounds differ too much: from 0.50 to 2.00 with 95 % confidence";
        let wider = "the rounds differ too much: from 0.20 to 5.00 with 95 % confidence";
        let changes =
            [unknown("no rounds"), unknown(wide), unknown(wider), change("loss was 0", Direction::Worse)];
        assert_eq!(why_not(&changes), "- 2: the rounds differ too much\n- 1: no rounds\n");
    }
}
