//! Results that are made up: two devices here, two in an emulated machine, published figures, long names, one failure.

use sixway_lab::analyse::{
    About, Column, Drawing, Figure, Finding, Headline, Kind, Node, Outcome, Part, Published, Table, Today,
    Wire,
};
use sixway_lab::report::{Chapter, html};
use sixway_lab::results::{
    Asked, Cell, DeviceEntry, Header, Machine, Results, SCHEMA, Sample, TesterCost, Unit, Value, Verdict,
};
use std::collections::BTreeMap;

const LOAD: About = About {
    name: "made-up-2026",
    question: "How long do packets take through a gateway that is made up, and what does it lose under a load of one to ten hosts?",
    source: "N. Nobody, S. Someone: Gateways that do not exist, a comparison, 2026",
    topology: "hosts ── gateway ── server",
    notes: &[
        "Requests are counted once; packets both ways are twice as many.",
        "A closed loop does not overload a device: at most eight requests of each host are under way.",
    ],
    tables: &[Table {
        title: "One server",
        series: "load",
        axes: &["hosts"],
        columns: &[
            Column { value: "response", title: "response" },
            Column { value: "requests", title: "requests" },
            Column { value: "loss", title: "loss" },
            Column { value: "cpu", title: "CPU" },
            Column { value: "cpu-per-packet", title: "CPU a packet" },
            Column { value: "memory", title: "memory" },
        ],
    }],
    published: &[
        Published {
            device: "Linux 2.6.32 with a long name",
            source: "table 1",
            series: "load",
            axis: "hosts",
            fixed: &[],
            values: &["response", "requests", "loss"],
            rows: &[
                (1.0, &[0.274, 11_177.0, 0.0]),
                (4.0, &[0.48, 35_166.0, 0.000_1]),
                (10.0, &[1.311, 46_812.0, 0.000_3]),
            ],
        },
        Published {
            device: "FreeBSD 9.0",
            source: "table 2",
            series: "load",
            axis: "hosts",
            fixed: &[],
            values: &["response", "requests", "loss"],
            rows: &[
                (1.0, &[0.491, 8_900.0, 0.000_2]),
                (4.0, &[2.05, 13_018.0, 0.0]),
                (10.0, &[5.629, 13_288.0, 0.0]),
            ],
        },
    ],
};

const KINDS: About = About {
    name: "kinds-2026",
    question: "Which kind of tunnel has the smallest overhead?",
    source: "nobody",
    topology: "router1 80.64.79.1 ────── router2 80.64.79.2 ────── router3 80.64.79.3 ────── router4 80.64.79.4 ────── host",
    notes: &[],
    tables: &[Table {
        title: "Kinds of tunnels",
        series: "kinds",
        axes: &[],
        columns: &[
            Column { value: "time", title: "set-up time" },
            Column { value: "rate", title: "throughput" },
        ],
    }],
    published: &[Published {
        device: "ISATAP as printed in 2006",
        source: "figure 3",
        series: "kinds",
        axis: "",
        fixed: &[],
        values: &["time"],
        rows: &[(0.0, &[3.3])],
    }],
};

const DRAWN: Drawing = Drawing {
    nodes: &[
        Node { name: "host1 … host10", lines: &["2001:db8:1::1 …"], column: 0, row: 0, part: Part::Ends },
        Node {
            name: "gateway",
            lines: &["203.0.113.1", "2001:db8:1::ffff"],
            column: 1,
            row: 0,
            part: Part::Device,
        },
        Node { name: "server1", lines: &["203.0.113.2"], column: 2, row: 0, part: Part::End },
        Node { name: "server2", lines: &["203.0.113.3"], column: 2, row: 1, part: Part::End },
    ],
    links: &[
        Wire { ends: (0, 1), label: "IPv6 in IPv4", is_tunnel: true },
        Wire { ends: (1, 2), label: "", is_tunnel: false },
        Wire { ends: (1, 3), label: "", is_tunnel: false },
    ],
};

const HEADLINES: &[Headline] = &[
    Headline {
        statement: "Linux over FreeBSD: requests a second with ten hosts",
        published: 3.52,
        today: Today::Nothing("FreeBSD does not run here"),
    },
    Headline {
        statement: "one over the other: response time with ten hosts",
        published: 1.9,
        today: Today::Ratio {
            series: "load",
            point: &[("hosts", 10.0)],
            value: "response",
            devices: ("sixway-with-a-long-name", "kernel"),
        },
    },
];

const DEVICES: [(&str, &str, bool, f64); 4] = [
    ("sixway-with-a-long-name", "here", false, 2.0),
    ("kernel", "here", true, 1.0),
    ("guest-sit", "uml", false, 30.0),
    ("guest-plain", "uml", true, 20.0),
];

/// Three rounds of everything.
pub fn results() -> Results {
    let mut samples = Vec::new();
    for repeat in 0..3 {
        for hosts in [1.0, 2.0, 4.0, 8.0, 10.0] {
            samples.extend(DEVICES.iter().map(|(device, _, _, slow)| load(device, *slow, hosts, repeat)));
        }
        samples.extend(DEVICES[..2].iter().map(|(device, _, _, slow)| kind(device, *slow, repeat)));
    }
    samples[0].failed = Some("the device did not start: <no such file> & nothing else".to_owned());
    samples[0].values.clear();
    samples[0].verdict = Verdict::Failed;
    let device = |(name, realm, is_plain, _): &(&str, &str, bool, f64)| DeviceEntry {
        name: (*name).to_owned(),
        realm: (*realm).to_owned(),
        version: "1.2.3 (a version with some words)".to_owned(),
        cannot_run: None,
        is_plain: *is_plain,
    };
    let header = Header {
        schema: SCHEMA,
        started: "2026-11-26T07:15:02Z".to_owned(),
        lab: "0.1.0".to_owned(),
        commit: Some("aa4dcd2b".to_owned()),
        asked: Asked {
            experiments: vec![LOAD.name.to_owned(), KINDS.name.to_owned()],
            scale: 0.02,
            repeats: 3,
            pin: true,
            ..Asked::default()
        },
        licence: "CC0-1.0".to_owned(),
        machine: Machine {
            cpu: "AMD EPYC 9B14".to_owned(),
            cpus: 2,
            memory_mb: 24_000,
            kernel: "6.18.44".to_owned(),
            virtualised: true,
            clock: "tsc".to_owned(),
            ..Machine::default()
        },
        devices: DEVICES.iter().map(device).collect(),
        minutes: None,
        plan: samples.iter().map(|sample| sample.cell.key()).collect(),
        ..Header::default()
    };
    Results { header, samples }
}

