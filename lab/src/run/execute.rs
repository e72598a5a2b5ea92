//! Measures the cells of a plan that are not measured yet.

use super::ending::failure;
use super::pacing::Pacing;
use super::progress::Progress;
use super::recorder::Recorder;
use super::session::{Session, name};
use crate::device::{Device, Realm};
use crate::experiment::{Experiment, Line, Sheet};
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::measure::Cores;
use crate::observer::observe;
use crate::results::{Asked, Cell, Sample, Store, timestamp};
use crate::terminal::printable;
use std::rc::Rc;
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

/// Measures what the store does not have yet and a budget of seconds has time for, each cell that fails once more at the end. `say` is called for each
/// before it begins.
///
/// # Errors
/// A signal has come, or the store cannot be written. What fails to be measured is a sample, too.
pub fn execute(
    laboratory: Laboratory<'_>,
    cells: &[Cell],
    asked: &Asked,
    store: &mut Store,
    say: impl FnMut(Progress<'_>),
) -> Result<()> {
    execute_within(laboratory, cells, asked, None, store, say)
}

/// The same within a number of seconds, those included that earlier parts of the same run took.
///
/// # Errors
/// As [`execute`].
pub fn execute_within(
    laboratory: Laboratory<'_>,
    cells: &[Cell],
    asked: &Asked,
    seconds: Option<f64>,
    store: &mut Store,
    mut say: impl FnMut(Progress<'_>),
) -> Result<()> {
    let recorder = Rc::new(Recorder::default());
    let _observing = observe(recorder.clone());
    let mut session = Session::default();
    let estimate =
        |cell: &Cell| laboratory.experiment(&cell.experiment).map_or(0.0, |it| it.seconds(cell, asked));
    let mut pacing = Pacing::new(cells, cells.iter().map(estimate).collect(), seconds);
    for (at, cell) in cells.iter().enumerate() {
        if let Some(took) = store.took(&cell.key()) {
            pacing.note(at, took);
        }
    }
    for attempt in [Attempt::First, Attempt::Again] {
        for (at, cell) in cells.iter().enumerate() {
            if store.is_done(&cell.key()) || !pacing.has_time_for(at) {
                continue;
            }
            interrupt::check()?;
            say(Progress { cell, place: (at + 1, cells.len()), seconds_left: pacing.seconds_left() });
            let sample = measure(laboratory, cell, asked, store, (&mut session, &recorder, attempt))?;
            pacing.note(at, sample.took);
            store.append(&sample)?;
            if let Some(failed) = failure(&sample) {
                eprintln!("{}", printable(&failed));
            }
        }
    }
    Ok(())
}

/// Which attempt to measure a cell it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    First,
    /// It has failed before: what its links carry is captured.
    Again,
}

fn measure(
    laboratory: Laboratory<'_>,
    cell: &Cell,
    asked: &Asked,
    store: &Store,
    (session, recorder, attempt): (&mut Session, &Recorder, Attempt),
) -> Result<Sample> {
    let (started, start) = (timestamp(SystemTime::now()), Instant::now());
    let control = (laboratory.control)(laboratory.cores.device)?;
    let mut sheet = Sheet::new(store.raw_folder(&cell.key())?);
    let build = || {
        let device = laboratory.device(&cell.device)?;
        let line = Line { device, cores: laboratory.cores, asked };
        laboratory.experiment(&cell.experiment)?.build(cell, &line)
    };
    let axes = laboratory.experiment(&cell.experiment)?.built_for(&cell.series);
    let folder = sheet.folder().to_owned();
    let is_remote = laboratory.device(&cell.device)?.card().realm == Realm::Remote;
    let is_alone = is_remote || !asked.remote_hosts.is_empty();
    recorder.begin(&name(cell, axes), (attempt == Attempt::Again).then_some(&folder));
    let measured = session.stage((cell, axes), is_alone, build).and_then(|stage| {
        recorder.is_built();
        stage.measure(cell, &mut sheet)
    });
    let has_failed = measured.is_err() && !matches!(measured, Err(Failure::Interrupted));
    let kept = recorder.end(&folder, has_failed);
    let mut sample =
        Sample { started, control: Some(control), failed: None, ..Sample::failed(cell.clone(), "") };
    match measured.and_then(|()| sheet.fill(sample.clone())) {
        Ok(filled) => sample = filled,
        Err(Failure::Interrupted) => return Err(Failure::Interrupted),
        Err(failure) => {
            session.end((cell, axes));
            sample.failed = Some(failure.to_string());
            sample.raw = kept;
        }
    }
    sample.took = start.elapsed().as_secs_f64();
    Ok(sample)
}
