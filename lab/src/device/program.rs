//! A running device that is a process on the device's core, or on several.

use super::contract::Running;
use super::place::Place;
use super::reading::{CpuReader, CpuReading, CpuSource, MemoryReading};
use crate::failure::{Asking as _, Failure, Result};
use crate::measure::{ReceivingThreads, core_time};
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
    reception: Reception,
}

/// What is known of the CPU time of the kernel's work on packets that it receives for a program.
#[derive(Clone, Debug)]
pub enum Reception {
    /// Nothing: it is not counted, but for what the kernel adds to the time of the program that it interrupts.
    NotCounted,
    /// It is that of these threads.
    Threads(ReceivingThreads),
    /// It is that of a core on interrupts and received packets; without a core, packets are received where they are sent.
    Interrupts(Option<usize>),
}

/// Deletes the connections of the program next to it.
pub type Forget = fn(&Place) -> Result<()>;

/// What reads the memory of the program next to it.
pub type Beside = fn(&Place) -> Result<MemoryReading>;

/// What reads counters of the host, or of the program.
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
            reception: Reception::NotCounted,
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
    /// The same with counters of its own.
    #[must_use]
    pub fn with_counters(mut self, counters: Counters) -> Self {
        self.counters = Some(counters);
        self
    }

    /// The same with connections of what works next to it, which are deleted without a restart.
    #[must_use]
    pub fn forgetting(mut self, forget: Forget) -> Self {
        self.forget = Some(forget);
        self
    }

    /// The same with the CPU time of what receives for it.
    #[must_use]
    pub fn receiving(mut self, reception: Reception) -> Self {
        self.reception = reception;
        self
    }
}

/// CPU time of a process with that of what receives for it.
fn cpu_of(process: u32, reception: &Reception) -> Result<CpuReading> {
    let own = family_cpu(process)?;
    Ok(match reception {
        Reception::NotCounted => CpuReading::of(own, CpuSource::Process),
        Reception::Threads(threads) => CpuReading::with_received(own, threads.cpu()?, CpuSource::Process),
        Reception::Interrupts(Some(core)) => {
            let core = core_time(Some(*core))?;
            let reading = CpuReading::with_received(own, core.interrupts, CpuSource::ProcessAndInterrupts);
            CpuReading { core_busy: core.busy, ..reading }
        }
        Reception::Interrupts(None) => {
            let others = core_time(None)?.busy.saturating_sub(own);
            CpuReading::with_received(own, others, CpuSource::Shared)
        }
    })
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
        cpu_of(self.process, &self.reception)
    }

    fn cpu_reader(&self) -> Option<CpuReader> {
        let (process, reception) = (self.process, self.reception.clone());
        Some(Box::new(move || cpu_of(process, &reception)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_receives_for_a_program_is_in_its_cpu_time() {
        let own = std::process::id();
        let read = |reception| cpu_of(own, &reception).unwrap();
        assert_eq!(read(Reception::NotCounted).received, Duration::ZERO);
        let before = core_time(Some(0)).unwrap().interrupts;
        let at_tc = read(Reception::Interrupts(Some(0)));
        assert!(at_tc.received >= before && at_tc.spent >= at_tc.received, "{at_tc:?}");
        assert_eq!(at_tc.source, CpuSource::ProcessAndInterrupts);
        let floating = read(Reception::Interrupts(None));
        assert_eq!(floating.source, CpuSource::Shared, "no ratio of it is printed");
        assert!(floating.spent >= core_time(Some(0)).unwrap().interrupts, "{floating:?}");
    }
}
