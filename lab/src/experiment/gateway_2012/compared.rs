//! Rows of one box and of two at the same place.

use super::form::Form;
use crate::analyse::{Bearing, Group, View};

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

/// A measure of a device with one box against two, at each place: above 1 one box is ahead.
pub fn one_against_two(view: &View<'_>, device: &str, (series, value): (&str, &str)) -> Vec<Bearing> {
    let at = |one: &Group<'_>| {
        let mut point = one.cell.point.clone();
        point.insert("form".to_owned(), f64::from(Form::Decoupled as u8));
        let two = view.group(series, device, &point)?;
        // More throughput is better, and less of everything else.
        let (over, under) = if value == "throughput" { (one, two) } else { (two, one) };
        Some(view.ratio(over, under, value))
    };
    places(view, device, series).filter_map(at).collect()
}
