//! The plan of measurements, and the description.

use super::findings::findings;
use super::stage::{Loaded, time};
use super::topology::{DRAWING, DRAWN};
use super::way::{TRANSLATED, TUNNEL, Way};
use crate::analyse::{About, Column, Drawing, Figure, Finding, Kind, Table};
use crate::device::{Needs, TaskKind, find};
use crate::experiment::contract::{Entry, Experiment, Line, Stage};
use crate::experiment::peers::{Part, part, times_as_long};
use crate::experiment::series::series;
use crate::failure::Result;
use crate::results::{Asked, Cell, Results};
use std::collections::BTreeMap;

/// The experiment.
pub struct Overload;

const ABOUT: About = About {
    name: "overload",
    question: "What does a device still do when more is offered than it can forward, and what do others lose by it?",
    source: "RFC 8219 §10 (overload scalability); fairness after R. Jain, D. Chiu, W. Hawe, 1984",
    topology: DRAWING,
    notes: &[
        "The heavy subscriber sends UDP packets of 18 octets on 16 flows at times that do not depend on what arrives: an open loop. The kernel \
         makes their frames; without root, and for guests, sockets send them.",
        "The load is a multiple of the device's capacity, the most that it forwards under all that the tester can make, and then at \
         rates that rise while it forwards 95 % of what is offered. What was really offered has two columns: one core of a tester does not reach ten times the capacity of \
         a fast device, and such a row is tester-bound. Statements are on rows in which the device was at its limit and lost more than 1 %.",
        "Goodput is what the device has sent to the server while the load lasts, by its own link's counter without the light subscriber's \
         packets. The heavy one's frames go to an address at which the server drops them immediately.",
        "The light subscriber has 500 round trips a second on four flows that exist before, and opens 20 TCP connections a second. Their \
         times count from when they were due.",
        "In the tunnel the subscribers are IPv6 hosts of the 6to4 site 2002:c613:1::/48, whose router is the device, and the server is the 6to4 host \
         2002:c613:2::1: Sixway on the tester's CPU, whatever the device. Plain forwarding has native IPv6 in its place.",
        "Fairness is Jain's index of what each of the two got of its max-min fair share: 1 is fair, 0.5 means that one got nothing.",
    ],
    tables: &[
        Table {
            title: "Offered load from 0.1 to 10 times the capacity",
            series: TRANSLATED,
            axes: &["load"],
            columns: COLUMNS,
        },
        Table { title: "The same through a 6to4 tunnel", series: TUNNEL, axes: &["load"], columns: COLUMNS },
    ],
    published: &[],
};

const COLUMNS: &[Column] = &[
    Column { value: "offered", title: "offered" },
    Column { value: "offered-load", title: "offered, of the capacity" },
    Column { value: "goodput", title: "goodput" },
    Column { value: "of-capacity", title: "of the capacity" },
    Column { value: "established", title: "round trip of established flows" },
    Column { value: "established-loss", title: "their loss" },
    Column { value: "connection", title: "connection of new flows" },
    Column { value: "new-flows", title: "new flows" },
    Column { value: "new-loss", title: "their failures" },
    Column { value: "fairness", title: "fairness" },
    Column { value: "cpu-per-packet", title: "CPU a packet" },
];

/// What is measured, and how figures call it.
const SERIES: [(&str, &str); 2] = [(TRANSLATED, ""), (TUNNEL, "Through a 6to4 tunnel")];

const FIGURES: [(&str, &str, bool); 4] = [
    ("goodput", "goodput", false),
    ("established", "round trip of established flows", true),
    ("new-loss", "new flows that failed", false),
    ("fairness", "fairness between a heavy and a light subscriber", false),
];

const LINEUP: &[Entry] = &[
    Entry {
        task: TaskKind::Nat64,
        usual: &["sixway", "sixway-tc", "sixway-xdp", "sixway-stateless", "tayga-masquerade", "jool"],
    },
    Entry { task: TaskKind::Router6to4, usual: &["linux-sit"] },
    Entry { task: TaskKind::Nat44, usual: &["kernel-masquerade"] },
    Entry { task: TaskKind::Forward, usual: &["kernel", "guest-plain"] },
];

/// Devices that Sixway is compared with in whole.
const PEERS: &[&str] = &["sixway-tc", "sixway-xdp", "jool", "linux-sit", "guest-plain"];
const ALL: [f64; 12] = [0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0];
const QUICK: [f64; 4] = [0.1, 0.9, 2.0, 10.0];

impl Experiment for Overload {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn needs(&self) -> Needs {
        Needs::NAMESPACE
    }

    fn lineup(&self) -> &[Entry] {
        LINEUP
    }

    fn settings(&self) -> &'static [&'static str] {
        &["load", "series"]
    }

    fn cells(&self, asked: &Asked, devices: &[&str]) -> std::result::Result<Vec<Cell>, String> {
        let loads = asked.numbers("load", if asked.quick { &QUICK } else { &ALL })?;
        if let Some(wrong) = loads.iter().find(|load| !(0.01..=100.0).contains(*load)) {
            return Err(format!("--set load: {wrong} is not a multiple from 0.01 to 100"));
        }
        let names = SERIES.map(|(series, _)| series);
        let mut cells = Vec::new();
        for series in series(asked, &names, &[])? {
            let takes_part = |name: &str| find(name).is_some_and(|device| Way::of(series, device).is_some());
            for device in devices.iter().filter(|device| takes_part(device)) {
                // Its statement is on the device itself, and takes loads below the capacity and above it.
                if part(device, PEERS, asked) == Part::Nothing {
                    continue;
                }
                cells.extend(loads.iter().map(|load| Cell {
                    experiment: ABOUT.name.to_owned(),
                    series: series.to_owned(),
                    device: (*device).to_owned(),
                    point: BTreeMap::from([("load".to_owned(), *load)]),
                    repeat: 0,
                }));
            }
        }
        Ok(cells)
    }

    /// What is lost is waited for, and the capacity is measured once.
    fn seconds(&self, cell: &Cell, asked: &Asked) -> f64 {
        1.2 * times_as_long(&cell.device) + time(asked.scale).as_secs_f64()
    }

    fn build(&self, cell: &Cell, line: &Line<'_>) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Loaded::build(&cell.series, line)?))
    }

    fn drawing(&self) -> Option<&'static Drawing> {
        Some(&DRAWN)
    }

    fn figures(&self) -> Vec<Figure> {
        let figure = |(series, group), (value, title, logarithmic)| Figure {
            group,
            title,
            series,
            axis: "load",
            axis_title: "offered load, in capacities",
            value,
            kind: Kind::Lines,
            at: &[],
            logarithmic,
            lines: &[],
            devices: &[],
        };
        SERIES.into_iter().flat_map(|series| FIGURES.map(|it| figure(series, it))).collect()
    }

    fn findings(&self, results: &Results) -> Vec<Finding> {
        findings(results)
    }
}
