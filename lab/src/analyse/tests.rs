//! Ratios and comparisons, from samples that are made up.

use super::{Bearing, Direction, Headline, Place, Today, View, compare, noise};
use crate::results::{
    Asked, Cell, DeviceEntry, Header, Machine, Results, SCHEMA, Sample, TesterCost, Unit, Value, Verdict,
};
use std::collections::BTreeMap;

fn device(name: &str, realm: &str, is_plain: bool) -> DeviceEntry {
    DeviceEntry {
        name: name.to_owned(),
        realm: realm.to_owned(),
        version: "1".to_owned(),
        cannot_run: None,
        is_plain,
    }
}

fn sample(device: &str, repeat: u32, values: &[(&str, f64, Unit)], verdict: &Verdict) -> Sample {
    let cell = Cell {
        experiment: "x".to_owned(),
        series: "s".to_owned(),
        device: device.to_owned(),
        point: BTreeMap::from([("hosts".to_owned(), 4.0)]),
        repeat,
    };
    let value = |(name, value, unit): &(&str, f64, Unit)| ((*name).to_owned(), Value::one(*value, *unit));
    Sample {
        cell,
        started: String::new(),
        took: 1.0,
        values: values.iter().map(value).collect(),
        not_measurable: BTreeMap::new(),
        verdict: verdict.clone(),
        tester: TesterCost::default(),
        // 1 % of noise.
        control: Some(3.0 + 0.03 * f64::from(repeat % 3)),
        commands: Vec::new(),
        raw: Vec::new(),
        failed: None,
    }
}

fn results(samples: Vec<Sample>) -> Results {
    let header = Header {
        schema: SCHEMA,
        started: String::new(),
        lab: String::new(),
        commit: None,
        asked: Asked { experiments: vec!["x".to_owned()], repeats: 3, ..Asked::default() },
        licence: String::new(),
        machine: Machine { cpu: "A".to_owned(), cpus: 2, ..Machine::default() },
        devices: vec![
            device("sixway", "here", false),
            device("kernel", "here", true),
            device("sit", "uml", false),
            device("guest-plain", "uml", true),
        ],
        minutes: None,
        plan: samples.iter().map(|sample| sample.cell.key()).collect(),
        ..Header::default()
    };
    Results { header, samples }
}

/// Three rounds of each device, whose response time is this many milliseconds.
fn rounds(devices: &[(&str, f64)]) -> Vec<Sample> {
    let of_round = |repeat: u32| {
        devices.iter().map(move |(device, time)| {
            let time = time * (1.0 + 0.01 * f64::from(repeat));
            sample(device, repeat, &[("time", time, Unit::Milliseconds)], &Verdict::DeviceBound)
        })
    };
    (0..3).flat_map(of_round).collect()
}

fn bearing(results: &Results, over: &str, under: &str, value: &str) -> Bearing {
    let view = View::of(results, "x");
    let point = BTreeMap::from([("hosts".to_owned(), 4.0)]);
    let group = |device| view.group("s", device, &point).unwrap();
    view.ratio(group(over), group(under), value)
}

#[test]
fn what_all_rounds_have_in_common_is_not_in_a_ratio() {
    let results = results(rounds(&[("sixway", 2.0), ("kernel", 1.0)]));
    let ratio = bearing(&results, "sixway", "kernel", "time").number().unwrap();
    // The rounds have no width of their own: what remains is twice the noise of the machine.
    let twice = 1.0 + 2.0 * noise(&results.samples).unwrap();
    let (low, high) = ratio.interval;
    assert!((ratio.value - 2.0).abs() < 1e-9, "{ratio:?}");
    assert!((high - 2.0 * twice).abs() < 1e-9 && (low - 2.0 / twice).abs() < 1e-9, "{ratio:?}");
}

