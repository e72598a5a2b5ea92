//! Whether the paper's statements hold today.

use super::compared::{one_against_two, places, standing};
use super::form::Form;
use super::goals::goals;
use super::mostly::is_mostly_ahead;
use super::pairings::pairings;
use super::published::{PERCENTAGES, Percentages};
use super::scene::UNSHAPED;
use super::stage::on_link;
use crate::analyse::{Finding, Group, Outcome, View};
use crate::device::find;
use crate::results::{Cell, Results, Verdict};

/// For each device and measure: is one box ahead of two, and how far is it from plain forwarding?
pub fn findings(results: &Results) -> Vec<Finding> {
    let view = View::of(results, "gateway-2012");
    let mut devices: Vec<&str> = view.groups.iter().map(|group| group.cell.device.as_str()).collect();
    devices.sort_unstable();
    devices.dedup();
    let mut all = Vec::new();
    for device in devices {
        all.extend(PERCENTAGES.iter().filter_map(|printed| ahead(&view, device, printed)));
        all.extend(no_loss(&view, device));
        all.extend(goals(&view, device));
        all.extend(pairings(&view, device));
    }
    all.extend(PERCENTAGES.iter().filter_map(|printed| bare(&view, printed)));
    all
}

/// Sixway in the driver, in place of the bare PC's program, is ahead of Linux' gateway: each against plain forwarding in its own realm.
fn bare(view: &View<'_>, printed: &Percentages) -> Option<Finding> {
    let (series, value) = printed.value;
    let of = |ours: &Group<'_>| {
        let linux = view.group(series, "linux-site-gateway", &ours.cell.point)?;
        Some(standing(view, ours, linux, value))
    };
    let all: Vec<_> = places(view, "sixway-xdp", series).filter_map(of).collect();
    let [one, two] = printed.bare;
    let statement = format!(
        "A gateway without an operating system is ahead of Linux in {} (the paper: by {one} % co-located, {two} % decoupled).",
        printed.measure
    );
    is_mostly_ahead(statement, &all, ", each against plain forwarding in its own realm")
}

/// One box is ahead of two.
fn ahead(view: &View<'_>, device: &str, printed: &Percentages) -> Option<Finding> {
    let all = one_against_two(view, device, printed.value);
    let [linux, bare] = printed.one_box;
    let statement = format!(
        "{device}: one box is ahead of two in {} (the paper: by {linux} % on Linux, {bare} % on the bare PC).",
        printed.measure
    );
    is_mostly_ahead(statement, &all, "")
}

/// Mbit/s of a row's background as the limit of a link counts it: its packets in frames, and in the tunnel if the device has one.
fn of_the_link(cell: &Cell) -> f64 {
    let form = Form::of(cell.at("form"));
    let is_tunnelled = find(&cell.device).zip(form).is_some_and(|(device, form)| form.has_tunnel(device));
    on_link(cell.at("background"), cell.at("packet").max(1.0), is_tunnelled)
}

