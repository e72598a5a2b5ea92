//! The lookup key of a session of a protocol without ports.

use super::protocol::{Id, PortlessProtocol};
use core::net::Ipv4Addr;

/// What a packet shows outside: sessions that have these alike differ by ids alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seen {
    pub(super) outside: Ipv4Addr,
    pub(super) remote: Ipv4Addr,
    pub(super) protocol: PortlessProtocol,
}

/// Where a session is found from inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sent {
    pub(super) inside: Ipv4Addr,
    pub(super) remote: Ipv4Addr,
    pub(super) protocol: PortlessProtocol,
    pub(super) id: Id,
}
