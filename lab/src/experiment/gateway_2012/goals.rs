//! Our own goals, which the paper does not have.

use super::compared::{OF_AUDIO, more_is_lost, one_against_two, places, two_of};
use super::published::PERCENTAGES;
use crate::analyse::{Bearing, Finding, Group, Outcome, View};

/// Connections and calls take at most this many times as long as with plain forwarding.
const SET_UP: f64 = 1.3;
/// The measure of which the paper prints no percentages.
const CPU: (&str, (&str, &str)) = ("CPU", ("cpu", "cpu"));

/// Whether a device of ours reaches its goals, as far as they were measured.
pub fn goals(view: &View<'_>, device: &str) -> Vec<Finding> {
    if !device.starts_with("sixway") {
        return Vec::new();
    }
    [near_plain(view, device), as_plain(view, device), nowhere_behind(view, device)]
        .into_iter()
        .flatten()
        .collect()
}

/// A value of a device over that of plain forwarding, at each place with one box.
fn over_plain(view: &View<'_>, device: &str, (series, value): (&str, &str)) -> Vec<Bearing> {
    let ratio = |group: &Group<'_>| Some(view.ratio(group, view.plain(group)?, value));
    places(view, device, series).filter_map(ratio).collect()
}

/// The confidence interval decides, not the mean.
fn near_plain(view: &View<'_>, device: &str) -> Option<Finding> {
    let all: Vec<Bearing> = [("connection", "connection"), ("call", "setup")]
        .into_iter()
        .flat_map(|of| over_plain(view, device, of))
        .collect();
    let (mut above, mut below, mut most) = (0, 0, None::<(f64, String)>);
    for bearing in &all {
        let Some(ratio) = bearing.ratio() else { continue };
        above += usize::from(ratio.interval.0 > SET_UP);
        below += usize::from(ratio.interval.1 <= SET_UP);
        if most.as_ref().is_none_or(|(value, _)| ratio.value > *value) {
            most = Some((ratio.value, format!("{}: {}", bearing.text(), bearing.explained())));
        }
    }
    let outcome = match (above, below == all.len()) {
        (1.., _) => Outcome::DoesNotHold,
        (0, true) => Outcome::Holds,
        (0, false) => Outcome::NotShown,
    };
    let evidence = most.map_or_else(
        || "there is no ratio beyond the noise".to_owned(),
        |(_, most)| format!("{above} of {} rows are above, {below} are not; the most is {most}", all.len()),
    );
    let statement = format!(
        "{device}: connections and calls take at most {SET_UP} times as long as with plain forwarding (our goal)."
    );
    (!all.is_empty()).then_some(Finding { statement, outcome, evidence })
}

/// Round trips are no longer beyond the noise, and as much audio arrives.
fn as_plain(view: &View<'_>, device: &str) -> Option<Finding> {
    let trips = over_plain(view, device, ("rtt", "response"));
    let [longer, not_longer] =
        [true, false].map(|is_longer| trips.iter().filter(|it| it.is_above() == Some(is_longer)).count());
    // A wide interval around 1 shows nothing.
    let said: Vec<String> =
        trips.iter().map(|bearing| format!("{} ({})", bearing.text(), bearing.explained())).collect();
    let calls: Vec<_> = places(view, device, "call")
        .filter_map(|group| Some(more_is_lost(group, view.plain(group)?)))
        .collect();
    let [more, not_more] =
        [true, false].map(|is_more| calls.iter().filter(|it| **it == Some(is_more)).count());
    let is_all =
        not_longer == trips.len() && !trips.is_empty() && not_more == calls.len() && !calls.is_empty();
    let outcome = match (longer + more, is_all) {
        (1.., _) => Outcome::DoesNotHold,
        (0, true) => Outcome::Holds,
        (0, false) => Outcome::NotShown,
    };
    (trips.len() + calls.len() > 0).then(|| Finding {
        statement: format!(
            "{device}: round trips take no longer than with plain forwarding, and as much audio arrives (our goal)."
        ),
        outcome,
        evidence: format!(
            "round trips: {}; of {} rows with audio, more is lost in {more}, not more in {not_more}",
            said.join("; "),
            calls.len()
        ),
    })
}

