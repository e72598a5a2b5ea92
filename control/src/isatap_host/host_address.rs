//! An address of the host, and how long it lives.

use crate::neighbour_discovery::INFINITY;
use core::net::Ipv6Addr;
use core::time::Duration;
use sixway_dataplane::Instant;
use sixway_wire::Prefix6;

/// The end of what has none.
pub(super) const NEVER: Instant = Instant(u64::MAX);

/// An address of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAddress {
    /// The address.
    pub address: Ipv6Addr,
    /// The prefix that it is formed from, a /64.
    pub prefix: Prefix6,
    /// L: neighbours under this prefix are reached directly.
    pub on_link: bool,
    pub(super) preferred: Instant,
    pub(super) valid: Instant,
}

impl HostAddress {
    /// Remaining preferred lifetime in seconds; [`INFINITY`] has no end.
    pub fn preferred(&self, now: Instant) -> u32 {
        left(self.preferred, now)
    }

    /// Remaining valid lifetime in seconds; [`INFINITY`] has no end.
    pub fn valid(&self, now: Instant) -> u32 {
        left(self.valid, now)
    }
}

fn left(end: Instant, now: Instant) -> u32 {
    if end == NEVER { INFINITY } else { u32::try_from(end.since(now).as_secs()).unwrap_or(INFINITY - 1) }
}

pub(super) fn end(now: Instant, lifetime: u32) -> Instant {
    if lifetime == INFINITY { NEVER } else { now + Duration::from_secs(u64::from(lifetime)) }
}
