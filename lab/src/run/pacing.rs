//! Time: how much is left, and what fits into a budget. It is pure: the caller passes the time that a measurement took.

use crate::failure::Result;
use crate::results::{Asked, Cell};
use std::collections::BTreeMap;

/// The smallest share of the scale that a budget leaves.
const SMALLEST: f64 = 0.05;
/// A budget is planned to be used up to this share: estimates are estimates.
const PLANNED: f64 = 0.95;

/// What was measured of a plan, and what is to come.
pub(super) struct Pacing<'a> {
    cells: &'a [Cell],
    /// Seconds that each cell takes, by its experiment.
    estimates: Vec<f64>,
    took: Vec<Option<f64>>,
    /// Seconds for all of it.
    limit: Option<f64>,
    /// The decision on a round: it is measured whole or not at all, so that its devices can be compared.
    decided: BTreeMap<(String, String, u32), bool>,
    /// Seconds for first rounds of an experiment, once there is too little time for those of all.
    allotted: BTreeMap<String, f64>,
}

impl<'a> Pacing<'a> {
    /// A plan with the seconds that each cell will take, and those that there are for all of it.
    pub(super) fn new(cells: &'a [Cell], estimates: Vec<f64>, limit: Option<f64>) -> Self {
        Self {
            cells,
            took: vec![None; estimates.len()],
            estimates,
            limit,
            decided: BTreeMap::new(),
            allotted: BTreeMap::new(),
        }
    }

    /// A cell was measured in this number of seconds.
    pub(super) fn note(&mut self, at: usize, took: f64) {
        if let Some(there) = self.took.get_mut(at) {
            *there = Some(there.unwrap_or(0.0) + took);
        }
    }

    /// Seconds until the end, by what the experiments took so far; never more than the budget has.
    pub(super) fn seconds_left(&self) -> f64 {
        let left: f64 =
            (0..self.cells.len()).filter(|at| self.is_open(*at)).map(|at| self.expected(at)).sum();
        self.limit.map_or(left, |limit| left.min((limit - self.spent()).max(0.0)))
    }

    /// Whether there is time for a cell. First rounds come before repetitions, and a repetition must leave the time that they need.
    pub(super) fn has_time_for(&mut self, at: usize) -> bool {
        let (Some(limit), Some(cell)) = (self.limit, self.cells.get(at)) else { return true };
        if cell.repeat == 0 {
            return self.spent() + self.expected(at) <= limit && self.is_within_its_share(limit, at, cell);
        }
        let round = (cell.experiment.clone(), cell.series.clone(), cell.repeat);
        if let Some(decision) = self.decided.get(&round) {
            return *decision && self.spent() <= limit;
        }
        let decision = self.has_time_for_round(limit, cell);
        self.decided.insert(round, decision);
        decision
    }

    /// Whether a first round is within the experiment's share of a time that is too short for all of them: each experiment loses the same part of
    /// its cells, those at its end.
    fn is_within_its_share(&mut self, limit: f64, at: usize, cell: &Cell) -> bool {
        let first = |other: &Cell| other.repeat == 0;
        let own = |other: &Cell| first(other) && other.experiment == cell.experiment;
        let to_come = |is_meant: &dyn Fn(&Cell) -> bool| -> f64 {
            let open = (at..self.cells.len())
                .filter(|other| self.took[*other].is_none() && is_meant(&self.cells[*other]));
            open.map(|other| self.expected(other)).sum()
        };
        let part = (limit - self.spent()) / to_come(&first);
        let measured = self.cells.iter().zip(&self.took).filter(|(other, _)| own(other));
        let used: f64 = measured.filter_map(|(_, took)| *took).sum();
        if part < 1.0 && !self.allotted.contains_key(&cell.experiment) {
            // One cell at least.
            let share = (part * to_come(&own)).max(if used > 0.0 { 0.0 } else { self.expected(at) });
            self.allotted.insert(cell.experiment.clone(), used + share);
        }
        self.allotted
            .get(&cell.experiment)
            .is_none_or(|allotted| used + self.expected(at) <= allotted * 1.000_001)
    }

    fn has_time_for_round(&self, limit: f64, cell: &Cell) -> bool {
        let sum = |is_meant: &dyn Fn(&Cell) -> bool| -> f64 {
            let open = (0..self.cells.len()).filter(|at| self.is_open(*at) && is_meant(&self.cells[*at]));
            open.map(|at| self.expected(at)).sum()
        };
        let in_round = |other: &Cell| {
            other.experiment == cell.experiment && other.series == cell.series && other.repeat == cell.repeat
        };
        let (first, round, repetitions) =
            (sum(&|other| other.repeat == 0), sum(&in_round), sum(&|other| other.repeat > 0));
        let rest = limit - self.spent() - first;
        // What is missing is taken from the last rounds of all experiments alike.
        let rounds = f64::from(self.cells.iter().map(|cell| cell.repeat).max().unwrap_or(0));
        let share = if repetitions > 0.0 { rest / repetitions } else { 1.0 };
        let open = self.cells.iter().zip(&self.took).filter(|(cell, took)| cell.repeat > 0 && took.is_none());
        let least = open.map(|(cell, _)| cell.repeat).min().unwrap_or(1);
        let is_fair = cell.repeat <= least || f64::from(cell.repeat) <= share * rounds;
        round <= rest && (share >= 1.0 || is_fair)
    }

