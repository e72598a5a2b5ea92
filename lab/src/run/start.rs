//! The commands `run` and `report`.

use super::commit::commit;
use super::ending::summary;
use super::execute::{Laboratory, execute_within};
use super::left_out::left_out;
use super::options::Options;
use super::pacing::fit;
use super::plan::{participants, plan};
use super::same_program::is_the_same;
use super::surroundings::{is_quiet_for, noted};
use crate::device::{self, Device};
use crate::experiment::{self, Experiment};
use crate::failure::{Asking as _, Failure, Result};
use crate::measure::{Cores, Environment, fixed_work};
use crate::report::{Chapter, csv, data, html, markdown};
use crate::results::{
    Asked, COMMANDS, DeviceEntry, Header, Machine, Results, SCHEMA, Store, commands, has_samples, read,
    timestamp, write_whole,
};
use crate::sixway::{sha256, sixway};
use std::path::Path;
use std::time::SystemTime;

/// Runs what is requested, or resumes it, and writes its report into the same folder; the report as text.
///
/// # Errors
/// Nothing can be measured, or a signal has come; what was measured is kept.
pub fn run(options: &Options) -> Result<String> {
    let names: Vec<_> = experiment::all().iter().map(|experiment| experiment.about().name).collect();
    let asked = options.asked(&names)?;
    options.device.apply()?;
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
    let asked = fitted(options, asked, &experiments, &able)?;
    let cells = plan(&experiments, &able, &asked)?;
    let names: Vec<_> = experiments.iter().map(|experiment| experiment.about().name).collect();
    let left_out = left_out(&names, &asked, &entries);
    if cells.is_empty() {
        let nothing = "there is nothing to measure: no device that was asked for can run".to_owned();
        return Err(Failure::Unexpected([vec![nothing], left_out].concat().join("\n")));
    }
    left_out.iter().for_each(|line| eprintln!("{line}"));
    let program = sixway().and_then(|path| sha256(&path)).ok();
    let header = || {
        Ok(Header {
            schema: SCHEMA,
            started: timestamp(SystemTime::now()),
            lab: env!("CARGO_PKG_VERSION").to_owned(),
            commit: commit(Path::new(".")),
            sixway: program.clone(),
            asked: asked.clone(),
            licence: "CC0-1.0".to_owned(),
            machine: here.clone(),
            devices: entries.clone(),
            minutes: options.budget(),
            plan: cells.iter().map(crate::results::Cell::key).collect(),
        })
    };
    let before = Environment::read()?;
    if !options.noisy {
        is_quiet_for(asked.scale, &before, &options.out)?;
    }
    if let Some(governor) = before.governor.as_deref().filter(|governor| *governor != "performance") {
        eprintln!(
            "the frequency governor is {governor}, so the clock varies with the load: for steady figures, set it to performance \
             (cpupower frequency-set -g performance)"
        );
    }
    let mut store = Store::open(&options.out, &asked, header)?;
    is_the_same(store.header().sixway.as_deref(), program.as_deref(), &options.out)?;
    let laboratory = Laboratory {
        experiments: &experiments,
        devices: &able,
        cores: Cores::of_this_machine(asked.pin),
        control: fixed_work,
    };
    let seconds = options.budget().map(|minutes| minutes * 60.0);
    noted(&options.out, &before, || {
        execute_within(laboratory, &cells, &asked, seconds, &mut store, |progress| {
            eprintln!("{}", progress.text());
        })
    })?;
    let text = report(&options.out, None)?;
    if let Some(failed) = summary(&read(&options.out)?, &options.out)? {
        eprintln!("{failed}");
    }
    Ok(text)
}

/// What is requested, with scale and repetitions that fit into the time budget.
fn fitted(
    options: &Options,
    asked: Asked,
    experiments: &[&dyn Experiment],
    devices: &[&dyn Device],
) -> Result<Asked> {
    let Some(minutes) = options.budget() else { return Ok(asked) };
    let seconds = |asked: &Asked| {
        let cells = plan(experiments, devices, asked)?;
        let of_cell = |cell: &crate::results::Cell| {
            experiment::find(&cell.experiment).map_or(0.0, |experiment| experiment.seconds(cell, asked))
        };
        Ok(cells.iter().map(of_cell).sum())
    };
    let (highest, is_fixed) = options.highest_scale(&asked);
    let fitted = fit(&asked, minutes * 60.0, highest, is_fixed, seconds)?;
    eprintln!("{minutes} minutes: scale {}, {} rounds", fitted.scale, fitted.repeats);
    Ok(fitted)
}

/// Writes the report of a run into its folder, or another one, as `report.html`, `report.md`, `data.csv` and `data.json`; the Markdown as text.
///
/// # Errors
/// The folder holds no run.
pub fn report(folder: &Path, out: Option<&Path>) -> Result<String> {
    let results = read(folder)?;
    let chapters = chapters(&results);
    let text = markdown(&results, &chapters);
    let data = serde_json::to_string_pretty(&data(&results, &chapters))
        .map_err(|error| Failure::Unexpected(format!("writing JSON: {error}")))?;
    let commands = serde_json::to_string_pretty(&commands(&results.samples))
        .map_err(|error| Failure::Unexpected(format!("writing JSON: {error}")))?;
    let files = [
        ("report.html", html(&results, &chapters)),
        ("report.md", text.clone()),
        ("data.csv", csv(&results)),
        ("data.json", data),
        (COMMANDS, commands),
    ];
    let out = out.unwrap_or(folder);
    std::fs::create_dir_all(out).asking(|| format!("creating {}", out.display()))?;
    for (name, text) in files {
        let path = out.join(name);
        // The source is not written over.
        if ["data.csv", COMMANDS].contains(&name) && path.exists() && !has_samples(out) {
            continue;
        }
        write_whole(&path, &text)?;
    }
    Ok(text)
}

/// What a report has of each experiment of a run.
pub fn chapters(results: &Results) -> Vec<Chapter<'static>> {
    let asked = results.header.asked.experiments.iter().filter_map(|name| experiment::find(name));
    asked.map(|it| chapter(it, results)).collect()
}

/// What a report has of an experiment.
pub fn chapter<'a>(experiment: &'a dyn Experiment, results: &Results) -> Chapter<'a> {
    Chapter {
        about: experiment.about(),
        drawing: experiment.drawing(),
        figures: experiment.figures(),
        headlines: experiment.headlines(),
        findings: experiment.findings(results),
    }
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
            is_plain: device.is_plain(),
        })
    };
    all.into_iter().filter(takes_part).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_report_replaces_links_and_leaves_what_they_name() {
        let folder = std::env::temp_dir().join(format!("sixway-lab-report-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let header = Header { schema: SCHEMA, ..Header::default() };
        std::fs::write(folder.join("run.json"), serde_json::to_string(&header).unwrap()).unwrap();
        std::fs::write(folder.join("samples.jsonl"), "").unwrap();
        let canary = folder.join("canary");
        std::fs::write(&canary, "unchanged").unwrap();
        let reports = ["report.md", "data.json"].map(|name| folder.join(name));
        reports.iter().for_each(|path| symlink(&canary, path).unwrap());
        let written = report(&folder, None);
        let are_files = reports.map(|path| std::fs::symlink_metadata(path).unwrap().is_file());
        let text = std::fs::read_to_string(&canary).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(written.unwrap().starts_with("# Results of the lab"));
        assert_eq!((are_files, text.as_str()), ([true; 2], "unchanged"));
    }
}
