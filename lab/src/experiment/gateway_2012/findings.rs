//! Whether the paper's statements hold today.

use super::compared::{one_against_two, places};
use super::form::has_tunnel;
use super::goals::goals;
use super::published::{FORMULA, PERCENTAGES, Percentages};
use super::scene::UNSHAPED;
use super::stage::on_wire;
use crate::analyse::{Bearing, Finding, Outcome, View};
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
    }
    all.extend(PERCENTAGES.iter().filter_map(|printed| bare(&view, printed)));
    all
}

/// Sixway in the driver, in place of the bare PC's program, is ahead of Linux' gateway: each against plain forwarding in its own realm.
fn bare(view: &View<'_>, printed: &Percentages) -> Option<Finding> {
    let (series, value) = printed.value;
    let (mut said, mut ahead, mut why) = (Vec::new(), 0, None);
    let mut any = false;
    for ours in places(view, "sixway-xdp", series) {
        let Some(linux) = view.group(series, "linux-site-gateway", &ours.cell.point) else { continue };
        any = true;
        let (over, under) = if value == "throughput" { (ours, linux) } else { (linux, ours) };
        let bearing = view.ratio(over, under, value);
        match &bearing {
            Bearing::Number(ratio) => said.push(percent(ratio.value)),
            Bearing::Direction(_) | Bearing::Equal(_) => said.push(bearing.text()),
            Bearing::Nothing(reason) => why = Some(reason.clone()),
        }
        ahead += usize::from(bearing.ratio().is_some_and(|ratio| ratio.interval.0 > 1.0));
    }
    let [one, two] = printed.bare;
    let outcome = match said.len() {
        0 => Outcome::NotShown,
        rows if 2 * ahead > rows => Outcome::Holds,
        _ => Outcome::DoesNotHold,
    };
    let evidence = match why {
        Some(why) if said.is_empty() => why,
        _ => format!("{FORMULA}, each against plain forwarding in its own realm: {}", said.join(", ")),
    };
    any.then(|| Finding {
        statement: format!(
            "A gateway without an operating system is ahead of Linux in {} (the paper: by {one} % co-located, {two} % decoupled).",
            printed.measure
        ),
        outcome,
        evidence,
    })
}

/// One box is ahead of two.
fn ahead(view: &View<'_>, device: &str, printed: &Percentages) -> Option<Finding> {
    let (mut holds, mut fails, mut why) = (Vec::new(), Vec::new(), None);
    let all = one_against_two(view, device, printed.value);
    if all.is_empty() {
        return None;
    }
    for bearing in all {
        match bearing {
            Bearing::Number(ratio) if ratio.value > 1.0 => holds.push(percent(ratio.value)),
            Bearing::Number(ratio) => fails.push(percent(ratio.value)),
            Bearing::Direction(ratio) if ratio.value > 1.0 => holds.push("more".to_owned()),
            Bearing::Direction(_) => fails.push("less".to_owned()),
            Bearing::Equal(_) => fails.push("equal".to_owned()),
            Bearing::Nothing(reason) => why = Some(reason),
        }
    }
    let [linux, bare] = printed.one_box;
    let outcome = match (holds.len(), fails.len()) {
        (0, 0) => Outcome::NotShown,
        (held, failed) if held > failed => Outcome::Holds,
        _ => Outcome::DoesNotHold,
    };
    let said = holds.iter().chain(&fails).cloned().collect::<Vec<_>>().join(", ");
    let evidence = match why {
        Some(why) if said.is_empty() => why,
        _ => format!("{FORMULA}: {said}"),
    };
    let statement = format!(
        "{device}: one box is ahead of two in {} (the paper: by {linux} % on Linux, {bare} % on the bare PC).",
        printed.measure
    );
    Some(Finding { statement, outcome, evidence })
}

fn percent(ratio: f64) -> String {
    format!("{:.0} %", (ratio - 1.0) * 100.0)
}

/// Mbit/s on the wire of a row's background: its packets in frames, and in the tunnel if the device has one.
fn on_the_wire(cell: &Cell) -> f64 {
    let is_tunnelled = find(&cell.device).is_some_and(has_tunnel);
    on_wire(cell.at("background"), cell.at("packet").max(1.0), is_tunnelled)
}

/// Nothing is lost below the rate of the link, neither audio nor background.
fn no_loss(view: &View<'_>, device: &str) -> Option<Finding> {
    let is_below = |cell: &Cell| cell.at("link") == UNSHAPED || on_the_wire(cell) < cell.at("link");
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
    use crate::results::{Header, Sample, TesterCost, Unit, Value};
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
            "at 95.2"
        );
        assert_eq!(outcome(vec![well(), call(70.0, [0.0, 0.1], &idle)]), Some(Outcome::DoesNotHold));
        assert_eq!(
            outcome(vec![well(), call(99.0, [0.1, 0.1], &idle)]),
            Some(Outcome::Holds),
            "105 on the wire"
        );
        assert_eq!(outcome(vec![call(50.0, [0.1, 0.1], &busy)]), Some(Outcome::NotShown));
        // Of a rate that only a tunnel's header raises above that of the link.
        let cell = |device: &str| Cell { device: device.to_owned(), ..call(95.0, [0.0; 2], &idle).cell };
        assert!(on_the_wire(&cell("kernel")) < 100.0 && on_the_wire(&cell("sixway")) > 100.0);
        assert_eq!(outcome(Vec::new()), None);
    }
}
