//! The paper's statements.

use crate::analyse::{Finding, Group, Outcome, View, not_comparable};
use crate::results::{Results, Verdict};

/// What counts as half, and as twice: closer to it than to as much, or to a quarter and four times.
const HALF: std::ops::Range<f64> = 0.35..0.71;
const TWICE: std::ops::Range<f64> = 1.41..2.83;
/// Times that differ by this share or less are the same.
const SAME: f64 = 0.1;
/// Octets up to which IPv6 was ahead.
const TURN: f64 = 1_024.0;

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
        (through.len() > 1).then(|| {
            let text = format!("{below} of {} sizes are slower through the tunnel", through.len());
            (below == through.len(), text)
        })
    };
    let tcp: Vec<_> =
        series("tcp").filter_map(|group| Some((group.cell.at("octets"), both(group)?, group))).collect();
    let half = (tcp.len() > 1).then(|| {
        let share =
            tcp.iter().map(|(_, (tunnel, native), _)| tunnel / native).sum::<f64>() / tcp.len() as f64;
        (HALF.contains(&share), format!("{share:.2} × native IPv6's on average of {} sizes", tcp.len()))
    });
    let times: Vec<_> = series("ditg").filter_map(|group| pair(group, ["tunnel-tcp", "ipv6-tcp"])).collect();
    let twice = (!times.is_empty()).then(|| {
        let ratio = times.iter().map(|(tunnel, native)| tunnel / native).sum::<f64>() / times.len() as f64;
        (TWICE.contains(&ratio), format!("{ratio:.2} × on average of {} sizes", times.len()))
    });
    let udp: Vec<_> = series("ditg").filter_map(|group| pair(group, ["tunnel-udp", "ipv6-udp"])).collect();
    let same = (!udp.is_empty()).then(|| {
        let count = udp.iter().filter(|(tunnel, native)| (tunnel / native - 1.0).abs() <= SAME).count();
        (count == udp.len(), format!("within {:.0} % at {count} of {} sizes", SAME * 100.0, udp.len()))
    });
    let versions: Vec<_> =
        tcp.iter().filter_map(|(octets, _, group)| Some((*octets, pair(group, ["ipv6", "ipv4"])?))).collect();
    let ahead = (versions.len() > 1).then(|| {
        let as_printed = |(octets, (six, four)): &&(f64, (f64, f64))| (six > four) == (*octets <= TURN);
        let count = versions.iter().filter(as_printed).count();
        (count == versions.len(), format!("so at {count} of {} sizes", versions.len()))
    });
    let mut all = vec![
        finding(
            format!("{device}: TCP through the tunnel has about half of the throughput of native IPv6."),
            half,
        ),
        finding(
            format!(
                "{device}: IPv6 is ahead of IPv4 in TCP throughput up to {TURN} octets, and behind above."
            ),
            ahead,
        ),
        finding(
            format!("{device}: the tunnel's overhead in response time grows with the packet's size."),
            grows,
        ),
        finding(format!("{device}: TCP is slower through the tunnel than over native IPv6."), slower),
    ];
    let flow = |group: &&Group<'_>| group.cell.series == "flow" && group.cell.device == device;
    if let Some(connected) = view.groups.iter().find(flow).and_then(|group| connected(group)) {
        let statement = format!(
            "{device}: all nodes that were tried reach each other by IPv4 and IPv6, and the ends of the tunnel and their hosts through it."
        );
        all.push(finding(statement, Some(connected)));
    }
    // Devices that are compared briefly have no rows of it.
    if view.groups.iter().any(|group| group.cell.series == "ditg" && group.cell.device == device) {
        all.push(finding(
            format!("{device}: TCP through the tunnel has about twice the round-trip time (by D-ITG)."),
            twice,
        ));
        all.push(finding(
            format!("{device}: the round-trip time of UDP is the same through the tunnel (by D-ITG)."),
            same,
        ));
    }
    all
}

/// Whether all pairs of nodes reach each other in each environment. Whether the tester was at its limit says nothing about that.
fn connected(group: &Group<'_>) -> Option<(bool, String)> {
    let count = |name: String| Some(group.value(&name)?.0.mean);
    let pairs = ["ipv4", "ipv6", "tunnel"].map(|environment| {
        Some((count(format!("reached-{environment}"))?, count(format!("pairs-{environment}"))?))
    });
    let [Some(four), Some(six), Some(tunnel)] = pairs else { return None };
    let all = [("IPv4", four), ("IPv6", six), ("the tunnel", tunnel)];
    let text = all.map(|(name, (reached, tried))| format!("{reached:.0} of {tried:.0} pairs by {name}"));
    Some((all.iter().all(|(_, (reached, tried))| reached == tried), text.join(", ")))
}

