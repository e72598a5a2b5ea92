//! Comparison of two runs: the same cells, by their repetitions.

use super::conditions::{Difference, differences, different_machines};
use super::ratio::{Bearing, Ratio};
use super::series::Group;
use super::statistics::{Estimate, difference};
use super::view::{View, no_logarithm, not_comparable};
use crate::results::{Better, CLOCK, Results, Unit, key_of_group};

/// What two runs have in common.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// In what the runs differ before anything is measured.
    pub differences: Vec<Difference>,
    /// Why values are compared as ratios to plain forwarding of their own run, if they are.
    pub by_ratio: Option<String>,
    /// Values of the cells that both have.
    pub changes: Vec<Change>,
    /// Cells that only one of them has.
    pub unmatched: Vec<String>,
}

/// A value of a cell in two runs.
#[derive(Clone, Debug)]
pub struct Change {
    /// The cell without its repetition.
    pub cell: String,
    /// The value's name.
    pub value: String,
    /// Its unit.
    pub unit: Unit,
    /// The means of the first run and of the second one.
    pub means: (Estimate, Estimate),
    /// The second over the first.
    pub bearing: Bearing,
    /// Whether the second is better.
    pub direction: Direction,
}

/// In which direction a value changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the better.
    Better,
    /// To the worse.
    Worse,
    /// There is no difference larger than the noise.
    Same,
    /// It cannot be said.
    Unknown,
}

impl Change {
    /// By which factor it became worse, if that exceeds the noise.
    pub fn worse_by(&self) -> Option<f64> {
        let worse = |ratio: &Ratio| if ratio.value > 1.0 { ratio.value } else { 1.0 / ratio.value };
        match (&self.bearing, self.direction) {
            (Bearing::Number(ratio) | Bearing::Direction(ratio), Direction::Worse) => Some(worse(ratio)),
            // From nothing to something, such as loss.
            (Bearing::Nothing(_), Direction::Worse) => Some(f64::INFINITY),
            _ => None,
        }
    }

    /// Why it cannot be compared, if it cannot, without figures.
    pub fn unknown(&self) -> Option<&str> {
        let why = self.bearing.reason().unwrap_or("the interval is too wide to show that nothing changed");
        (self.direction == Direction::Unknown).then_some(why)
    }
}

/// Compares the second run with the first one. Values of two machines, or of one with another kernel, are compared as ratios to plain forwarding on each.
pub fn compare(first: &Results, second: &Results) -> Comparison {
    let by_ratio = different_machines(&first.header, &second.header);
    let noise = |results: &Results| super::noise::noise(&results.samples);
    let noise = noise(first).zip(noise(second)).map(|(first, second)| f64::max(first, second));
    let (mut changes, mut unmatched) = (Vec::new(), Vec::new());
    let mut experiments = first.header.asked.experiments.clone();
    experiments.extend(second.header.asked.experiments.iter().cloned());
    let mut seen = Vec::new();
    experiments.retain(|name| {
        !seen.contains(name) && {
            seen.push(name.clone());
            true
        }
    });
    for experiment in &experiments {
        let (a, b) = (View::of(first, experiment), View::of(second, experiment));
        for group in &a.groups {
            let cell = group.cell;
            match b.group(&cell.series, &cell.device, &cell.point) {
                None => unmatched.push(format!("{} is in the first run only", key_of_group(cell))),
                Some(other) => {
                    let as_ratios = by_ratio.is_some() || a.realm(&cell.device) != b.realm(&cell.device);
                    changes.extend(of_group((&a, group), (&b, other), as_ratios, noise));
                }
            }
        }
        let lacks =
            |group: &&Group<'_>| a.group(&group.cell.series, &group.cell.device, &group.cell.point).is_none();
        let new = b.groups.iter().filter(lacks);
        unmatched.extend(new.map(|group| format!("{} is in the second run only", key_of_group(group.cell))));
    }
    let differences = differences(&first.header, &second.header);
    Comparison { differences, by_ratio, changes, unmatched }
}

