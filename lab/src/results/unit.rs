//! Units of measured values. Nothing is measured without one.

use serde::{Deserialize, Serialize};

/// Which direction is an improvement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// It describes, and is not judged.
    Neither,
}

/// The unit of a value, which also says how to judge it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Milliseconds of time spent waiting.
    Milliseconds,
    /// Nanoseconds of CPU time for each packet.
    NanosecondsPerPacket,
    /// Events in a second: packets, requests, transactions.
    PerSecond,
    /// Bits in a second.
    BitsPerSecond,
    /// Lost, as a share from 0 to 1 of what was sent.
    Lost,
    /// CPU time spent in a second of time: 1 is one core.
    Cores,
    /// Milliseconds of CPU time for each file, call or transaction.
    CpuMilliseconds,
    /// Events for each second of CPU time.
    PerCpuSecond,
    /// Memory in units of 1,024 octets.
    Kibibytes,
    /// Octets of a header, packet or file.
    Octets,
    /// A share from 0 to 1 of something else than packets that were sent.
    Share,
    /// A number of things.
    Count,
}

impl Unit {
    /// As it is written in the head of a table.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::NanosecondsPerPacket => "ns",
            Self::PerSecond => "1/s",
            Self::BitsPerSecond => "bit/s",
            Self::Lost | Self::Cores | Self::Share => "%",
            Self::CpuMilliseconds => "ms CPU",
            Self::PerCpuSecond => "1/CPU s",
            Self::Kibibytes => "KiB",
            Self::Octets => "octets",
            Self::Count => "",
        }
    }

    /// What a value is multiplied by to be written with [`Unit::text`].
    pub const fn factor(self) -> f64 {
        match self {
            Self::Lost | Self::Cores | Self::Share => 100.0,
            Self::Milliseconds
            | Self::NanosecondsPerPacket
            | Self::PerSecond
            | Self::BitsPerSecond
            | Self::CpuMilliseconds
            | Self::PerCpuSecond
            | Self::Kibibytes
            | Self::Octets
            | Self::Count => 1.0,
        }
    }

    /// Which direction is an improvement.
    pub const fn better(self) -> Better {
        match self {
            Self::PerSecond | Self::BitsPerSecond | Self::PerCpuSecond => Better::Higher,
            Self::Milliseconds
            | Self::NanosecondsPerPacket
            | Self::Lost
            | Self::Cores
            | Self::CpuMilliseconds
            | Self::Kibibytes => Better::Lower,
            Self::Octets | Self::Share | Self::Count => Better::Neither,
        }
    }

    /// Whether it is what a packet or a file costs: that may be compared whichever part was at the limit.
    pub const fn is_cost(self) -> bool {
        matches!(self, Self::NanosecondsPerPacket | Self::CpuMilliseconds | Self::PerCpuSecond)
    }

    /// Whether it is a rate: that may be compared only if the device, or the link, was at its limit.
    pub const fn is_rate(self) -> bool {
        matches!(self, Self::PerSecond | Self::BitsPerSecond)
    }
}
