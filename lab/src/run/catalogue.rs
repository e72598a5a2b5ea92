//! `sixway-lab list`: what can be run, what it needs, how long it takes, and which devices and tools there are.

use super::duration::duration;
use super::plan::plan;
use crate::device;
use crate::experiment::{self, Experiment};
use crate::failure::{Failure, Result};
use crate::probe::Tool;
use crate::results::{Asked, Machine};
use crate::terminal::{bold, dim, printable, table};
use std::collections::BTreeMap;

/// The lists as text.
///
/// # Errors
/// An experiment does not know its own defaults.
pub fn list(here: &Machine) -> Result<String> {
    let mut rows = Vec::new();
    for experiment in experiment::all() {
        rows.push(vec![
            experiment.about().name.to_owned(),
            duration(seconds(experiment, true, 0.002)?),
            duration(seconds(experiment, false, 0.02)?),
            duration(seconds(experiment, false, 1.0)?),
            experiment.needs().text(),
            experiment.needs().lacking(here).unwrap_or_else(|| experiment.about().question.to_owned()),
        ]);
    }
    let heading = ["EXPERIMENT", "--quick", "--scale 0.02", "--scale 1", "NEEDS", "QUESTION"];
    let experiments = table(&heading, &rows, false);
    let rows: Vec<_> = device::all()
        .into_iter()
        .map(|device| {
            let card = device.card();
            let tasks: Vec<_> = device.tasks().iter().map(|task| task.text()).collect();
            let lacks = device.cannot_run(here).map(|why| format!("cannot run here: {why}"));
            vec![
                card.name.to_owned(),
                card.realm.text().to_owned(),
                card.needs.text(),
                tasks.join(", "),
                // Another machine may have said it.
                printable(&lacks.unwrap_or_else(|| card.what.to_owned())),
            ]
        })
        .collect();
    let devices = table(&["DEVICE", "REALM", "NEEDS", "TASKS", "WHAT"], &rows, false);
    let tool = |tool: &Tool| {
        let lacks = tool.cannot_run().map(|why| format!("cannot run here: {why}"));
        vec![tool.name().to_owned(), tool.programs().join(", "), lacks.unwrap_or_default()]
    };
    let tools = table(&["TOOL", "PROGRAMS", ""], &Tool::ALL.iter().map(tool).collect::<Vec<_>>(), false);
    let note = dim(
        "Times are estimates with the usual devices and three rounds. Other users than root get a user namespace, in which they are root; there is no BPF.",
    );
    let [first, second, third] = ["Experiments", "Devices under test", "The papers' own tools"].map(bold);
    Ok(format!("{first}\n{experiments}\n{second}\n{devices}\n{third}\n{tools}\n{note}\n"))
}

/// Both lists as JSON: seconds are estimates with the usual devices and three rounds.
///
/// # Errors
/// An experiment does not know its own defaults.
pub fn list_as_json(here: &Machine) -> Result<String> {
    let mut experiments = Vec::new();
    for experiment in experiment::all() {
        let about = experiment.about();
        let usual: Vec<_> = experiment.lineup().iter().flat_map(|entry| entry.usual).collect();
        experiments.push(serde_json::json!({
            "name": about.name,
            "question": about.question,
            "source": about.source,
            "needs": experiment.needs(),
            "cannot_run": experiment.needs().lacking(here),
            "devices": usual,
            "settings": experiment.settings(),
            "series": about.tables.iter().map(|table| table.series).collect::<Vec<_>>(),
            "seconds": {
                "quick": seconds(experiment, true, 0.002)?,
                "scale_0.02": seconds(experiment, false, 0.02)?,
                "scale_1": seconds(experiment, false, 1.0)?,
            },
        }));
    }
    let devices: Vec<_> = device::all()
        .into_iter()
        .map(|device| {
            let card = device.card();
            serde_json::json!({
                "name": card.name,
                "what": card.what,
                "realm": card.realm.text(),
                "tasks": device.tasks().iter().map(|task| task.key()).collect::<Vec<_>>(),
                "needs": card.needs,
                "cannot_run": device.cannot_run(here),
            })
        })
        .collect();
    let lists = serde_json::json!({ "experiments": experiments, "devices": devices });
    serde_json::to_string_pretty(&lists)
        .map(|text| text + "\n")
        .map_err(|error| Failure::Unexpected(format!("writing JSON: {error}")))
}

fn seconds(experiment: &'static dyn Experiment, quick: bool, scale: f64) -> Result<f64> {
    let asked = Asked {
        experiments: Vec::new(),
        devices: Vec::new(),
        scale,
        repeats: 3,
        quick,
        set: BTreeMap::new(),
        seed: 1,
        pin: true,
        ..Asked::default()
    };
    let devices = device::all();
    let cells = plan(&[experiment], &devices, &asked)?;
    Ok(cells.iter().map(|cell| experiment.seconds(cell, &asked)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_what_is_needed_also_if_all_of_it_is_there() {
        let all = Machine { root: true, bpf: true, cpus: 64, memory_mb: 1 << 20, ..Machine::default() };
        for here in [all, Machine::default()] {
            let text = list(&here).unwrap();
            let is_of = |line: &&str, name: &str| line.split_whitespace().next() == Some(name);
            let line = |name: &str| text.lines().find(|line| is_of(line, name)).unwrap().to_owned();
            assert!(line("relay-2013").contains("root, ip, 256 MiB"), "{}", line("relay-2013"));
            assert!(line("sixway-xdp").contains("root, BPF, "), "{}", line("sixway-xdp"));
            assert!(line("tayga-masquerade").contains("root, ip, tayga, nft, 256 MiB"), "{text}");
        }
    }

    #[test]
    fn the_list_for_programs_has_every_experiment_and_device() {
        let text = list_as_json(&Machine::default()).unwrap();
        let lists: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(lists["experiments"].as_array().unwrap().len(), experiment::all().len());
        assert_eq!(lists["devices"].as_array().unwrap().len(), device::all().len());
        assert!(lists["devices"][0]["cannot_run"].is_string(), "nothing runs on no machine: {lists}");
        let needs = &lists["devices"].as_array().unwrap().iter().find(|it| it["name"] == "tayga-masquerade");
        assert_eq!(needs.unwrap()["needs"]["programs"], serde_json::json!(["ip", "tayga", "nft"]));
        assert_eq!(lists["experiments"][0]["needs"]["root"], true);
        assert!(lists["experiments"][0]["seconds"]["quick"].as_f64().unwrap() > 0.0);
    }
}
