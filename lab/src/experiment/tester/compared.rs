//! The injected impairments, by the injector's ledger, and the measured ones.

use super::impairments::Kind;
use crate::impair::Ledger;
use crate::load::{Histogram, Outcome};
use crate::results::Unit;

/// The smaller share of a difference is allowed, if two standard errors are less.
const ALLOWED: f64 = 0.01;

/// Standard errors of n values of a normal distribution, in deviations by √n: that of their median, √(π/2), and that of half the distance of
/// their quantiles at one deviation to each side. A quantile q has the variance q (1 − q) / (n f²), where f is the density there.
const MEDIAN: f64 = 1.253_3;
const SPREAD: f64 = 0.961_7;

/// One comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// By the ledger.
    pub injected: f64,
    /// By the load.
    pub measured: f64,
    /// Their unit.
    pub unit: Unit,
    /// How much they may differ: 1 % of what was injected, or two standard errors, whichever is more.
    pub allowed: f64,
    /// The deviation of what the same load measures without the impairment: what the path and the machine do, in the same unit; 0 for counts.
    pub path: f64,
}

impl Compared {
    /// Whether the lab has found what was injected.
    pub fn agrees(&self) -> bool {
        (self.measured - self.injected).abs() <= self.allowed
    }

    /// Whether it has, as far as this can be measured on a machine with other work.
    pub fn agrees_within_path(&self) -> bool {
        (self.measured - self.injected).abs() <= self.allowed + self.path
    }
}

/// Compares what a load measured through an impaired link; `control` is the same load through one that did nothing. Delays and their deviation are
/// compared by quantiles (half, and one deviation to
/// each side of it), which a pause of the machine does not move; the control's are subtracted, deviations by their squares.
pub fn compare(kind: Kind, control: &Outcome, outcome: &Outcome, ledger: &Ledger) -> Compared {
    let sent = outcome.sent.max(1) as f64;
    let share = |injected: u64, measured: u64| {
        let (injected, measured) = (injected as f64 / ledger.packets.max(1) as f64, measured as f64 / sent);
        let error = (injected * (1.0 - injected) / sent).sqrt();
        Compared {
            injected,
            measured,
            unit: Unit::Lost,
            allowed: f64::max(ALLOWED * injected, 2.0 * error),
            path: 0.0,
        }
    };
    let times = ledger.times();
    let path = spread(&control.service);
    match kind {
        Kind::Loss => share(ledger.lost, outcome.lost),
        Kind::Duplicates => share(ledger.duplicated, outcome.duplicated),
        Kind::Reordering => share(ledger.reordered, outcome.reordered),
        Kind::Delay => {
            let injected = at(&times, 0.5);
            let measured = at(&outcome.service, 0.5) - at(&control.service, 0.5);
            let error = MEDIAN * spread(&times) / (times.len().max(1) as f64).sqrt();
            let allowed = f64::max(ALLOWED * injected, 2.0 * error);
            Compared { injected, measured, unit: Unit::Milliseconds, allowed, path }
        }
        Kind::Jitter => {
            let injected = spread(&times);
            let error = SPREAD * injected / (times.len().max(1) as f64).sqrt();
            let allowed = f64::max(ALLOWED * injected, 2.0 * error);
            let measured = (spread(&outcome.service).powi(2) - path.powi(2)).max(0.0).sqrt();
            Compared { injected, measured, unit: Unit::Milliseconds, allowed, path }
        }
    }
}

/// A quantile in milliseconds, between the limits of its bucket in proportion.
fn at(times: &Histogram, quantile: f64) -> f64 {
    let rank = quantile * times.len() as f64;
    let mut below = 0.0;
    for bucket in times.iter_recorded() {
        let (count, high) = (bucket.count_at_value() as f64, bucket.value_iterated_to());
        if below + count >= rank {
            let low = times.lowest_equivalent(high);
            let inside = ((rank - below) / count).clamp(0.0, 1.0);
            return (low as f64 + inside * times.equivalent_range(high) as f64) / 1e6;
        }
        below += count;
    }
    times.max() as f64 / 1e6
}

