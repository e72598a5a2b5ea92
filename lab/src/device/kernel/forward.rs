//! The kernel's own forwarding of IPv4 and IPv6: plain forwarding of its realm, to which others are compared.

use crate::device::card::{Card, Realm};
use crate::device::contract::{Device, Running};
use crate::device::needs::Needs;
use crate::device::place::Place;
use crate::device::reading::{CpuReader, CpuReading, CpuSource, MemoryReading};
use crate::device::task::{Task, TaskKind};
use crate::failure::Result;
use crate::measure::core_time;
use crate::results::Machine;
use crate::rootless;

/// The kernel's own forwarding.
pub struct KernelForwarding;

const CARD: Card =
    Card { name: "kernel", what: "this kernel's forwarding", realm: Realm::Here, needs: Needs::NAMESPACE };

impl Device for KernelForwarding {
    fn card(&self) -> &Card {
        &CARD
    }

    fn tasks(&self) -> &[TaskKind] {
        &[TaskKind::Forward]
    }

    fn version(&self) -> Result<String> {
        Ok(format!("Linux {}", Machine::here().kernel))
    }

    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        task.forward(CARD.name)?;
        place.network.forwards(place.host)?;
        let sysctl = "sysctl net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1".to_owned();
        Ok(Box::new(Forwarding { place: place.clone(), commands: vec![sysctl] }))
    }
}

/// A host whose kernel forwards, with what it was configured by.
pub struct Forwarding {
    /// Where it is.
    pub place: Place,
    /// Commands.
    pub commands: Vec<String>,
}

/// The device's core's time on received packets. Without root they are received where they were sent, on the tester's core: then there is no other figure
/// than that of the whole machine.
fn read(core: Option<usize>, is_rootless: bool) -> Result<CpuReading> {
    match is_rootless {
        true => Ok(CpuReading::of(core_time(None)?.busy, CpuSource::Shared)),
        false => Ok(CpuReading::of(core_time(core)?.interrupts, CpuSource::Interrupts)),
    }
}

impl Running for Forwarding {
    /// A router remembers no packets; neighbours and exceptions of routes are forgotten.
    fn restart(&mut self) -> Result<()> {
        let host = self.place.network.host(self.place.host)?;
        host.ip("neigh flush all")?;
        host.ip("-6 route flush cache")?;
        host.ip("-4 route flush cache").map(drop)
    }

    fn cpu(&self) -> Result<CpuReading> {
        read(self.place.core, rootless::is_inside())
    }

    fn cpu_reader(&self) -> Option<CpuReader> {
        let core = self.place.core;
        let is_rootless = rootless::is_inside();
        Some(Box::new(move || read(core, is_rootless)))
    }

    fn memory(&self) -> Result<MemoryReading> {
        Ok(MemoryReading::NotMeasurable(
            "a kernel that forwards has no process and stores nothing for a packet",
        ))
    }

    fn commands(&self) -> Vec<String> {
        self.commands.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_root_the_time_is_that_of_the_whole_machine() {
        let (own, all) = (read(Some(0), false).unwrap(), read(Some(0), true).unwrap());
        assert_eq!((own.source, all.source), (CpuSource::Interrupts, CpuSource::Shared));
        assert!(all.spent > own.spent, "{all:?}, and of interrupts {own:?}");
    }
}
