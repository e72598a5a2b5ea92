//! Sixway on a TUN device, with one worker on the device's core.

use super::configuration::{TASKS, configuration};
use crate::device::card::{Card, Realm};
use crate::device::contract::{Device, Running};
use crate::device::needs::Needs;
use crate::device::place::Place;
use crate::device::reading::{CpuReading, CpuSource, MemoryReading};
use crate::device::task::{Task, TaskKind};
use crate::failure::{Asking as _, Failure, Result};
use crate::gateway::run_sixway_on;
use crate::probe::cpu::{family_cpu, pin_process};
use crate::process::Process;
use crate::results::Machine;
use crate::sixway::sixway;
use std::process::Command;

/// Sixway on a TUN device.
pub struct SixwayOnTun;

const CARD: Card = Card {
    name: "sixway",
    what: "Sixway on a TUN device, one worker",
    realm: Realm::Here,
    needs: Needs::NAMESPACE,
};

impl Device for SixwayOnTun {
    fn card(&self) -> &Card {
        &CARD
    }

    fn tasks(&self) -> &[TaskKind] {
        TASKS
    }

    fn cannot_run(&self, here: &Machine) -> Option<String> {
        CARD.needs.lacking(here).or_else(|| sixway().err().map(|failure| failure.to_string()))
    }

    fn version(&self) -> Result<String> {
        let said =
            Command::new(sixway()?).arg("--version").output().asking(|| "sixway --version".to_owned())?;
        Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
    }

    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        let configuration = configuration(task)?;
        place.network.forwards(place.host)?;
        let process = start(place, &configuration)?;
        Ok(Box::new(Daemon { place: place.clone(), configuration, process }))
    }
}

/// A process of Sixway.
struct Daemon {
    place: Place,
    configuration: String,
    process: u32,
}

fn start(place: &Place, configuration: &str) -> Result<u32> {
    let process = run_sixway_on(&place.network, place.host, configuration)?;
    if let Some(core) = place.core {
        pin_process(process, core)?;
    }
    Ok(process)
}

impl Running for Daemon {
    fn restart(&mut self) -> Result<()> {
        self.place.network.with_process(self.process, Process::stop)?;
        self.process = start(&self.place, &self.configuration)?;
        Ok(())
    }

    fn cpu(&self) -> Result<CpuReading> {
        Ok(CpuReading { spent: family_cpu(self.process)?, source: CpuSource::Process })
    }

    fn memory(&self) -> Result<Option<MemoryReading>> {
        resident(self.process).map(|octets| Some(MemoryReading { octets, exact: true }))
    }

    fn commands(&self) -> Vec<String> {
        vec![format!("sixway run -c - <<END\n{}END", self.configuration)]
    }
}

impl Drop for Daemon {
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
