//! The resources of a running device, and its changes at run time.

use crate::failure::Result;
use std::time::Duration;

/// What reads a CPU time from another thread.
pub type CpuReader = Box<dyn Fn() -> Result<Duration> + Send>;

/// CPU time that a device has spent since it was started; differences count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuReading {
    /// CPU time.
    pub spent: Duration,
    /// How it was found.
    pub source: CpuSource,
}

/// How a device's CPU time is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuSource {
    /// Of its process and what that started, to the nanosecond; work that the kernel does on its behalf in interrupts of others is not in it.
    Process,
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

    #[test]
    fn a_sum_is_as_uncertain_as_its_parts() {
        assert_eq!(Exact(2).plus(Exact(3)), Exact(5));
        assert_eq!(Exact(2).plus(Uncertain(3, "a table")), Uncertain(5, "a table"));
        assert_eq!(Uncertain(3, "a table").plus(Exact(2)), Uncertain(5, "a table"));
        assert_eq!(Uncertain(3, "a table").plus(Uncertain(3, "another")), Uncertain(6, "a table"));
        assert_eq!(Exact(2).plus(NotMeasurable("why")), NotMeasurable("why"));
        assert_eq!(NotMeasurable("why").plus(Uncertain(3, "a table")), NotMeasurable("why"));
    }
}
