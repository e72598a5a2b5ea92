//! Samples that belong together: all repetitions of a cell.

use super::statistics::{Estimate, estimate};
use crate::results::{Cell, Sample, Unit, Verdict, key_of_group};
use std::collections::BTreeMap;

/// All repetitions of a cell.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// The first repetition's cell.
    pub cell: &'a Cell,
    /// The repetitions, those that failed included.
    pub samples: Vec<&'a Sample>,
}

/// The groups in the order in which their first repetition appears.
pub fn groups(samples: &[Sample]) -> Vec<Group<'_>> {
    let mut all: Vec<Group<'_>> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for sample in samples {
        let place = *places.entry(key_of_group(&sample.cell)).or_insert(all.len());
        match all.get_mut(place) {
            Some(group) => group.samples.push(sample),
            None => all.push(Group { cell: &sample.cell, samples: vec![sample] }),
        }
    }
    all
}

/// The values of one name along an axis, by device: for plots and findings. Failed and missing ones are left out.
pub fn points<'a>(groups: &'a [Group<'a>], axis: &str, value: &str) -> Vec<(&'a str, f64, Estimate)> {
    let point = |group: &'a Group<'a>| {
        let (estimate, _) = group.value(value)?;
        Some((group.cell.device.as_str(), group.cell.at(axis), estimate))
    };
    groups.iter().filter_map(point).collect()
}

/// The greatest mean of a value among groups; 0 without any.
pub fn greatest<'g>(groups: impl Iterator<Item = &'g Group<'g>>, value: &str) -> f64 {
    groups.filter_map(|group| group.value(value)).map(|(estimate, _)| estimate.mean).fold(0.0, f64::max)
}

impl Group<'_> {
    /// The mean of a value over the repetitions, and its unit.
    pub fn value(&self, name: &str) -> Option<(Estimate, Unit)> {
        let values: Vec<_> = self.samples.iter().filter_map(|sample| sample.values.get(name)).collect();
        let unit = values.first()?.unit;
        let repetitions: Vec<_> = values.iter().map(|value| value.value).collect();
        estimate(&repetitions).map(|estimate| (estimate, unit))
    }

    /// The standard deviation of a value over its observations, such as a CPU time over intervals: the mean over the repetitions.
    pub fn sd(&self, name: &str) -> Option<f64> {
        let all: Vec<_> = self.samples.iter().filter_map(|sample| sample.values.get(name)?.sd).collect();
        estimate(&all).map(|it| it.mean)
    }

    /// The least, the median, 90, 99, 99.9 and 99.99 %, and the greatest of a value's observations: means over the repetitions, and the least and
    /// the greatest of all.
    pub fn quantiles(&self, name: &str) -> Option<[f64; 7]> {
        let all: Vec<[f64; 7]> =
            self.samples.iter().filter_map(|sample| sample.values.get(name)?.quantiles).collect();
        let at = |place: usize| all.iter().map(move |quantiles| quantiles[place]);
        let mean = |place: usize| at(place).sum::<f64>() / all.len() as f64;
        let least = at(0).min_by(f64::total_cmp)?;
        let greatest = at(6).max_by(f64::total_cmp)?;
        Some([least, mean(1), mean(2), mean(3), mean(4), mean(5), greatest])
    }

    /// How many observations a value has in all repetitions.
    pub fn observations(&self, name: &str) -> u64 {
        self.samples.iter().filter_map(|sample| sample.values.get(name)).map(|value| value.n).sum()
    }

    /// Why a value is uncertain: how it was read, or that some repetitions do not have it, so that a mean of the others would be biased.
    pub fn uncertain(&self, name: &str) -> Option<&str> {
        let uncertain = self.samples.iter().find_map(|sample| sample.values.get(name)?.uncertain.as_deref());
        let has_some = || self.samples.iter().any(|sample| sample.values.contains_key(name));
        uncertain.or_else(|| self.not_measurable(name).filter(|_| has_some()))
    }

    /// Why there is no value of this name, if it cannot be measured.
    pub fn not_measurable(&self, name: &str) -> Option<&str> {
        self.samples.iter().find_map(|sample| sample.not_measurable.get(name)).map(String::as_str)
    }

    /// The values of a name by repetition.
    pub fn rounds(&self, name: &str) -> BTreeMap<u32, f64> {
        let value = |sample: &&Sample| Some((sample.cell.repeat, sample.values.get(name)?.value));
        self.samples.iter().filter_map(value).collect()
    }

    /// The group's verdict: what all repetitions agree on, else the one that claims least.
    pub fn verdict(&self) -> &Verdict {
        let measured = self.samples.iter().filter(|sample| sample.failed.is_none());
        least(measured.map(|sample| &sample.verdict)).unwrap_or(&Verdict::Failed)
    }

    /// The verdict of a value's own load, if it has one.
    pub fn own_verdict(&self, name: &str) -> Option<&Verdict> {
        least(self.samples.iter().filter_map(|sample| sample.values.get(name)?.verdict.as_ref()))
    }
}

/// The verdict that claims least.
fn least<'v>(verdicts: impl Iterator<Item = &'v Verdict>) -> Option<&'v Verdict> {
    verdicts.min_by_key(|verdict| match verdict {
        Verdict::Failed => 0,
        Verdict::TesterBound { .. } => 1,
        Verdict::NotLoaded => 2,
        Verdict::LinkBound => 3,
        Verdict::DeviceBound => 4,
    })
}
