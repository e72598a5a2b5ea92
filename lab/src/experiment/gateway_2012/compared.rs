//! Rows of one box and of two at the same place.

use super::form::Form;
use crate::analyse::{Bearing, Group, View};
use crate::results::Verdict;

/// Places of a device in a series with one box.
pub fn places<'a, 'v>(
    view: &'v View<'a>,
    device: &'v str,
    series: &'v str,
) -> impl Iterator<Item = &'v Group<'a>> {
    let one = f64::from(Form::CoLocated as u8);
    view.groups.iter().filter(move |group| {
        group.cell.device == device && group.cell.series == series && group.cell.at("form") == one
    })
}

/// The row with two boxes at the place of one with one box.
pub fn two_of<'v, 'a>(view: &'v View<'a>, one: &Group<'_>) -> Option<&'v Group<'a>> {
    let mut point = one.cell.point.clone();
    point.insert("form".to_owned(), f64::from(Form::Decoupled as u8));
    view.group(&one.cell.series, &one.cell.device, &point)
}

/// Whether more audio is lost in one row than in another one; `None` if the tester may have lost it, or if not all rounds say the same.
pub fn more_is_lost(row: &Group<'_>, other: &Group<'_>) -> Option<bool> {
    let is_testers = |row: &Group<'_>| matches!(row.verdict(), Verdict::TesterBound { .. } | Verdict::Failed);
    if is_testers(row) || is_testers(other) {
        return None;
    }
    let (losses, others) = (row.rounds("loss"), other.rounds("loss"));
    let pairs: Vec<_> =
        losses.iter().filter_map(|(round, loss)| Some((*loss, *others.get(round)?))).collect();
    let more = pairs.iter().filter(|(loss, other)| loss > other).count();
    match more {
        0 if !pairs.is_empty() => Some(false),
        3.. if more == pairs.len() => Some(true),
        _ => None,
    }
}

/// A measure of a device with one box against two, at each place: above 1 one box is ahead.
pub fn one_against_two(view: &View<'_>, device: &str, (series, value): (&str, &str)) -> Vec<Bearing> {
    let at = |one: &Group<'_>| {
        let two = two_of(view, one)?;
        // More throughput is better, and less of everything else.
        let (over, under) = if value == "throughput" { (one, two) } else { (two, one) };
        Some(view.ratio(over, under, value))
    };
    places(view, device, series).filter_map(at).collect()
}