/// Nothing is lost below the rate of the link, neither audio nor background.
fn no_loss(view: &View<'_>, device: &str) -> Option<Finding> {
    let is_below = |cell: &Cell| cell.at("link") == UNSHAPED || of_the_link(cell) < cell.at("link");
    let calls = view
        .groups
        .iter()
        .filter(|group| group.cell.device == device && group.cell.series == "call" && is_below(group.cell));
    let (mut rows, mut lost, mut unknown) = (0, Vec::new(), 0);
    for group in calls {
        let of = |value: &str| group.value(value).map_or(0.0, |(lost, _)| lost.mean);
        match group.verdict() {
            Verdict::Failed => {}
            // It may be the tester that has lost it.
            Verdict::TesterBound { .. } => unknown += 1,
            Verdict::DeviceBound | Verdict::LinkBound | Verdict::NotLoaded => {
                rows += 1;
                if of("loss") + of("background-lost") > 0.0 {
                    lost.push(format!("{}", group.cell.at("background")));
                }
            }
        }
    }
    let count = lost.len();
    lost.sort_unstable();
    lost.dedup();
    let at = if lost.is_empty() { String::new() } else { format!(", at {} Mbit/s", lost.join(", ")) };
    (rows + unknown > 0).then(|| Finding {
        statement: format!(
            "{device}: neither audio nor background is lost below the rate of the link (our goal; the paper lost no audio below 50 Mbit/s)."
        ),
        outcome: match (rows, lost.is_empty()) {
            (0, _) => Outcome::NotShown,
            (_, true) => Outcome::Holds,
            (_, false) => Outcome::DoesNotHold,
        },
        evidence: format!("something was lost in {count} of {rows} rows{at}; in {unknown} more the tester was at its limit"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{DeviceEntry, Header, Sample, TesterCost, Unit, Value};
    use std::collections::BTreeMap;

    fn call(background: f64, [audio, lost]: [f64; 2], verdict: &Verdict) -> Sample {
        let point =
            [("form", 1.0), ("version", 6.0), ("link", 100.0), ("background", background), ("packet", 1e3)];
        let values = [("loss", audio), ("background-lost", lost)];
        Sample {
            cell: Cell {
                experiment: "gateway-2012".to_owned(),
                series: "call".to_owned(),
                device: "sixway".to_owned(),
                point: point.iter().map(|(axis, at)| ((*axis).to_owned(), *at)).collect(),
                repeat: 0,
            },
            started: String::new(),
            took: 1.0,
            values: values.map(|(name, value)| (name.to_owned(), Value::one(value, Unit::Lost))).into(),
            not_measurable: BTreeMap::new(),
            verdict: verdict.clone(),
            tester: TesterCost::default(),
            control: None,
            commands: Vec::new(),
            raw: Vec::new(),
            failed: None,
        }
    }

    /// Three rounds of a value of a device in a form.
    fn three(device: &str, form: f64, (series, value): (&str, &str), it: f64) -> Vec<Sample> {
        let round = |repeat: u32| {
            let mut sample = call(50.0, [0.0; 2], &Verdict::NotLoaded);
            sample.cell =
                Cell { series: series.to_owned(), device: device.to_owned(), repeat, ..sample.cell };
            sample.cell.point.insert("form".to_owned(), form);
            let unit = if value == "loss" { Unit::Lost } else { Unit::Milliseconds };
            sample.values = BTreeMap::from([(value.to_owned(), Value::one(it, unit))]);
            sample.control = Some(3.0 + 0.03 * f64::from(repeat));
            sample
        };
        (0..3).map(round).collect()
    }

    #[test]
    fn less_time_and_less_loss_are_ahead() {
        let (time, loss) = (("connection", "connection"), ("call", "loss"));
        let samples = [
            three("sixway-xdp", 1.0, time, 1.0),
            three("sixway-xdp", 2.0, time, 1.5),
            three("linux-site-gateway", 1.0, time, 2.0),
            three("linux-site-gateway", 2.0, time, 1.0),
            three("sixway-xdp", 1.0, loss, 0.0),
            three("sixway-xdp", 2.0, loss, 0.0),
            three("linux-site-gateway", 1.0, loss, 0.1),
            three("linux-site-gateway", 2.0, loss, 0.2),
        ]
        .concat();
        let of_realm = |realm: &str| {
            let device = DeviceEntry {
                name: "linux-site-gateway".to_owned(),
                realm: realm.to_owned(),
                version: String::new(),
                cannot_run: None,
                is_plain: false,
            };
            findings(&Results {
                header: Header { devices: vec![device], ..Header::default() },
                samples: samples.clone(),
            })
        };
        let loss = "A gateway without an operating system is ahead of Linux in loss";
        let emulated = of_realm("qemu").into_iter().find(|it| it.statement.starts_with(loss));
        assert_eq!(emulated.map(|it| it.outcome), Some(Outcome::NotShown), "an emulated machine");
        let all = of_realm("here");
        let of = |words: &str| all.iter().find(|it| it.statement.starts_with(words)).unwrap().outcome;
        let bare = "A gateway without an operating system is ahead of Linux in";
        assert_eq!(of(&format!("{bare} TCP")), Outcome::Holds);
        for measure in ["throughput of audio", "loss of audio"] {
            let words = format!("{bare} {measure}");
            let found = all.iter().find(|it| it.statement.starts_with(&words));
            assert!(found.is_some(), "{words}: {:?}", all.iter().map(|it| &it.statement).collect::<Vec<_>>());
        }
        assert_eq!(of(&format!("{bare} loss")), Outcome::Holds);
        assert_eq!(of("sixway-xdp: one box is ahead of two in TCP"), Outcome::Holds);
        assert_eq!(of("sixway-xdp: one box is ahead of two in loss"), Outcome::DoesNotHold, "none is lost");
        assert_eq!(of("linux-site-gateway: one box is ahead of two in TCP"), Outcome::DoesNotHold);
        assert_eq!(of("linux-site-gateway: one box is ahead of two in loss"), Outcome::Holds);
    }

    fn outcome(samples: Vec<Sample>) -> Option<Outcome> {
        let header = Header::default();
        let results = Results { header, samples };
        no_loss(&View::of(&results, "gateway-2012"), "sixway").map(|finding| finding.outcome)
    }

    #[test]
    fn what_is_lost_below_the_rate_of_the_link_counts_whatever_it_is() {
        let (idle, busy) = (Verdict::NotLoaded, Verdict::TesterBound { why: String::new() });
        let well = || call(50.0, [0.0; 2], &idle);
        assert_eq!(outcome(vec![well(), call(90.0, [0.0; 2], &idle)]), Some(Outcome::Holds));
        assert_eq!(
            outcome(vec![well(), call(90.0, [0.1, 0.0], &idle)]),
            Some(Outcome::DoesNotHold),
            "at 93.1"
        );
        assert_eq!(outcome(vec![well(), call(70.0, [0.0, 0.1], &idle)]), Some(Outcome::DoesNotHold));
        assert_eq!(
            outcome(vec![well(), call(99.0, [0.1, 0.1], &idle)]),
            Some(Outcome::Holds),
            "102 by the link's count"
        );
        // Small packets: 80 Mbit/s of them are 93.6 in the tunnel, below the limit, and 103 with what it does not count.
        let mut small = call(80.0, [0.1, 0.0], &idle);
        small.cell.point.insert("packet".to_owned(), 200.0);
        assert_eq!(outcome(vec![well(), small]), Some(Outcome::DoesNotHold));
        let unlimited = |audio| {
            let mut sample = call(150.0, [audio, 0.0], &idle);
            sample.cell.point.insert("link".to_owned(), UNSHAPED);
            sample
        };
        assert_eq!(outcome(vec![unlimited(0.0)]), Some(Outcome::Holds));
        assert_eq!(outcome(vec![unlimited(0.1)]), Some(Outcome::DoesNotHold));
        assert_eq!(outcome(vec![call(50.0, [0.1, 0.1], &busy)]), Some(Outcome::NotShown));
        // Of a rate that only a tunnel's header raises above that of the link.
        let cell = |device: &str| Cell { device: device.to_owned(), ..call(98.0, [0.0; 2], &idle).cell };
        assert!(of_the_link(&cell("kernel")) < 100.0 && of_the_link(&cell("sixway")) > 100.0);
        assert_eq!(outcome(Vec::new()), None);
    }
}
