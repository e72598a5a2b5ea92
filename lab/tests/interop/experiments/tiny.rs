//! Experiments at their smallest scale, each in a folder that goes away, and how long all of them may take.

use super::{
    gateway_2012, mechanisms_2006, nat64_2014, overload, relay_2013, rfc8219, rfc8219_under_stress, tester,
    tools, tunnel_2012,
};
use crate::Interop;
use sixway_lab::device::{self, Device, Realm};
use sixway_lab::experiment::{self, Experiment};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::measure::{Cores, fixed_work};
use sixway_lab::results::{Asked, Cell, Header, Machine, Results, SCHEMA, Store, read};
use sixway_lab::run::{Laboratory, execute, plan};
use sixway_lab::topology::Network;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub const TESTS: &[Interop] = &[
    Interop::new("every_experiment_has_a_tiny_instance", &[], every_experiment_has_one),
    Interop::new("all_tiny_instances_are_planned_for_90_seconds", &[], all_are_short),
];

/// All that run in `make test`, by the files of this folder.
const ALL: [&[Instance]; 10] = [
    gateway_2012::INSTANCES,
    mechanisms_2006::INSTANCES,
    nat64_2014::INSTANCES,
    overload::INSTANCES,
    relay_2013::INSTANCES,
    rfc8219::INSTANCES,
    rfc8219_under_stress::INSTANCES,
    tester::INSTANCES,
    tools::INSTANCES,
    tunnel_2012::INSTANCES,
];

/// Seconds for all of them. Guests are not counted: that a device runs in one is proved, and it takes the time to boot.
const BUDGET: f64 = 90.0;

/// Milliseconds that instances took in this run of the tests, those with guests apart.
static TOOK: AtomicU64 = AtomicU64::new(0);
static TOOK_IN_GUESTS: AtomicU64 = AtomicU64::new(0);

/// Writes how long the instances took, if any ran.
pub fn say_how_long() {
    let [took, in_guests] = [&TOOK, &TOOK_IN_GUESTS].map(|it| it.load(Ordering::Relaxed) as f64 / 1e3);
    if took + in_guests > 0.0 {
        println!("the smallest instances of experiments took {took:.1} s, and {in_guests:.1} s with guests");
    }
}

/// A run of an experiment at its smallest.
#[derive(Clone, Copy)]
pub struct Instance {
    pub experiment: &'static dyn Experiment,
    /// Without any, those that are usual.
    pub devices: &'static [&'static str],
    pub set: &'static [(&'static str, &'static str)],
}

impl Instance {
    /// Measures all its cells.
    pub fn run(&self) -> Result<Results> {
        let start = Instant::now();
        let results = run_with(self.experiment, &device::all(), self.devices, self.set, None);
        let [_, in_guests] = self.seconds()?;
        let took = if in_guests > 0.0 { &TOOK_IN_GUESTS } else { &TOOK };
        took.fetch_add(start.elapsed().as_millis() as u64, Ordering::Relaxed);
        results
    }

    /// Seconds that are planned for its cells: on this machine, and in guests.
    fn seconds(&self) -> Result<[f64; 2]> {
        let asked = asked(self.experiment, self.devices, self.set);
        let mut seconds = [0.0; 2];
        for cell in plan(&[self.experiment], &device::all(), &asked)? {
            let device = device::find(&cell.device);
            let in_guest = device.is_some_and(|device| matches!(device.card().realm, Realm::Guest(_)));
            seconds[usize::from(in_guest)] += self.experiment.seconds(&cell, &asked);
        }
        Ok(seconds)
    }
}

/// A run at the smallest scale.
pub fn asked(experiment: &dyn Experiment, devices: &[&str], set: &[(&str, &str)]) -> Asked {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Asked {
        experiments: words(&[experiment.about().name]),
        devices: words(devices),
        scale: 0.001,
        repeats: 1,
        quick: true,
        set: set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        seed: 1,
        pin: true,
        ..Asked::default()
    }
}

/// Runs an experiment with some of these devices, into this folder or one that goes away.
pub fn run_with(
    experiment: &dyn Experiment,
    all: &[&dyn Device],
    devices: &[&str],
    set: &[(&str, &str)],
    out: Option<&Path>,
) -> Result<Results> {
    run_asked(experiment, all, &asked(experiment, devices, set), out)
}

/// Runs an experiment as requested with these devices, into this folder or one that goes away.
pub fn run_asked(
    experiment: &dyn Experiment,
    all: &[&dyn Device],
    asked: &Asked,
    out: Option<&Path>,
) -> Result<Results> {
    let here = Machine::here();
    let able: Vec<_> = all.iter().copied().filter(|device| device.cannot_run(&here).is_none()).collect();
    let cells = plan(&[experiment], &able, asked)?;
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
        plan: cells.iter().map(Cell::key).collect(),
        ..Header::default()
    };
    let folder = Network::new(&[])?;
    let usual = folder.folder().join("results");
    let out = out.unwrap_or(&usual);
    let mut store = Store::open(out, asked, || Ok(header))?;
    let cores = Cores::of_this_machine(asked.pin);
    let laboratory = Laboratory { experiments: &[experiment], devices: &able, cores, control: fixed_work };
    execute(laboratory, &cells, asked, &mut store, |_| ())?;
    read(out)
}

fn every_experiment_has_one() -> Result<()> {
    for experiment in experiment::all() {
        let name = experiment.about().name;
        let has_one = ALL.concat().iter().any(|instance| instance.experiment.about().name == name);
        if !has_one {
            return Err(Failure::Unexpected(format!("{name} has no test in tests/interop/experiments")));
        }
    }
    Ok(())
}

/// By the estimates that runs show; what a machine does meanwhile does not count.
fn all_are_short() -> Result<()> {
    let (mut all, mut text) = (0.0, String::new());
    for instance in ALL.concat() {
        let [here, in_guests] = instance.seconds()?;
        all += here;
        let (name, set) = (instance.experiment.about().name, instance.set);
        writeln!(text, "{here:5.1} s and {in_guests:4.1} s in guests: {name} {set:?}").ok();
    }
    assert!(all <= BUDGET, "{all:.0} s of {BUDGET:.0} s:\n{text}");
    Ok(())
}
