//! The time of CPUs as the kernel counts it, in ticks of 10 ms: busy, stolen by the hypervisor, and in all.

use crate::failure::{Asking as _, Failure, Result};
use crate::probe::cpu::cpus;
use std::time::Duration;

/// Which CPU does what. With one CPU, both share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    /// The device's.
    pub device: Option<usize>,
    /// The tester's: load, responders, switches.
    pub tester: Option<usize>,
}

impl Cores {
    /// CPU 0 for the tester and CPU 1 for the device, if there are two and they are wanted.
    pub fn of_this_machine(pin: bool) -> Self {
        match pin && cpus() > 1 {
            true => Self { device: Some(1), tester: Some(0) },
            false => Self { device: None, tester: None },
        }
    }
}

/// A CPU's time since the machine started; differences count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreTime {
    /// Spent on anything but waiting.
    pub busy: Duration,
    /// The part of it that was spent on interrupts and received packets, for any program.
    pub interrupts: Duration,
    /// Taken by the hypervisor.
    pub stolen: Duration,
    /// Passed.
    pub all: Duration,
}

impl CoreTime {
    /// Share of the time since an earlier reading in which it was busy, 0 to 1.
    pub fn busy_since(&self, before: &Self) -> f64 {
        share(self.busy.saturating_sub(before.busy), self.all.saturating_sub(before.all))
    }

    /// Share of the time since an earlier reading that was spent on interrupts and received packets, 0 to 1.
    pub fn interrupts_since(&self, before: &Self) -> f64 {
        share(self.interrupts.saturating_sub(before.interrupts), self.all.saturating_sub(before.all))
    }

    /// Share of the time since an earlier reading that was stolen, 0 to 1.
    pub fn stolen_since(&self, before: &Self) -> f64 {
        share(self.stolen.saturating_sub(before.stolen), self.all.saturating_sub(before.all))
    }
}

fn share(part: Duration, all: Duration) -> f64 {
    if all.is_zero() { 0.0 } else { part.as_secs_f64() / all.as_secs_f64() }
}

/// Reads a CPU's time, or that of all.
///
/// # Errors
/// The kernel does not say.
pub fn core_time(cpu: Option<usize>) -> Result<CoreTime> {
    let said = std::fs::read_to_string("/proc/stat").asking(|| "reading /proc/stat".to_owned())?;
    let name = cpu.map_or_else(|| "cpu".to_owned(), |number| format!("cpu{number}"));
    read(&said, &name).ok_or_else(|| Failure::Unexpected(format!("no line {name} in /proc/stat")))
}

fn ticks_of(count: u64) -> Duration {
    Duration::from_millis(count * 10)
}

/// user, nice, system, idle, iowait, irq, softirq, steal.
fn read(stat: &str, name: &str) -> Option<CoreTime> {
    let line = stat.lines().find(|line| line.split_whitespace().next() == Some(name))?;
    let ticks: Vec<u64> = line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    let sum = |which: &[usize]| ticks_of(which.iter().filter_map(|at| ticks.get(*at)).sum());
    Some(CoreTime {
        busy: sum(&[0, 1, 2, 5, 6]),
        interrupts: sum(&[5, 6]),
        stolen: sum(&[7]),
        all: sum(&[0, 1, 2, 3, 4, 5, 6, 7]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_not_busy_and_neither_is_what_the_hypervisor_took() {
        let stat = "cpu  9 9 9 9 9 9 9 9\ncpu1 1 2 3 80 4 5 6 10 0 0\n";
        let read = read(stat, "cpu1").unwrap();
        assert_eq!(read.busy, ticks_of(17));
        assert_eq!(read.interrupts, ticks_of(11));
        assert_eq!(read.all, ticks_of(111));
        assert!((read.stolen_since(&CoreTime::default()) - 10.0 / 111.0).abs() < 1e-9);
        assert_eq!(CoreTime::default().busy_since(&CoreTime::default()), 0.0);
    }
}