fn load(device: &str, slow: f64, hosts: f64, repeat: u32) -> Sample {
    // Rounds differ by some percent, differently for each device.
    let wobble = 1.0 + 0.03 * f64::from((repeat * 7 + hosts as u32 * 3 + slow as u32) % 5) / 2.0;
    let time = 0.2 * slow * (1.0 + hosts / 4.0) * wobble;
    let rate = 8.0 * hosts / time * 1e3;
    let response = Value {
        n: 14_080,
        sd: Some(time / 3.0),
        quantiles: Some([0.4, 0.9, 1.4, 2.0, 4.0, 9.0, 20.0].map(|factor| factor * time)),
        ..Value::one(time, Unit::Milliseconds)
    };
    let values = [
        ("response", response),
        ("requests", Value::one(rate, Unit::PerSecond)),
        ("loss", Value::one(if hosts > 8.0 { 0.000_2 } else { 0.0 }, Unit::Lost)),
        ("cpu", Value::one((hosts / 8.0).min(1.0), Unit::Cores)),
        ("cpu-per-packet", Value::one(1_100.0 * slow * wobble, Unit::NanosecondsPerPacket)),
        ("memory", Value::one(21_900.0, Unit::Kibibytes)),
    ];
    let verdict = match hosts {
        ..4.0 => Verdict::NotLoaded,
        10.0.. if device == "kernel" => {
            Verdict::TesterBound { why: "the tester's core was 97 % busy".to_owned() }
        }
        _ => Verdict::DeviceBound,
    };
    sample(("made-up-2026", "load", device), &[("hosts", hosts)], repeat, &values, verdict)
}

fn kind(device: &str, slow: f64, repeat: u32) -> Sample {
    let values = [
        ("time", Value::one(slow + 0.02 * f64::from(repeat), Unit::Milliseconds)),
        ("rate", Value::one(93.4e6 / slow, Unit::BitsPerSecond)),
    ];
    sample(("kinds-2026", "kinds", device), &[], repeat, &values, Verdict::LinkBound)
}

fn sample(
    (experiment, series, device): (&str, &str, &str),
    point: &[(&str, f64)],
    repeat: u32,
    values: &[(&str, Value)],
    verdict: Verdict,
) -> Sample {
    let cell = Cell {
        experiment: experiment.to_owned(),
        series: series.to_owned(),
        device: device.to_owned(),
        point: point.iter().map(|(axis, at)| ((*axis).to_owned(), *at)).collect(),
        repeat,
    };
    Sample {
        cell,
        started: "2026-11-26T07:15:02Z".to_owned(),
        took: 3.0,
        values: values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect::<BTreeMap<_, _>>(),
        not_measurable: BTreeMap::new(),
        verdict,
        tester: TesterCost::default(),
        control: Some(3.0 + 0.03 * f64::from(repeat)),
        commands: vec![format!(
            "{device} run --config a-file-with-a-long-name-that-does-not-end-soon.toml --workers 1"
        )],
        raw: Vec::new(),
        failed: None,
    }
}

/// Two experiments: lines along an axis with a drawn network, and bars with a network in text.
pub fn chapters() -> Vec<Chapter<'static>> {
    let figure = |value, title, series, kind, axis| Figure {
        group: if value == "time" || value == "rate" { "Kinds of tunnels" } else { "" },
        title,
        series,
        axis,
        axis_title: axis,
        value,
        kind,
        at: &[],
        logarithmic: value == "response",
        lines: &[],
        devices: &[],
    };
    let lines = [
        ("response", "response time"),
        ("requests", "requests"),
        ("loss", "loss"),
        ("cpu-per-packet", "CPU a packet"),
    ];
    let finding = |statement: &str, outcome| Finding {
        statement: statement.to_owned(),
        outcome,
        evidence: "0.020 % at most with up to 10 hosts; its core was busy".to_owned(),
    };
    vec![
        Chapter {
            about: &LOAD,
            drawing: Some(&DRAWN),
            figures: lines.map(|(value, title)| figure(value, title, "load", Kind::Lines, "hosts")).to_vec(),
            headlines: HEADLINES,
            findings: vec![
                finding("Both lose at most 0.03 % while their core is busy.", Outcome::Holds),
                finding("The tunnel costs nothing.", Outcome::DoesNotHold),
                finding("Ten hosts are too many.", Outcome::NotShown),
            ],
        },
        Chapter {
            about: &KINDS,
            drawing: None,
            figures: vec![
                figure("time", "set-up time", "kinds", Kind::Bars, ""),
                figure("rate", "throughput", "kinds", Kind::Bars, ""),
            ],
            headlines: &[],
            findings: Vec::new(),
        },
    ]
}

/// The page.
pub fn page() -> String {
    html(&results(), &chapters())
}
