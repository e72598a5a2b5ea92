//! The paper's statements.

use super::published::LOSS;
use super::steady;
use crate::analyse::{Bearing, Finding, Group, Outcome, View, greatest, groups};
use crate::device::find;
use crate::results::{Results, Sample, Verdict};

/// The most clients.
const CLIENTS: f64 = 8.0;

/// Whether the paper's statements hold.
pub fn findings(results: &Results) -> Vec<Finding> {
    let of = |series: &str| -> Vec<_> {
        let all = results.samples.iter().filter(|sample| sample.cell.experiment == "nat64-2014");
        all.filter(|sample| sample.cell.series == series).cloned().collect()
    };
    let view = View::of(results, "nat64-2014");
    let mut findings = Vec::new();
    let icmp = of("icmp");
    if !icmp.is_empty() {
        findings.extend([losses(&icmp), stateful_is_ahead(&view), tables(&icmp)]);
    }
    if view.groups.iter().any(|group| group.cell.series == "udp") {
        findings.extend(GOALS.map(|(device, other, goal)| forwards(&view, device, other, goal)));
    }
    findings.extend(steady::findings(&view));
    findings.extend(BY_TUN.into_iter().filter_map(|load| for_cpu_time(&view, load)));
    findings
}

/// Our goal by a TUN device alone: so much more for each second of CPU time than the other translator in user space.
const MORE_BY_TUN: f64 = 1.5;
/// Loads: what is counted, its series, axis and value.
const BY_TUN: [(&str, &str, &str, &str); 3] = [
    ("echo packets", "icmp", "clients", "packets-per-cpu-second"),
    ("files", "http-8", "octets", "files-per-cpu-second"),
    ("packets of long UDP flows", "udp", "flows", "packets-per-cpu-second"),
];

/// The last place on the axis decides.
fn for_cpu_time(view: &View<'_>, (what, series, axis, value): (&str, &str, &str, &str)) -> Option<Finding> {
    let ours =
        view.groups.iter().filter(|group| group.cell.series == series && group.cell.device == "sixway");
    let ours = ours.max_by(|a, b| a.cell.at(axis).total_cmp(&b.cell.at(axis)))?;
    let theirs = view.group(series, "tayga-masquerade", &ours.cell.point)?;
    let bearing = view.ratio(ours, theirs, value);
    let outcome = match &bearing {
        Bearing::Number(ratio) | Bearing::Direction(ratio) | Bearing::Equal(ratio) => match ratio.interval {
            (low, _) if low >= MORE_BY_TUN => Outcome::Holds,
            (_, high) if high < MORE_BY_TUN => Outcome::DoesNotHold,
            _ => Outcome::NotShown,
        },
        Bearing::Nothing(_) => Outcome::NotShown,
    };
    let place = format!("{} {axis}", ours.cell.at(axis));
    Some(Finding {
        statement: format!(
            "sixway forwards {MORE_BY_TUN} times as many {what} as tayga-masquerade for each second of CPU time, or more."
        ),
        outcome,
        evidence: format!("{} with {place}: {}", bearing.text(), bearing.explained()),
    })
}

/// The goals: a device forwards this many times as many packets of long flows as another.
const GOALS: [(&str, &str, f64); 2] =
    [("sixway-xdp", "tayga-masquerade", 10.0), ("sixway-xdp", "kernel", 0.9)];

