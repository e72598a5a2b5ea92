//! The interface of a device under test.

use super::card::Card;
use super::place::Place;
use super::reading::{Change, CpuReader, CpuReading, MemoryReading};
use super::task::{Task, TaskKind};
use crate::failure::{Failure, Result};
use crate::measure::ClockOffset;
use crate::results::Machine;

/// A device under test.
pub trait Device: Send + Sync {
    /// Name, realm and needs.
    fn card(&self) -> &Card;

    /// The tasks that it can do.
    fn tasks(&self) -> &[TaskKind];

    /// Why it cannot run here, if it cannot.
    fn cannot_run(&self, here: &Machine) -> Option<String> {
        self.card().needs.lacking(here)
    }

    /// Whether it is plain forwarding, to which all other devices of its realm are compared.
    fn is_plain(&self) -> bool {
        self.tasks().contains(&TaskKind::Forward)
    }

    /// Whether it uses the addresses of a pool; else that of its outside link, as masquerade does.
    fn has_pool(&self) -> bool {
        true
    }

    /// Its version, in one line.
    ///
    /// # Errors
    /// It does not say.
    fn version(&self) -> Result<String>;

    /// Starts it; it is at work when this returns.
    ///
    /// # Errors
    /// It does not know the task, or does not start.
    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>>;

    /// Whether the timers of its control planes can be set: those of a client, a host or a router in a [`Task`].
    fn has_timers(&self) -> bool {
        false
    }

    /// Whether it can be given a number of workers.
    fn has_workers(&self) -> bool {
        false
    }

    /// Starts it with a worker for each of these CPUs, on which it runs.
    ///
    /// # Errors
    /// It has no workers, does not know the task, or does not start.
    fn start_workers(&self, _place: &Place, _task: &Task, _cores: &[usize]) -> Result<Box<dyn Running>> {
        Err(Failure::Unexpected(format!("{} has no number of workers", self.card().name)))
    }
}

/// A device at work. It is stopped when it is dropped.
pub trait Running {
    /// Changes a setting while it runs.
    ///
    /// # Errors
    /// The device has no such setting.
    fn configure(&mut self, change: &Change) -> Result<()> {
        Err(Failure::Unexpected(format!("{} cannot be changed on this device", change.key)))
    }

    /// Stops and starts it, without anything that it remembers.
    ///
    /// # Errors
    /// It does not start.
    fn restart(&mut self) -> Result<()>;

    /// Deletes all connections that it has, and nothing else if it can; the default is to restart.
    ///
    /// # Errors
    /// It does not start again.
    fn forget(&mut self) -> Result<()> {
        self.restart()
    }

    /// CPU time since it was started.
    ///
    /// # Errors
    /// It is gone.
    fn cpu(&self) -> Result<CpuReading>;

    /// What reads the same time from another thread, again and again, if that costs little: by it is seen how it varies.
    fn cpu_reader(&self) -> Option<CpuReader> {
        None
    }

    /// Memory that it uses.
    ///
    /// # Errors
    /// It is gone.
    fn memory(&self) -> Result<MemoryReading>;

    /// Counters that explain a loss: drops, failed insertions into tables.
    ///
    /// # Errors
    /// They cannot be read.
    fn counters(&self) -> Result<Vec<(String, u64)>> {
        Ok(Vec::new())
    }

    /// How far its clock is ahead, if it has a clock of its own that it tells.
    ///
    /// # Errors
    /// It does not answer.
    fn clock(&self) -> Result<Option<ClockOffset>> {
        Ok(None)
    }

    /// Command lines with which it was started, and its configuration.
    fn commands(&self) -> Vec<String>;
}
