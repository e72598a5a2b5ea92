//! Measures the cells of a plan that are not measured yet.

use super::session::Session;
use crate::device::Device;
use crate::experiment::{Experiment, Line, Sheet};
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::measure::Cores;
use crate::results::{Asked, Cell, Sample, Store, TesterCost, Verdict, timestamp};
use std::collections::BTreeMap;
use std::time::{Instant, SystemTime};

/// The experiments and devices that there are.
#[derive(Clone, Copy)]
pub struct Laboratory<'a> {
    /// Experiments.
    pub experiments: &'a [&'a dyn Experiment],
    /// Devices.
    pub devices: &'a [&'a dyn Device],
    /// The CPUs of device and tester.
    pub cores: Cores,
    /// What is timed before each measurement, usually [`crate::measure::fixed_work`]: milliseconds on this CPU.
    pub control: fn(Option<usize>) -> Result<f64>,
}

/// What a run is about to do.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The cell that is measured next.
    pub cell: &'a Cell,
    /// Its place among the cells, from 1, and their number.
    pub place: (usize, usize),
    /// Estimated seconds until the end, this cell included.
    pub seconds_left: f64,
}

impl<'a> Laboratory<'a> {
    fn experiment(&self, name: &str) -> Result<&'a dyn Experiment> {
        let found = self.experiments.iter().copied().find(|experiment| experiment.about().name == name);
        found.ok_or_else(|| Failure::Unexpected(format!("no experiment is named {name:?}")))
    }

    fn device(&self, name: &str) -> Result<&'a dyn Device> {
        let found = self.devices.iter().copied().find(|device| device.card().name == name);
        found.ok_or_else(|| Failure::Unexpected(format!("no device is named {name:?}")))
    }
}

/// Measures what the store does not have yet, each cell that fails once more at the end. `say` hears of each before it begins.
///
/// # Errors
/// A signal has come, or the store cannot be written. What fails to be measured is a sample, too.
pub fn execute(
    laboratory: Laboratory<'_>,
    cells: &[Cell],
    asked: &Asked,
    store: &mut Store,
    mut say: impl FnMut(Progress<'_>),
) -> Result<()> {
    let mut session = Session::default();
    let seconds =
        |cell: &Cell| laboratory.experiment(&cell.experiment).map_or(0.0, |it| it.seconds(cell, asked));
    for _first_or_again in 0..2 {
        for (at, cell) in cells.iter().enumerate() {
            if store.is_done(&cell.key()) {
                continue;
            }
            interrupt::check()?;
            let left = cells[at..].iter().filter(|cell| !store.is_done(&cell.key()));
            let seconds_left = left.map(seconds).sum();
            say(Progress { cell, place: (at + 1, cells.len()), seconds_left });
            let sample = measure(laboratory, cell, asked, store, &mut session)?;
            store.append(&sample)?;
        }
    }
    Ok(())
}

fn measure(
    laboratory: Laboratory<'_>,
    cell: &Cell,
    asked: &Asked,
    store: &Store,
    session: &mut Session,
) -> Result<Sample> {
    let (started, start) = (timestamp(SystemTime::now()), Instant::now());
    let control = (laboratory.control)(laboratory.cores.device)?;
    let mut sheet = Sheet::new(store.raw_folder(&cell.key())?);
    let build = || {
        let device = laboratory.device(&cell.device)?;
        let line = Line { device, cores: laboratory.cores, asked };
        laboratory.experiment(&cell.experiment)?.build(cell, &line)
    };
    let measured = session.stage(cell, build).and_then(|stage| stage.measure(cell, &mut sheet));
    let mut sample = Sample {
        cell: cell.clone(),
        started,
        took: 0.0,
        values: BTreeMap::new(),
        verdict: Verdict::Failed,
        tester: TesterCost::default(),
        control: Some(control),
        commands: Vec::new(),
        raw: Vec::new(),
        failed: None,
    };
    match measured.and_then(|()| sheet.into_parts()) {
        Ok((values, verdict, tester, commands, raw)) => {
            sample = Sample { values, verdict, tester, commands, raw, ..sample };
        }
        Err(Failure::Interrupted) => return Err(Failure::Interrupted),
        Err(failure) => {
            session.end(cell);
            sample.failed = Some(failure.to_string());
        }
    }
    sample.took = start.elapsed().as_secs_f64();
    Ok(sample)
}
