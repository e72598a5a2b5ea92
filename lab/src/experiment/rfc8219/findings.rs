//! What follows from the benchmarks.

use super::frame_sizes::QUICK;
use crate::analyse::{Finding, Outcome, groups, points};
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
        all.push(cost(&throughput));
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

fn cost(samples: &[Sample]) -> Finding {
    let [smallest, _] = QUICK;
    let groups = groups(samples);
    let all = points(&groups, "frame", "frames-per-cpu-second");
    let of = |device: &str| {
        all.iter()
            .find(|(name, frame, _)| *name == device && *frame == smallest)
            .map(|(.., it)| (it.mean, it.half_width.unwrap_or(f64::INFINITY)))
    };
    let statement = format!(
        "sixway forwards {GOAL} times as many frames of {smallest} octets as tayga-masquerade for each second of CPU time."
    );
    match (of("sixway"), of("tayga-masquerade")) {
        (Some((ours, own)), Some((theirs, other))) => Finding {
            statement,
            // Intervals that overlap decide nothing.
            outcome: match (ours - own >= GOAL * (theirs + other), ours + own < GOAL * (theirs - other)) {
                (true, _) => Outcome::Holds,
                (_, true) => Outcome::DoesNotHold,
                (false, false) => Outcome::NotShown,
            },
            evidence: format!("{ours:.0} and {theirs:.0}"),
        },
        _ => Finding { statement, outcome: Outcome::NotShown, evidence: "not both were measured".to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, TesterCost, Unit, Value};
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
}
