//! The paper's control series: with one responder as with two, so that the responders were not the limit.

use crate::analyse::{Bearing, Finding, Group, Outcome, View};
use crate::experiment::minimal::{MINIMAL, is_minimal};
use crate::results::{Results, Verdict};

/// What is compared: a value, and its name in words.
const VALUES: [(&str, &str); 2] = [("response", "response time"), ("requests", "requests a second")];

/// Whether the number of responders made no difference, for each device that was measured with both.
pub fn findings(results: &Results) -> Vec<Finding> {
    let view = View::of(results, "relay-2013");
    let ones = || view.groups.iter().filter(|group| group.cell.series == "one-responder");
    let mut devices: Vec<&str> = ones().map(|group| group.cell.device.as_str()).collect();
    devices.sort_unstable();
    devices.dedup();
    let of_device = |device: &&str| {
        let device = *device;
        VALUES.map(|value| finding(&view, ones().filter(|one| one.cell.device == device), (device, value)))
    };
    devices.iter().flat_map(of_device).flatten().collect()
}

/// Whether neither row was at its limit: then the rate is the one that was offered.
fn is_offered(rows: [&Group<'_>; 2]) -> bool {
    rows.iter().all(|row| *row.verdict() == Verdict::NotLoaded)
}

/// A row that is uncertain is not left out.
fn finding<'v>(
    view: &View<'_>,
    ones: impl Iterator<Item = &'v Group<'v>>,
    (device, (value, words)): (&str, (&str, &str)),
) -> Option<Finding> {
    let pair = |one: &'v Group<'v>| {
        let two = view.group("icmp", device, &one.cell.point)?;
        let is_meant = value != "requests" || !is_offered([one, two]);
        is_meant.then(|| (one.cell.at("hosts"), view.ratio(one, two, value)))
    };
    let all: Vec<(f64, Bearing)> = ones.filter_map(pair).collect();
    let count = |said: Option<bool>| all.iter().filter(|(_, bearing)| is_minimal(bearing) == said).count();
    let (same, other, uncertain) = (count(Some(true)), count(Some(false)), count(None));
    let outcome = match (other, uncertain) {
        (0, 0) => Outcome::Holds,
        (0, _) => Outcome::NotShown,
        _ => Outcome::DoesNotHold,
    };
    let mut evidence = format!("within {:.0} % in {same} of {} rows", MINIMAL * 100.0, all.len());
    for (hosts, bearing) in all.iter().filter(|(_, bearing)| is_minimal(bearing) != Some(true)) {
        evidence += &format!("; {} with {hosts} hosts: {}", bearing.text(), bearing.explained());
    }
    let statement = format!("{device}: one responder or two make no difference in {words}.");
    (!all.is_empty()).then_some(Finding { statement, outcome, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Header, Sample, TesterCost, Unit, Value};

    /// Rounds with these response times and rates.
    fn rows(series: &str, hosts: f64, rounds: &[(f64, f64)], verdict: &Verdict) -> Vec<Sample> {
        let row = |(repeat, (response, requests)): (u32, &(f64, f64))| Sample {
            cell: Cell {
                experiment: "relay-2013".to_owned(),
                series: series.to_owned(),
                device: "sixway".to_owned(),
                point: [("hosts".to_owned(), hosts)].into(),
                repeat,
            },
            started: String::new(),
            took: 1.0,
            values: [
                ("response".to_owned(), Value::one(*response, Unit::Milliseconds)),
                ("requests".to_owned(), Value::one(*requests, Unit::PerSecond)),
            ]
            .into(),
            not_measurable: [].into(),
            verdict: verdict.clone(),
            tester: TesterCost::default(),
            control: Some(3.0 + 0.03 * f64::from(repeat)),
            commands: Vec::new(),
            raw: Vec::new(),
            failed: None,
        };
        (0..).zip(rounds).map(row).collect()
    }

    fn of(samples: &[Vec<Sample>]) -> Vec<(Outcome, String)> {
        let results = Results { header: Header::default(), samples: samples.concat() };
        findings(&results).into_iter().map(|it| (it.outcome, it.evidence)).collect()
    }

    const TWO: [(f64, f64); 3] = [(1.0, 6e4), (1.01, 6.05e4), (0.99, 5.95e4)];
    const SLOW: [(f64, f64); 3] = [(1.5, 4e4), (1.51, 4.05e4), (1.49, 3.95e4)];
    const WILD: [(f64, f64); 3] = [(0.5, 3e4), (1.0, 6e4), (2.0, 9e4)];

    #[test]
    fn one_responder_or_two_make_no_difference_within_a_tenth() {
        let busy = Verdict::DeviceBound;
        let with = |one: &[(f64, f64)]| {
            let all = of(&[rows("icmp", 8.0, &TWO, &busy), rows("one-responder", 8.0, one, &busy)]);
            all.iter().map(|(outcome, _)| *outcome).collect::<Vec<_>>()
        };
        assert_eq!(with(&TWO), [Outcome::Holds; 2]);
        assert_eq!(with(&SLOW), [Outcome::DoesNotHold; 2]);
        assert_eq!(with(&WILD), [Outcome::NotShown; 2], "the rounds differ too much");
        assert_eq!(with(&TWO[..2]), [Outcome::NotShown; 2], "a ratio takes three rounds");
        assert_eq!(of(&[rows("one-responder", 8.0, &TWO, &busy)]), []);
    }

    #[test]
    fn an_uncertain_row_counts_and_an_offered_rate_is_not_a_rate_of_the_device() {
        let (busy, idle) = (Verdict::DeviceBound, Verdict::NotLoaded);
        let well = [rows("icmp", 8.0, &TWO, &busy), rows("one-responder", 8.0, &TWO, &busy)].concat();
        let wild = [rows("icmp", 10.0, &TWO, &busy), rows("one-responder", 10.0, &WILD, &busy)].concat();
        let all = of(&[well.clone(), wild]);
        assert_eq!(all[0].0, Outcome::NotShown);
        assert!(all[0].1.starts_with("within 10 % in 1 of 2 rows; – with 10 hosts: "), "{}", all[0].1);
        let offered = [rows("icmp", 1.0, &TWO, &idle), rows("one-responder", 1.0, &TWO, &idle)].concat();
        let all = of(&[well, offered]);
        assert_eq!(all[0], (Outcome::Holds, "within 10 % in 2 of 2 rows".to_owned()));
        assert_eq!(all[1], (Outcome::Holds, "within 10 % in 1 of 1 rows".to_owned()));
    }
}
