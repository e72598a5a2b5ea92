//! The paper's statements.

use crate::analyse::{Bearing, Finding, Group, Outcome, View, not_comparable, short};
use crate::results::{Results, Verdict};
use std::ops::Range;

/// What counts as half, and as twice: closer to it than to as much, or to a quarter and four times.
const HALF: Range<f64> = 0.35..0.71;
const TWICE: Range<f64> = 1.41..2.83;
/// Times that differ by this share or less are the same.
const SAME: f64 = 0.1;
/// Why a statement is not shown.
const TOO_FEW: &str = "too few rows have a ratio: that takes three rounds and a tester that was not at its limit, \
                       and most statements take two sizes";
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
    let ratios = |name: &'static str, (over, under): (&str, &str)| -> Vec<(f64, Bearing)> {
        let measured = series(name)
            .filter(|group| [over, under].iter().all(|value| not_comparable(group, value).is_none()));
        measured
            .map(|group| (group.cell.at("octets"), view.ratio_of((group, over), (group, under))))
            .collect()
    };
    let finding = |statement: String, decided: Option<(Outcome, String)>| match decided {
        Some((outcome, evidence)) => Finding { statement, outcome, evidence },
        None => Finding { statement, outcome: Outcome::NotShown, evidence: TOO_FEW.to_owned() },
    };
    let grows = ends(series("rtt")).map(|(first, last)| {
        let bearing = view.ratio_of((last, "overhead"), (first, "overhead"));
        let [least, most] = [first, last].map(|group| group.cell.at("octets"));
        let outcome = Outcome::from(bearing.is_above());
        (outcome, format!("at {most} octets over {least}: {}, {}", bearing.text(), bearing.explained()))
    });
    let tcp = ratios("tcp", ("tunnel", "ipv6"));
    let has_two = tcp.len() > 1;
    let slower = has_two.then(|| {
        let is_slower = |(_, bearing): &(f64, Bearing)| bearing.is_below();
        all_of(tcp.iter().map(is_slower), |count| {
            format!("{count} of {} sizes are slower through the tunnel", tcp.len())
        })
    });
    let half = has_two.then(|| on_average(&tcp, HALF, "native IPv6's"));
    let times = ratios("ditg", ("tunnel-tcp", "ipv6-tcp"));
    let twice = (!times.is_empty()).then(|| on_average(&times, TWICE, "native IPv6's"));
    let udp = ratios("ditg", ("tunnel-udp", "ipv6-udp"));
    let same = (!udp.is_empty()).then(|| {
        let is_same = |(_, bearing): &(f64, Bearing)| {
            bearing.ratio().and_then(|it| within(it.interval, 1.0 - SAME..1.0 + SAME))
        };
        let text = |count| format!("within {:.0} % at {count} of {} sizes", SAME * 100.0, udp.len());
        all_of(udp.iter().map(is_same), text)
    });
    let versions = ratios("tcp", ("ipv6", "ipv4"));
    let ahead = (versions.len() > 1).then(|| {
        let as_printed = |(octets, bearing): &(f64, Bearing)| {
            if *octets <= TURN { bearing.is_above() } else { bearing.is_below() }
        };
        all_of(versions.iter().map(as_printed), |count| format!("so at {count} of {} sizes", versions.len()))
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
fn connected(group: &Group<'_>) -> Option<(Outcome, String)> {
    let count = |name: String| Some(group.value(&name)?.0.mean);
    let pairs = ["ipv4", "ipv6", "tunnel"].map(|environment| {
        Some((count(format!("reached-{environment}"))?, count(format!("pairs-{environment}"))?))
    });
    let [Some(four), Some(six), Some(tunnel)] = pairs else { return None };
    let all = [("IPv4", four), ("IPv6", six), ("the tunnel", tunnel)];
    let text = all.map(|(name, (reached, tried))| format!("{reached:.0} of {tried:.0} pairs by {name}"));
    let is_all = all.iter().all(|(_, (reached, tried))| reached == tried);
    Some((if is_all { Outcome::Holds } else { Outcome::DoesNotHold }, text.join(", ")))
}

/// Whether an interval is within a range; `None` if only a part of it is.
fn within((low, high): (f64, f64), range: Range<f64>) -> Option<bool> {
    match (range.contains(&low) && range.contains(&high), high < range.start || low >= range.end) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

/// A statement that has to hold at each size, of which some may be uncertain.
fn all_of(sizes: impl Iterator<Item = Option<bool>>, text: impl Fn(usize) -> String) -> (Outcome, String) {
    let sizes: Vec<_> = sizes.collect();
    let count = sizes.iter().filter(|it| **it == Some(true)).count();
    let outcome = match (sizes.contains(&Some(false)), count == sizes.len()) {
        (true, _) => Outcome::DoesNotHold,
        (false, true) => Outcome::Holds,
        (false, false) => Outcome::NotShown,
    };
    (outcome, text(count))
}

/// Whether the ratios of all sizes are in a range on average, with both ends of their intervals. One that is uncertain makes the average so.
fn on_average(sizes: &[(f64, Bearing)], range: Range<f64>, of_what: &str) -> (Outcome, String) {
    let all: Option<Vec<_>> = sizes.iter().map(|(_, bearing)| Some(bearing.ratio()?.interval)).collect();
    let Some(all) = all else {
        return (Outcome::NotShown, "the rounds differ too much, or there are too few".to_owned());
    };
    let mean = |all: Vec<f64>| (all.iter().map(|it| it.ln()).sum::<f64>() / all.len().max(1) as f64).exp();
    let (low, high): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    let (low, high) = (mean(low), mean(high));
    let outcome = Outcome::from(within((low, high), range));
    let text = format!("{} to {} × {of_what}", short(low), short(high));
    match sizes.len() {
        1 => (outcome, text + " at one size"),
        many => (outcome, format!("{text} on average of {many} sizes")),
    }
}

/// The rows of the smallest and of the greatest size, if there are two.
fn ends<'a, 'b: 'a>(groups: impl Iterator<Item = &'a Group<'b>>) -> Option<(&'a Group<'b>, &'a Group<'b>)> {
    let mut all: Vec<_> = groups.collect();
    all.sort_by(|a, b| a.cell.at("octets").total_cmp(&b.cell.at("octets")));
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

    fn row(series: &str, octets: f64, values: &[(&str, f64)]) -> Vec<Sample> {
        let round = |repeat: u32| Sample {
            cell: Cell {
                experiment: "tunnel-2012".to_owned(),
                series: series.to_owned(),
                device: "sixway".to_owned(),
                point: BTreeMap::from([("octets".to_owned(), octets)]),
                repeat,
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
            control: Some(3.0 + 0.03 * f64::from(repeat)),
            commands: Vec::new(),
            raw: Vec::new(),
            failed: None,
        };
        (0..3).map(round).collect()
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
            row("flow", 64.0, &[pairs, reached].concat())
        };
        assert_eq!(outcome(flow(12.0), "all nodes that"), Outcome::Holds);
        assert_eq!(outcome(flow(11.0), "all nodes"), Outcome::DoesNotHold);
        assert_eq!(outcome(row("flow", 64.0, &[]), "all nodes"), Outcome::NotShown);
    }

    #[test]
    fn the_papers_ratios_have_a_statement_each() {
        let tcp = |octets, tunnel, six, four| {
            row("tcp", octets, &[("tunnel", tunnel), ("ipv6", six), ("ipv4", four)])
        };
        let as_printed = || [tcp(64.0, 5.0, 10.0, 9.0), tcp(2_048.0, 6.0, 10.0, 11.0)].concat();
        assert_eq!(outcome(as_printed(), "half of the throughput"), Outcome::Holds);
        assert_eq!(outcome(as_printed(), "IPv6 is ahead"), Outcome::Holds);
        let other = || [tcp(64.0, 9.5, 10.0, 11.0), tcp(2_048.0, 9.0, 10.0, 11.0)].concat();
        assert_eq!(outcome(other(), "half of the throughput"), Outcome::DoesNotHold);
        assert_eq!(outcome(other(), "IPv6 is ahead"), Outcome::DoesNotHold);
        for words in ["half of the throughput", "IPv6 is ahead", "TCP is slower"] {
            let one = || tcp(64.0, 5.0, 10.0, 9.0);
            assert_eq!(outcome(one(), words), Outcome::NotShown, "{words}: at one size");
            let mut tester = as_printed();
            for value in tester.iter_mut().filter_map(|sample| sample.values.get_mut("ipv6")) {
                value.verdict = Some(Verdict::TesterBound { why: String::new() });
            }
            assert_eq!(outcome(tester, words), Outcome::NotShown, "{words}: the tester was the limit");
        }
        let ditg = |tcp, udp| {
            let values = [("tunnel-tcp", tcp), ("ipv6-tcp", 1.0), ("tunnel-udp", udp), ("ipv6-udp", 1.0)];
            row("ditg", 64.0, &values)
        };
        assert_eq!(outcome(ditg(1.9, 1.02), "twice the round-trip time"), Outcome::Holds);
        assert_eq!(outcome(ditg(1.2, 1.02), "twice the round-trip time"), Outcome::DoesNotHold);
        assert_eq!(outcome(ditg(1.9, 1.02), "UDP is the same"), Outcome::Holds);
        assert_eq!(outcome(ditg(1.9, 1.5), "UDP is the same"), Outcome::DoesNotHold);
        assert_eq!(outcome(Vec::new(), "UDP is the same"), Outcome::NotShown);
    }

    #[test]
    fn a_growing_overhead_is_one_beyond_the_noise() {
        let rtt = |octets, overhead| row("rtt", octets, &[("overhead", overhead)]);
        let of =
            |least, most| outcome([rtt(64.0, least), rtt(2_048.0, most)].concat(), "overhead in response");
        assert_eq!(of(0.10, 0.20), Outcome::Holds);
        assert_eq!(of(0.20, 0.10), Outcome::DoesNotHold);
        assert_eq!(of(0.10, 0.101), Outcome::DoesNotHold, "as much, by an interval near 1");
        assert_eq!(of(-0.01, 0.10), Outcome::NotShown, "there is no ratio of a negative time");
        assert_eq!(outcome(rtt(64.0, 0.1), "overhead in response"), Outcome::NotShown);
    }

    #[test]
    fn an_interval_that_is_partly_in_a_range_shows_nothing() {
        assert_eq!(within((0.4, 0.6), HALF), Some(true));
        assert_eq!((within((0.6, 0.8), HALF), within((0.3, 0.4), HALF)), (None, None));
        assert_eq!((within((0.8, 0.9), HALF), within((0.1, 0.2), HALF)), (Some(false), Some(false)));
        let text = |count: usize| count.to_string();
        assert_eq!(all_of([Some(true), None].into_iter(), text), (Outcome::NotShown, "1".to_owned()));
        assert_eq!(all_of([Some(false), None].into_iter(), text).0, Outcome::DoesNotHold);
    }

    #[test]
    fn an_uncertain_size_is_not_left_out() {
        let mut rows = [
            row("tcp", 64.0, &[("tunnel", 5.0), ("ipv6", 10.0)]),
            row("tcp", 512.0, &[("tunnel", 5.0), ("ipv6", 10.0)]),
        ]
        .concat();
        for words in ["TCP is slower", "half of the throughput"] {
            assert_eq!(outcome(rows.clone(), words), Outcome::Holds, "{words}");
        }
        // One round of three is four times as fast: nothing is certain of that size.
        let unsteady = rows.iter_mut().find(|sample| sample.cell.at("octets") == 512.0).unwrap();
        unsteady.values.insert("tunnel".to_owned(), Value::one(20.0, Unit::Milliseconds));
        for words in ["TCP is slower", "half of the throughput"] {
            assert_eq!(outcome(rows.clone(), words), Outcome::NotShown, "{words}");
        }
        let faster = [
            row("tcp", 64.0, &[("tunnel", 12.0), ("ipv6", 10.0)]),
            row("tcp", 512.0, &[("tunnel", 5.0), ("ipv6", 10.0)]),
        ];
        assert_eq!(outcome(faster.concat(), "TCP is slower"), Outcome::DoesNotHold);
    }
}