/// The standard deviation of a normal distribution with these quantiles, in milliseconds.
fn spread(times: &Histogram) -> f64 {
    (at(times, 0.841_344_7) - at(times, 0.158_655_3)) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Random;

    #[test]
    fn quantiles_are_finer_than_the_buckets_of_a_histogram() {
        let mut times = crate::load::histogram();
        (0..100_000).for_each(|number| times.saturating_record(9_000_000 + number * 10));
        for (quantile, expected) in [(0.1, 9.1), (0.5, 9.5), (0.841, 9.841)] {
            assert!((at(&times, quantile) - expected).abs() < 0.000_5, "{}", at(&times, quantile));
        }
        assert_eq!(at(&crate::load::histogram(), 0.5), 0.0);
    }

    #[test]
    fn standard_errors_are_those_of_quantiles() {
        const VALUES: usize = 1_000;
        let mut random = Random(9);
        let figures: Vec<[f64; 2]> = (0..400)
            .map(|_| {
                let mut times = crate::load::histogram();
                for _ in 0..VALUES {
                    times.saturating_record(((10.0 + random.normal()) * 1e6) as u64);
                }
                [at(&times, 0.5), spread(&times)]
            })
            .collect();
        let deviation = |which: usize| {
            let mean = figures.iter().map(|all| all[which]).sum::<f64>() / figures.len() as f64;
            let squares = figures.iter().map(|all| (all[which] - mean).powi(2)).sum::<f64>();
            (squares / figures.len() as f64).sqrt() * (VALUES as f64).sqrt()
        };
        for (which, expected) in [(0, MEDIAN), (1, SPREAD)] {
            let ratio = deviation(which) / expected;
            assert!((0.88..1.12).contains(&ratio), "{which}: {ratio}");
        }
    }

    fn through(delays: &[f64]) -> Outcome {
        let mut outcome = Outcome { sent: delays.len() as u64, ..Outcome::default() };
        delays.iter().for_each(|delay| outcome.answer_due(0, 0, (delay * 1e6) as u64));
        outcome
    }

    fn ledger(delays: &[f64]) -> Ledger {
        let waited = delays.iter().map(|delay| [(delay * 1e6) as u64, 1]).collect();
        Ledger { packets: delays.len() as u64, waited, ..Ledger::default() }
    }

    #[test]
    fn delays_are_compared_without_the_path_and_without_pauses_of_the_machine() {
        let mut random = Random(5);
        let delays: Vec<f64> = (0..20_000).map(|_| 10.0 + random.normal()).collect();
        let (control, ledger) = (through(&[0.2; 100]), ledger(&delays));
        let mut seen: Vec<f64> = delays.iter().map(|delay| delay + 0.2).collect();
        seen.iter_mut().take(20).for_each(|delay| *delay += 40.0);
        for kind in [Kind::Delay, Kind::Jitter] {
            let compared = compare(kind, &control, &through(&seen), &ledger);
            assert!(compared.agrees(), "{kind:?} {compared:?}");
        }
        let wrong: Vec<f64> = delays.iter().map(|delay| delay * 1.05).collect();
        for kind in [Kind::Delay, Kind::Jitter] {
            let compared = compare(kind, &control, &through(&wrong), &ledger);
            assert!(!compared.agrees(), "{kind:?} {compared:?}");
        }
    }

    #[test]
    fn shares_are_compared_with_what_the_ledger_counted() {
        let ledger =
            Ledger { packets: 100_000, lost: 1_000, duplicated: 500, reordered: 900, ..Ledger::default() };
        let outcome =
            Outcome { sent: 100_000, lost: 1_004, duplicated: 500, reordered: 800, ..Outcome::default() };
        let agrees = |kind| compare(kind, &Outcome::default(), &outcome, &ledger).agrees();
        assert!(agrees(Kind::Loss) && agrees(Kind::Duplicates) && !agrees(Kind::Reordering));
    }
}
