//! Whether a device degrades gracefully.

use super::way::{TRANSLATED, TUNNEL};
use crate::analyse::{Bearing, Finding, Group, Outcome, Ratio, View, short};
use crate::results::{Results, Sample, Verdict};
use std::collections::BTreeSet;

/// A device that is offered too much forwards at least this share of the most that it ever did.
const KEEPS: f64 = 0.8;
/// From this share of its core on, a device is at its limit.
const BUSY: f64 = 0.9;
/// A light subscriber loses at most this share.
const LIGHT_LOSS: f64 = 0.01;
/// From this share of loss on, a device was offered more than it forwards.
const LOST: f64 = 0.01;
/// From this share of loss on, a device is at its limit wherever its time goes, as the verdict has it.
const MUCH: f64 = 0.1;
/// The fewest rounds that show something.
const ROUNDS: usize = 3;

/// Two statements for each device of a series.
pub fn findings(results: &Results) -> Vec<Finding> {
    let view = View::of(results, "overload");
    [(TRANSLATED, ""), (TUNNEL, ", through the tunnel,")]
        .into_iter()
        .flat_map(|(series, through)| of_series(&view, series, through))
        .collect()
}

fn of_series(view: &View<'_>, series: &str, through: &str) -> Vec<Finding> {
    let rows = || view.groups.iter().filter(|group| group.cell.series == series);
    let devices: BTreeSet<&str> = rows().map(|group| group.cell.device.as_str()).collect();
    let of = |device: &&str| {
        let rows: Vec<&Group<'_>> = rows().filter(|group| group.cell.device == **device).collect();
        [keeps(view, &rows, device, through), spares(&rows, device, through)]
    };
    devices.iter().flat_map(of).collect()
}

fn mean(group: &Group<'_>, value: &str) -> f64 {
    group.value(value).map_or(0.0, |(estimate, _)| estimate.mean)
}

/// Whether the device was at its limit, and lost some of what was offered: without loss, what it forwards is what it is offered. The tester may have been
/// at its limit, too: what the device forwarded is its own counter.
fn is_overloaded(row: &Group<'_>) -> bool {
    let core = |sample: &Sample| sample.values.get("core-busy").map(|it| it.value);
    let is_busy = |sample: &Sample| core(sample).unwrap_or(sample.tester.device_core_busy) >= BUSY;
    let lost = mean(row, "heavy-loss");
    let mut measured = row.samples.iter().filter(|sample| sample.failed.is_none()).peekable();
    // Published runs of older labs have neither the load of the core nor a verdict by loss.
    let is_old = row.samples.iter().all(|sample| core(sample).is_none());
    let loses_much = is_old && lost >= MUCH && !matches!(row.verdict(), Verdict::TesterBound { .. });
    let at_limit = *row.verdict() == Verdict::DeviceBound
        || loses_much
        || measured.peek().is_some() && measured.all(|sample| is_busy(sample));
    has_lost(row) && at_limit
}

/// Whether something was lost above the capacity, whoever lost it.
fn has_lost(row: &Group<'_>) -> bool {
    row.cell.at("load") > 1.0 && mean(row, "heavy-loss") > LOST
}

/// Rows of which it is not known whether the device or the tester was at its limit, or what was lost: all rounds of a row may have failed.
fn open<'r, 'v, 'a>(rows: &'r [&'v Group<'a>]) -> impl Iterator<Item = &'v Group<'a>> + use<'r, 'v, 'a> {
    let is_unknown = |row: &&Group<'_>| row.cell.at("load") > 1.0 && row.value("heavy-loss").is_none();
    rows.iter().copied().filter(move |row| (has_lost(row) || is_unknown(row)) && !is_overloaded(row))
}

