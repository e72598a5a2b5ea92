//! What is kept of a cell that fails.

use super::tiny::run_with;
use crate::Interop;
use sixway_lab::analyse::{About, Column, Finding, Table};
use sixway_lab::device::{self, Needs, TaskKind};
use sixway_lab::experiment::{Entry, Experiment, Line, Sheet, Stage};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::probe::ping;
use sixway_lab::results::{Asked, Cell, Results};
use sixway_lab::topology::Network;
use std::collections::BTreeMap;
use std::time::Duration;

pub const TESTS: &[Interop] = &[Interop::new(
    "a_cell_that_fails_twice_leaves_a_capture_and_the_state_of_its_hosts",
    &["tcpdump", "ping"],
    failed,
)];

struct Failing;

const ABOUT: About = About {
    name: "failing",
    question: "What is kept?",
    source: "none",
    topology: "left ── right",
    notes: &[],
    tables: &[Table {
        title: "none",
        series: "all",
        axes: &["x"],
        columns: &[Column { value: "y", title: "y" }],
    }],
    published: &[],
};

impl Experiment for Failing {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn needs(&self) -> Needs {
        Needs::NAMESPACE
    }

    fn lineup(&self) -> &[Entry] {
        &[Entry { task: TaskKind::Forward, usual: &["kernel"] }]
    }

    fn cells(&self, _asked: &Asked, devices: &[&str]) -> std::result::Result<Vec<Cell>, String> {
        let cell = |device: &&str| Cell {
            experiment: ABOUT.name.to_owned(),
            series: "all".to_owned(),
            device: (*device).to_owned(),
            point: BTreeMap::from([("x".to_owned(), 1.0)]),
            repeat: 0,
        };
        Ok(devices.iter().map(cell).collect())
    }

    fn seconds(&self, _cell: &Cell, _asked: &Asked) -> f64 {
        1.0
    }

    fn build(&self, _cell: &Cell, _line: &Line<'_>) -> Result<Box<dyn Stage>> {
        let network = Network::new(&["left", "right"])?;
        network.link(("left", "up0"), ("right", "up0"))?;
        network.address("left", "up0", "192.0.2.1/24")?;
        network.address("right", "up0", "192.0.2.2/24")?;
        Ok(Box::new(Pinging(network)))
    }

    fn findings(&self, _results: &Results) -> Vec<Finding> {
        Vec::new()
    }
}

/// It pings for a while, and fails.
struct Pinging(Network);

impl Stage for Pinging {
    fn measure(&mut self, _cell: &Cell, _sheet: &mut Sheet) -> Result<()> {
        for _ in 0..10 {
            ping(self.0.host("left")?, "192.0.2.2", 20, 56, Duration::from_millis(20))?;
        }
        Err(Failure::Unexpected("it was to fail".to_owned()))
    }
}

fn failed() -> Result<()> {
    let folder = Network::new(&[])?;
    let results =
        run_with(&Failing, &device::all(), &["kernel"], &[], Some(&folder.folder().join("results")))?;
    assert_eq!(results.samples.len(), 1, "{:#?}", results.samples);
    let sample = &results.samples[0];
    assert!(sample.failed.as_deref().is_some_and(|why| why.contains("it was to fail")), "{sample:#?}");
    assert!(sample.raw.contains(&"failed.txt".to_owned()), "{sample:#?}");
    let captures: Vec<_> = sample.raw.iter().filter(|name| name.ends_with(".pcap")).collect();
    assert!(captures.iter().any(|name| name.contains("left")), "{sample:#?}");
    let raw = folder.folder().join("results/raw").join(sample.cell.key());
    let octets = captures.iter().filter_map(|name| std::fs::metadata(raw.join(name)).ok()).map(|it| it.len());
    assert!(octets.max() > Some(1_000), "packets were captured");
    let state = std::fs::read_to_string(raw.join("failed.txt")).unwrap_or_default();
    assert!(state.contains("192.0.2.1/24") && state.contains("route show"), "{state}");
    Ok(())
}