#[test]
fn a_ratio_of_two_realms_is_refused() {
    let without_plain = results(rounds(&[("sixway", 2.0), ("sit", 30.0), ("kernel", 1.0)]));
    let said = bearing(&without_plain, "sixway", "sit", "time").explained();
    assert_eq!(said, "sixway and sit run in different realms: plain forwarding was not measured in uml");
    // With plain forwarding in both, two times as much here and three times as much there meet.
    let both = results(rounds(&[("sixway", 2.0), ("sit", 30.0), ("kernel", 1.0), ("guest-plain", 10.0)]));
    let ratio = bearing(&both, "sit", "sixway", "time").number().unwrap();
    assert!((ratio.value - 1.5).abs() < 1e-9, "{ratio:?}");
    // A time of 0 has no logarithm: the reason is said, and no ratio is made of the other rounds.
    let mut zero = both.clone();
    let of_plain = |sample: &&mut Sample| sample.cell.device == "guest-plain" && sample.cell.repeat == 1;
    for sample in zero.samples.iter_mut().filter(of_plain) {
        sample.values.insert("time".to_owned(), Value::one(0.0, Unit::Milliseconds));
    }
    let said = bearing(&zero, "sit", "sixway", "time").explained();
    assert_eq!(said, "sit and sixway run in different realms: time of guest-plain was 0 or less in a round");
}

#[test]
fn a_tester_at_its_limit_bears_nothing_but_the_cost_of_a_packet() {
    let verdict = Verdict::TesterBound { why: "it was busy".to_owned() };
    let of = |device: &str, factor: f64| {
        let values = [
            ("rate", 1e3 * factor, Unit::PerSecond),
            ("time", factor, Unit::Milliseconds),
            ("cost", 100.0 * factor, Unit::NanosecondsPerPacket),
        ];
        (0..3).map(|repeat| sample(device, repeat, &values, &verdict)).collect::<Vec<_>>()
    };
    let results = results([of("sixway", 2.0), of("kernel", 1.0)].concat());
    let said = |value| bearing(&results, "sixway", "kernel", value).explained();
    assert_eq!(said("rate"), "the tester was at its limit with sixway");
    assert_eq!(said("time"), "the tester was at its limit with sixway");
    assert!(bearing(&results, "sixway", "kernel", "cost").number().is_some());
}

#[test]
fn a_headline_is_divided_as_the_paper_did() {
    let results = results(rounds(&[("sixway", 2.0), ("kernel", 8.0)]));
    let today =
        Today::Ratio { series: "s", point: &[("hosts", 4.0)], value: "time", devices: ("kernel", "sixway") };
    let headline = Headline { statement: "old over new", published: 3.52, today };
    let view = View::of(&results, "x");
    assert_eq!(headline.today(&view).text(), "4.00 ×");
    let today = Today::Ratio { series: "s", point: &[], value: "time", devices: ("kernel", "sixway") };
    let elsewhere = Headline { today, ..headline }.today(&view).explained();
    assert_eq!(elsewhere, "kernel has no row at this point in this run");
    let today = Today::Ratio { series: "s", point: &[], value: "time", devices: ("stf", "sixway") };
    assert_eq!(Headline { today, ..headline }.today(&view).explained(), "stf was not measured");
}

#[test]
fn a_headline_may_be_of_two_values_of_one_row() {
    let values = [("through", 3.0, Unit::Milliseconds), ("native", 2.0, Unit::Milliseconds)];
    let results = results((0..3).map(|round| sample("sit", round, &values, &Verdict::DeviceBound)).collect());
    let over = Place { device: "sit", series: "s", point: &[("hosts", 4.0)], value: "through" };
    let today = Today::Rows { over, under: Place { value: "native", ..over } };
    let headline = Headline { statement: "with over without", published: 1.88, today };
    assert_eq!(headline.today(&View::of(&results, "x")).text(), "1.50 ×", "both are of the same guest");
    assert_eq!(headline.devices(), "sit");
    let today = Today::Rows { over, under: Place { value: "other", ..over } };
    assert_eq!(
        Headline { today, ..headline }.today(&View::of(&results, "x")).explained(),
        "sit has no other"
    );
}