/// How many rows count, of those above the capacity.
fn counted(rows: &[&Group<'_>]) -> String {
    let above = rows.iter().filter(|row| row.cell.at("load") > 1.0).count();
    let overloaded = rows.iter().filter(|row| is_overloaded(row)).count();
    let open = match open(rows).count() {
        0 => String::new(),
        count => format!(", of {count} more it is not known whose limit was reached"),
    };
    format!("; rows above its capacity: {above}, overloaded: {overloaded}{open}")
}

/// What a device forwards in a row, over its best.
fn kept(view: &View<'_>, row: &Group<'_>, rows: &[&Group<'_>]) -> Bearing {
    let goodput = row.rounds("goodput");
    let rounds = goodput.len();
    let exactly = |value: f64| Ratio { value, interval: (value, value), rounds };
    if rounds < ROUNDS {
        return Bearing::Nothing(format!("a ratio takes {ROUNDS} rounds, and here are {rounds}"));
    }
    // Nothing has no logarithm.
    if goodput.values().all(|it| *it <= 0.0) {
        return Bearing::Direction(exactly(0.0));
    }
    let best = rows.iter().max_by(|a, b| mean(a, "goodput").total_cmp(&mean(b, "goodput")));
    match best.filter(|best| best.cell.at("load") != row.cell.at("load")) {
        Some(best) => view.ratio_of_counters((row, "goodput"), (best, "goodput")),
        None => Bearing::Equal(exactly(1.0)),
    }
}

/// Graceful degradation: nowhere above the capacity is less forwarded than at the capacity, but for a tolerance.
fn keeps(view: &View<'_>, rows: &[&Group<'_>], device: &str, through: &str) -> Finding {
    let overloaded = rows.iter().filter(|row| is_overloaded(row));
    let kept: Vec<_> = overloaded.map(|row| (row.cell.at("load"), self::kept(view, row, rows))).collect();
    let is_open =
        open(rows).any(|row| self::kept(view, row, rows).ratio().is_none_or(|it| it.interval.0 < KEEPS));
    let least = kept.iter().filter_map(|(load, bearing)| Some((*load, bearing.ratio()?)));
    let least = least.min_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let is_less = kept.iter().any(|(_, it)| it.ratio().is_some_and(|it| it.interval.1 < KEEPS));
    let is_enough = kept.iter().all(|(_, it)| it.ratio().is_some_and(|it| it.interval.0 >= KEEPS));
    let uncertain = kept.iter().find_map(|(load, it)| match it {
        Bearing::Nothing(why) => Some(format!("; uncertain at {load} times its capacity: {why}")),
        Bearing::Number(_) | Bearing::Direction(_) | Bearing::Equal(_) => None,
    });
    let offered = rows.iter().map(|row| mean(row, "offered")).fold(0.0, f64::max);
    let evidence = match least {
        Some((load, Ratio { value, interval: (low, high), rounds })) => format!(
            "{} of its best at least ({} to {} with 95 % confidence, {rounds} rounds), at {load} times its capacity ({offered:.0} packets a second were \
             offered at most)",
            short(value),
            short(low),
            short(high)
        ),
        None => nothing_shown(kept.len()),
    } + &uncertain.unwrap_or_default()
        + &counted(rows);
    Finding {
        statement: format!(
            "{device}{through} degrades gracefully: whatever is offered above its capacity, it forwards at least {:.0} % of its best.",
            KEEPS * 100.0
        ),
        outcome: match (is_less, is_enough && !kept.is_empty() && !is_open) {
            (true, _) => Outcome::DoesNotHold,
            (false, true) => Outcome::Holds,
            (false, false) => Outcome::NotShown,
        },
        evidence,
    }
}

/// Whether more than the tolerance is lost in all rounds of a row, or in none; a tester at its limit may have lost it itself.
fn loses(row: &Group<'_>) -> Option<bool> {
    let losses: Vec<f64> = row.rounds("established-loss").into_values().collect();
    let above = losses.iter().filter(|loss| **loss > LIGHT_LOSS).count();
    match (losses.len() >= ROUNDS, above) {
        (true, 0) => Some(false),
        (true, above) if above == losses.len() && !matches!(row.verdict(), Verdict::TesterBound { .. }) => {
            Some(true)
        }
        _ => None,
    }
}

fn spares(rows: &[&Group<'_>], device: &str, through: &str) -> Finding {
    let overloaded: Vec<_> = rows.iter().filter(|row| is_overloaded(row)).collect();
    let said: Vec<_> = overloaded.iter().map(|row| loses(row)).collect();
    let is_open = open(rows).any(|row| loses(row) != Some(false));
    let worst = overloaded.iter().map(|row| mean(row, "established-loss")).fold(0.0, f64::max);
    Finding {
        statement: format!(
            "With {device}{through} a light subscriber loses at most {:.0} % while a heavy one overloads the device.",
            LIGHT_LOSS * 100.0
        ),
        outcome: match (said.contains(&Some(true)), said.is_empty() || said.contains(&None) || is_open) {
            (true, _) => Outcome::DoesNotHold,
            (false, true) => Outcome::NotShown,
            (false, false) => Outcome::Holds,
        },
        evidence: match said.is_empty() {
            true => nothing_shown(0),
            false => format!(
                "{:.2} % at most; more than {:.0} % in each round of {} of {} rows, in no round of {}",
                worst * 100.0,
                LIGHT_LOSS * 100.0,
                said.iter().filter(|it| **it == Some(true)).count(),
                said.len(),
                said.iter().filter(|it| **it == Some(false)).count()
            ),
        } + &counted(rows),
    }
}

/// Why nothing is shown, of a device that was overloaded in some rows or in none.
fn nothing_shown(overloaded: usize) -> String {
    match overloaded {
        0 => {
            "no row above its capacity was overloaded: it lost 1 % or less, its core was less than 90 % busy, or the tester was at its limit".to_owned()
        }
        _ => format!("no ratio is certain: it takes {ROUNDS} rounds that agree"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Header, TesterCost, Unit, Value};
    use std::collections::BTreeMap;

    /// A row of some rounds: what is offered, and what is forwarded of it.
    #[derive(Clone, Copy)]
    struct Row {
        load: f64,
        offered: f64,
        goodput: f64,
        light: f64,
        core: f64,
        rounds: u32,
    }

    fn row(load: f64, offered: f64, goodput: f64) -> Row {
        Row { load, offered, goodput, light: 0.0, core: 1.0, rounds: 3 }
    }

    fn samples(series: &str, row: Row, verdict: &Verdict) -> Vec<Sample> {
        let one = |repeat: u32| {
            let factor = 1.0 + 0.01 * f64::from(repeat);
            let loss = 1.0 - row.goodput / row.offered;
            let values = [
                ("goodput", row.goodput * factor, Unit::PerSecond),
                ("offered", row.offered * factor, Unit::PerSecond),
                ("heavy-loss", loss.max(0.0), Unit::Lost),
                ("established-loss", row.light, Unit::Lost),
                ("core-busy", row.core, Unit::Share),
            ];
            Sample {
                cell: Cell {
                    experiment: "overload".to_owned(),
                    series: series.to_owned(),
                    device: "one".to_owned(),
                    point: BTreeMap::from([("load".to_owned(), row.load)]),
                    repeat,
                },
                started: String::new(),
                took: 1.0,
                values: values
                    .iter()
                    .map(|(name, it, unit)| ((*name).to_owned(), Value::one(*it, *unit)))
                    .collect(),
                not_measurable: BTreeMap::new(),
                verdict: verdict.clone(),
                tester: TesterCost::default(),
                control: Some(3.0 + 0.01 * f64::from(repeat)),
                commands: Vec::new(),
                raw: Vec::new(),
                failed: None,
            }
        };
        (0..row.rounds).map(one).collect()
    }

    fn said_of(samples: Vec<Sample>) -> Vec<Finding> {
        findings(&Results { header: Header::default(), samples })
    }

    /// Whether it degrades gracefully, and whether it spares a light subscriber.
    fn outcomes(rows: &[Row], verdict: &Verdict) -> [Outcome; 2] {
        let said = said_of(rows.iter().flat_map(|row| samples("udp", *row, verdict)).collect());
        [said[0].outcome, said[1].outcome]
    }

    fn degrades(rows: &[Row]) -> Outcome {
        outcomes(rows, &Verdict::NotLoaded)[0]
    }

    use Outcome::{DoesNotHold, Holds, NotShown};

    #[test]
    fn each_series_has_statements_of_its_own() {
        let of = |series, row| samples(series, row, &Verdict::NotLoaded);
        let said = said_of(
            [
                of("udp", row(0.9, 90.0, 90.0)),
                of("udp", row(2.0, 200.0, 95.0)),
                of("tunnel", row(0.9, 900.0, 900.0)),
                of("tunnel", row(2.0, 2_000.0, 300.0)),
            ]
            .concat(),
        );
        let of = |start: &str| said.iter().find(|it| it.statement.starts_with(start)).unwrap().outcome;
        assert_eq!(said.len(), 4);
        assert_eq!(of("one degrades gracefully"), Holds, "goodput of the tunnel is another");
        assert_eq!(of("one, through the tunnel, degrades gracefully"), DoesNotHold);
    }

    #[test]
    fn what_is_forwarded_at_any_load_above_the_capacity_decides() {
        let (below, at) = (row(0.9, 90.0, 90.0), row(1.0, 100.0, 100.0));
        assert_eq!(degrades(&[below, row(2.0, 200.0, 100.0), row(10.0, 900.0, 85.0)]), Holds);
        assert_eq!(degrades(&[below, row(2.0, 200.0, 70.0), row(10.0, 900.0, 95.0)]), DoesNotHold, "at 2");
        assert_eq!(degrades(&[below, at]), NotShown, "nothing above the capacity");
        let idle = Row { core: 0.5, ..row(2.0, 200.0, 70.0) };
        assert_eq!(degrades(&[below, idle]), NotShown, "it was not at its limit");
        // Nearly four fifths: twice the noise reaches over four fifths.
        assert_eq!(degrades(&[at, row(2.0, 200.0, 79.5)]), NotShown);
        let once = Row { rounds: 1, ..row(2.0, 200.0, 70.0) };
        assert_eq!(degrades(&[Row { rounds: 1, ..at }, once]), NotShown, "one round");
    }

    #[test]
    fn a_device_that_forwards_nothing_does_not_degrade_gracefully() {
        assert_eq!(degrades(&[row(0.9, 90.0, 90.0), row(10.0, 900.0, 0.0)]), DoesNotHold);
    }

    #[test]
    fn a_row_whose_limit_is_not_known_leaves_both_open() {
        let said = |goodput, light, verdict: &Verdict| {
            let far = Row { core: 0.5, light, ..row(10.0, 1_000.0, goodput) };
            let busy = Verdict::DeviceBound;
            let all = [
                samples("udp", row(0.9, 90.0, 90.0), &busy),
                samples("udp", row(2.0, 200.0, 100.0), &busy),
                samples("udp", far, verdict),
            ];
            let said = said_of(all.concat());
            [said[0].outcome, said[1].outcome]
        };
        let testers = Verdict::TesterBound { why: String::new() };
        assert_eq!(said(50.0, 0.05, &Verdict::NotLoaded), [NotShown; 2]);
        assert_eq!(said(50.0, 0.05, &testers), [NotShown; 2]);
        assert_eq!(said(98.0, 0.0, &testers), [Holds; 2]);
    }

    #[test]
    fn a_row_that_failed_leaves_both_open() {
        let busy = Verdict::DeviceBound;
        let mut all = [
            samples("udp", row(0.9, 90.0, 90.0), &busy),
            samples("udp", row(2.0, 200.0, 100.0), &busy),
            samples("udp", row(10.0, 900.0, 95.0), &busy),
        ]
        .concat();
        for sample in &mut all[6..] {
            *sample = Sample::failed(sample.cell.clone(), "it ended");
        }
        let said = said_of(all);
        assert_eq!([said[0].outcome, said[1].outcome], [NotShown; 2]);
    }

    #[test]
    fn a_round_that_failed_makes_no_old_row_of_a_new_one() {
        let idle = Row { rounds: 4, core: 0.5, ..row(2.0, 200.0, 95.0) };
        let mut all = samples("udp", idle, &Verdict::NotLoaded);
        all[3] = Sample::failed(all[3].cell.clone(), "");
        assert_eq!(said_of(all)[0].outcome, NotShown);
    }

    #[test]
    fn nothing_in_one_of_three_rounds_is_uncertain() {
        let mut all = [row(0.9, 90.0, 90.0), row(10.0, 900.0, 50.0)]
            .map(|row| samples("udp", row, &Verdict::DeviceBound));
        all[1][1].values.insert("goodput".to_owned(), Value::one(0.0, Unit::PerSecond));
        assert_eq!(said_of(all.concat())[0].outcome, NotShown);
    }

    #[test]
    fn a_round_that_failed_does_not_count() {
        let mut all = samples("udp", Row { rounds: 4, ..row(2.0, 200.0, 95.0) }, &Verdict::NotLoaded);
        all[3] = Sample::failed(all[3].cell.clone(), "");
        assert_eq!(said_of(all)[0].outcome, Holds);
    }

    /// A capacity that was taken while the device was flooded is too low: all that is offered is forwarded, less at less load.
    #[test]
    fn a_row_in_which_nothing_was_lost_was_not_overloaded() {
        let all = |load: f64, offered: f64| row(load, offered, offered);
        let rows = [all(1.2, 11_264.0), all(1.5, 14_041.0), all(2.0, 17_919.0)];
        assert_eq!(outcomes(&rows, &Verdict::DeviceBound), [NotShown; 2]);
        let flooded = row(10.0, 90_000.0, 17_000.0);
        assert_eq!(degrades(&[rows[0], rows[1], rows[2], flooded]), Holds);
    }

    #[test]
    fn a_light_subscriber_is_spared_if_it_loses_nothing_above_the_capacity() {
        let with = |load: f64, light: f64| Row { light, ..row(load, load * 100.0, 90.0) };
        let spared = |rows: &[Row]| outcomes(rows, &Verdict::NotLoaded)[1];
        assert_eq!(spared(&[with(0.9, 0.0), with(1.0, 0.0), with(2.0, 0.0)]), Holds);
        assert_eq!(spared(&[with(0.9, 0.0), with(1.0, 0.0), with(2.0, 0.05)]), DoesNotHold);
        assert_eq!(spared(&[with(0.9, 0.05), with(1.0, 0.05), with(2.0, 0.0)]), Holds, "not overloaded");
        assert_eq!(spared(&[Row { core: 0.5, ..with(2.0, 0.05) }]), NotShown, "it was not at its limit");
        assert_eq!(spared(&[Row { rounds: 2, ..with(2.0, 0.05) }]), NotShown, "two rounds");
        assert_eq!(spared(&[Row { rounds: 2, ..with(2.0, 0.0) }]), NotShown, "two rounds");
        // The tester may have lost it.
        let testers = Verdict::TesterBound { why: String::new() };
        assert_eq!(outcomes(&[with(2.0, 0.05)], &testers)[1], NotShown);
        assert_eq!(outcomes(&[with(2.0, 0.0)], &testers)[1], Holds);
    }

    #[test]
    fn a_row_that_lost_a_tenth_shows_something_though_its_core_had_time() {
        let rows = [row(0.9, 90.0, 90.0), Row { core: 0.5, ..row(2.0, 200.0, 30.0) }];
        assert_eq!(outcomes(&rows, &Verdict::DeviceBound)[0], DoesNotHold);
        let testers = Verdict::TesterBound { why: String::new() };
        let said = said_of(rows.iter().flat_map(|row| samples("udp", *row, &testers)).collect());
        assert_eq!(said[0].outcome, NotShown);
        assert!(said[0].evidence.contains("or the tester was at its limit"), "{}", said[0].evidence);
    }

    /// A run that was published without the tester's cost, as data.csv is, has the same statements.
    #[test]
    fn whether_the_core_was_busy_is_a_value_of_the_sample() {
        let mut all = samples("udp", row(2.0, 200.0, 95.0), &Verdict::NotLoaded);
        assert_eq!(said_of(all.clone())[0].outcome, Holds);
        let set = |all: &mut Vec<Sample>, name: &str, it: f64| {
            all.iter_mut().for_each(|sample| {
                sample.values.insert(name.to_owned(), Value::one(it, Unit::Share));
            });
        };
        set(&mut all, "core-busy", 0.5);
        assert_eq!(said_of(all.clone())[0].outcome, NotShown);
        // An older run has it with the tester's cost alone, and what was published of it has none: much loss is enough.
        for sample in &mut all {
            sample.values.remove("core-busy");
        }
        assert_eq!(said_of(all.clone())[0].outcome, Holds);
        let testers = Verdict::TesterBound { why: String::new() };
        all.iter_mut().for_each(|sample| sample.verdict = testers.clone());
        assert_eq!(said_of(all.clone())[0].outcome, NotShown);
        all.iter_mut().for_each(|sample| sample.tester.device_core_busy = 1.0);
        assert_eq!(said_of(all.clone())[0].outcome, Holds);
        set(&mut all, "heavy-loss", 0.05);
        all.iter_mut().for_each(|sample| {
            (sample.verdict, sample.tester.device_core_busy) = (Verdict::NotLoaded, 0.5);
        });
        assert_eq!(said_of(all)[0].outcome, NotShown, "it lost little");
    }
}
