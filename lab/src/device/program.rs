//! A running device that is a process on the device's core, or on several.

use super::contract::Running;
use super::place::Place;
use super::reading::{CpuReader, CpuReading, CpuSource, MemoryReading};
use crate::failure::{Asking as _, Failure, Result};
use crate::probe::cpu::{family_cpu, pin_process_to};
use crate::process::Process;

/// Starts the process and waits until it is ready; returns its process ID.
pub type Launch = Box<dyn Fn(&Place) -> Result<u32>>;

/// A process, and how it was started.
pub struct Program {
    place: Place,
    launch: Launch,
    commands: Vec<String>,
    cores: Vec<usize>,
    process: u32,
    counters: Option<Counters>,
    beside: Option<Beside>,
    forget: Option<Forget>,
}

/// Deletes the connections of the program next to it.
pub type Forget = fn(&Place) -> Result<()>;

/// What reads the memory of the program next to it.
pub type Beside = fn(&Place) -> Result<MemoryReading>;

/// What reads counters of the host.
pub type Counters = fn(&Place) -> Result<Vec<(String, u64)>>;

impl Program {
    /// Starts it. `commands` say how, for the results.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(place: &Place, commands: Vec<String>, launch: Launch) -> Result<Self> {
        Self::start_on(place, commands, launch, place.core.into_iter().collect())
    }

    /// The same on these CPUs together; on all of them if none is named.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_on(place: &Place, commands: Vec<String>, launch: Launch, cores: Vec<usize>) -> Result<Self> {
        let process = pinned(place, &launch, &cores)?;
        Ok(Self {
            place: place.clone(),
            launch,
            commands,
            cores,
            process,
            counters: None,
            beside: None,
            forget: None,
        })
    }

    /// The same with counters and memory of what works next to it.
    #[must_use]
    pub fn counting(mut self, counters: Counters, beside: Beside) -> Self {
        (self.counters, self.beside) = (Some(counters), Some(beside));
        self
    }
}

impl Program {
    /// The same with connections of what works next to it, which are deleted without a restart.
    #[must_use]
    pub fn forgetting(mut self, forget: Forget) -> Self {
        self.forget = Some(forget);
        self
    }
}

fn pinned(place: &Place, launch: &Launch, cores: &[usize]) -> Result<u32> {
    let process = launch(place)?;
    if !cores.is_empty() {
        pin_process_to(process, cores)?;
    }
    Ok(process)
}

impl Running for Program {
    fn restart(&mut self) -> Result<()> {
        self.place.network.with_process(self.process, Process::stop)?;
        self.process = pinned(&self.place, &self.launch, &self.cores)?;
        Ok(())
    }

    fn forget(&mut self) -> Result<()> {
        match self.forget {
            Some(forget) => forget(&self.place),
            None => self.restart(),
        }
    }

    fn cpu(&self) -> Result<CpuReading> {
        Ok(CpuReading { spent: family_cpu(self.process)?, source: CpuSource::Process })
    }

    fn cpu_reader(&self) -> Option<CpuReader> {
        let process = self.process;
        Some(Box::new(move || family_cpu(process)))
    }

    fn memory(&self) -> Result<MemoryReading> {
        let own = MemoryReading::Exact(resident(self.process)?);
        self.beside.map_or(Ok(own), |beside| Ok(own.plus(beside(&self.place)?)))
    }

    fn counters(&self) -> Result<Vec<(String, u64)>> {
        self.counters.map_or_else(|| Ok(Vec::new()), |counters| counters(&self.place))
    }

    fn commands(&self) -> Vec<String> {
        self.commands.clone()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.place.network.with_process(self.process, Process::stop).ok();
    }
}

/// Resident memory of a process, in octets.
fn resident(process: u32) -> Result<u64> {
    let path = format!("/proc/{process}/status");
    let said = std::fs::read_to_string(&path).asking(|| format!("reading {path}"))?;
    let kibibytes =
        said.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok());
    kibibytes
        .map(|kibibytes: u64| kibibytes * 1_024)
        .ok_or_else(|| Failure::Unexpected(format!("{path} has no VmRSS")))
}
