//! What a DNS thread says of itself.

use sixway_control::dns64::Counters;

/// A thread's counters and what is shown of it; several threads' are added up.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The resolver's.
    pub counters: Counters,
    /// The sockets'.
    pub sockets: SocketCounters,
}

/// What is counted of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketCounters {
    /// Queries that there was no room for when they came.
    pub overflowed: u64,
    /// Answers that the kernel would not send.
    pub unsent: u64,
    /// Questions to upstreams that could not be put for want of a descriptor or of room.
    pub lost: u64,
}