/// The values through the tunnel and over native IPv6.
fn both(group: &Group<'_>) -> Option<(f64, f64)> {
    pair(group, ["tunnel", "ipv6"])
}

/// Two values, if each describes the device: a native load may have been at the tester's limit.
fn pair(group: &Group<'_>, [one, other]: [&str; 2]) -> Option<(f64, f64)> {
    if [one, other].iter().any(|name| not_comparable(group, name).is_some()) {
        return None;
    }
    Some((group.value(one)?.0.mean, group.value(other)?.0.mean))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Header, Sample, TesterCost, Unit, Value};
    use std::collections::BTreeMap;

    fn row(series: &str, octets: f64, values: &[(&str, f64)]) -> Sample {
        Sample {
            cell: Cell {
                experiment: "tunnel-2012".to_owned(),
                series: series.to_owned(),
                device: "sixway".to_owned(),
                point: BTreeMap::from([("octets".to_owned(), octets)]),
                repeat: 0,
            },
            started: String::new(),
            took: 1.0,
            values: values
                .iter()
                .map(|(name, value)| ((*name).to_owned(), Value::one(*value, Unit::Milliseconds)))
                .collect(),
            not_measurable: BTreeMap::new(),
            verdict: Verdict::DeviceBound,
            tester: TesterCost::default(),
            control: None,
            commands: Vec::new(),
            raw: Vec::new(),
            failed: None,
        }
    }

    fn outcome(samples: Vec<Sample>, words: &str) -> Outcome {
        let header = Header::default();
        let all = findings(&Results { header, samples });
        all.iter().find(|it| it.statement.contains(words)).map_or(Outcome::NotShown, |it| it.outcome)
    }

    #[test]
    fn all_pairs_of_nodes_have_to_reach_each_other() {
        let flow = |reached| {
            let pairs = [("pairs-ipv4", 20.0), ("pairs-ipv6", 20.0), ("pairs-tunnel", 12.0)];
            let reached = [("reached-ipv4", 20.0), ("reached-ipv6", 20.0), ("reached-tunnel", reached)];
            vec![row("flow", 64.0, &[pairs, reached].concat())]
        };
        assert_eq!(outcome(flow(12.0), "all nodes that"), Outcome::Holds);
        assert_eq!(outcome(flow(11.0), "all nodes"), Outcome::DoesNotHold);
        assert_eq!(outcome(vec![row("flow", 64.0, &[])], "all nodes"), Outcome::NotShown);
    }

    #[test]
    fn the_papers_ratios_have_a_statement_each() {
        let tcp = |octets, tunnel, six, four| {
            row("tcp", octets, &[("tunnel", tunnel), ("ipv6", six), ("ipv4", four)])
        };
        let as_printed = || vec![tcp(64.0, 5.0, 10.0, 9.0), tcp(2_048.0, 6.0, 10.0, 11.0)];
        assert_eq!(outcome(as_printed(), "half of the throughput"), Outcome::Holds);
        assert_eq!(outcome(as_printed(), "IPv6 is ahead"), Outcome::Holds);
        let other = || vec![tcp(64.0, 9.5, 10.0, 11.0), tcp(2_048.0, 9.0, 10.0, 11.0)];
        assert_eq!(outcome(other(), "half of the throughput"), Outcome::DoesNotHold);
        assert_eq!(outcome(other(), "IPv6 is ahead"), Outcome::DoesNotHold);
        for words in ["half of the throughput", "IPv6 is ahead", "TCP is slower"] {
            let one = || vec![tcp(64.0, 5.0, 10.0, 9.0)];
            assert_eq!(outcome(one(), words), Outcome::NotShown, "{words}: at one size");
            let mut tester = as_printed();
            for value in tester.iter_mut().filter_map(|sample| sample.values.get_mut("ipv6")) {
                value.verdict = Some(Verdict::TesterBound { why: String::new() });
            }
            assert_eq!(outcome(tester, words), Outcome::NotShown, "{words}: the tester was the limit");
        }
        let ditg = |tcp, udp| {
            let values = [("tunnel-tcp", tcp), ("ipv6-tcp", 1.0), ("tunnel-udp", udp), ("ipv6-udp", 1.0)];
            vec![row("ditg", 64.0, &values)]
        };
        assert_eq!(outcome(ditg(1.9, 1.02), "twice the round-trip time"), Outcome::Holds);
        assert_eq!(outcome(ditg(1.2, 1.02), "twice the round-trip time"), Outcome::DoesNotHold);
        assert_eq!(outcome(ditg(1.9, 1.02), "UDP is the same"), Outcome::Holds);
        assert_eq!(outcome(ditg(1.9, 1.5), "UDP is the same"), Outcome::DoesNotHold);
        assert_eq!(outcome(Vec::new(), "UDP is the same"), Outcome::NotShown);
    }
}
