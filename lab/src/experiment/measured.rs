//! One measurement of a device under a load: what every experiment writes about it, whatever the load.

use super::sheet::Sheet;
use crate::device::{CpuReading, CpuSource, Running};
use crate::failure::Result;
use crate::load::Outcome;
use crate::measure::{Cores, Meter, Reading, Timeline};
use crate::results::Unit;
use std::time::{Duration, Instant};

/// A load that has run, and what it cost the device.
pub struct Measured {
    /// What the load has seen.
    pub outcome: Outcome,
    /// CPU time of the device.
    pub spent: Duration,
    /// The part of the load's time in which there was something to do.
    pub active: Duration,
}

impl Measured {
    /// The device's CPU time for each of `count` packets, files or transactions.
    pub fn nanoseconds_each(&self, count: f64) -> f64 {
        self.spent.as_nanos() as f64 / count.max(1.0)
    }

    /// How many of `count` the device does in a second of CPU time; `None` if it spent less than can be read.
    pub fn per_cpu_second(&self, count: f64) -> Option<f64> {
        (!self.spent.is_zero()).then(|| count / self.spent.as_secs_f64())
    }

    /// The same as a value of the sheet, if there is one.
    pub fn note_per_cpu_second(&self, name: &str, count: f64, sheet: &mut Sheet) {
        if let Some(number) = self.per_cpu_second(count) {
            sheet.value(name, number, Unit::PerCpuSecond);
        }
    }
}

/// How long an interval of the CPU time is: ticks of 10 ms are a tenth of it.
const INTERVAL: Duration = Duration::from_millis(100);

/// Octets of a command or configuration that results keep: one of 10,000 rules tells no more than its beginning.
const KEPT: usize = 4_096;

fn shortened(mut line: String) -> String {
    if line.len() > KEPT {
        let end = (0..=KEPT).rev().find(|end| line.is_char_boundary(*end));
        line.truncate(end.unwrap_or(0));
        line.push('…');
    }
    line
}

/// Runs a load, and writes on the sheet what it cost, what the device used and how its counters rose.
pub fn measure(
    running: &dyn Running,
    (cores, reading): (Cores, Reading),
    sheet: &mut Sheet,
    load: impl FnOnce() -> Result<Outcome>,
) -> Result<Measured> {
    let (counters, cpu) = (running.counters()?, running.cpu()?);
    let timeline = running.cpu_reader().map(|read| Timeline::start(INTERVAL, move || Ok(read()?.spent)));
    let (meter, start) = (Meter::begin(cores, reading)?, Instant::now());
    let outcome = load()?;
    let took = start.elapsed();
    let after = running.cpu()?;
    let since = after.since(&cpu);
    let spent = since.spent;
    sheet.tester(meter.end(&outcome, own(&since))?);
    let active = outcome.active(took);
    sheet.cpu_source(after.source, active);
    // A device that is gone has been found to be so already.
    let over = timeline.and_then(|timeline| timeline.end(active).ok()).unwrap_or_default();
    sheet.varying("cpu", spent.as_secs_f64() / active.as_secs_f64().max(1e-9), over);
    for (name, count) in [("duplicated", outcome.duplicated), ("reordered", outcome.reordered)] {
        sheet.value(name, count as f64, Unit::Count);
    }
    sheet.value("duration", active.as_secs_f64() * 1e3, Unit::Milliseconds);
    sheet.memory(running.memory()?);
    note_clock(running, sheet)?;
    for (name, value) in running.counters()? {
        let before = counters.iter().find(|(other, _)| *other == name).map_or(0, |(_, before)| *before);
        // The size of a table is not a sum.
        let rise = if name == "connections" { value } else { value.saturating_sub(before) };
        sheet.value(&name.replace('_', "-"), rise as f64, Unit::Count);
    }
    running.commands().into_iter().for_each(|line| sheet.command(shortened(line)));
    Ok(Measured { outcome, spent, active })
}

/// Notes how far the clock of a device on another machine is ahead, if it tells its time and that was not noted before.
pub fn note_clock(running: &dyn Running, sheet: &mut Sheet) -> Result<()> {
    if let Some(offset) = (!sheet.has_clock()).then(|| running.clock()).transpose()?.flatten() {
        sheet.clock(None, &offset);
    }
    Ok(())
}

/// The part of a device's CPU time by which it may have been busy, beyond its core's interrupts, which the meter reads itself.
pub const fn own(reading: &CpuReading) -> Duration {
    match reading.source {
        CpuSource::Interrupts | CpuSource::ProcessAndInterrupts | CpuSource::Shared => {
            reading.without_received()
        }
        CpuSource::Process | CpuSource::KernelThreads | CpuSource::Machine => reading.spent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_cpu_time_there_is_no_number_for_each_second_of_it() {
        let active = Duration::from_secs(1);
        let measured = |spent| Measured { outcome: Outcome::default(), spent, active };
        assert_eq!(measured(Duration::from_millis(500)).per_cpu_second(1_000.0), Some(2_000.0));
        assert_eq!(measured(Duration::ZERO).per_cpu_second(1_000.0), None);
        let mut sheet = Sheet::new(std::path::PathBuf::new());
        measured(Duration::ZERO).note_per_cpu_second("files-per-cpu-second", 5.0, &mut sheet);
        assert!(!format!("{sheet:?}").contains("per-cpu-second"), "{sheet:?}");
        measured(Duration::from_secs(1)).note_per_cpu_second("files-per-cpu-second", 5.0, &mut sheet);
        assert!(format!("{sheet:?}").contains("files-per-cpu-second"), "{sheet:?}");
    }

    #[test]
    fn interrupts_of_the_core_are_not_a_devices_own_time() {
        let (process, received) = (Duration::from_millis(20), Duration::from_millis(300));
        let of = |source| own(&CpuReading::with_received(process, received, source));
        assert_eq!(of(CpuSource::ProcessAndInterrupts), process);
        assert_eq!(of(CpuSource::Process), process + received, "threads are no interrupts");
        assert_eq!(own(&CpuReading::of(received, CpuSource::Interrupts)), Duration::ZERO);
    }
}
