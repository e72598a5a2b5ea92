//! An experiment at its smallest scale, in a folder that goes away.

use crate::Interop;
use sixway_lab::device::{self, Device};
use sixway_lab::experiment::{self, Experiment};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::measure::{Cores, fixed_work};
use sixway_lab::results::{Asked, Header, Machine, Results, SCHEMA, Store, read};
use sixway_lab::run::{Laboratory, execute, plan};
use sixway_lab::topology::Network;
use std::path::Path;

pub const TESTS: &[Interop] =
    &[Interop::new("every_experiment_has_a_tiny_instance", &[], every_experiment_has_one)];

/// Experiments whose smallest instance is a test, each in a file of this folder.
const TESTED: &[&str] = &[
    "gateway-2012",
    "mechanisms-2006",
    "nat64-2014",
    "overload",
    "relay-2013",
    "rfc8219",
    "tester",
    "tools",
    "tunnel-2012",
];

/// Runs an experiment with all its usual devices that can run here.
pub fn tiny(experiment: &dyn Experiment, set: &[(&str, &str)]) -> Result<Results> {
    tiny_with(experiment, &[], set)
}

/// Runs an experiment with these devices.
pub fn tiny_with(experiment: &dyn Experiment, devices: &[&str], set: &[(&str, &str)]) -> Result<Results> {
    run_with(experiment, &device::all(), devices, set, None)
}

/// Runs an experiment with some of these devices, into this folder or one that goes away.
pub fn run_with(
    experiment: &dyn Experiment,
    all: &[&dyn Device],
    devices: &[&str],
    set: &[(&str, &str)],
    out: Option<&Path>,
) -> Result<Results> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let asked = Asked {
        experiments: words(&[experiment.about().name]),
        devices: words(devices),
        scale: 0.001,
        repeats: 1,
        quick: true,
        set: set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        seed: 1,
        pin: true,
    };
    let here = Machine::here();
    let able: Vec<_> = all.iter().copied().filter(|device| device.cannot_run(&here).is_none()).collect();
    let cells = plan(&[experiment], &able, &asked)?;
    let header = Header {
        schema: SCHEMA,
        started: String::new(),
        lab: String::new(),
        commit: None,
        asked: asked.clone(),
        licence: String::new(),
        machine: here,
        devices: Vec::new(),
        minutes: None,
        plan: cells.iter().map(sixway_lab::results::Cell::key).collect(),
    };
    let folder = Network::new(&[])?;
    let usual = folder.folder().join("results");
    let out = out.unwrap_or(&usual);
    let mut store = Store::open(out, &asked, || Ok(header))?;
    let cores = Cores::of_this_machine(asked.pin);
    let laboratory = Laboratory { experiments: &[experiment], devices: &able, cores, control: fixed_work };
    execute(laboratory, &cells, &asked, &mut store, |_| ())?;
    read(out)
}

fn every_experiment_has_one() -> Result<()> {
    for experiment in experiment::all() {
        let name = experiment.about().name;
        if !TESTED.contains(&name) {
            return Err(Failure::Unexpected(format!("{name} has no test in tests/interop/experiments")));
        }
    }
    assert_eq!(TESTED.len(), experiment::all().len(), "a name of no experiment");
    Ok(())
}
