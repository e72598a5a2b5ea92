//! What every experiment offers.

use super::sheet::Sheet;
use crate::analyse::{About, Drawing, Figure, Finding, Headline, figures_of};
use crate::device::{Device, Needs, TaskKind};
use crate::failure::Result;
use crate::measure::Cores;
use crate::results::{Asked, Cell, Results};

/// An experiment.
pub trait Experiment: Send + Sync {
    /// Its question, its tables, what was published.
    fn about(&self) -> &About;

    /// What it needs here, whatever the device.
    fn needs(&self) -> Needs;

    /// The tasks for devices. A device takes part with the first task that it can do.
    fn lineup(&self) -> &[Entry];

    /// The keys of its settings (`--set KEY=VALUE`), in alphabetical order.
    fn settings(&self) -> &'static [&'static str] {
        &[]
    }

    /// What is to be measured with these devices, in any order; repetitions are added by the plan. It is pure.
    ///
    /// # Errors
    /// The request is invalid, with the reason.
    fn cells(&self, asked: &Asked, devices: &[&str]) -> std::result::Result<Vec<Cell>, String>;

    /// About how many seconds a cell takes.
    fn seconds(&self, cell: &Cell, asked: &Asked) -> f64;

    /// The axes of a series whose value the network is built for: cells that differ there have networks of their own.
    fn built_for(&self, _series: &str) -> &'static [&'static str] {
        &[]
    }

    /// Builds the network for a cell and starts the device. Other cells of the same series and device are measured on it, too, if they are at the same
    /// place on the axes of [`Experiment::built_for`].
    ///
    /// # Errors
    /// Something does not start.
    fn build(&self, cell: &Cell, line: &Line<'_>) -> Result<Box<dyn Stage>>;

    /// Its network, drawn; without it, the text of [`About::topology`] is shown.
    fn drawing(&self) -> Option<&'static Drawing> {
        None
    }

    /// Its figures, in the form of the paper's; usually each column of its tables along the first axis.
    fn figures(&self) -> Vec<Figure> {
        figures_of(self.about().tables)
    }

    /// The paper's ratios, to be set next to today's.
    fn headlines(&self) -> &'static [Headline] {
        &[]
    }

    /// The paper's statements, each with whether it holds. It is pure.
    fn findings(&self, results: &Results) -> Vec<Finding>;
}

/// A task of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The task.
    pub task: TaskKind,
    /// Devices that take part in it without being named on the command line.
    pub usual: &'static [&'static str],
}

/// What a cell is built with.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    /// The device.
    pub device: &'a dyn Device,
    /// The CPUs of device and tester.
    pub cores: Cores,
    /// The request.
    pub asked: &'a Asked,
}

/// A network with a device at work, ready to be measured. All of it ends when it is dropped.
pub trait Stage {
    /// Measures a cell and writes the values on the sheet.
    ///
    /// # Errors
    /// There is no measurement.
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()>;
}
