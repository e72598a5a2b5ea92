//! A lease, and its states.

use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_dataplane::Instant;

/// What an address is to its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Offered, and not requested yet.
    Offered,
    /// Leased.
    Bound,
    /// The lease has ended. The host gets the address again unless another one needs it.
    Ended,
    /// The host reported that another one uses the address: it is not leased for a time.
    Declined,
}

/// A lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The address.
    pub ipv4: Ipv4Addr,
    /// The host's end of its tunnel.
    pub host: Ipv6Addr,
    /// What it is to the host.
    pub state: LeaseState,
    /// When that ends.
    pub until: Instant,
}

/// A change of bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A host has an address, or has it for longer.
    Bound(Lease),
    /// The lease has ended.
    Ended(Lease),
}
