//! The paper's statements.

use crate::analyse::{Finding, Group, Outcome, View};
use crate::results::{Results, Verdict};

/// Whether the paper's statements hold for each device.
pub fn findings(results: &Results) -> Vec<Finding> {
    let view = View::of(results, "tunnel-2012");
    let mut devices: Vec<&str> = view.groups.iter().map(|group| group.cell.device.as_str()).collect();
    devices.sort_unstable();
    devices.dedup();
    devices.into_iter().flat_map(|device| of(&view, device)).collect()
}

fn of(view: &View<'_>, device: &str) -> Vec<Finding> {
    let series = |name: &'static str| {
        view.groups.iter().filter(move |group| {
            group.cell.series == name && group.cell.device == device && says_something(group)
        })
    };
    let finding = |statement: String, decided: Option<(bool, String)>| match decided {
        Some((true, evidence)) => Finding { statement, outcome: Outcome::Holds, evidence },
        Some((false, evidence)) => Finding { statement, outcome: Outcome::DoesNotHold, evidence },
        None => Finding {
            statement,
            outcome: Outcome::NotShown,
            evidence: "two sizes or more are needed at which the tester was not at its limit".to_owned(),
        },
    };
    let grows = {
        let sizes = ends(series("rtt"), "overhead");
        sizes.map(|((least, at_least), (most, at_most))| {
            let text = format!("{at_least:.3} ms at {least} octets, {at_most:.3} ms at {most}");
            (at_most > at_least, text)
        })
    };
    let slower = {
        let through: Vec<_> = series("tcp").filter_map(|group| both(group)).collect();
        let below = through.iter().filter(|(tunnel, native)| tunnel < native).count();
        (!through.is_empty()).then(|| {
            let text = format!("{below} of {} sizes are slower through the tunnel", through.len());
            (below == through.len(), text)
        })
    };
    vec![
        finding(
            format!("{device}: the tunnel's overhead in response time grows with the packet's size."),
            grows,
        ),
        finding(format!("{device}: TCP is slower through the tunnel than over native IPv6."), slower),
    ]
}

/// The values through the tunnel and over native IPv6.
fn both(group: &Group<'_>) -> Option<(f64, f64)> {
    Some((group.value("tunnel")?.0.mean, group.value("ipv6")?.0.mean))
}

/// A value at the smallest and at the greatest size, if there are two.
fn ends<'a, 'b: 'a>(
    groups: impl Iterator<Item = &'a Group<'b>>,
    value: &str,
) -> Option<((f64, f64), (f64, f64))> {
    let of = |group: &Group<'_>| Some((group.cell.at("octets"), group.value(value)?.0.mean));
    let mut all: Vec<_> = groups.filter_map(of).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    match all[..] {
        [first, .., last] => Some((first, last)),
        _ => None,
    }
}

/// Whether the device was measured, and not the tester.
fn says_something(group: &Group<'_>) -> bool {
    !matches!(group.verdict(), Verdict::TesterBound { .. } | Verdict::Failed)
}