fn of_group(
    (a, first): (&View<'_>, &Group<'_>),
    (b, second): (&View<'_>, &Group<'_>),
    as_ratios: bool,
    noise: Option<f64>,
) -> Vec<Change> {
    let names = first.samples.iter().find(|sample| sample.failed.is_none());
    let names = names.into_iter().flat_map(|sample| sample.values.keys());
    let change = |name: &String| {
        let ((before, unit), (after, _)) = (first.value(name)?, second.value(name)?);
        if unit.better() == Better::Neither || is_of_a_clock(name) {
            return None;
        }
        let logarithms = |view: &View<'_>, group: &Group<'_>| match as_ratios {
            true => view.to_plain(group, name),
            false => Ok(super::view::logarithms(group, name)),
        };
        let why = not_comparable(first, name).or_else(|| not_comparable(second, name));
        let why = why.or_else(|| no_logarithm(first, name)).or_else(|| no_logarithm(second, name));
        let bearing = match (why, logarithms(a, first), logarithms(b, second)) {
            (Some(why), ..) | (None, Err(why), _) | (None, Ok(_), Err(why)) => Bearing::Nothing(why),
            (None, Ok(before), Ok(after)) => {
                let rounds = |logarithms: std::collections::BTreeMap<u32, f64>| -> Vec<f64> {
                    logarithms.into_values().collect()
                };
                between(&rounds(before), &rounds(after), noise)
            }
        };
        let direction = match &bearing {
            Bearing::Number(ratio) | Bearing::Direction(ratio) => towards(unit, ratio.value > 1.0),
            Bearing::Equal(_) if bearing.is_above().is_none() => Direction::Unknown,
            Bearing::Equal(_) => Direction::Same,
            Bearing::Nothing(_) if !as_ratios => from_nothing(first, second, name, unit),
            Bearing::Nothing(_) => Direction::Unknown,
        };
        let cell = key_of_group(first.cell);
        Some(Change { cell, value: name.clone(), unit, means: (before, after), bearing, direction })
    };
    names.filter_map(change).collect()
}

/// Whether a value tells of another machine's clock, which is neither better nor worse.
fn is_of_a_clock(name: &str) -> bool {
    CLOCK.iter().any(|clock| name.ends_with(clock))
}

/// The second over the first, of repetitions that are not paired.
fn between(first: &[f64], second: &[f64], noise: Option<f64>) -> Bearing {
    match (difference(second, first), noise) {
        (Some(Estimate { mean, half_width: Some(half), n }), Some(noise)) => {
            let interval = ((mean - half).exp(), (mean + half).exp());
            Ratio { value: mean.exp(), interval, rounds: n }.bearing(noise)
        }
        (Some(Estimate { half_width: Some(_), .. }), None) => {
            Bearing::Nothing("the noise of a run is not known".to_owned())
        }
        _ => Bearing::Nothing("there are fewer than two rounds on both sides".to_owned()),
    }
}

const fn towards(unit: Unit, is_more: bool) -> Direction {
    match (unit.better(), is_more) {
        (Better::Higher, true) | (Better::Lower, false) => Direction::Better,
        (Better::Higher, false) | (Better::Lower, true) => Direction::Worse,
        (Better::Neither, _) => Direction::Unknown,
    }
}

/// Of values that may be zero, such as loss, there is no ratio: they differ if three rounds or more of one run are all zero and those of the
/// other are all not.
fn from_nothing(first: &Group<'_>, second: &Group<'_>, name: &str, unit: Unit) -> Direction {
    let (before, after) = (first.rounds(name), second.rounds(name));
    let is_zero = |rounds: &std::collections::BTreeMap<u32, f64>| rounds.values().all(|value| *value == 0.0);
    let is_positive =
        |rounds: &std::collections::BTreeMap<u32, f64>| rounds.values().all(|value| *value > 0.0);
    if before.len() < 3 || after.len() < 3 {
        return Direction::Unknown;
    }
    match (is_zero(&before), is_zero(&after)) {
        (true, true) => Direction::Same,
        (true, false) if is_positive(&after) => towards(unit, true),
        (false, true) if is_positive(&before) => towards(unit, false),
        _ => Direction::Unknown,
    }
}
