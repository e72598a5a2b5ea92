//! The plan of measurements, and the description.

use super::findings::findings;
use super::impairments::Kind;
use super::stage::{Bare, Injected, RATE, packets};
use super::topology::DRAWING;
use crate::analyse::{About, Column, Finding, Table};
use crate::device::{Needs, TaskKind};
use crate::experiment::contract::{Entry, Experiment, Line, Stage};
use crate::failure::Result;
use crate::results::{Asked, Cell, Results};
use std::collections::BTreeMap;

/// The experiment.
pub struct Tester;

const INJECTED: &[Column] = &[
    Column { value: "injected", title: "injected" },
    Column { value: "measured", title: "measured" },
    Column { value: "allowed", title: "may differ by" },
];

const fn injected(kind: Kind, title: &'static str) -> Table {
    Table { title, series: kind.series(), axes: &["packets"], columns: INJECTED }
}

const ABOUT: About = About {
    name: "tester",
    question: "What can the lab's own loads do, and do they find what a link is known to do?",
    source: "RFC 8219 asks for a tester whose limits are known; the method is the lab's own",
    topology: DRAWING,
    notes: &[
        "The bare link is a pair of veth devices between the two hosts: the device that a row names takes no part in it. Its rates are the tester's limits.",
        "The impaired link is a process of the lab between the two hosts. It keeps a ledger of what it did, which is compared with what the load measured.",
        "Delays and their deviation are compared by quantiles (the half, and one deviation to each side), less what the same load measures without them.",
        "They may differ by 1 %, or by two standard errors if that is more.",
    ],
    tables: &[
        Table {
            title: "Bare link: packets of UDP, one way, as fast as they go",
            series: "bare-udp",
            axes: &["payload"],
            columns: &[
                Column { value: "sent-per-s", title: "sent" },
                Column { value: "arrived-per-s", title: "arrived" },
                Column { value: "loss", title: "loss" },
                Column { value: "cost", title: "generator's CPU a packet" },
            ],
        },
        Table {
            title: "Bare link: packets of UDP at a given rate",
            series: "bare-paced",
            axes: &["per-s"],
            columns: &[
                Column { value: "arrived-per-s", title: "arrived" },
                Column { value: "latency", title: "latency" },
                Column { value: "lateness", title: "sent late by" },
                Column { value: "jitter", title: "jitter" },
                Column { value: "loss", title: "loss" },
            ],
        },
        Table {
            title: "Bare link: frames made in the kernel, at a given rate (0: as fast as they go), and measured there",
            series: "bare-frames",
            axes: &["per-s"],
            columns: &[
                Column { value: "sent-per-s", title: "sent" },
                Column { value: "arrived-per-s", title: "arrived" },
                Column { value: "latency", title: "latency" },
                Column { value: "loss", title: "loss" },
                Column { value: "cost", title: "CPU a frame, with what takes it" },
            ],
        },
        Table {
            title: "Bare link: transactions, one at a time (1: UDP, 2: over one TCP connection, 3: a connection each)",
            series: "bare-transactions",
            axes: &["kind"],
            columns: &[
                Column { value: "transactions", title: "transactions" },
                Column { value: "response", title: "response" },
                Column { value: "loss", title: "loss" },
            ],
        },
        injected(Kind::Loss, "Injected loss"),
        injected(Kind::Delay, "Injected delay"),
        injected(Kind::Jitter, "Injected deviation of delays"),
        injected(Kind::Duplicates, "Injected duplicates"),
        injected(Kind::Reordering, "Injected reordering"),
    ],
    published: &[],
};

const LINEUP: &[Entry] = &[Entry { task: TaskKind::Forward, usual: &["kernel"] }];

impl Experiment for Tester {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn needs(&self) -> Needs {
        Needs::NAMESPACE
    }

    fn lineup(&self) -> &[Entry] {
        LINEUP
    }

    fn cells(&self, asked: &Asked, devices: &[&str]) -> std::result::Result<Vec<Cell>, String> {
        let bare: [(&str, &str, &[f64]); 4] = [
            ("bare-udp", "payload", &[16.0, 1_452.0]),
            ("bare-paced", "per-s", &[1_000.0, 10_000.0, 50_000.0]),
            ("bare-frames", "per-s", &[0.0, 200_000.0]),
            ("bare-transactions", "kind", &[1.0, 2.0, 3.0]),
        ];
        let mut cells = Vec::new();
        for device in devices {
            let cell = |series: &str, point: BTreeMap<String, f64>| Cell {
                experiment: ABOUT.name.to_owned(),
                series: series.to_owned(),
                device: (*device).to_owned(),
                point,
                repeat: 0,
            };
            for (series, axis, values) in bare {
                cells.extend(
                    values.iter().map(|value| cell(series, BTreeMap::from([(axis.to_owned(), *value)]))),
                );
            }
            cells.extend(Kind::ALL.map(|kind| {
                cell(kind.series(), BTreeMap::from([("packets".to_owned(), packets(asked.scale) as f64)]))
            }));
        }
        Ok(cells)
    }

    fn seconds(&self, cell: &Cell, asked: &Asked) -> f64 {
        match cell.series.starts_with("bare") {
            true => 0.1 + (2.0 * asked.scale).clamp(0.1, 2.0),
            false => 0.5 + 2.0 * packets(asked.scale) as f64 / RATE,
        }
    }

    fn build(&self, cell: &Cell, line: &Line<'_>) -> Result<Box<dyn Stage>> {
        match Kind::ALL.into_iter().find(|kind| kind.series() == cell.series) {
            Some(kind) => Ok(Box::new(Injected::build(kind, line)?)),
            None => Ok(Box::new(Bare::build(line)?)),
        }
    }

    fn findings(&self, results: &Results) -> Vec<Finding> {
        findings(results)
    }
}
