//! The resources of a running device, and its changes at run time.

use crate::failure::Result;
use std::time::Duration;

/// What reads a CPU time from another thread.
pub type CpuReader = Box<dyn Fn() -> Result<CpuReading> + Send>;

/// CPU time that a device has spent since it was started; differences count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuReading {
    /// CPU time.
    pub spent: Duration,
    /// The part of it that is the kernel's work on received packets.
    pub received: Duration,
    /// How long the device's core was busy, if its interrupts are in the time: part of them is in that of the process, too.
    pub core_busy: Duration,
    /// How it was found.
    pub source: CpuSource,
}

impl CpuReading {
    /// One that is a program's own, or the kernel's work on received packets, as its source says.
    #[must_use]
    pub const fn of(spent: Duration, source: CpuSource) -> Self {
        let received = match source {
            CpuSource::Process | CpuSource::Machine => Duration::ZERO,
            CpuSource::ProcessAndInterrupts
            | CpuSource::KernelThreads
            | CpuSource::Interrupts
            | CpuSource::Shared => spent,
        };
        Self { spent, received, core_busy: Duration::ZERO, source }
    }

    /// A process's time, and that of the kernel's work on packets that it receives for it.
    #[must_use]
    pub const fn with_received(process: Duration, received: Duration, source: CpuSource) -> Self {
        Self { spent: process.saturating_add(received), received, core_busy: Duration::ZERO, source }
    }

    /// What was spent since an earlier reading: with interrupts of a core, not more than the core was busy, and not less than the process.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let spent = self.spent.saturating_sub(before.spent);
        let received = self.received.saturating_sub(before.received);
        let core_busy = self.core_busy.saturating_sub(before.core_busy);
        let process = spent.saturating_sub(received);
        let spent = match self.source {
            CpuSource::ProcessAndInterrupts => spent.min(core_busy.max(process)),
            _ => spent,
        };
        Self { spent, received: spent.saturating_sub(process), core_busy, source: self.source }
    }

    /// Whether the device is a process, with which threads that receive for it share a core.
    #[must_use]
    pub const fn is_process(&self) -> bool {
        match self.source {
            CpuSource::Process | CpuSource::ProcessAndInterrupts => true,
            CpuSource::Shared => !self.without_received().is_zero(),
            CpuSource::KernelThreads | CpuSource::Interrupts | CpuSource::Machine => false,
        }
    }

    /// Without the kernel's work on received packets.
    #[must_use]
    pub const fn without_received(&self) -> Duration {
        self.spent.saturating_sub(self.received)
    }
}

/// How a device's CPU time is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuSource {
    /// Of its process and what that started, and of threads that receive for it alone, to the nanosecond; work that the kernel does on its behalf in
    /// interrupts of others is not in it.
    Process,
    /// The same, and of its core on interrupts and received packets: programs at a hook of the kernel run there. In ticks of 10 ms.
    ProcessAndInterrupts,
    /// Of kernel threads that do nothing else, to the nanosecond.
    KernelThreads,
    /// Of its core on interrupts and received packets: those of other programs' packets are in it. In ticks of 10 ms.
    Interrupts,
    /// Of all CPUs of the device's own machine, whatever they did.
    Machine,
    /// Of all CPUs of this machine, on the load and on what answers it, too: where received packets cannot be put on the device's core.
    Shared,
}

/// Memory that a device uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryReading {
    /// Octets of the resident memory of processes.
    Exact(u64),
    /// Octets that are uncertain, and what they are.
    Uncertain(u64, &'static str),
    /// No reading would say anything about the device: why.
    NotMeasurable(&'static str),
}

impl MemoryReading {
    /// The memory of two parts of a device.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::NotMeasurable(why), _) | (_, Self::NotMeasurable(why)) => Self::NotMeasurable(why),
            (Self::Uncertain(one, what), Self::Exact(two) | Self::Uncertain(two, _))
            | (Self::Exact(one), Self::Uncertain(two, what)) => Self::Uncertain(one + two, what),
            (Self::Exact(one), Self::Exact(two)) => Self::Exact(one + two),
        }
    }
}

/// A change of a running device's settings, such as the number of its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The setting.
    pub key: String,
    /// Its new value.
    pub value: String,
}

#[cfg(test)]
mod tests {
    use super::MemoryReading::{Exact, NotMeasurable, Uncertain};
    use super::{CpuReading, CpuSource};
    use std::time::Duration;

    #[test]
    fn a_sum_is_as_uncertain_as_its_parts() {
        assert_eq!(Exact(2).plus(Exact(3)), Exact(5));
        assert_eq!(Exact(2).plus(Uncertain(3, "a table")), Uncertain(5, "a table"));
        assert_eq!(Uncertain(3, "a table").plus(Exact(2)), Uncertain(5, "a table"));
        assert_eq!(Uncertain(3, "a table").plus(Uncertain(3, "another")), Uncertain(6, "a table"));
        assert_eq!(Exact(2).plus(NotMeasurable("why")), NotMeasurable("why"));
        assert_eq!(NotMeasurable("why").plus(Uncertain(3, "a table")), NotMeasurable("why"));
    }

    #[test]
    fn interrupts_that_are_in_a_process_count_once() {
        let milliseconds = Duration::from_millis;
        let at = |process, received, core_busy| CpuReading {
            core_busy: milliseconds(core_busy),
            ..CpuReading::with_received(
                milliseconds(process),
                milliseconds(received),
                CpuSource::ProcessAndInterrupts,
            )
        };
        let since = |later: CpuReading| {
            let since = later.since(&at(100, 50, 1_000));
            (since.spent.as_millis(), since.received.as_millis())
        };
        assert_eq!(since(at(130, 70, 1_200)), (50, 20), "the core did more");
        assert_eq!(since(at(130, 70, 1_040)), (40, 10), "half of the interrupts were in the process");
        assert_eq!(since(at(130, 70, 1_000)), (30, 0), "ticks have seen nothing yet");
    }
}
