//! Whether the paper's statements hold today.

use super::compared::{one_against_two, places};
use super::goals::goals;
use super::published::{FORMULA, PERCENTAGES, Percentages};
use crate::analyse::{Bearing, Finding, Group, Outcome, View};
use crate::results::Results;

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
        match view.ratio(over, under, value) {
            Bearing::Number(ratio) | Bearing::Direction(ratio) | Bearing::Equal(ratio) => {
                ahead += usize::from(ratio.interval.0 > 1.0);
                said.push(percent(ratio.value));
            }
            Bearing::Nothing(reason) => why = Some(reason),
        }
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

/// No audio is lost below the rate of the link.
fn no_loss(view: &View<'_>, device: &str) -> Option<Finding> {
    let below = |group: &&Group<'_>| {
        let lost = group.value("background-lost").map_or(0.0, |(lost, _)| lost.mean);
        lost == 0.0 && group.cell.at("background") <= 50.0
    };
    let calls: Vec<_> = view
        .groups
        .iter()
        .filter(|group| group.cell.device == device && group.cell.series == "call")
        .filter(below)
        .filter_map(|group| Some((group.cell.at("background"), group.value("loss")?.0.mean)))
        .collect();
    let lost = calls.iter().filter(|(_, loss)| *loss > 0.0).count();
    (!calls.is_empty()).then(|| Finding {
        statement: format!("{device}: no audio is lost with 50 Mbit/s of background or less."),
        outcome: if lost == 0 { Outcome::Holds } else { Outcome::DoesNotHold },
        evidence: format!("audio was lost in {lost} of {} rows", calls.len()),
    })
}
