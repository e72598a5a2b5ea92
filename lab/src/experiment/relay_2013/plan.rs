//! What is measured, and what it is about.

use super::findings::findings;
use super::published::PUBLISHED;
use super::stage::Relay;
use super::topology::DRAWING;
use crate::analyse::{About, Column, Finding, Table};
use crate::device::{Needs, TaskKind};
use crate::experiment::contract::{Entry, Experiment, Line, Stage};
use crate::failure::Result;
use crate::results::{Asked, Cell, Results};
use std::collections::BTreeMap;

/// The experiment.
pub struct Relay2013;

const ABOUT: About = About {
    name: "relay-2013",
    question: "What does a 6to4 relay lose, and how long do packets take, when one to ten hosts load it?",
    source: "G. Lencse, S. Répás: Performance analysis and comparison of 6to4 relay implementations, 2013",
    topology: DRAWING,
    notes: &[
        "Requests are counted once, as in the paper; packets both ways are twice as many.",
        "Each flow pauses between two addresses so that one host offers at most a quarter of the device's capacity, \
         which is measured first.",
        "A closed loop does not overload a device: at most eight requests of each host are under way (more only after 10 ms \
         without an answer). So response time follows from the rate, and no statement is made on its shape.",
        "The device restarts before each row.",
        "The kernel's row is native IPv6 forwarding in the same network, without a tunnel; its CPU time is that of its core on \
         received packets, in ticks of 10 ms.",
        "The paper's memory is the change of the whole machine's; ours is the resident memory of the process.",
    ],
    tables: &[Table {
        title: "Two responders",
        series: "icmp",
        axes: &["hosts"],
        columns: &[
            Column { value: "loss", title: "loss" },
            Column { value: "response", title: "response" },
            Column { value: "requests", title: "requests" },
            Column { value: "packets-both-ways", title: "packets both ways" },
            Column { value: "cpu", title: "CPU" },
            Column { value: "cpu-per-packet", title: "CPU a packet" },
            Column { value: "memory", title: "memory" },
            Column { value: "late", title: "late" },
        ],
    }],
    published: PUBLISHED,
};

const LINEUP: &[Entry] = &[
    Entry { task: TaskKind::Relay6to4, usual: &["sixway"] },
    Entry { task: TaskKind::Forward, usual: &["kernel"] },
];

const ALL: [f64; 10] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];
const QUICK: [f64; 4] = [1.0, 4.0, 7.0, 10.0];

impl Experiment for Relay2013 {
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
        let hosts = asked.numbers("hosts", if asked.quick { &QUICK } else { &ALL })?;
        if let Some(wrong) = hosts.iter().find(|hosts| !ALL.contains(hosts)) {
            return Err(format!("--set hosts: {wrong} is not a number of hosts from 1 to 10"));
        }
        let cell = |device: &str, hosts: f64| Cell {
            experiment: ABOUT.name.to_owned(),
            series: "icmp".to_owned(),
            device: device.to_owned(),
            point: BTreeMap::from([("hosts".to_owned(), hosts)]),
            repeat: 0,
        };
        Ok(hosts.iter().flat_map(|hosts| devices.iter().map(move |device| cell(device, *hosts))).collect())
    }

    /// At scale 1 a flow makes 16,384 visits of about 10 ms; from four hosts on, a device of 65,000 requests a second is the limit.
    fn seconds(&self, cell: &Cell, asked: &Asked) -> f64 {
        2.0 + asked.scale * f64::max(160.0, cell.at("hosts") * 1_441_792.0 / 65_000.0)
    }

    fn build(&self, _cell: &Cell, line: &Line<'_>) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Relay::build(line)?))
    }

    fn findings(&self, results: &Results) -> Vec<Finding> {
        findings(results)
    }
}
