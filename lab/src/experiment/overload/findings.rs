//! Whether a device degrades gracefully.

use super::way::{TRANSLATED, TUNNEL};
use crate::analyse::{Finding, Outcome, groups, points};
use crate::results::{Results, Sample, Verdict};
use std::collections::BTreeSet;

/// A device that is offered too much forwards at least this share of the most that it ever did.
const KEEPS: f64 = 0.8;
/// From this share of its core on, a device is at its limit.
const BUSY: f64 = 0.9;
/// A light subscriber loses at most this share.
const LIGHT_LOSS: f64 = 0.01;

/// Two statements for each device of a series.
pub fn findings(results: &Results) -> Vec<Finding> {
    [(TRANSLATED, ""), (TUNNEL, ", through the tunnel,")]
        .into_iter()
        .flat_map(|(series, through)| of_series(results, series, through))
        .collect()
}

fn of_series(results: &Results, series: &str, through: &str) -> Vec<Finding> {
    let is_of = |sample: &&Sample| sample.cell.experiment == "overload" && sample.cell.series == series;
    let samples: Vec<Sample> = results.samples.iter().filter(is_of).cloned().collect();
    let devices: BTreeSet<&str> = samples.iter().map(|sample| sample.cell.device.as_str()).collect();
    let of = |device: &&str| [keeps(&samples, device, through), spares(&samples, device, through)];
    devices.iter().flat_map(of).collect()
}

/// Values of a device along the load.
fn along(samples: &[Sample], device: &str, value: &str) -> Vec<(f64, f64)> {
    let groups = groups(samples);
    let of = points(&groups, "load", value).into_iter().filter(|(of, ..)| *of == device);
    of.map(|(_, load, estimate)| (load, estimate.mean)).collect()
}

/// Whether its core was at its limit in a row of more than its capacity. The tester's may have been, too: what the device forwarded is its own counter.
fn was_busy(samples: &[Sample], device: &str) -> bool {
    let own = samples.iter().filter(|sample| sample.cell.device == device && sample.cell.at("load") > 1.0);
    own.clone().any(|sample| sample.verdict == Verdict::DeviceBound)
        || own.map(|sample| sample.tester.device_core_busy).fold(0.0, f64::max) >= BUSY
}

/// The least that a device forwards of its best at loads above its capacity, and the load at which it does.
fn least_kept(samples: &[Sample], device: &str) -> Option<(f64, f64)> {
    let goodput = along(samples, device, "goodput");
    let most = goodput.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let above = goodput.iter().filter(|(load, _)| *load > 1.0 && most > 0.0);
    above.map(|(load, value)| (value / most, *load)).min_by(|a, b| a.0.total_cmp(&b.0))
}

/// Graceful degradation: nowhere above the capacity is less forwarded than at the capacity, but for a tolerance.
fn keeps(samples: &[Sample], device: &str, through: &str) -> Finding {
    let least = least_kept(samples, device);
    let (kept, load) = least.unwrap_or_default();
    let busy = was_busy(samples, device);
    let offered = along(samples, device, "offered").iter().map(|(_, value)| *value).fold(0.0, f64::max);
    Finding {
        statement: format!(
            "{device}{through} degrades gracefully: whatever is offered above its capacity, it forwards at least {:.0} % of its best.",
            KEEPS * 100.0
        ),
        outcome: match (kept >= KEEPS, busy && least.is_some()) {
            (_, false) => Outcome::NotShown,
            (true, true) => Outcome::Holds,
            (false, true) => Outcome::DoesNotHold,
        },
        evidence: format!(
            "{:.0} % at least, with {load} times its capacity asked for ({offered:.0} packets a second were offered at most{})",
            kept * 100.0,
            unless_busy(busy)
        ),
    }
}

fn spares(samples: &[Sample], device: &str, through: &str) -> Finding {
    let loss = along(samples, device, "established-loss");
    let above = loss.iter().filter(|(load, _)| *load > 1.0);
    let worst = above.map(|(_, value)| *value).fold(0.0, f64::max);
    let busy = was_busy(samples, device);
    Finding {
        statement: format!(
            "With {device}{through} a light subscriber loses at most {:.0} % while a heavy one overloads the device.",
            LIGHT_LOSS * 100.0
        ),
        outcome: match (worst <= LIGHT_LOSS, busy) {
            (_, false) => Outcome::NotShown,
            (true, true) => Outcome::Holds,
            (false, true) => Outcome::DoesNotHold,
        },
        evidence: format!("{:.2} % at most{}", worst * 100.0, unless_busy(busy)),
    }
}

