//! What the gateway watches, and what it restored.

use std::collections::{BTreeMap, BTreeSet};

/// A part of the host's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Watched {
    /// The device is up and has its MTU.
    Device,
    /// Kernel settings.
    Sysctl,
    /// Routes into the device, and unreachable ones.
    Route,
    /// Addresses on the device.
    Address,
    /// Rules that route by source.
    Rule,
    /// The table in the packet filter.
    PacketFilter,
    /// Steering at tc ingress.
    Steering,
}

impl Watched {
    /// All of them, in order.
    pub const ALL: [Self; 7] = [
        Self::Device,
        Self::Sysctl,
        Self::Route,
        Self::Address,
        Self::Rule,
        Self::PacketFilter,
        Self::Steering,
    ];

    /// Its name in the metrics and the admin API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Sysctl => "sysctl",
            Self::Route => "route",
            Self::Address => "address",
            Self::Rule => "rule",
            Self::PacketFilter => "packet_filter",
            Self::Steering => "steering",
        }
    }
}

/// What was restored since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// How often.
    pub times: BTreeMap<Watched, u64>,
    /// Settings that other programs change repeatedly, and that are no longer restored.
    pub left_alone: BTreeSet<String>,
}

impl Restored {
    /// How often this was restored.
    pub fn of(&self, watched: Watched) -> u64 {
        self.times.get(&watched).copied().unwrap_or(0)
    }
}