/// The most flows that were measured decide. A rate at which the tester was at its limit is a lower bound of the device's, so it may show that a goal is
/// reached by the device in front, and never that one is reached because of the other.
fn forwards(view: &View<'_>, device: &str, other: &str, goal: f64) -> Finding {
    let rows = || view.groups.iter().filter(|group| group.cell.series == "udp");
    let flows = rows().map(|group| group.cell.at("flows")).fold(0.0, f64::max);
    let row = |name: &str| {
        rows()
            .find(|group| group.cell.device == name && group.cell.at("flows") == flows)
            .filter(|group| group.value("forwarded").is_some())
    };
    let statement =
        format!("{device} forwards {goal} times as many packets of long UDP flows as {other}, or more.");
    let (Some(ours), Some(theirs)) = (row(device), row(other)) else {
        return Finding {
            statement,
            outcome: Outcome::NotShown,
            evidence: "not both were measured".to_owned(),
        };
    };
    // Each rate may be a lower bound of the device's.
    let bearing = view.ratio_of_counters((ours, "forwarded"), (theirs, "forwarded"));
    let is_bound = |row: &Group<'_>| *row.verdict() == Verdict::DeviceBound;
    let outcome = match bearing.ratio().map(|ratio| ratio.interval) {
        Some((low, _)) if low >= goal && (is_bound(theirs) || loses(theirs)) => Outcome::Holds,
        Some((_, high)) if high < goal && is_bound(ours) => Outcome::DoesNotHold,
        _ => Outcome::NotShown,
    };
    let mean = |row: &Group<'_>| row.value("forwarded").map_or(f64::NAN, |(rate, _)| rate.mean);
    Finding {
        statement,
        outcome,
        evidence: format!(
            "{:.0} and {:.0} a second with {flows} flows; {}: {}",
            mean(ours),
            mean(theirs),
            bearing.text(),
            bearing.explained()
        ),
    }
}

/// A kernel's CPU time is counted in ticks, so that its core seldom seems to be full. Who loses a tenth of what is offered is at its limit, too.
fn loses(row: &Group<'_>) -> bool {
    let of = row.samples.iter().filter(|sample| sample.verdict == Verdict::NotLoaded);
    of.filter_map(|sample| sample.values.get("loss")).any(|loss| loss.value >= AT_THE_LIMIT)
}

/// What a device loses at least that was offered more than it can forward, while the tester was not at its limit.
const AT_THE_LIMIT: f64 = 0.1;

/// Only rows count in which a translator was at its limit, and each translator takes one: what is lost in others may be the tester's loss.
fn losses(samples: &[Sample]) -> Finding {
    let groups = groups(samples);
    let is_translator = |name: &str| find(name).is_none_or(|device| !device.is_plain());
    let own = || groups.iter().filter(|group| is_translator(&group.cell.device));
    let busy = || own().filter(|group| *group.verdict() == Verdict::DeviceBound);
    let has_busy = |group: &Group<'_>| busy().any(|row| row.cell.device == group.cell.device);
    let mut without: Vec<_> =
        own().filter(|group| !has_busy(group)).map(|group| group.cell.device.as_str()).collect();
    without.sort_unstable();
    without.dedup();
    let in_busy = greatest(busy(), "loss");
    let unshown = match &without[..] {
        [] => String::new(),
        _ => format!("; without a device-bound row: {}", without.join(", ")),
    };
    Finding {
        statement: format!("No translator loses more than {:.3} % of the requests.", LOSS * 100.0),
        outcome: match (in_busy <= LOSS, without.is_empty() && own().count() > 0) {
            (false, _) => Outcome::DoesNotHold,
            (true, true) => Outcome::Holds,
            (true, false) => Outcome::NotShown,
        },
        evidence: format!(
            "{:.4} % at most in {} device-bound rows, {:.4} % in all rows{unshown}",
            in_busy * 100.0,
            busy().count(),
            greatest(own(), "loss") * 100.0
        ),
    }
}

