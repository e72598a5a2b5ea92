//! Several devices that are measured as one: both ends of a tunnel, or the boxes of a site.

use crate::device::{CpuReader, CpuReading, CpuSource, MemoryReading, Running};
use crate::failure::{Failure, Result};
use std::time::Duration;

/// Devices on the same core.
pub struct Several<'a>(pub &'a [Box<dyn Running>]);

impl Several<'_> {
    /// CPU time of all of them. What is read of a core or of the machine is the same for each, and counts once.
    fn sum(readings: &[CpuReading]) -> CpuReading {
        let is_common = |it: &&CpuReading| matches!(it.source, CpuSource::Interrupts | CpuSource::Shared);
        let common = readings.iter().filter(is_common).max_by_key(|it| it.spent);
        let own = readings.iter().filter(|it| !is_common(it));
        let spent: Duration = own.clone().map(|it| it.spent).sum();
        match (own.map(|it| it.source).next(), common) {
            // All processes are in it.
            (_, Some(machine)) if machine.source == CpuSource::Shared => *machine,
            (None, Some(core)) => *core,
            (Some(source), common) => {
                CpuReading { spent: spent + common.map_or(Duration::ZERO, |it| it.spent), source }
            }
            (None, None) => CpuReading { spent, source: CpuSource::Process },
        }
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
        let readers = self.0.iter().map(|it| Some((it.cpu().ok()?.source, it.cpu_reader()?)));
        let readers = readers.collect::<Option<Vec<_>>>()?;
        Some(Box::new(move || {
            let read = |(source, reader): &(CpuSource, CpuReader)| {
                Ok(CpuReading { spent: reader()?, source: *source })
            };
            Ok(Self::sum(&readers.iter().map(read).collect::<Result<Vec<_>>>()?).spent)
        }))
    }

    fn memory(&self) -> Result<MemoryReading> {
        let readings = self.0.iter().map(|it| it.memory()).collect::<Result<Vec<_>>>()?;
        let sum = readings.into_iter().reduce(MemoryReading::plus);
        Ok(sum.unwrap_or(MemoryReading::NotMeasurable("there is no device")))
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
        let reading =
            |milliseconds, source| CpuReading { spent: Duration::from_millis(milliseconds), source };
        let sum = Several::sum;
        let (process, core) = (reading(30, CpuSource::Process), reading(100, CpuSource::Interrupts));
        assert_eq!(sum(&[process, process]), reading(60, CpuSource::Process));
        assert_eq!(sum(&[core, core]), core, "two kernels on one core");
        assert_eq!(sum(&[core, process, core]), reading(130, CpuSource::Process));
        let machine = reading(900, CpuSource::Shared);
        assert_eq!(sum(&[machine, process, machine]), machine);
    }

    struct Fake(u64);

    impl Running for Fake {
        fn restart(&mut self) -> Result<()> {
            Ok(())
        }

        fn cpu(&self) -> Result<CpuReading> {
            Ok(CpuReading { spent: Duration::from_millis(self.0), source: CpuSource::Process })
        }

        fn cpu_reader(&self) -> Option<CpuReader> {
            let milliseconds = self.0;
            Some(Box::new(move || Ok(Duration::from_millis(milliseconds))))
        }

        fn memory(&self) -> Result<MemoryReading> {
            Ok(MemoryReading::Exact(1_024 * self.0))
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
        assert_eq!(both.cpu_reader().unwrap()().unwrap(), Duration::from_millis(7));
        assert_eq!(both.cpu().unwrap().spent, Duration::from_millis(7));
    }
}
