//! The plan of measurements, and the description.

use super::findings::findings;
use super::stage::Between;
use crate::analyse::{About, Column, Figure, Finding, Kind, Table};
use crate::device::{Needs, TaskKind};
use crate::experiment::contract::{Entry, Experiment, Line, Stage};
use crate::failure::Result;
use crate::probe::Tool;
use crate::results::{Asked, Cell, Results};
use std::collections::BTreeMap;

/// The experiment.
pub struct Tools;

const fn column(value: &'static str, title: &'static str) -> Column {
    Column { value, title }
}

const ABOUT: About = About {
    name: "tools",
    question: "Do the papers' own tools and the lab's loads agree at the same pace?",
    source: "ping, D-ITG, MGEN, SIPp, curl and wget with nginx, iperf3 and OpenVPN, as the five papers and their successors use them",
    topology: "\
client 2001:db8:1::2 ───────── gateway ───────── 2001:db8:2::2 server
       192.0.2.2                                 198.51.100.2",
    notes: &[
        "Tools: 1 ping, 2 D-ITG (UDP, both ways), 3 MGEN (one way, over IPv4: Debian's package does not receive IPv6), 4 SIPp in place of Linphone, 5 curl and 6 wget with nginx, 7 iperf3 (UDP), 8 OpenVPN with ping inside.",
        "Our own load of the same kind runs right after the tool, and in each second round right before it, at the same pace and with packets of the same size. The verdict is that of our load; the tool's is in brackets where it is another one.",
        "Times of calls and web pages are from captures at the client's link, those of the others are the program's own.",
        "Tools that are not installed fail with the name of their package: sixway-lab deps lists all of them.",
    ],
    tables: &[Table {
        title: "Tools and our loads",
        series: "agreement",
        axes: &["tool", "per-s"],
        columns: &[
            column("tool-response", "response by the tool"),
            column("own-response", "by ours"),
            column("tool-sent", "sent by the tool"),
            column("tool-answered", "answered"),
            column("own-sent", "sent by ours"),
            column("own-answered", "answered"),
        ],
    }],
    published: &[],
};

const LINEUP: &[Entry] = &[Entry { task: TaskKind::Forward, usual: &["kernel"] }];

impl Experiment for Tools {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn needs(&self) -> Needs {
        Needs { programs: &["ip", "ping", "tcpdump"], ..Needs::NAMESPACE }
    }

    fn lineup(&self) -> &[Entry] {
        LINEUP
    }

    fn settings(&self) -> &'static [&'static str] {
        &["per-s", "tools"]
    }

    fn cells(&self, asked: &Asked, devices: &[&str]) -> std::result::Result<Vec<Cell>, String> {
        let every: Vec<f64> = Tool::ALL.iter().map(|tool| f64::from(*tool as u8)).collect();
        let tools = asked.numbers("tools", &every)?;
        if let Some(wrong) = tools.iter().find(|tool| !every.contains(tool)) {
            return Err(format!("--set tools: there is no tool {wrong}; they are 1 to {}", every.len()));
        }
        let rates = asked.numbers("per-s", &[100.0])?;
        let cell = |device: &str, tool: f64, rate: f64| Cell {
            experiment: ABOUT.name.to_owned(),
            series: "agreement".to_owned(),
            device: device.to_owned(),
            point: BTreeMap::from([("tool".to_owned(), tool), ("per-s".to_owned(), rate)]),
            repeat: 0,
        };
        let pairs = tools.iter().flat_map(|tool| rates.iter().map(move |rate| (*tool, *rate)));
        Ok(pairs
            .flat_map(|(tool, rate)| devices.iter().map(move |device| cell(device, tool, rate)))
            .collect())
    }

    fn seconds(&self, cell: &Cell, asked: &Asked) -> f64 {
        0.4 + 2.0 * (5_000.0 * asked.scale).clamp(20.0, 1_000.0) / cell.at("per-s").max(1.0)
    }

    fn build(&self, _cell: &Cell, line: &Line<'_>) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Between::build(line)?))
    }

    fn figures(&self) -> Vec<Figure> {
        let figure = |title, value| Figure {
            group: "",
            title,
            series: "agreement",
            axis: "tool",
            axis_title: "tool",
            value,
            kind: Kind::Bars,
            at: &[],
            logarithmic: false,
            lines: &[],
            devices: &[],
        };
        vec![figure("Response by the tool", "tool-response"), figure("Response by our load", "own-response")]
    }

    fn findings(&self, results: &Results) -> Vec<Finding> {
        findings(results)
    }
}
