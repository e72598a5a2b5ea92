//! The order of cells. Repetitions are outermost and devices innermost, so that other load of the machine affects all devices alike.

use crate::device::Device;
use crate::experiment::Experiment;
use crate::failure::{Failure, Result};
use crate::results::{Asked, Cell};
use std::collections::BTreeSet;

/// The devices that take part in an experiment: those that were asked for and can do one of its tasks, or its usual ones.
pub fn participants<'a>(
    experiment: &dyn Experiment,
    devices: &[&'a dyn Device],
    asked: &Asked,
) -> Vec<&'a dyn Device> {
    let takes_part = |device: &dyn Device| {
        let name = device.card().name;
        let can = |task| device.tasks().contains(task);
        match asked.devices.is_empty() {
            true => experiment.lineup().iter().any(|entry| entry.usual.contains(&name)),
            false => {
                asked.devices.iter().any(|it| it == name)
                    && experiment.lineup().iter().any(|entry| can(&entry.task))
            }
        }
    };
    devices.iter().copied().filter(|device| takes_part(*device)).collect()
}

/// Whether each setting is one of an experiment of the run: a misspelt one would be without effect.
fn know_settings(experiments: &[&dyn Experiment], asked: &Asked) -> Result<()> {
    let known: BTreeSet<&str> =
        experiments.iter().flat_map(|experiment| experiment.settings()).copied().collect();
    let Some(unknown) = asked.set.keys().find(|key| !known.contains(key.as_str())) else { return Ok(()) };
    let known: Vec<_> = known.into_iter().collect();
    let known = match known.is_empty() {
        true => "there are none".to_owned(),
        false => format!("its settings are {}", known.join(", ")),
    };
    Err(Failure::Unexpected(format!("--set {unknown}: this run has no such setting; {known}")))
}

/// All cells of a run in the order in which they are measured.
///
/// # Errors
/// An experiment does not know what was asked for.
pub fn plan(experiments: &[&dyn Experiment], devices: &[&dyn Device], asked: &Asked) -> Result<Vec<Cell>> {
    know_settings(experiments, asked)?;
    let mut all = Vec::new();
    for experiment in experiments {
        let taking_part = participants(*experiment, devices, asked);
        let names: Vec<_> = taking_part.iter().map(|device| device.card().name).collect();
        let cells = experiment.cells(asked, &names).map_err(Failure::Unexpected)?;
        all.extend(interleaved(cells, &names, asked.repeats));
    }
    Ok(all)
}

fn interleaved(cells: Vec<Cell>, devices: &[&str], repeats: u32) -> Vec<Cell> {
    let first = |is_same: &dyn Fn(&Cell) -> bool| cells.iter().position(is_same);
    let place = |cell: &Cell| {
        let series = first(&|other| other.series == cell.series);
        let point = first(&|other| other.series == cell.series && other.point == cell.point);
        (series, point, devices.iter().position(|device| *device == cell.device))
    };
    let mut ordered: Vec<_> = cells.iter().map(|cell| (place(cell), cell)).collect();
    ordered.sort_by_key(|((series, ..), _)| *series);
    let mut all = Vec::new();
    for series in ordered.chunk_by(|(a, _), (b, _)| a.0 == b.0) {
        let mut series = series.to_vec();
        series.sort_by_key(|(place, _)| *place);
        for repeat in 0..repeats {
            all.extend(series.iter().map(|(_, cell)| Cell { repeat, ..(*cell).clone() }));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn cell(series: &str, device: &str, hosts: f64) -> Cell {
        Cell {
            experiment: "x".to_owned(),
            series: series.to_owned(),
            device: device.to_owned(),
            point: BTreeMap::from([("hosts".to_owned(), hosts)]),
            repeat: 0,
        }
    }

    #[test]
    fn devices_are_interleaved_in_every_round() {
        let cells = vec![
            cell("s", "b", 2.0),
            cell("s", "b", 1.0),
            cell("t", "a", 1.0),
            cell("s", "a", 2.0),
            cell("s", "a", 1.0),
        ];
        let keys: Vec<_> = interleaved(cells, &["a", "b"], 2).iter().map(Cell::key).collect();
        let expected = [
            "x/s/a/hosts=2#0",
            "x/s/b/hosts=2#0",
            "x/s/a/hosts=1#0",
            "x/s/b/hosts=1#0",
            "x/s/a/hosts=2#1",
            "x/s/b/hosts=2#1",
            "x/s/a/hosts=1#1",
            "x/s/b/hosts=1#1",
            "x/t/a/hosts=1#0",
            "x/t/a/hosts=1#1",
        ];
        assert_eq!(keys, expected);
    }

    #[test]
    fn a_setting_that_no_experiment_of_the_run_has_is_refused() {
        let run = |names: &[&str], key: &str| {
            let experiments: Vec<_> = names.iter().filter_map(|name| crate::experiment::find(name)).collect();
            let set = BTreeMap::from([(key.to_owned(), "1".to_owned())]);
            plan(&experiments, &[], &Asked { set, repeats: 1, scale: 0.1, ..Asked::default() })
                .map_err(|failure| failure.to_string())
        };
        assert_eq!(run(&["relay-2013"], "hosts"), Ok(Vec::new()));
        let said = run(&["relay-2013"], "host").unwrap_err();
        assert!(
            said.contains("--set host: this run has no such setting; its settings are hosts, octets"),
            "{said}"
        );
        assert!(run(&["relay-2013"], "forms").is_err());
        assert_eq!(run(&["relay-2013", "gateway-2012"], "forms"), Ok(Vec::new()));
        assert!(run(&["tester"], "hosts").unwrap_err().ends_with("there are none"));
    }
}
