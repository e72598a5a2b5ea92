//! The experiments at their smallest scale: that they run, that their counts add up, and that each row says whose limit it met.

use crate::Interop;
use sixway_lab::device;
use sixway_lab::experiment::{self, Experiment};
use sixway_lab::failure::Result;
use sixway_lab::measure::{Cores, fixed_work};
use sixway_lab::results::{Asked, Header, Machine, Results, SCHEMA, Store, Verdict, read};
use sixway_lab::run::{Laboratory, execute, plan};
use sixway_lab::topology::Network;

pub const TESTS: &[Interop] =
    &[Interop::new("relay_2013_at_its_smallest_loses_nothing_and_counts_add_up", &["sixway"], relay_2013)];

/// Runs an experiment with all its usual devices, in a folder that goes away.
fn tiny(experiment: &dyn Experiment, set: &[(&str, &str)]) -> Result<Results> {
    let asked = Asked {
        experiments: vec![experiment.about().name.to_owned()],
        devices: Vec::new(),
        scale: 0.001,
        repeats: 1,
        quick: true,
        set: set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        seed: 1,
        pin: true,
    };
    let devices = device::all();
    let cells = plan(&[experiment], &devices, &asked)?;
    let header = Header {
        schema: SCHEMA,
        started: String::new(),
        lab: String::new(),
        commit: None,
        asked: asked.clone(),
        licence: String::new(),
        machine: Machine::here(),
        devices: Vec::new(),
        plan: cells.iter().map(sixway_lab::results::Cell::key).collect(),
    };
    let folder = Network::new(&[])?;
    let out = folder.folder().join("results");
    let mut store = Store::open(&out, &asked, || Ok(header))?;
    let cores = Cores::of_this_machine(asked.pin);
    let laboratory = Laboratory { experiments: &[experiment], devices: &devices, cores, control: fixed_work };
    execute(laboratory, &cells, &asked, &mut store, |_| ())?;
    read(&out)
}

fn relay_2013() -> Result<()> {
    let results = tiny(&experiment::Relay2013, &[("hosts", "1,10")])?;
    assert_eq!(results.samples.len(), 4, "two devices with one and ten hosts");
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map(|value| value.value).unwrap_or(f64::NAN);
        let requests = sample.cell.at("hosts") * f64::from(16 * 8 * 11);
        assert_eq!(value("sent"), requests, "{sample:#?}");
        // What else the machine does may delay a reply, but loses none.
        assert_eq!(value("loss"), 0.0, "{sample:#?}");
        assert_eq!(value("packets-both-ways"), 2.0 * value("requests"), "{sample:#?}");
        let response = sample.values.get("response").map(|value| value.n);
        assert_eq!(response, Some(requests as u64), "each reply has its time");
        assert!(value("cpu") > 0.0 || sample.cell.device == "kernel", "{sample:#?}");
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        assert_eq!(sample.raw, ["response.json"]);
    }
    Ok(())
}
