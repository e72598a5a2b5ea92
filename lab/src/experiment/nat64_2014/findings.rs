//! The paper's statements.

use super::published::LOSS;
use crate::analyse::{Finding, Outcome, groups, points};
use crate::results::{Results, Sample, Verdict};

/// The most clients.
const CLIENTS: f64 = 8.0;

/// Whether the paper's statements hold.
pub fn findings(results: &Results) -> Vec<Finding> {
    let of = |series: &str| -> Vec<_> {
        let all = results.samples.iter().filter(|sample| sample.cell.experiment == "nat64-2014");
        all.filter(|sample| sample.cell.series == series).cloned().collect()
    };
    let mut findings = Vec::new();
    let icmp = of("icmp");
    if !icmp.is_empty() {
        findings.extend([losses(&icmp), stateful_is_ahead(&icmp), tables(&icmp)]);
    }
    let udp = of("udp");
    if !udp.is_empty() {
        findings.extend(GOALS.map(|(device, other, goal)| forwards(&udp, device, other, goal)));
    }
    findings
}

/// The goals: a device forwards this many times as many packets of long flows as another.
const GOALS: [(&str, &str, f64); 2] =
    [("sixway-xdp", "tayga-masquerade", 10.0), ("sixway-xdp", "kernel", 0.9)];

/// The most flows that were measured decide. A rate at which the tester was at its limit is a lower bound of the device's, so it may show that a goal is
/// reached by the device in front, and never that one is reached because of the other.
fn forwards(samples: &[Sample], device: &str, other: &str, goal: f64) -> Finding {
    let groups = groups(samples);
    let rates = points(&groups, "flows", "forwarded");
    let flows = rates.iter().map(|(_, flows, _)| *flows).fold(0.0, f64::max);
    let rate = |name: &str| {
        let found = rates.iter().find(|(of, at, _)| *of == name && *at == flows);
        found.map(|(.., rate)| (rate.mean, rate.half_width.unwrap_or(f64::INFINITY)))
    };
    let is_bound = |name: &str| {
        let mut of =
            groups.iter().filter(|group| group.cell.device == name && group.cell.at("flows") == flows);
        of.any(|group| *group.verdict() == Verdict::DeviceBound)
    };
    let statement =
        format!("{device} forwards {goal} times as many packets of long UDP flows as {other}, or more.");
    match (rate(device), rate(other)) {
        (Some((ours, own)), Some((theirs, others))) => Finding {
            statement,
            outcome: match (ours - own >= goal * (theirs + others), ours + own < goal * (theirs - others)) {
                (true, _) if is_bound(other) => Outcome::Holds,
                (_, true) if is_bound(device) => Outcome::DoesNotHold,
                _ => Outcome::NotShown,
            },
            evidence: format!("{ours:.0} and {theirs:.0} a second with {flows} flows"),
        },
        _ => Finding { statement, outcome: Outcome::NotShown, evidence: "not both were measured".to_owned() },
    }
}

fn losses(samples: &[Sample]) -> Finding {
    let groups = groups(samples);
    let all = points(&groups, "clients", "loss");
    let worst = all.iter().map(|(.., loss)| loss.mean).fold(0.0, f64::max);
    let loaded = groups.iter().any(|group| *group.verdict() == Verdict::DeviceBound);
    Finding {
        statement: format!("No translator loses more than {:.3} % of the requests.", LOSS * 100.0),
        outcome: match (worst <= LOSS, loaded) {
            (false, _) => Outcome::DoesNotHold,
            (true, true) => Outcome::Holds,
            (true, false) => Outcome::NotShown,
        },
        evidence: format!("{:.4} % at most; with a busy core: {}", worst * 100.0, yes(loaded)),
    }
}

const fn yes(it: bool) -> &'static str {
    if it { "yes" } else { "no" }
}

/// The paper's stateful translator was in the kernel, and its stateless one in user space with masquerade behind it; ours are both in user
/// space. CPU time is compared whichever part was at the limit.
fn stateful_is_ahead(samples: &[Sample]) -> Finding {
    let groups = groups(samples);
    let costs = points(&groups, "clients", "cpu-per-packet");
    let cost = |device: &str| {
        let found = costs.iter().find(|(of, clients, _)| *of == device && *clients == CLIENTS);
        found.map(|(.., cost)| (cost.mean, cost.half_width.unwrap_or(f64::INFINITY)))
    };
    let statement =
        "The stateful translator needs less CPU time for a packet than the stateless one with masquerade behind it."
            .to_owned();
    match (cost("sixway"), cost("tayga-masquerade")) {
        (Some((stateful, own)), Some((stateless, other))) => Finding {
            statement,
            // Intervals that overlap decide nothing.
            outcome: match (stateful + own < stateless - other, stateless + other < stateful - own) {
                (true, _) => Outcome::Holds,
                (_, true) => Outcome::DoesNotHold,
                (false, false) => Outcome::NotShown,
            },
            evidence: format!("{stateful:.0} ns against {stateless:.0} ns with eight clients"),
        },
        _ => Finding {
            statement,
            outcome: Outcome::NotShown,
            evidence: "sixway and tayga-masquerade were not both measured with eight clients".to_owned(),
        },
    }
}

/// A table that is full explains a loss; here none may be.
fn tables(samples: &[Sample]) -> Finding {
    let refused: f64 = samples
        .iter()
        .flat_map(|sample| ["insert-failed", "drop"].into_iter().filter_map(|name| sample.values.get(name)))
        .map(|value| value.value)
        .sum();
    let tracked = samples.iter().any(|sample| sample.values.contains_key("insert-failed"));
    Finding {
        statement: "The kernel's table of connections refuses nothing.".to_owned(),
        outcome: match (tracked, refused > 0.0) {
            (false, _) => Outcome::NotShown,
            (true, true) => Outcome::DoesNotHold,
            (true, false) => Outcome::Holds,
        },
        evidence: match tracked {
            true => format!("{refused} connections were refused"),
            false => "no device with such a table was measured".to_owned(),
        },
    }
}