/// In each measure one box is as good as two, or better.
fn nowhere_behind(view: &View<'_>, device: &str) -> Option<Finding> {
    let (mut behind, mut without, mut any) = (Vec::new(), Vec::new(), false);
    let timed = PERCENTAGES.iter().filter(|printed| !OF_AUDIO.contains(&printed.value.1));
    for (measure, value) in timed.map(|printed| (printed.measure, printed.value)).chain([CPU]) {
        let all = one_against_two(view, device, value);
        any |= !all.is_empty();
        if all.iter().any(|it| it.bearing.is_below() == Some(true)) {
            behind.push(measure);
        } else if all.is_empty() || all.iter().any(|it| it.bearing.is_below().is_none()) {
            without.push(measure);
        }
    }
    let lost: Vec<_> =
        places(view, device, "call").filter_map(|one| Some(more_is_lost(one, two_of(view, one)?))).collect();
    match (lost.contains(&Some(true)), lost.is_empty() || lost.contains(&None)) {
        (true, _) => behind.push("throughput and loss of audio"),
        (false, true) => without.push("throughput and loss of audio"),
        (false, false) => {}
    }
    let (outcome, evidence) = match (behind.is_empty(), without.is_empty()) {
        (false, _) => (Outcome::DoesNotHold, format!("it is worse in {}", behind.join(", "))),
        (true, true) => (Outcome::Holds, "each measure is compared at each place".to_owned()),
        (true, false) => (Outcome::NotShown, format!("not certain at each place: {}", without.join(", "))),
    };
    any.then(|| Finding {
        statement: format!("{device}: one box is nowhere worse than two (our goal)."),
        outcome,
        evidence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, DeviceEntry, Header, Results, Sample, TesterCost, Unit, Value, Verdict};
    use std::collections::BTreeMap;

    /// Three rounds of a device in a series and form, whose times are these; no audio is lost but this share.
    fn rounds(device: &str, series: &str, form: f64, times: [f64; 3], loss: f64) -> Vec<Sample> {
        let value = match series {
            "call" => "setup",
            "connection" => "connection",
            "cpu" => "cpu",
            _ => "response",
        };
        let round = |(repeat, time): (u32, &f64)| Sample {
            cell: Cell {
                experiment: "gateway-2012".to_owned(),
                series: series.to_owned(),
                device: device.to_owned(),
                point: BTreeMap::from([("form".to_owned(), form)]),
                repeat,
            },
            started: String::new(),
            took: 1.0,
            values: BTreeMap::from([
                (value.to_owned(), Value::one(*time, Unit::Milliseconds)),
                ("mean-jitter".to_owned(), Value::one(*time, Unit::Milliseconds)),
                ("loss".to_owned(), Value::one(loss, Unit::Lost)),
            ]),
            not_measurable: BTreeMap::new(),
            verdict: Verdict::NotLoaded,
            tester: TesterCost::default(),
            control: Some(3.0 + 0.03 * f64::from(repeat)),
            commands: Vec::new(),
            raw: Vec::new(),
            failed: None,
        };
        (0..).zip(&times).map(round).collect()
    }

    fn outcomes(samples: Vec<Vec<Sample>>) -> Vec<Outcome> {
        let device = |name: &str, is_plain| DeviceEntry {
            name: name.to_owned(),
            realm: "here".to_owned(),
            version: String::new(),
            cannot_run: None,
            is_plain,
        };
        let header =
            Header { devices: vec![device("sixway", false), device("kernel", true)], ..Header::default() };
        let results = Results { header, samples: samples.concat() };
        let view = View::of(&results, "gateway-2012");
        assert!(goals(&view, "kernel").is_empty(), "it is what the goals are measured by");
        goals(&view, "sixway").into_iter().map(|finding| finding.outcome).collect()
    }

    fn times(time: f64) -> [f64; 3] {
        [1.0, 1.01, 0.99].map(|noise| time * noise)
    }

    /// Times of one box and of two in all series, over 1 ms of plain forwarding; the CPU is the same.
    fn all(one: [f64; 4], two: [f64; 4], loss: f64) -> Vec<Outcome> {
        outcomes(measured((one, 1.0), (two, 1.0), [loss; 2]))
    }

    /// The same with the CPU of each, and with what each loses.
    fn measured(
        (one, of_one): ([f64; 4], f64),
        (two, of_two): ([f64; 4], f64),
        [loss, others]: [f64; 2],
    ) -> Vec<Vec<Sample>> {
        let series = ["connection", "web", "call", "rtt"];
        let of = |(at, series): (usize, &&str)| {
            [
                rounds("sixway", series, 1.0, times(one[at]), loss),
                rounds("sixway", series, 2.0, times(two[at]), others),
                rounds("kernel", series, 1.0, [1.0; 3], 0.0),
            ]
        };
        let cpu =
            [(1.0, of_one), (2.0, of_two)].map(|(form, cpu)| rounds("sixway", "cpu", form, times(cpu), 0.0));
        series.iter().enumerate().flat_map(of).chain(cpu).collect()
    }

    #[test]
    fn goals_are_reached_where_the_intervals_say_so() {
        use Outcome::{DoesNotHold, Holds, NotShown};
        assert_eq!(all([1.2, 9.0, 1.2, 1.0], [1.5, 9.5, 1.5, 1.0], 0.0), [Holds; 3]);
        assert_eq!(all([1.2, 9.0, 1.5, 1.0], [1.5, 9.5, 1.5, 1.0], 0.0), [DoesNotHold, Holds, Holds]);
        assert_eq!(all([1.2, 9.0, 1.2, 2.0], [1.5, 9.5, 1.5, 2.5], 0.0), [Holds, DoesNotHold, Holds]);
        assert_eq!(all([1.2, 9.0, 1.2, 1.0], [1.5, 9.5, 1.5, 1.0], 0.01), [Holds, DoesNotHold, Holds]);
        assert_eq!(all([1.2, 9.0, 1.2, 1.0], [1.5, 9.5, 1.5, 0.8], 0.0), [Holds, Holds, DoesNotHold]);
        // 1.3 is within the interval.
        let near = [
            rounds("sixway", "connection", 1.0, times(1.3), 0.0),
            rounds("kernel", "connection", 1.0, [1.0; 3], 0.0),
        ];
        assert_eq!(outcomes(near.to_vec()), [NotShown]);
        // An interval from below the goal to above it decides nothing; and with it one box is not known to be as good as two.
        let unsteady = [
            rounds("sixway", "connection", 1.0, [1.0, 1.6, 1.2], 0.0),
            rounds("sixway", "connection", 2.0, times(1.2), 0.0),
            rounds("kernel", "connection", 1.0, [1.0; 3], 0.0),
        ];
        assert_eq!(outcomes(unsteady.to_vec()), [NotShown, NotShown]);
        assert!(outcomes(Vec::new()).is_empty());
    }

    /// Rounds that differ by a third say neither that one is longer nor that it is not.
    #[test]
    fn a_wide_interval_around_equality_proves_no_goal() {
        use Outcome::{Holds, NotShown};
        let of = |trips: [f64; 3]| {
            let mut samples = measured(([1.2, 9.0, 1.2, 1.0], 1.0), ([1.5, 9.5, 1.5, 1.0], 1.0), [0.0; 2]);
            samples.retain(|rounds| {
                let cell = &rounds[0].cell;
                (cell.series.as_str(), cell.device.as_str(), cell.at("form")) != ("rtt", "sixway", 1.0)
            });
            samples.push(rounds("sixway", "rtt", 1.0, trips, 0.0));
            outcomes(samples)
        };
        assert_eq!(of([1.0, 1.01, 0.99]), [Holds; 3]);
        assert_eq!(of([1.07, 0.93, 1.0]), [Holds, NotShown, NotShown]);
    }

    #[test]
    fn a_goal_of_two_parts_takes_both() {
        for missing in ["rtt", "call"] {
            let mut samples = measured(([1.2, 9.0, 1.2, 1.0], 1.0), ([1.5, 9.5, 1.5, 1.0], 1.0), [0.0; 2]);
            samples.retain(|rounds| rounds[0].cell.series != missing);
            assert_eq!(outcomes(samples)[1], Outcome::NotShown, "{missing}");
        }
    }

    #[test]
    fn audio_that_one_box_alone_loses_in_one_round_leaves_it_open() {
        let one = [1.2, 9.0, 1.2, 1.0];
        let mut all = measured((one, 1.0), (one, 1.0), [0.0; 2]);
        for sample in all.iter_mut().flatten() {
            let cell = &sample.cell;
            if (&*cell.series, &*cell.device, cell.at("form"), cell.repeat) == ("call", "sixway", 1.0, 1) {
                sample.values.insert("loss".to_owned(), Value::one(0.01, Unit::Lost));
            }
        }
        assert_eq!(outcomes(all)[2], Outcome::NotShown);
    }

    #[test]
    fn one_box_is_nowhere_worse_by_cpu_and_by_audio_either() {
        let (one, two) = ([1.2, 9.0, 1.2, 1.0], [1.5, 9.5, 1.5, 1.0]);
        let last = |samples| *outcomes(samples).last().unwrap();
        assert_eq!(last(measured((one, 1.0), (two, 1.2), [0.0; 2])), Outcome::Holds);
        assert_eq!(last(measured((one, 1.2), (two, 1.0), [0.0; 2])), Outcome::DoesNotHold);
        assert_eq!(last(measured((one, 1.0), (two, 1.0), [0.02, 0.01])), Outcome::DoesNotHold);
        assert_eq!(last(measured((one, 1.0), (two, 1.0), [0.01, 0.02])), Outcome::Holds);
        let mut without = measured((one, 1.0), (two, 1.0), [0.0; 2]);
        without.retain(|rounds| rounds[0].cell.series != "cpu");
        assert_eq!(last(without), Outcome::NotShown, "CPU was not measured");
    }

    #[test]
    fn audio_that_is_lost_in_one_round_or_by_the_tester_decides_nothing() {
        let one = [1.2, 9.0, 1.2, 1.0];
        let of = |change: fn(&mut Sample)| {
            let mut all = measured((one, 1.0), (one, 1.0), [0.0; 2]);
            for sample in all.iter_mut().flatten() {
                if (sample.cell.series.as_str(), sample.cell.device.as_str()) == ("call", "sixway") {
                    change(sample);
                }
            }
            outcomes(all)[1]
        };
        assert_eq!(of(|_| {}), Outcome::Holds);
        fn lose(sample: &mut Sample) {
            sample.values.insert("loss".to_owned(), Value::one(0.01, Unit::Lost));
        }
        let in_one_round = |sample: &mut Sample| {
            if sample.cell.repeat == 1 {
                lose(sample);
            }
        };
        assert_eq!(of(in_one_round), Outcome::NotShown);
        assert_eq!(of(lose), Outcome::DoesNotHold);
        assert_eq!(
            of(|sample| {
                sample.verdict = Verdict::TesterBound { why: String::new() };
                lose(sample);
            }),
            Outcome::NotShown
        );
    }
}