#[test]
fn a_round_with_nothing_leaves_no_ratio() {
    let with = |losses: [f64; 4]| {
        let of = |device: &'static str, losses: [f64; 4]| {
            (0..).zip(losses).map(move |(round, loss)| {
                sample(device, round, &[("loss", loss, Unit::Lost)], &Verdict::DeviceBound)
            })
        };
        bearing(
            &results(of("sixway", losses).chain(of("kernel", [0.01; 4])).collect()),
            "sixway",
            "kernel",
            "loss",
        )
    };
    assert_eq!(with([0.02; 4]).text(), "2.00 ×");
    // Three rounds without the fourth would be twice as much.
    assert_eq!(
        with([0.02, 0.02, 0.0, 0.02]),
        Bearing::Nothing("loss of sixway was 0 or less in a round".to_owned())
    );
}

#[test]
fn runs_without_a_control_are_not_compared_by_ratios() {
    let run = |time: f64, control: bool| {
        let mut samples = rounds(&[("sixway", time)]);
        samples.iter_mut().filter(|_| !control).for_each(|sample| sample.control = None);
        results(samples)
    };
    let change = |first: &Results, second: &Results| compare(first, second).changes.remove(0);
    assert!(change(&run(1.0, true), &run(2.0, true)).worse_by().is_some_and(|worse| worse > 1.9));
    for (first, second) in [(true, false), (false, true), (false, false)] {
        let change = change(&run(1.0, first), &run(2.0, second));
        assert_eq!(change.bearing, Bearing::Nothing("the noise of a run is not known".to_owned()));
        assert_eq!(change.worse_by(), None);
    }
}

#[test]
fn noise_is_that_of_the_control_and_one_slow_measurement_does_not_count() {
    let mut samples = rounds(&[("sixway", 1.0), ("kernel", 1.0)]);
    let quiet = noise(&samples).unwrap();
    assert!(quiet > 0.005 && quiet < 0.02, "{quiet}");
    samples[0].control = Some(300.0);
    assert!(noise(&samples).unwrap() < 0.03);
    assert_eq!(noise(&samples[..2]), None);
}

#[test]
fn two_runs_are_compared_value_by_value() {
    let before = results(rounds(&[("sixway", 2.0), ("kernel", 1.0)]));
    let after = results(rounds(&[("sixway", 3.0), ("kernel", 1.0)]));
    let comparison = compare(&before, &after);
    assert_eq!(comparison.by_ratio, None);
    let worse: Vec<_> = comparison.changes.iter().map(super::Change::worse_by).collect();
    assert_eq!(worse.len(), 2);
    assert!((worse[0].unwrap() - 1.5).abs() < 1e-9, "{comparison:?}");
    assert_eq!(worse[1], None, "the kernel's is the same");
    let less = results(rounds(&[("kernel", 1.0)]));
    assert_eq!(compare(&before, &less).unmatched, ["x/s/sixway/hosts=4 is in the first run only"]);
}

#[test]
fn two_machines_are_compared_by_their_plain_forwarding() {
    let before = results(rounds(&[("sixway", 2.0), ("kernel", 1.0)]));
    let mut after = results(rounds(&[("sixway", 6.0), ("kernel", 3.0)]));
    after.header.machine.cpu = "B".to_owned();
    let comparison = compare(&before, &after);
    assert_eq!(comparison.by_ratio.as_deref(), Some("the machines differ (2 × A; 2 × B)"));
    assert!(comparison.changes.iter().all(|change| change.worse_by().is_none()), "{comparison:?}");
}

