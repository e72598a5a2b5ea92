//! A guest in the place of a host: its links, addresses and routes.

use super::esp;
use super::kind::Kind;
use super::settings::settings;
use crate::device::contract::Running;
use crate::device::place::Place;
use crate::device::reading::{Change, CpuReading, CpuSource, MemoryReading};
use crate::failure::{Failure, Result};
use crate::kernel_peer::{Console, Tap, plug};
use crate::probe::cpu::{family_cpu, pin_process};
use crate::process::Process;
use std::time::Duration;

/// How long the guest may take to configure itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// A guest in the place of a host.
pub struct Hosted {
    place: Place,
    taps: Vec<Tap>,
    modules: &'static [&'static str],
    words: &'static str,
    script: String,
    /// What has been changed since it booted.
    protected: Option<String>,
    console: Console,
    /// Kibibytes that it used before the script.
    before: u64,
}

impl Hosted {
    /// Starts it with these modules of its kernel. The script runs when links, addresses and routes are set.
    ///
    /// # Errors
    /// It does not boot, or the script fails.
    pub fn start(place: &Place, modules: &'static [&'static str], script: &str) -> Result<Self> {
        Self::start_with(place, modules, "", script)
    }

    /// The same with kernel command line parameters.
    ///
    /// # Errors
    /// It does not boot, or the script fails.
    pub fn start_with(
        place: &Place,
        modules: &'static [&'static str],
        words: &'static str,
        script: &str,
    ) -> Result<Self> {
        let script = settings(place)? + script;
        let host = place.network.host(place.host)?;
        place.links().try_for_each(|link| host.ip(&format!("address flush dev {link}")).map(drop))?;
        let taps = place.links().map(|link| plug(&place.network, place.host, link));
        let taps = taps.collect::<Result<Vec<_>>>()?;
        let (console, before) = booted(place, &taps, (modules, words), &script)?;
        Ok(Self { place: place.clone(), taps, modules, words, script, protected: None, console, before })
    }
}

fn booted(
    place: &Place,
    taps: &[Tap],
    (modules, words): (&[&'static str], &str),
    script: &str,
) -> Result<(Console, u64)> {
    let console = Kind::chosen().boot(place, taps, modules, words)?;
    if let Some(core) = place.core {
        pin_process(console.process(), core)?;
    }
    let before = used(&console, place)?;
    console.run_script(&place.network, script, PATIENCE)?.succeeded()?;
    Ok((console, before))
}

/// Kibibytes of the guest's memory that are used, whatever for.
fn used(console: &Console, place: &Place) -> Result<u64> {
    let said = console.run_script(&place.network, "cat /proc/meminfo", PATIENCE)?.succeeded()?;
    used_of(&said.stdout).ok_or_else(|| Failure::Unexpected("a guest does not tell its memory".to_owned()))
}

fn used_of(meminfo: &str) -> Option<u64> {
    let line =
        |name: &str| meminfo.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    let number = |name| line(name)?.parse::<u64>().ok();
    number("MemTotal:")?.checked_sub(number("MemAvailable:")?)
}

impl Running for Hosted {
    /// `esp`: IPsec between its ends, until a restart; see [`esp::script`].
    fn configure(&mut self, change: &Change) -> Result<()> {
        if change.key != "esp" {
            return Err(Failure::Unexpected(format!("{} cannot be changed in a guest", change.key)));
        }
        let script = Kind::chosen().loading(&esp::MODULES)? + "set -e\n" + &esp::script(&change.value)?;
        self.console.run_script(&self.place.network, &script, PATIENCE)?.succeeded()?;
        self.protected = Some(script);
        Ok(())
    }

    /// It boots again, with the same link-layer addresses.
    fn restart(&mut self) -> Result<()> {
        self.place.network.with_process(self.console.process(), Process::stop)?;
        (self.console, self.before) =
            booted(&self.place, &self.taps, (self.modules, self.words), &self.script)?;
        self.protected = None;
        Ok(())
    }

    /// Of the emulated machine: its kernel and its programs.
    fn cpu(&self) -> Result<CpuReading> {
        Ok(CpuReading { spent: family_cpu(self.console.process())?, source: CpuSource::Process })
    }

    /// The emulator's memory is the guest's RAM, which says nothing: the guest tells what it uses.
    fn memory(&self) -> Result<MemoryReading> {
        let rise = used(&self.console, &self.place)?.saturating_sub(self.before);
        Ok(MemoryReading::Uncertain(
            rise * 1_024,
            "rise of the used memory of the whole guest since it booted",
        ))
    }

    /// CPU time by the guest's own ticks, idle and waiting time not counted.
    fn counters(&self) -> Result<Vec<(String, u64)>> {
        let said = self.console.run_script(&self.place.network, "cat /proc/stat", PATIENCE)?.succeeded()?;
        Ok(vec![("guest_busy_ticks".to_owned(), busy(&said.stdout))])
    }

    fn commands(&self) -> Vec<String> {
        [self.script.clone()].into_iter().chain(self.protected.clone()).collect()
    }
}

/// The first line has ticks of all CPUs: user, nice, system, idle, waiting, interrupts, work of interrupts.
fn busy(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    [0, 1, 2, 5, 6].iter().filter_map(|at| ticks.get(*at)).sum()
}

impl Drop for Hosted {
    fn drop(&mut self) {
        self.place.network.with_process(self.console.process(), Process::stop).ok();
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn memory_that_is_not_available_is_used() {
        let text = "MemTotal:  200000 kB\nMemFree: 100 kB\nMemAvailable:  150000 kB\n";
        assert_eq!(super::used_of(text), Some(50_000));
        assert_eq!(super::used_of("MemTotal: 200000 kB\n"), None);
    }

    #[test]
    fn idle_and_waiting_time_is_not_busy() {
        assert_eq!(super::busy("cpu  1 2 4 800 1600 32 64 128 0 0\ncpu0 9 9 9 9\n"), 103);
        assert_eq!(super::busy(""), 0);
    }
}