/// Why nothing is shown.
fn unless_busy(busy: bool) -> String {
    match busy {
        true => String::new(),
        false => {
            "; in no row above its capacity was it at its limit: it lost less than a tenth, or the tester was at its limit".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Header, TesterCost, Unit, Value};
    use std::collections::BTreeMap;

    #[test]
    fn each_series_has_statements_of_its_own() {
        let of = |series: &str, load: f64, goodput: f64| {
            let mut sample = sample(load, goodput, 1.0);
            sample.cell.series = series.to_owned();
            sample
        };
        let samples = vec![
            of("udp", 0.9, 90.0),
            of("udp", 2.0, 95.0),
            of("tunnel", 0.9, 900.0),
            of("tunnel", 2.0, 300.0),
        ];
        let said = findings(&Results { header: Header::default(), samples });
        let of = |start: &str| said.iter().find(|it| it.statement.starts_with(start)).unwrap().outcome;
        assert_eq!(said.len(), 4);
        assert_eq!(of("one degrades gracefully"), Outcome::Holds, "goodput of the tunnel is another");
        assert_eq!(of("one, through the tunnel, degrades gracefully"), Outcome::DoesNotHold);
    }

    #[test]
    fn a_light_subscriber_is_spared_if_it_loses_nothing_above_the_capacity() {
        let with = |load: f64, loss: f64, busy: f64| {
            let mut sample = sample(load, 90.0, busy);
            sample.values.insert("established-loss".to_owned(), Value::one(loss, Unit::Lost));
            sample
        };
        let outcome = |samples: [Sample; 3]| spares(&samples, "one", "").outcome;
        let well = || [with(0.9, 0.0, 1.0), with(1.0, 0.0, 1.0), with(2.0, 0.0, 1.0)];
        assert_eq!(outcome(well()), Outcome::Holds);
        let [below, at, above] = well();
        assert_eq!(outcome([below.clone(), at.clone(), with(2.0, 0.05, 1.0)]), Outcome::DoesNotHold);
        assert_eq!(
            outcome([with(0.9, 0.05, 1.0), with(1.0, 0.05, 1.0), above]),
            Outcome::Holds,
            "not overloaded"
        );
        assert_eq!(outcome([below, at, with(2.0, 0.05, 0.5)]), Outcome::NotShown, "it was not at its limit");
    }

    fn sample(load: f64, goodput: f64, device_core_busy: f64) -> Sample {
        let cell = Cell {
            experiment: "overload".to_owned(),
            series: "udp".to_owned(),
            device: "one".to_owned(),
            point: BTreeMap::from([("load".to_owned(), load)]),
            repeat: 0,
        };
        Sample {
            cell,
            started: String::new(),
            took: 1.0,
            values: BTreeMap::from([("goodput".to_owned(), Value::one(goodput, Unit::PerSecond))]),
            not_measurable: BTreeMap::new(),
            verdict: Verdict::NotLoaded,
            tester: TesterCost { device_core_busy, ..TesterCost::default() },
            control: None,
            commands: Vec::new(),
            raw: Vec::new(),
            failed: None,
        }
    }

    #[test]
    fn what_is_forwarded_at_any_load_above_the_capacity_decides() {
        let outcome = |rows: &[(f64, f64)], busy| {
            let samples: Vec<Sample> =
                rows.iter().map(|(load, goodput)| sample(*load, *goodput, busy)).collect();
            keeps(&samples, "one", "").outcome
        };
        assert_eq!(outcome(&[(0.9, 90.0), (2.0, 100.0), (10.0, 85.0)], 1.0), Outcome::Holds);
        assert_eq!(outcome(&[(0.9, 90.0), (2.0, 70.0), (10.0, 95.0)], 1.0), Outcome::DoesNotHold, "at 2");
        assert_eq!(
            outcome(&[(0.9, 90.0), (1.0, 100.0)], 1.0),
            Outcome::NotShown,
            "nothing above the capacity"
        );
        assert_eq!(outcome(&[(0.9, 90.0), (2.0, 70.0)], 0.5), Outcome::NotShown, "it was not at its limit");
    }

    #[test]
    fn a_row_that_lost_a_tenth_shows_something_though_its_core_had_time() {
        let of = |verdict: Verdict| {
            let mut above = sample(2.0, 30.0, 0.5);
            above.verdict = verdict;
            let samples = vec![sample(0.9, 90.0, 0.5), above];
            let said = findings(&Results { header: Header::default(), samples });
            (said[0].outcome, said[0].evidence.clone())
        };
        assert_eq!(of(Verdict::DeviceBound).0, Outcome::DoesNotHold);
        let (outcome, evidence) = of(Verdict::TesterBound { why: String::new() });
        assert_eq!(outcome, Outcome::NotShown);
        assert!(evidence.contains("or the tester was at its limit"), "{evidence}");
    }
}
