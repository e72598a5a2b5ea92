//! A guest in the place of a host: its links, addresses and routes.

use super::kind::Kind;
use super::settings::settings;
use super::{esp, rules};
use crate::device::contract::Running;
use crate::device::place::Place;
use crate::device::reading::{Change, CpuReading, CpuSource, MemoryReading};
use crate::failure::{Failure, Result};
use crate::kernel_peer::{Console, Tap, plug};
use crate::probe::cpu::{family_cpu, pin_process, virtual_cpu};
use crate::process::Process;
use std::time::Duration;

/// How long the guest may take to configure itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// The counter of a guest's CPU time by its ticks of 10 ms.
pub const GUEST_TICKS: &str = "guest_busy_ticks";
/// The counter of a guest's exact CPU time, in microseconds.
pub const GUEST_CPU: &str = "guest_cpu_microseconds";

/// A guest in the place of a host.
pub struct Hosted {
    place: Place,
    taps: Vec<Tap>,
    modules: &'static [&'static str],
    words: &'static str,
    script: String,
    /// What has been changed since it booted.
    changed: Option<String>,
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
        Ok(Self { place: place.clone(), taps, modules, words, script, changed: None, console, before })
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
    /// Until a restart: `esp`, IPsec between its ends ([`esp::script`]), or `rules`, a number of them in its packet filter ([`rules::script`]).
    fn configure(&mut self, change: &Change) -> Result<()> {
        let (modules, script) = match change.key.as_str() {
            "esp" => (&esp::MODULES[..], esp::script(&change.value)?),
            "rules" => {
                let strange = |_| Failure::Unexpected(format!("{} is not a number of rules", change.value));
                (&rules::MODULES[..], rules::script(change.value.parse().map_err(strange)?))
            }
            other => return Err(Failure::Unexpected(format!("{other} cannot be changed in a guest"))),
        };
        let script = Kind::chosen().loading(modules)? + "set -e\n" + &script;
        self.console.run_script(&self.place.network, &script, PATIENCE)?.succeeded()?;
        self.changed = Some(script);
        Ok(())
    }

    /// It boots again, with the same link-layer addresses.
    fn restart(&mut self) -> Result<()> {
        self.place.network.with_process(self.console.process(), Process::stop)?;
        (self.console, self.before) =
            booted(&self.place, &self.taps, (self.modules, self.words), &self.script)?;
        self.changed = None;
        Ok(())
    }

    /// Of the emulated machine: its kernel and its programs.
    fn cpu(&self) -> Result<CpuReading> {
        Ok(CpuReading::of(family_cpu(self.console.process())?, CpuSource::Process))
    }

    /// The emulator's memory is the guest's RAM, which says nothing: the guest tells what it uses.
    fn memory(&self) -> Result<MemoryReading> {
        let rise = used(&self.console, &self.place)?.saturating_sub(self.before);
        Ok(MemoryReading::Uncertain(
            rise * 1_024,
            "rise of the used memory of the whole guest since it booted",
        ))
    }

    /// CPU time by the guest's own ticks, idle and waiting time not counted, and that of the thread which is the guest's CPU. An emulated guest that starts
    /// a program for that spends 0.3 s on it.
    fn counters(&self) -> Result<Vec<(String, u64)>> {
        let line = self.console.first_line(&self.place.network, "/proc/stat", PATIENCE)?;
        let exact = virtual_cpu(self.console.process())?;
        let exact = exact.map(|it| (GUEST_CPU.to_owned(), it.as_micros() as u64));
        Ok([(GUEST_TICKS.to_owned(), busy(&line))].into_iter().chain(exact).collect())
    }

    fn commands(&self) -> Vec<String> {
        [self.script.clone()].into_iter().chain(self.changed.clone()).collect()
    }
}

/// The line has ticks of all CPUs: user, nice, system, idle, waiting, interrupts, work of interrupts.
fn busy(line: &str) -> u64 {
    let figures = line.strip_prefix("cpu ").unwrap_or_default();
    let ticks: Vec<u64> = figures.split_whitespace().map_while(|word| word.parse().ok()).collect();
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
        assert_eq!(super::busy("cpu  1 2 4 800 1600 32 64 128 0 0"), 103);
        assert_eq!(super::busy(""), 0);
    }
}
