//! What is kept of a cell that fails.

use super::tiny::run_with;
use crate::Interop;
use sixway_lab::analyse::{About, Column, Finding, Table};
use sixway_lab::device::{self, Needs, TaskKind};
use sixway_lab::experiment::{Entry, Experiment, Line, Sheet, Stage};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::probe::ping;
use sixway_lab::results::{Asked, Cell, Results, Sample, TesterCost, Unit};
use sixway_lab::topology::Network;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "a_cell_that_fails_twice_leaves_a_capture_and_the_state_of_its_hosts",
        &["tcpdump", "ping"],
        failed,
    ),
    Interop::new(
        "a_cell_whose_network_is_dropped_leaves_its_state_and_not_that_of_others",
        &["tcpdump", "ping"],
        dropped,
    ),
];

/// An experiment with a cell for each of these, whose stage has a network of its own.
struct Failing(&'static [Fails]);

/// When a cell fails.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fails {
    Never,
    /// While its network is built.
    Building,
    /// A wait for an answer is given up while its network is built.
    Waiting,
    /// Its stage builds a network, which ends with the failure.
    Rebuilding,
    /// Its network remains.
    Measuring,
}

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
        let cell = |x| Cell {
            experiment: ABOUT.name.to_owned(),
            series: "all".to_owned(),
            device: devices[0].to_owned(),
            point: BTreeMap::from([("x".to_owned(), x as f64)]),
            repeat: 0,
        };
        Ok((0..self.0.len()).map(cell).collect())
    }

    fn seconds(&self, _cell: &Cell, _asked: &Asked) -> f64 {
        1.0
    }

    fn built_for(&self, _series: &str) -> &'static [&'static str] {
        &["x"]
    }

    fn build(&self, cell: &Cell, _line: &Line<'_>) -> Result<Box<dyn Stage>> {
        let fails = self.0[cell.at("x") as usize];
        match fails {
            Fails::Building => near_and_far("while it was built"),
            Fails::Waiting => given_up(),
            Fails::Never | Fails::Rebuilding | Fails::Measuring => {
                Ok(Box::new(Pinging(left_and_right()?, fails)))
            }
        }
    }

    fn findings(&self, _results: &Results) -> Vec<Finding> {
        Vec::new()
    }
}

fn left_and_right() -> Result<Network> {
    let network = Network::new(&["left", "right"])?;
    network.link(("left", "up0"), ("right", "up0"))?;
    network.address("left", "up0", "192.0.2.1/24")?;
    network.address("right", "up0", "192.0.2.2/24")?;
    Ok(network)
}

/// Another network, in which packets pass, and a failure that drops it.
fn near_and_far(why: &str) -> Result<Box<dyn Stage>> {
    let network = Network::new(&["near", "far"])?;
    network.link(("near", "up0"), ("far", "up0"))?;
    network.address("near", "up0", "198.51.100.1/24")?;
    network.address("far", "up0", "198.51.100.2/24")?;
    ping(network.host("near")?, "198.51.100.2", 100, 56, Duration::from_millis(10))?;
    Err(Failure::Unexpected(why.to_owned()))
}

/// The same with a wait that is given up; what was at work then is gone when the network ends.
fn given_up() -> Result<Box<dyn Stage>> {
    let network = Network::new(&["near", "far"])?;
    network.link(("near", "up0"), ("far", "up0"))?;
    network.address("near", "up0", "198.51.100.1/24")?;
    ping(network.host("near")?, "198.51.100.1", 100, 56, Duration::from_millis(10))?;
    let waited = interrupt::wait_until(Duration::ZERO, "an answer", || Ok(false));
    network.host("near")?.ip("address delete 198.51.100.1/24 dev up0")?;
    waited?;
    Ok(Box::new(Pinging(network, Fails::Never)))
}

/// It pings for a while.
struct Pinging(Network, Fails);

impl Stage for Pinging {
    fn measure(&mut self, _cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let rounds = if self.1 == Fails::Measuring { 10 } else { 1 };
        for _ in 0..rounds {
            ping(self.0.host("left")?, "192.0.2.2", 20, 56, Duration::from_millis(20))?;
        }
        match self.1 {
            Fails::Measuring => Err(Failure::Unexpected("it was to fail".to_owned())),
            Fails::Rebuilding => near_and_far("while it was measured").map(drop),
            Fails::Never | Fails::Building | Fails::Waiting => {
                sheet.value("y", 1.0, Unit::Count);
                sheet.tester(TesterCost::default());
                Ok(())
            }
        }
    }
}

/// What a run of these cells leaves: the sample of each, and the folder of its files.
fn left_by(cells: &'static [Fails], folder: &Network) -> Result<Vec<(Sample, PathBuf)>> {
    let out = folder.folder().join("results");
    let results = run_with(&Failing(cells), &device::all(), &["kernel"], &[], Some(&out))?;
    let with_folder = |sample: Sample| {
        let raw = out.join("raw").join(sample.cell.key());
        (sample, raw)
    };
    Ok(results.samples.into_iter().map(with_folder).collect())
}

fn dropped() -> Result<()> {
    let folder = Network::new(&[])?;
    let cells = &[Fails::Never, Fails::Building, Fails::Waiting, Fails::Rebuilding];
    let mut left = left_by(cells, &folder)?;
    left.sort_by(|(one, _), (other, _)| one.cell.at("x").total_cmp(&other.cell.at("x")));
    assert_eq!(left.len(), 4, "{left:#?}");
    assert_eq!(left[0].0.failed, None, "its network is kept");
    for ((sample, raw), fails) in left.iter().zip(cells).skip(1) {
        assert!(sample.failed.is_some(), "{sample:#?}");
        let state = std::fs::read_to_string(raw.join("failed.txt")).unwrap_or_default();
        assert!(state.contains("198.51.100.1/24"), "{sample:#?}\n{state}");
        assert!(state.contains("sixway-near-") && state.contains("sixway-far-"), "{state}");
        // A stage's own network is one of the failed ones.
        let is_own = *fails == Fails::Rebuilding;
        assert_eq!(state.contains("192.0.2.1/24"), is_own, "{state}");
        assert_eq!(state.matches("-4 route show").count(), if is_own { 4 } else { 2 }, "{state}");
        let captures: Vec<_> = sample.raw.iter().filter(|name| name.ends_with(".pcap")).collect();
        assert_eq!(captures.len(), if is_own { 4 } else { 2 }, "{sample:#?}");
        let near = captures.iter().find(|name| name.contains("near"));
        let octets = near.and_then(|name| std::fs::metadata(raw.join(name)).ok()).map(|it| it.len());
        assert!(octets > Some(1_000), "packets were captured: {octets:?}");
    }
    Ok(())
}

fn failed() -> Result<()> {
    let folder = Network::new(&[])?;
    let results = run_with(
        &Failing(&[Fails::Measuring]),
        &device::all(),
        &["kernel"],
        &[],
        Some(&folder.folder().join("results")),
    )?;
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
