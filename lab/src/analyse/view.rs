//! Results for experiments and reports: repetitions grouped, with the realm of each device and the noise of the run.

use super::noise::noise;
use super::ratio::{Bearing, Ratio};
use super::series::{Group, groups};
use crate::results::{DeviceEntry, Results, Unit, Verdict};
use std::collections::BTreeMap;

/// The results of one experiment.
pub struct View<'a> {
    /// All repetitions of each cell.
    pub groups: Vec<Group<'a>>,
    /// The run's noise as a share; unknown for very short runs.
    pub noise: Option<f64>,
    devices: &'a [DeviceEntry],
}

impl<'a> View<'a> {
    /// An experiment's part of a run.
    pub fn of(results: &'a Results, experiment: &str) -> Self {
        let all = groups(&results.samples).into_iter();
        Self {
            groups: all.filter(|group| group.cell.experiment == experiment).collect(),
            noise: noise(&results.samples),
            devices: &results.header.devices,
        }
    }

    /// The realm of a device.
    pub fn realm(&self, device: &str) -> &str {
        self.devices.iter().find(|entry| entry.name == device).map_or("here", |entry| &entry.realm)
    }

    /// The group of a series and device at this place.
    pub fn group(&self, series: &str, device: &str, point: &BTreeMap<String, f64>) -> Option<&Group<'a>> {
        self.groups.iter().find(|group| {
            group.cell.series == series && group.cell.device == device && group.cell.point == *point
        })
    }

    /// Plain forwarding in the realm of this group, at the same place.
    pub fn plain(&self, group: &Group<'_>) -> Option<&Group<'a>> {
        let realm = self.realm(&group.cell.device);
        let plain = self.devices.iter().filter(|entry| entry.is_plain && entry.realm == realm);
        plain.filter_map(|entry| self.group(&group.cell.series, &entry.name, &group.cell.point)).next()
    }

    /// The ratio of two groups' values, if it is valid. Values of two realms are compared only as ratios, each to plain forwarding in its own realm.
    pub fn ratio(&self, over: &Group<'_>, under: &Group<'_>, value: &str) -> Bearing {
        self.ratio_of((over, value), (under, value))
    }

    /// The ratio of a group's value to that or another one of a group, which may be the same one, if it is valid.
    pub fn ratio_of(&self, (over, above): (&Group<'_>, &str), (under, below): (&Group<'_>, &str)) -> Bearing {
        let why = not_comparable(over, above).or_else(|| not_comparable(under, below));
        if let Some(why) = why.or_else(|| no_logarithm(over, above)).or_else(|| no_logarithm(under, below)) {
            return Bearing::Nothing(why);
        }
        self.paired((over, above), (under, below))
    }

    /// The ratio of values that are valid whatever the verdict: a device's own counters.
    pub fn ratio_of_counters(
        &self,
        (over, above): (&Group<'_>, &str),
        (under, below): (&Group<'_>, &str),
    ) -> Bearing {
        match no_logarithm(over, above).or_else(|| no_logarithm(under, below)) {
            Some(why) => Bearing::Nothing(why),
            None => self.paired((over, above), (under, below)),
        }
    }

    fn paired(&self, (over, above): (&Group<'_>, &str), (under, below): (&Group<'_>, &str)) -> Bearing {
        let same_realm = self.realm(&over.cell.device) == self.realm(&under.cell.device);
        let logarithms = match same_realm {
            true => difference(&logarithms(over, above), &logarithms(under, below)),
            false => match (self.to_plain(over, above), self.to_plain(under, below)) {
                (Ok(over), Ok(under)) => difference(&over, &under),
                (Err(why), _) | (_, Err(why)) => {
                    return Bearing::Nothing(format!(
                        "{} and {} run in different realms: {why}",
                        over.cell.device, under.cell.device
                    ));
                }
            },
        };
        let logarithms: Vec<f64> = logarithms.into_values().collect();
        match (Ratio::of_logarithms(&logarithms), self.noise) {
            (Some(ratio), Some(noise)) => ratio.bearing(noise),
            (Some(_), None) => Bearing::Nothing("the noise of this run is not known".to_owned()),
            (None, _) => Bearing::Nothing("there are fewer than two rounds with both".to_owned()),
        }
    }

    /// The logarithms of a group's rounds over those of plain forwarding, or why there are none.
    pub(super) fn to_plain(
        &self,
        group: &Group<'_>,
        value: &str,
    ) -> std::result::Result<BTreeMap<u32, f64>, String> {
        let realm = self.realm(&group.cell.device);
        let plain =
            self.plain(group).ok_or_else(|| format!("plain forwarding was not measured in {realm}"))?;
        match not_comparable(plain, value).or_else(|| no_logarithm(plain, value)) {
            Some(why) => Err(why),
            None => Ok(difference(&logarithms(group, value), &logarithms(plain, value))),
        }
    }
}

/// Why a value does not describe the device, by the verdict of its load, which may be another one than that of its group.
pub fn not_comparable(group: &Group<'_>, value: &str) -> Option<String> {
    let device = &group.cell.device;
    let Some((_, unit)) = group.value(value) else {
        let why = group.not_measurable(value);
        return Some(why.map_or_else(|| format!("{device} has no {value}"), str::to_owned));
    };
    if let Some(what) = group.uncertain(value) {
        return Some(format!("the value of {device} is uncertain: {what}"));
    }
    let own = group.own_verdict(value);
    match own.unwrap_or_else(|| group.verdict()) {
        Verdict::TesterBound { .. } if !unit.is_cost() && unit != Unit::Octets => Some(match own {
            Some(_) => format!("the tester was at its limit with {value} of {device}"),
            None => format!("the tester was at its limit with {device}"),
        }),
        Verdict::NotLoaded if unit.is_rate() => Some(match own {
            Some(_) => format!("nothing was at its limit with {value} of {device}"),
            None => format!("{device} was not at its limit"),
        }),
        Verdict::Failed => Some(format!("{device} was not measured")),
        Verdict::DeviceBound | Verdict::LinkBound | Verdict::TesterBound { .. } | Verdict::NotLoaded => None,
    }
}

/// Why there is no ratio of a value: it was 0 in a round, as loss may be, or a difference below it. Without those rounds the others would say
/// that it was more.
pub(super) fn no_logarithm(group: &Group<'_>, value: &str) -> Option<String> {
    let is_none = group.rounds(value).values().any(|value| *value <= 0.0);
    is_none.then(|| format!("{value} of {} was 0 or less in a round", group.cell.device))
}

pub(super) fn logarithms(group: &Group<'_>, value: &str) -> BTreeMap<u32, f64> {
    let positive = group.rounds(value).into_iter().filter(|(_, value)| *value > 0.0);
    positive.map(|(round, value)| (round, value.ln())).collect()
}

/// The rounds that both have.
fn difference(over: &BTreeMap<u32, f64>, under: &BTreeMap<u32, f64>) -> BTreeMap<u32, f64> {
    over.iter().filter_map(|(round, value)| Some((*round, value - under.get(round)?))).collect()
}
