//! `sixway-lab list`: what can be run, what it needs, how long it takes, and which devices there are.

use super::plan::plan;
use crate::device;
use crate::experiment::{self, Experiment};
use crate::failure::Result;
use crate::results::{Asked, Machine};
use crate::terminal::{bold, dim, table};
use std::collections::BTreeMap;

/// Both lists as text.
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
            experiment.needs().lacking(here).unwrap_or_else(|| experiment.about().question.to_owned()),
        ]);
    }
    let heading = ["EXPERIMENT", "--quick", "--scale 0.02", "--scale 1", "QUESTION"];
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
                tasks.join(", "),
                lacks.unwrap_or_else(|| card.what.to_owned()),
            ]
        })
        .collect();
    let devices = table(&["DEVICE", "REALM", "TASKS", "WHAT"], &rows, false);
    let note = dim("Times are estimates with the usual devices.");
    Ok(format!("{}\n{experiments}\n{}\n{devices}\n{note}\n", bold("Experiments"), bold("Devices under test")))
}

fn seconds(experiment: &'static dyn Experiment, quick: bool, scale: f64) -> Result<f64> {
    let asked = Asked {
        experiments: Vec::new(),
        devices: Vec::new(),
        scale,
        repeats: 1,
        quick,
        set: BTreeMap::new(),
        seed: 1,
        pin: true,
    };
    let devices = device::all();
    let cells = plan(&[experiment], &devices, &asked)?;
    Ok(cells.iter().map(|cell| experiment.seconds(cell, &asked)).sum())
}

/// Seconds, minutes or hours.
pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{seconds:.0} s"),
        90.0..5_400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3_600.0),
    }
}
