//! The command `compare`.

use crate::analyse::{Change, Direction, compare};
use crate::failure::Result;
use crate::results::read;
use crate::terminal::table;
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
/// A folder holds no run.
pub fn comparison(first: &Path, second: &Path, fail_above: Option<f64>) -> Result<Outcome> {
    let comparison = compare(&read(first)?, &read(second)?);
    let mut text = String::new();
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
    Ok(Outcome { text, failed })
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
