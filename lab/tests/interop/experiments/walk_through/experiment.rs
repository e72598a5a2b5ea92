//! An experiment: how long pings of some sizes take through a router.

use sixway_lab::analyse::{About, Column, Finding, Outcome, Table, View};
use sixway_lab::device::{Forward, Needs, Place, Running, Task, TaskKind};
use sixway_lab::experiment::{Entry, Experiment, Line, Sheet, Stage};
use sixway_lab::failure::Result;
use sixway_lab::probe::ping;
use sixway_lab::results::{Asked, Cell, Results, TesterCost, Unit};
use sixway_lab::topology::{Network, client_router_server};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub struct Pings;

const ABOUT: About = About {
    name: "pings",
    question: "How long do pings of some sizes take through a router?",
    source: "the walk-through",
    topology: "client ── gateway ── server",
    notes: &["The value is the median of a series of pings."],
    tables: &[Table {
        title: "Pings",
        series: "ping",
        axes: &["octets"],
        columns: &[Column { value: "response", title: "response" }, Column { value: "loss", title: "loss" }],
    }],
    published: &[],
};

impl Experiment for Pings {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn needs(&self) -> Needs {
        Needs { programs: &["ip", "ping"], ..Needs::NAMESPACE }
    }

    fn lineup(&self) -> &[Entry] {
        &[Entry { task: TaskKind::Forward, usual: &["kernel"] }]
    }

    fn settings(&self) -> &'static [&'static str] {
        &["octets"]
    }

    fn cells(&self, asked: &Asked, devices: &[&str]) -> std::result::Result<Vec<Cell>, String> {
        let cell = |device: &str, octets: f64| Cell {
            experiment: ABOUT.name.to_owned(),
            series: "ping".to_owned(),
            device: device.to_owned(),
            point: BTreeMap::from([("octets".to_owned(), octets)]),
            repeat: 0,
        };
        let sizes = asked.numbers("octets", &[64.0, 512.0, 1_400.0])?;
        Ok(sizes.iter().flat_map(|size| devices.iter().map(|device| cell(device, *size))).collect())
    }

    fn seconds(&self, _: &Cell, asked: &Asked) -> f64 {
        1.0 + 100.0 * asked.scale
    }

    fn build(&self, _: &Cell, line: &Line<'_>) -> Result<Box<dyn Stage>> {
        let network = Arc::new(client_router_server()?);
        let (inside, outside, core) = (vec!["in0"], vec!["out0"], line.cores.device);
        let place = Place { network: Arc::clone(&network), host: "gateway", inside, outside, core };
        let device = line.device.start(&place, &Task::Forward(Forward))?;
        Ok(Box::new(Router { device, network, count: (10_000.0 * line.asked.scale) as u32 }))
    }

    fn findings(&self, results: &Results) -> Vec<Finding> {
        let view = View::of(results, ABOUT.name);
        let lost =
            view.groups.iter().any(|group| group.value("loss").is_none_or(|(loss, _)| loss.mean > 0.0));
        let outcome = if lost { Outcome::DoesNotHold } else { Outcome::Holds };
        vec![Finding { statement: "Every ping is answered.".to_owned(), outcome, evidence: String::new() }]
    }
}

struct Router {
    device: Box<dyn Running>,
    network: Arc<Network>,
    count: u32,
}

impl Stage for Router {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        self.device.restart()?;
        let (client, each) = (self.network.host("client")?, Duration::from_millis(10));
        let pings = ping(client, "2001:db8:2::2", self.count.max(3), cell.at("octets") as u32, each)?;
        sheet.value("response", pings.median().unwrap_or(f64::NAN), Unit::Milliseconds);
        sheet.value("loss", f64::from(pings.sent - pings.answered) / f64::from(pings.sent), Unit::Lost);
        sheet.tester(TesterCost::default());
        Ok(())
    }
}
