//! What follows from the benchmarks.

use super::frame_sizes::QUICK;
use crate::analyse::{Finding, Outcome, groups, points};
use crate::results::{Results, Sample};

/// The goal: so much more for each second of CPU time than the other translator in user space.
const GOAL: f64 = 1.5;

/// Statements on the series of throughput and DNS64.
pub fn findings(results: &Results) -> Vec<Finding> {
    let samples: Vec<Sample> = results
        .samples
        .iter()
        .filter(|sample| sample.cell.experiment == "rfc8219")
        .filter(|sample| ["throughput", "dns64"].contains(&sample.cell.series.as_str()))
        .cloned()
        .collect();
    let has = |series: &str| samples.iter().any(|sample| sample.cell.series == series);
    let limits = (!samples.is_empty()).then(|| limits(&samples));
    limits.into_iter().chain(has("throughput").then(|| cost(&samples))).collect()
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