#[test]
fn the_clock_of_another_machine_is_not_compared() {
    let with = |ahead: f64| {
        let values =
            [("clock-ahead", ahead, Unit::Milliseconds), ("client-clock-within", ahead, Unit::Milliseconds)];
        let samples = (0..3).map(|repeat| sample("sixway", repeat, &values, &Verdict::DeviceBound));
        results(samples.collect())
    };
    assert!(compare(&with(1.0), &with(5.0)).changes.is_empty());
}

#[test]
fn loss_that_appears_is_worse_though_nothing_is_divided() {
    let with = |loss: f64| {
        let values = [("loss", loss, Unit::Lost)];
        let samples = (0..3).map(|repeat| sample("sixway", repeat, &values, &Verdict::DeviceBound));
        results(samples.collect())
    };
    assert_eq!(compare(&with(0.0), &with(0.01)).changes[0].worse_by(), Some(f64::INFINITY));
    assert_eq!(compare(&with(0.01), &with(0.0)).changes[0].worse_by(), None);
    assert_eq!(compare(&with(0.0), &with(0.0)).changes[0].worse_by(), None);
}

/// Rounds of a value each, of one device.
fn rounds_of(device: &str, unit: Unit, values: &[f64]) -> Vec<Sample> {
    let of =
        |(round, value): (u32, &f64)| sample(device, round, &[("it", *value, unit)], &Verdict::DeviceBound);
    (0..).zip(values).map(of).collect()
}

#[test]
fn a_round_without_loss_in_one_run_leaves_nothing_to_compare() {
    let run = |losses: [f64; 4]| results(rounds_of("sixway", Unit::Lost, &losses));
    let (with_zero, without) = (run([0.02, 0.02, 0.0, 0.02]), run([0.04; 4]));
    for (first, second) in [(&with_zero, &without), (&without, &with_zero)] {
        let change = compare(first, second).changes.remove(0);
        assert_eq!(change.direction, Direction::Unknown, "the other three rounds would be a factor of two");
        assert_eq!(change.unknown(), Some("it of sixway was 0 or less in a round"));
    }
}

#[test]
fn loss_that_appears_on_another_machine_is_not_judged() {
    let run = |cpu: &str, loss: f64| {
        let plain = rounds_of("kernel", Unit::Lost, &[0.01; 3]);
        let mut run = results([rounds_of("sixway", Unit::Lost, &[loss; 3]), plain].concat());
        run.header.machine.cpu = cpu.to_owned();
        run
    };
    let direction = |second: &Results| compare(&run("A", 0.0), second).changes[0].direction;
    assert_eq!(direction(&run("A", 0.01)), Direction::Worse);
    assert_eq!(direction(&run("B", 0.01)), Direction::Unknown);
}

#[test]
fn a_wide_interval_around_equality_does_not_show_that_nothing_changed() {
    let run = |times: [f64; 3]| results(rounds_of("sixway", Unit::Milliseconds, &times));
    let steady = run([1.0, 1.001, 1.002]);
    let wide = compare(&steady, &run([1.0, 1.05, 1.1])).changes.remove(0);
    assert_eq!(wide.bearing.text(), "equal");
    assert_eq!(wide.direction, Direction::Unknown);
    assert_eq!(wide.unknown(), Some("the interval is too wide to show that nothing changed"));
    let same = compare(&steady, &steady).changes.remove(0);
    assert_eq!((same.direction, same.unknown()), (Direction::Same, None));
}

#[test]
fn a_value_that_one_round_does_not_have_has_no_ratio() {
    let of = |device: &'static str| {
        (0..4).map(move |round| {
            sample(device, round, &[("time", 2.0, Unit::Milliseconds)], &Verdict::DeviceBound)
        })
    };
    let mut all: Vec<_> = of("sixway").chain(of("kernel")).collect();
    all[0].values.clear();
    all[0].not_measurable.insert("time".to_owned(), "too short".to_owned());
    let said = bearing(&results(all), "sixway", "kernel", "time").explained();
    assert_eq!(said, "the value of sixway is uncertain: too short");
}