    fn is_open(&self, at: usize) -> bool {
        let cell = &self.cells[at];
        let round = (cell.experiment.clone(), cell.series.clone(), cell.repeat);
        self.took[at].is_none() && self.decided.get(&round) != Some(&false)
    }

    fn spent(&self) -> f64 {
        self.took.iter().flatten().sum()
    }

    /// The estimate, corrected by what the same series took; what its experiment took counts as much as one more cell of the series.
    fn expected(&self, at: usize) -> f64 {
        let (cell, estimate) = (&self.cells[at], self.estimates[at]);
        let (took, estimated) = self.measured(|other| other.experiment == cell.experiment);
        let of_experiment = if estimated > 0.0 { took / estimated } else { 1.0 };
        let is_same = |other: &Cell| other.experiment == cell.experiment && other.series == cell.series;
        let (took, estimated) = self.measured(is_same);
        let all = estimated + estimate;
        let factor = if all > 0.0 { (took + estimate * of_experiment) / all } else { 1.0 };
        estimate * factor
    }

    /// Seconds that such cells took as far as they are measured, and those that were estimated for them.
    fn measured(&self, is_meant: impl Fn(&Cell) -> bool) -> (f64, f64) {
        let (mut took, mut estimated) = (0.0, 0.0);
        for (at, seconds) in self.took.iter().enumerate() {
            if let Some(seconds) = seconds.filter(|_| is_meant(&self.cells[at])) {
                took += seconds;
                estimated += self.estimates[at];
            }
        }
        (took, estimated)
    }
}

/// Fits scale and repetitions to a budget of seconds: the largest scale up to `highest` with all repetitions, else with one. What still does not
/// fit is left out while it runs.
///
/// # Errors
/// An experiment does not know what was asked for.
pub(super) fn fit(
    asked: &Asked,
    seconds: f64,
    highest: f64,
    is_fixed: bool,
    estimate: impl Fn(&Asked) -> Result<f64>,
) -> Result<Asked> {
    let with = |scale: f64, repeats: u32| Asked { scale, repeats, ..asked.clone() };
    let fits = |asked: &Asked| Ok(estimate(asked)? <= seconds * PLANNED);
    let lowest = if is_fixed { highest } else { highest * SMALLEST };
    for repeats in (1..=asked.repeats).rev() {
        if !fits(&with(lowest, repeats))? {
            continue;
        }
        if fits(&with(highest, repeats))? {
            return Ok(with(highest, repeats));
        }
        let (mut low, mut high) = (lowest, highest);
        for _ in 0..24 {
            let middle = (low * high).sqrt();
            if fits(&with(middle, repeats))? { low = middle } else { high = middle }
        }
        return Ok(with(two_digits(low), repeats));
    }
    Ok(with(lowest, 1))
}

