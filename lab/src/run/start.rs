//! The commands `run` and `report`.

use super::catalogue::duration;
use super::execute::{Laboratory, execute};
use super::options::Options;
use super::plan::{participants, plan};
use crate::device::{self, Device};
use crate::experiment::{self, Experiment};
use crate::failure::{Asking as _, Failure, Result};
use crate::measure::{Cores, fixed_work};
use crate::report::{Chapter, markdown};
use crate::results::{Asked, DeviceEntry, Header, Machine, Results, SCHEMA, Store, read, timestamp};
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

/// Runs what is requested, or resumes it, and writes its report into the same folder; the report as text.
///
/// # Errors
/// Nothing can be measured, or a signal has come; what was measured is kept.
pub fn run(options: &Options) -> Result<String> {
    let names: Vec<_> = experiment::all().iter().map(|experiment| experiment.about().name).collect();
    let asked = options.asked(&names)?;
    let here = Machine::here();
    let experiments = asked.experiments.iter().filter_map(|name| experiment::find(name)).collect::<Vec<_>>();
    for experiment in &experiments {
        if let Some(lacking) = experiment.needs().lacking(&here) {
            return Err(Failure::Unexpected(format!("{}: {lacking}", experiment.about().name)));
        }
    }
    let entries = entries(&experiments, &asked, &here)?;
    let able: Vec<&dyn Device> =
        device::all().into_iter().filter(|device| runs_here(&entries, device.card().name)).collect();
    let cells = plan(&experiments, &able, &asked)?;
    if cells.is_empty() {
        return Err(Failure::Unexpected(
            "there is nothing to measure: no device that was asked for can run".to_owned(),
        ));
    }
    let header = || {
        Ok(Header {
            schema: SCHEMA,
            started: timestamp(SystemTime::now()),
            lab: env!("CARGO_PKG_VERSION").to_owned(),
            commit: commit(),
            asked: asked.clone(),
            licence: "CC0-1.0".to_owned(),
            machine: here.clone(),
            devices: entries.clone(),
            plan: cells.iter().map(crate::results::Cell::key).collect(),
        })
    };
    let mut store = Store::open(&options.out, &asked, header)?;
    let laboratory = Laboratory {
        experiments: &experiments,
        devices: &able,
        cores: Cores::of_this_machine(asked.pin),
        control: fixed_work,
    };
    execute(laboratory, &cells, &asked, &mut store, |progress| {
        let (at, all) = progress.place;
        eprintln!("{at}/{all}  {}  {} left", progress.cell.key(), duration(progress.seconds_left));
    })?;
    report(&options.out)
}

/// Writes the report of a run into its folder; the report as text.
///
/// # Errors
/// The folder holds no run.
pub fn report(folder: &Path) -> Result<String> {
    let text = of(&read(folder)?);
    let path = folder.join("report.md");
    std::fs::write(&path, &text).asking(|| format!("writing {}", path.display()))?;
    Ok(text)
}

fn of(results: &Results) -> String {
    let asked = results.header.asked.experiments.iter().filter_map(|name| experiment::find(name));
    let chapters: Vec<_> =
        asked.map(|it| Chapter { about: it.about(), findings: it.findings(results) }).collect();
    markdown(results, &chapters)
}

fn runs_here(entries: &[DeviceEntry], name: &str) -> bool {
    entries.iter().any(|entry| entry.name == name && entry.cannot_run.is_none())
}

/// The devices that take part, each with its version or why it cannot run here.
fn entries(experiments: &[&dyn Experiment], asked: &Asked, here: &Machine) -> Result<Vec<DeviceEntry>> {
    let all = device::all();
    if let Some(unknown) = asked.devices.iter().find(|name| device::find(name).is_none()) {
        let known: Vec<_> = all.iter().map(|device| device.card().name).collect();
        return Err(Failure::Unexpected(format!(
            "no device is named {unknown:?}; there are {}",
            known.join(", ")
        )));
    }
    let takes_part = |device: &&dyn Device| {
        experiments.iter().any(|experiment| !participants(*experiment, &[*device], asked).is_empty())
    };
    let entry = |device: &dyn Device| {
        let cannot_run = device.cannot_run(here);
        let version = match cannot_run {
            Some(_) => String::new(),
            None => device.version()?,
        };
        let card = device.card();
        Ok(DeviceEntry {
            name: card.name.to_owned(),
            realm: card.realm.text().to_owned(),
            version,
            cannot_run,
        })
    };
    all.into_iter().filter(takes_part).map(entry).collect()
}

/// The commit of the working tree, if the lab was started in one.
fn commit() -> Option<String> {
    let said = Command::new("git").args(["describe", "--always", "--dirty", "--exclude=*"]).output().ok()?;
    let commit = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    (said.status.success() && !commit.is_empty()).then_some(commit)
}
