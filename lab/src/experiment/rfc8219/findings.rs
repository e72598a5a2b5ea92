//! What follows from the benchmarks.

use super::frame_sizes::QUICK;
use crate::analyse::{Bearing, Finding, Group, Outcome, View};
use crate::results::{Results, Sample, Verdict};

/// The goal: so much more for each second of CPU time than the other translator in user space.
const GOAL: f64 = 1.5;

/// Statements on the series of throughput, DNS64 and concurrent connections.
pub fn findings(results: &Results) -> Vec<Finding> {
    let of = |series: &str| -> Vec<Sample> {
        let is_of = |sample: &&Sample| sample.cell.experiment == "rfc8219" && sample.cell.series == series;
        results.samples.iter().filter(is_of).cloned().collect()
    };
    let (throughput, together) = (of("throughput"), of("tcp-capacity"));
    let searched = [throughput.clone(), of("dns64")].concat();
    let mut all = Vec::new();
    if !searched.is_empty() {
        all.push(limits(&searched));
    }
    if !throughput.is_empty() {
        all.push(cost(&View::of(results, "rfc8219")));
    }
    if !together.is_empty() {
        all.push(capacities(&together));
    }
    all
}

/// A search that ended at a bound of the tester is a least value, and not the device's capacity.
fn capacities(samples: &[Sample]) -> Finding {
    let told = |sample: &Sample| {
        let (device, most) = (&sample.cell.device, sample.cell.at("connections"));
        let open = sample.values.get("capacity").map_or(f64::NAN, |value| value.value);
        match &sample.verdict {
            Verdict::DeviceBound => format!("{device} has {open:.0}, of up to {most:.0}"),
            Verdict::TesterBound { why } => format!("{device} has {open:.0} at least: {why}"),
            Verdict::LinkBound | Verdict::NotLoaded | Verdict::Failed => format!("{device} was not measured"),
        }
    };
    let all_are_devices = samples.iter().all(|sample| sample.verdict == Verdict::DeviceBound);
    Finding {
        statement: "Each number of concurrent TCP connections is the limit of the device.".to_owned(),
        outcome: if all_are_devices { Outcome::Holds } else { Outcome::NotShown },
        evidence: samples.iter().map(told).collect::<Vec<_>>().join("; "),
    }
}

/// A search that passed at the tester's highest rate says nothing of the device's.
fn limits(samples: &[Sample]) -> Finding {
    let ceiling = |sample: &&Sample| sample.values.get("at-ceiling").is_some_and(|value| value.value > 0.0);
    let at_ceiling: Vec<String> = samples
        .iter()
        .filter(ceiling)
        .map(|sample| match sample.cell.series.as_str() {
            "dns64" => format!("{} with queries", sample.cell.device),
            _ => format!("{} with {} octets", sample.cell.device, sample.cell.at("frame")),
        })
        .collect();
    Finding {
        statement: "Every search ended below the tester's own limit.".to_owned(),
        outcome: if at_ceiling.is_empty() { Outcome::Holds } else { Outcome::NotShown },
        evidence: match at_ceiling.is_empty() {
            true => format!("{} searches", samples.len()),
            false => format!("the tester was the limit of {}", at_ceiling.join(", ")),
        },
    }
}

fn cost(view: &View<'_>) -> Finding {
    let [smallest, _] = QUICK;
    let value = "frames-per-cpu-second";
    let of = |device: &str| {
        let is_it = |group: &&Group<'_>| {
            group.cell.series == "throughput"
                && group.cell.device == device
                && group.cell.at("frame") == smallest
        };
        view.groups.iter().find(is_it)
    };
    let bearing = match (of("sixway"), of("tayga-masquerade")) {
        (Some(ours), Some(theirs)) => view.ratio_of((ours, value), (theirs, value)),
        _ => Bearing::Nothing("not both were measured".to_owned()),
    };
    let interval = bearing.ratio().map(|ratio| ratio.interval);
    Finding {
        statement: format!(
            "sixway forwards {GOAL} times as many frames of {smallest} octets as tayga-masquerade for each second of CPU time."
        ),
        // An interval with the goal in it decides nothing.
        outcome: match interval {
            Some((low, _)) if low >= GOAL => Outcome::Holds,
            Some((_, high)) if high < GOAL => Outcome::DoesNotHold,
            _ => Outcome::NotShown,
        },
        evidence: format!("{}: {}", bearing.text(), bearing.explained()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Header, TesterCost, Unit, Value};
    use std::collections::BTreeMap;

    fn sample(device: &str, open: f64, verdict: Verdict) -> Sample {
        Sample {
            cell: Cell {
                experiment: "rfc8219".to_owned(),
                series: "tcp-capacity".to_owned(),
                device: device.to_owned(),
                point: BTreeMap::from([("connections".to_owned(), 65_536.0)]),
                repeat: 0,
            },
            started: String::new(),
            took: 1.0,
            values: BTreeMap::from([("capacity".to_owned(), Value::one(open, Unit::Count))]),
            not_measurable: BTreeMap::new(),
            verdict,
            tester: TesterCost::default(),
            control: None,
            commands: Vec::new(),
            raw: Vec::new(),
            failed: None,
        }
    }

    #[test]
    fn a_capacity_at_the_testers_limit_is_a_least_value() {
        let ours = sample("sixway", 65_536.0, Verdict::TesterBound { why: "no more were tried".to_owned() });
        let theirs = sample("kernel-masquerade", 50_000.0, Verdict::DeviceBound);
        let finding = capacities(&[ours, theirs.clone()]);
        assert_eq!(finding.outcome, Outcome::NotShown);
        assert_eq!(
            finding.evidence,
            "sixway has 65536 at least: no more were tried; kernel-masquerade has 50000, of up to 65536"
        );
        assert_eq!(capacities(&[theirs]).outcome, Outcome::Holds);
    }

    #[test]
    fn the_cost_of_a_frame_is_compared_by_rounds_and_counts_the_noise() {
        let rounds = |device: &str, frames: f64| {
            let round = |repeat: u32| {
                let mut sample = sample(device, 1.0, Verdict::DeviceBound);
                sample.cell.series = "throughput".to_owned();
                sample.cell.repeat = repeat;
                sample.cell.point = BTreeMap::from([("frame".to_owned(), QUICK[0])]);
                let each = frames * (1.0 + 0.1 * f64::from(repeat));
                let value = Value::one(each, Unit::PerCpuSecond);
                sample.values = BTreeMap::from([("frames-per-cpu-second".to_owned(), value)]);
                sample.control = Some(3.0 + 0.03 * f64::from(repeat));
                sample
            };
            (0..3).map(round).collect::<Vec<_>>()
        };
        let outcome = |ours: f64| {
            let samples = [rounds("sixway", ours), rounds("tayga-masquerade", 100_000.0)].concat();
            let all = findings(&Results { header: Header::default(), samples });
            all.into_iter().find(|it| it.statement.starts_with("sixway forwards")).unwrap().outcome
        };
        // The rounds differ by a fifth, both alike.
        assert_eq!(outcome(160_000.0), Outcome::Holds);
        assert_eq!(outcome(151_000.0), Outcome::NotShown, "within twice the noise");
        assert_eq!(outcome(140_000.0), Outcome::DoesNotHold);
    }
}