/// Rounded down to two digits.
fn two_digits(value: f64) -> f64 {
    let unit = 10_f64.powf(value.log10().floor() - 1.0);
    // Written and read, so that it is the number that people type.
    let rounded = (value / unit * (1.0 + 1e-9)).floor() * unit;
    format!("{rounded:.1e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(experiments: &[&str], repeats: u32) -> Vec<Cell> {
        let cell = |experiment: &str, device: &str, repeat: u32| Cell {
            experiment: experiment.to_owned(),
            series: "s".to_owned(),
            device: device.to_owned(),
            point: BTreeMap::new(),
            repeat,
        };
        let round = |experiment, repeat| ["a", "b"].map(|device| cell(experiment, device, repeat));
        experiments.iter().flat_map(|it| (0..repeats).flat_map(move |repeat| round(it, repeat))).collect()
    }

    /// Measures with a clock that is made up: each cell takes a multiple of its estimate. The seconds, and what was measured.
    fn run(cells: &[Cell], estimate: f64, factor: impl Fn(&Cell) -> f64, limit: f64) -> (f64, Vec<String>) {
        let mut pacing = Pacing::new(cells, vec![estimate; cells.len()], Some(limit));
        let (mut clock, mut measured) = (0.0, Vec::new());
        for (at, cell) in cells.iter().enumerate() {
            if pacing.has_time_for(at) {
                let took = estimate * factor(cell);
                clock += took;
                pacing.note(at, took);
                measured.push(cell.key());
            }
        }
        (clock, measured)
    }

    #[test]
    fn a_budget_of_minutes_is_kept_within_a_tenth() {
        for wrong in [0.5, 0.9, 1.0, 1.3, 2.0, 3.0] {
            let cells = cells(&["x", "y", "z"], 5);
            let (clock, measured) = run(&cells, 20.0, |_| wrong, 600.0);
            assert!(clock <= 660.0, "{wrong}: {clock} s");
            let all = 600.0 * wrong <= 600.0;
            assert!(all == (measured.len() == cells.len()) || wrong == 1.0, "{wrong}: {measured:?}");
            if wrong <= 3.0 {
                let first = measured.iter().filter(|key| key.ends_with("#0")).count();
                assert_eq!(first, 6, "each experiment is measured once at least: {measured:?}");
            }
        }
    }

    #[test]
    fn a_round_is_measured_whole_or_not_at_all() {
        let cells = cells(&["x", "y"], 3);
        let (_, measured) = run(&cells, 10.0, |_| 2.0, 120.0);
        for experiment in ["x", "y"] {
            for repeat in 0..3 {
                let of_round =
                    |key: &&String| key.starts_with(experiment) && key.ends_with(&format!("#{repeat}"));
                let count = measured.iter().filter(of_round).count();
                assert!(count != 1, "{experiment} round {repeat}: {measured:?}");
            }
        }
    }

    #[test]
    fn what_is_left_out_for_want_of_time_is_left_out_of_all_experiments_alike() {
        let cells: Vec<Cell> =
            cells(&["x", "y", "z"], 5).into_iter().map(|cell| Cell { repeat: 0, ..cell }).collect();
        for (wrong, expected) in [(1.0, [5, 5, 5]), (0.5, [10, 10, 10])] {
            let (clock, measured) = run(&cells, 20.0, |_| wrong, 300.0);
            let count = |name: &str| measured.iter().filter(|key| key.starts_with(name)).count();
            assert_eq!(["x", "y", "z"].map(count), expected, "{wrong}");
            assert!(clock <= 300.0, "{clock}");
        }
        // Estimates are corrected by what the experiment took, and no experiment is left out whole.
        let (clock, measured) = run(&cells, 20.0, |_| 3.0, 300.0);
        for name in ["x", "y", "z"] {
            assert!(measured.iter().any(|key| key.starts_with(name)), "{name}: {measured:?}");
        }
        assert!(clock <= 330.0, "{clock}");
    }

    #[test]
    fn the_time_left_follows_from_what_was_measured() {
        let cells = cells(&["x"], 3);
        let mut pacing = Pacing::new(&cells, vec![10.0; 6], None);
        assert_eq!(pacing.seconds_left(), 60.0);
        pacing.note(0, 5.0);
        assert_eq!(pacing.seconds_left(), 25.0);
        let mut short = Pacing::new(&cells, vec![10.0; 6], Some(20.0));
        short.note(0, 5.0);
        assert_eq!(short.seconds_left(), 15.0);
    }

    #[test]
    fn what_a_series_took_is_expected_of_its_other_cells_and_less_of_other_series() {
        let cells: Vec<Cell> = cells(&["x"], 4)
            .into_iter()
            .enumerate()
            .map(|(at, cell)| Cell { series: ["s", "t"][at / 4].to_owned(), repeat: 0, ..cell })
            .collect();
        let mut pacing = Pacing::new(&cells, vec![10.0; 8], None);
        (0..3).for_each(|at| pacing.note(at, 5.0));
        assert_eq!((pacing.expected(3), pacing.expected(4)), (5.0, 5.0), "nothing else is known");
        // Of the second series the first cell takes much longer: the next ones are expected to take as long as that, nearly.
        pacing.note(3, 5.0);
        pacing.note(4, 45.0);
        assert_eq!(pacing.expected(5), 29.0, "45 s of one cell, and 13 s of a cell of the experiment");
        pacing.note(5, 45.0);
        pacing.note(6, 45.0);
        assert!((38.0..45.0).contains(&pacing.expected(7)), "{}", pacing.expected(7));
    }

    #[test]
    fn scale_and_repetitions_are_fitted() {
        let asked = Asked { scale: 0.02, repeats: 3, ..Asked::default() };
        // A minute for each round, and ten minutes at scale 1.
        let estimate = |asked: &Asked| Ok(f64::from(asked.repeats) * (60.0 + 600.0 * asked.scale));
        let fitted = |seconds, highest, is_fixed| {
            let it = fit(&asked, seconds, highest, is_fixed, estimate).unwrap();
            (it.scale, it.repeats)
        };
        assert_eq!(fitted(3_600.0, 1.0, false), (1.0, 3));
        assert_eq!(fitted(600.0, 1.0, false), (0.21, 3));
        assert_eq!(fitted(150.0, 1.0, false), (0.13, 1), "not even the smallest scale fits three times");
        assert_eq!(fitted(1.0, 1.0, false), (0.05, 1), "what does not fit is left out while it runs");
        assert_eq!(fitted(160.0, 0.02, true), (0.02, 2), "the scale was asked for");
    }
}
