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

/// Whether more audio is lost in one row than in another one; `None` if the tester may have lost it, if not all rounds say the same, or if fewer than
/// three have both.
pub fn more_is_lost(row: &Group<'_>, other: &Group<'_>) -> Option<bool> {
    let is_testers = |row: &Group<'_>| matches!(row.verdict(), Verdict::TesterBound { .. } | Verdict::Failed);
    if is_testers(row) || is_testers(other) {
        return None;
    }
    let (losses, others) = (row.rounds("loss"), other.rounds("loss"));
    let pairs: Vec<_> =
        losses.iter().filter_map(|(round, loss)| Some((*loss, *others.get(round)?))).collect();
    let more = pairs.iter().filter(|(loss, other)| loss > other).count();
    match (pairs.len(), more) {
        (3.., 0) => Some(false),
        (count @ 3.., more) if more == count => Some(true),
        _ => None,
    }
}

/// Measures of audio that are compared by what is lost of it: it has a rate of its own, which loads no gateway to its limit.
pub const OF_AUDIO: [&str; 2] = ["throughput", "loss"];

/// How one row stands to another one in a measure.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Whether it is ahead: it takes less time, or less is lost of its audio; `None` if that is uncertain.
    pub is_ahead: Option<bool>,
    /// The ratio, above 1 if it is ahead; audio has none.
    pub bearing: Bearing,
}

/// How one row stands to another one.
pub fn standing(view: &View<'_>, row: &Group<'_>, other: &Group<'_>, value: &str) -> Standing {
    let realms = [row, other].map(|it| view.realm(&it.cell.device));
    if OF_AUDIO.contains(&value) && realms[0] != realms[1] {
        let [one, other] = [row, other].map(|it| &it.cell.device);
        let why = format!("{one} and {other} run in different realms, and what is lost has no ratio");
        return Standing { is_ahead: None, bearing: Bearing::Nothing(why) };
    }
    if OF_AUDIO.contains(&value) {
        let why = "audio is compared by its loss, in each of three rounds or more".to_owned();
        return Standing { is_ahead: more_is_lost(other, row), bearing: Bearing::Nothing(why) };
    }
    let bearing = view.ratio(other, row, value);
    Standing { is_ahead: bearing.is_above(), bearing }
}

/// A measure of a device with one box against two, at each place.
pub fn one_against_two(view: &View<'_>, device: &str, (series, value): (&str, &str)) -> Vec<Standing> {
    let at = |one: &Group<'_>| Some(standing(view, one, two_of(view, one)?, value));
    places(view, device, series).filter_map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::groups;
    use crate::results::{Cell, Sample, TesterCost, Unit, Value};
    use std::collections::BTreeMap;

    /// A row with these losses, by round.
    fn row(losses: &[(u32, f64)], verdict: &Verdict) -> Vec<Sample> {
        let sample = |(repeat, loss): &(u32, f64)| Sample {
            cell: Cell {
                experiment: "gateway-2012".to_owned(),
                series: "call".to_owned(),
                device: "sixway".to_owned(),
                point: BTreeMap::new(),
                repeat: *repeat,
            },
            started: String::new(),
            took: 1.0,
            values: BTreeMap::from([("loss".to_owned(), Value::one(*loss, Unit::Lost))]),
            not_measurable: BTreeMap::new(),
            verdict: verdict.clone(),
            tester: TesterCost::default(),
            control: None,
            commands: Vec::new(),
            raw: Vec::new(),
            failed: None,
        };
        losses.iter().map(sample).collect()
    }

    #[test]
    fn more_is_lost_if_three_rounds_say_so_and_the_tester_had_time() {
        let (idle, busy) = (Verdict::NotLoaded, Verdict::TesterBound { why: String::new() });
        let lost = |row: &[Sample], other: &[Sample]| more_is_lost(&groups(row)[0], &groups(other)[0]);
        let rounds = |losses: [f64; 3]| row(&[(0, losses[0]), (1, losses[1]), (2, losses[2])], &idle);
        let (none, some) = (rounds([0.0; 3]), rounds([0.1; 3]));
        assert_eq!((lost(&some, &none), lost(&none, &some)), (Some(true), Some(false)));
        assert_eq!((lost(&none, &none), lost(&rounds([0.0, 0.1, 0.0]), &none)), (Some(false), None));
        for count in [1, 2] {
            assert_eq!((lost(&some[..count], &none), lost(&none[..count], &some)), (None, None), "{count}");
        }
        assert_eq!(lost(&row(&[(7, 0.1), (8, 0.1), (9, 0.1)], &idle), &none), None, "other rounds");
        let testers = row(&[(0, 0.0), (1, 0.0), (2, 0.0)], &busy);
        assert_eq!((lost(&some, &testers), lost(&testers, &some)), (None, None));
    }
}
