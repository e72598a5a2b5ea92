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
    /// Of all CPUs of the device's machine, whatever they did.
    Machine,
}

/// Memory that a device uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryReading {
    /// Octets.
    pub octets: u64,
    /// Whether it is the resident memory of processes; else it is a change of the whole machine's, in which others take part.
    pub exact: bool,
}

/// A change of a running device's settings, such as the number of its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The setting.
    pub key: String,
    /// Its new value.
    pub value: String,
}
