//! Several devices that are measured as one: both ends of a tunnel, or the boxes of a site.

use crate::device::{CpuReader, CpuReading, CpuSource, MemoryReading, Running};
use crate::failure::{Failure, Result};
use crate::measure::ClockOffset;
use std::time::Duration;

/// Devices on the same core.
pub struct Several<'a>(pub &'a [Box<dyn Running>]);

impl Several<'_> {
    /// CPU time of all of them. What is read of a core or of the machine is the same for each, and counts once.
    fn sum(readings: &[CpuReading]) -> CpuReading {
        let of_core =
            |it: &&CpuReading| matches!(it.source, CpuSource::Interrupts | CpuSource::ProcessAndInterrupts);
        let sum = |part: fn(&CpuReading) -> Duration| readings.iter().map(part).sum::<Duration>();
        let shared = readings.iter().filter(|it| it.source == CpuSource::Shared).max_by_key(|it| it.spent);
        if let Some(shared) = shared {
            // All processes are in it.
            let process = sum(|it| it.without_received());
            return CpuReading { received: shared.spent.saturating_sub(process), ..*shared };
        }
        let core = readings.iter().filter(of_core).map(|it| it.received).max();
        let own = readings.iter().filter(|it| !of_core(it));
        let threads: Duration = own.clone().map(|it| it.received).sum();
        // Threads are not among the interrupts that a meter reads of the core: with these they count as the process's.
        let (process, received) = match core {
            Some(core) => (sum(CpuReading::without_received) + threads, core),
            None => (sum(CpuReading::without_received), threads),
        };
        let is_kernel = readings.iter().all(|it| it.source == CpuSource::Interrupts);
        let source = match (core, own.map(|it| it.source).next()) {
            (Some(_), _) if is_kernel => CpuSource::Interrupts,
            (Some(_), _) => CpuSource::ProcessAndInterrupts,
            (None, source) => source.unwrap_or(CpuSource::Process),
        };
        let core_busy = readings.iter().map(|it| it.core_busy).max().unwrap_or_default();
        CpuReading { core_busy, ..CpuReading::with_received(process, received, source) }
    }
}

impl Running for Several<'_> {
    fn restart(&mut self) -> Result<()> {
        Err(Failure::Unexpected("devices are not restarted while they are measured".to_owned()))
    }

    fn cpu(&self) -> Result<CpuReading> {
        let readings = self.0.iter().map(|it| it.cpu()).collect::<Result<Vec<_>>>()?;
        Ok(Self::sum(&readings))
    }

    fn cpu_reader(&self) -> Option<CpuReader> {
        let readers = self.0.iter().map(|it| it.cpu_reader()).collect::<Option<Vec<_>>>()?;
        Some(Box::new(move || Ok(Self::sum(&readers.iter().map(|read| read()).collect::<Result<Vec<_>>>()?))))
    }

    fn memory(&self) -> Result<MemoryReading> {
        let readings = self.0.iter().map(|it| it.memory()).collect::<Result<Vec<_>>>()?;
        let sum = readings.into_iter().reduce(MemoryReading::plus);
        Ok(sum.unwrap_or(MemoryReading::NotMeasurable("there is no device")))
    }

    /// That of the one on another machine.
    fn clock(&self) -> Result<Option<ClockOffset>> {
        for device in self.0 {
            if let Some(offset) = device.clock()? {
                return Ok(Some(offset));
            }
        }
        Ok(None)
    }

    /// Experiments note them with those of the devices that are not measured.
    fn commands(&self) -> Vec<String> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_of_a_core_counts_once() {
        let reading = |milliseconds, source| CpuReading::of(Duration::from_millis(milliseconds), source);
        let with = |process, received, source| {
            CpuReading::with_received(Duration::from_millis(process), Duration::from_millis(received), source)
        };
        let sum = Several::sum;
        let (process, core) = (reading(30, CpuSource::Process), reading(100, CpuSource::Interrupts));
        assert_eq!(sum(&[process, process]), reading(60, CpuSource::Process));
        assert_eq!(sum(&[core, core]), core, "two kernels on one core");
        assert_eq!(sum(&[core, process, core]), with(30, 100, CpuSource::ProcessAndInterrupts));
        let at_tc = with(10, 100, CpuSource::ProcessAndInterrupts);
        assert_eq!(sum(&[at_tc, at_tc]), with(20, 100, CpuSource::ProcessAndInterrupts));
        assert_eq!(sum(&[at_tc, core]), at_tc);
        let at_xdp = with(10, 40, CpuSource::Process);
        assert_eq!(sum(&[at_xdp, at_xdp]), with(20, 80, CpuSource::Process), "threads are a device's own");
        assert_eq!(
            sum(&[at_xdp, core]),
            with(50, 100, CpuSource::ProcessAndInterrupts),
            "threads are no interrupts"
        );
        let machine = reading(900, CpuSource::Shared);
        assert_eq!(sum(&[machine, process, machine]), with(30, 870, CpuSource::Shared));
    }

    struct Fake(u64);

    const AHEAD: ClockOffset = ClockOffset { ahead: -5, within: Duration::from_nanos(2), at: 0 };

    impl Running for Fake {
        fn restart(&mut self) -> Result<()> {
            Ok(())
        }

        fn cpu(&self) -> Result<CpuReading> {
            Ok(CpuReading::of(Duration::from_millis(self.0), CpuSource::Process))
        }

        fn cpu_reader(&self) -> Option<CpuReader> {
            let milliseconds = self.0;
            Some(Box::new(move || {
                Ok(CpuReading::of(Duration::from_millis(milliseconds), CpuSource::Process))
            }))
        }

        fn memory(&self) -> Result<MemoryReading> {
            Ok(MemoryReading::Exact(1_024 * self.0))
        }

        fn clock(&self) -> Result<Option<ClockOffset>> {
            Ok((self.0 > 3).then_some(AHEAD))
        }

        fn commands(&self) -> Vec<String> {
            Vec::new()
        }
    }

    #[test]
    fn two_ends_have_memory_and_a_cpu_time_that_is_read_while_they_work() {
        let both: [Box<dyn Running>; 2] = [Box::new(Fake(3)), Box::new(Fake(4))];
        let both = Several(&both);
        assert_eq!(both.memory().unwrap(), MemoryReading::Exact(7 * 1_024));
        assert_eq!(both.cpu_reader().unwrap()().unwrap().spent, Duration::from_millis(7));
        assert_eq!(both.cpu().unwrap().spent, Duration::from_millis(7));
        assert_eq!(both.clock().unwrap(), Some(AHEAD), "that of the second one");
    }
}