/// The paper's stateful translator was in the kernel, and its stateless one in user space with masquerade behind it; ours are both in user
/// space. CPU time is compared whichever part was at the limit.
fn stateful_is_ahead(view: &View<'_>) -> Finding {
    let row = |device: &str| view.group("icmp", device, &[("clients".to_owned(), CLIENTS)].into());
    let statement =
        "The stateful translator needs less CPU time for a packet than the stateless one with masquerade behind it."
            .to_owned();
    let (Some(stateful), Some(stateless)) = (row("sixway"), row("tayga-masquerade")) else {
        let evidence = "sixway and tayga-masquerade were not both measured with eight clients".to_owned();
        return Finding { statement, outcome: Outcome::NotShown, evidence };
    };
    let bearing = view.ratio(stateful, stateless, "cpu-per-packet");
    let outcome = Outcome::from(bearing.is_below());
    let evidence = format!("{} with eight clients: {}", bearing.text(), bearing.explained());
    Finding { statement, outcome, evidence }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Header, TesterCost, Unit, Value};
    use std::collections::BTreeMap;

    /// Three rounds of a device whose value is this, with 1 % of noise.
    fn rounds(
        (series, axis, at): (&str, &str, f64),
        device: &str,
        (name, value, unit): (&str, f64, Unit),
        verdict: &Verdict,
    ) -> Vec<Sample> {
        let round = |repeat: u32| Sample {
            cell: Cell {
                experiment: "nat64-2014".to_owned(),
                series: series.to_owned(),
                device: device.to_owned(),
                point: BTreeMap::from([(axis.to_owned(), at)]),
                repeat,
            },
            started: String::new(),
            took: 1.0,
            values: BTreeMap::from([(
                name.to_owned(),
                Value::one(value * (1.0 + 0.01 * f64::from(repeat)), unit),
            )]),
            not_measurable: BTreeMap::new(),
            verdict: verdict.clone(),
            tester: TesterCost::default(),
            control: Some(3.0 + 0.03 * f64::from(repeat)),
            commands: Vec::new(),
            raw: Vec::new(),
            failed: None,
        };
        (0..3).map(round).collect()
    }

    fn results(samples: Vec<Sample>) -> Results {
        let header = Header::default();
        Results { header, samples }
    }

    fn bound() -> Verdict {
        Verdict::TesterBound { why: String::new() }
    }

    #[test]
    fn a_goal_of_long_flows_takes_a_device_behind_that_is_at_its_limit() {
        let rate = |device, value, verdict: &Verdict| {
            rounds(("udp", "flows", 64.0), device, ("forwarded", value, Unit::PerSecond), verdict)
        };
        let outcome = |ours: (f64, &Verdict), theirs: (f64, &Verdict)| {
            let samples = [rate("sixway-xdp", ours.0, ours.1), rate("kernel", theirs.0, theirs.1)].concat();
            let findings = findings(&results(samples));
            findings.iter().find(|finding| finding.statement.contains("0.9 times")).map(|it| it.outcome)
        };
        let (busy, idle) = (Verdict::DeviceBound, Verdict::NotLoaded);
        // A rate at which the tester was at its limit is a lower bound of the device's.
        assert_eq!(outcome((2e6, &bound()), (6e5, &busy)), Some(Outcome::Holds));
        assert_eq!(outcome((2e6, &busy), (6e5, &idle)), Some(Outcome::NotShown), "the other one was idle");
        assert_eq!(outcome((5e5, &busy), (6e5, &busy)), Some(Outcome::DoesNotHold));
        assert_eq!(outcome((5e5, &idle), (6e5, &busy)), Some(Outcome::NotShown));
        assert_eq!(outcome((5.4e5, &busy), (6e5, &busy)), Some(Outcome::NotShown), "intervals overlap");
    }

    #[test]
    fn a_goal_and_the_cost_of_a_packet_take_three_rounds_and_the_noise() {
        let outcome = |words: &str, values: [f64; 2], noise: f64, count: u32| {
            let rate = |device, value| {
                rounds(
                    ("udp", "flows", 64.0),
                    device,
                    ("forwarded", value, Unit::PerSecond),
                    &Verdict::DeviceBound,
                )
            };
            let cost = |device, value| {
                let value = ("cpu-per-packet", value, Unit::NanosecondsPerPacket);
                rounds(("icmp", "clients", 8.0), device, value, &bound())
            };
            let [ours, theirs] = values;
            let all = [
                rate("sixway-xdp", ours),
                rate("kernel", theirs),
                cost("sixway", theirs),
                cost("tayga-masquerade", ours),
            ];
            let mut all = all.concat();
            all.retain(|sample| sample.cell.repeat < count);
            for sample in &mut all {
                sample.control = Some(3.0 * (1.0 + noise * f64::from(sample.cell.repeat)));
            }
            let findings = findings(&results(all));
            findings.iter().find(|finding| finding.statement.contains(words)).map(|it| it.outcome)
        };
        for words in ["0.9 times", "needs less CPU time"] {
            assert_eq!(outcome(words, [2e3, 6e2], 0.01, 3), Some(Outcome::Holds), "{words}");
            assert_eq!(outcome(words, [2e3, 6e2], 0.01, 2), Some(Outcome::NotShown), "{words}: two rounds");
            assert_eq!(outcome(words, [5e2, 6e2], 0.01, 3), Some(Outcome::DoesNotHold), "{words}");
            assert_eq!(outcome(words, [8e2, 7e2], 0.3, 3), Some(Outcome::NotShown), "{words}: noise");
        }
    }

    #[test]
    fn losses_count_where_a_translator_was_at_its_limit() {
        let loss = |device, value, verdict: &Verdict| {
            rounds(("icmp", "clients", 8.0), device, ("loss", value, Unit::Lost), verdict)
        };
        let outcome = |samples: &[Vec<Sample>]| {
            let all = findings(&results(samples.concat()));
            all.iter().find(|it| it.statement.starts_with("No translator")).unwrap().outcome
        };
        let (busy, idle) = (Verdict::DeviceBound, Verdict::NotLoaded);
        assert_eq!(outcome(&[loss("sixway", 0.0, &busy)]), Outcome::Holds);
        assert_eq!(outcome(&[loss("sixway", 0.01, &busy)]), Outcome::DoesNotHold);
        assert_eq!(outcome(&[loss("sixway", 0.01, &bound())]), Outcome::NotShown, "the tester's");
        let other = loss("tayga-masquerade", 0.0, &idle);
        assert_eq!(outcome(&[loss("sixway", 0.0, &busy), other]), Outcome::NotShown, "one was idle");
        let plain = loss("kernel", 0.01, &busy);
        assert_eq!(outcome(&[loss("sixway", 0.0, &busy), plain]), Outcome::Holds, "it does not translate");
    }

    #[test]
    fn a_device_that_loses_a_tenth_while_the_tester_has_time_is_at_its_limit() {
        let outcome = |loss: f64, verdict: &Verdict| {
            let rate = |device, value, verdict: &Verdict| {
                rounds(("udp", "flows", 64.0), device, ("forwarded", value, Unit::PerSecond), verdict)
            };
            let mut theirs = rate("kernel", 6e5, verdict);
            for sample in &mut theirs {
                sample.values.insert("loss".to_owned(), Value::one(loss, Unit::Lost));
            }
            let samples = [rate("sixway-xdp", 2e6, &bound()), theirs].concat();
            let findings = findings(&results(samples));
            findings.iter().find(|finding| finding.statement.contains("0.9 times")).map(|it| it.outcome)
        };
        assert_eq!(outcome(0.25, &Verdict::NotLoaded), Some(Outcome::Holds));
        assert_eq!(
            outcome(0.05, &Verdict::NotLoaded),
            Some(Outcome::NotShown),
            "it forwarded what it was offered"
        );
        assert_eq!(outcome(0.25, &bound()), Some(Outcome::NotShown), "the tester lost it");
    }

    #[test]
    fn the_goal_by_a_tun_device_is_a_ratio_of_what_cpu_time_brings() {
        let outcome = |ours: f64, theirs: f64, noise: f64| {
            let files = |device, value: f64| {
                let value = ("files-per-cpu-second", value, Unit::PerCpuSecond);
                rounds(("http-8", "octets", 12_800.0), device, value, &bound())
            };
            let mut unsteady = files("sixway", ours);
            if let Some(value) = unsteady[1].values.get_mut("files-per-cpu-second") {
                value.value *= noise;
            }
            let fewer = ("files-per-cpu-second", 1.0, Unit::PerCpuSecond);
            let small = rounds(("http-8", "octets", 100.0), "sixway", fewer, &bound());
            let all = [unsteady, files("tayga-masquerade", theirs), small].concat();
            let findings = findings(&results(all));
            assert_eq!(findings.len(), 1, "only what was measured");
            (findings[0].outcome, findings[0].evidence.clone())
        };
        let (reached, evidence) = outcome(9_600.0, 4_800.0, 1.0);
        assert_eq!(reached, Outcome::Holds);
        assert!(evidence.starts_with("2.00 × with 12800 octets: 1.94 to 2.06"), "{evidence}");
        assert_eq!(outcome(6_000.0, 4_800.0, 1.0).0, Outcome::DoesNotHold);
        assert_eq!(outcome(4_800.0, 4_800.0, 1.0).0, Outcome::DoesNotHold);
        let (_, evidence) = outcome(7_200.0, 4_800.0, 1.05);
        assert_eq!(outcome(7_200.0, 4_800.0, 1.05).0, Outcome::NotShown, "{evidence}");
    }
}
