//! Sessions of protocols without ports, as operators see them. Only a translator from IPv4 to IPv4 has them.

use crate::counters::Counters;
use crate::instant::Instant;
use crate::nat::Draining;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

/// A session of a protocol without ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortlessRow {
    /// Protocol number.
    pub protocol: u8,
    /// Inside host.
    pub inside: Ipv4Addr,
    /// Outside address.
    pub outside: Ipv4Addr,
    /// Remote host.
    pub remote: Ipv4Addr,
    /// Time since the last packet.
    pub idle: Duration,
    /// Time until the session ends if no packet comes.
    pub ends_in: Duration,
    /// Packets by [`crate::direction::Direction`], a GSO packet's segments each.
    pub packets: [u64; 2],
    /// Octets by direction, IP headers included.
    pub octets: [u64; 2],
}

/// A static binding of a protocol without ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortlessBindingRow {
    /// Protocol number.
    pub protocol: u8,
    /// Inside host.
    pub inside: Ipv4Addr,
    /// Outside address.
    pub outside: Ipv4Addr,
}

/// A translator's share of these protocols; `()`: it has none.
pub trait WithoutPorts {
    /// Live sessions, and how many there may be.
    fn occupancy(&self) -> (u32, u32);

    /// Whether there may be any sessions or bindings.
    fn has_any(&self) -> bool;

    /// Adds sessions to `rows`, looking at `slots` slots from the cursor on. Returns the cursor to continue from; `None`: the end.
    fn sessions(&self, cursor: u32, slots: u32, now: Instant, rows: &mut Vec<PortlessRow>) -> Option<u32>;

    /// The same for static bindings. All workers have all of them; the first one shows them.
    fn bindings(&self, cursor: u32, slots: u32, rows: &mut Vec<PortlessBindingRow>) -> Option<u32>;

    /// Hosts get other addresses of the pool than these for new sessions.
    fn drain(&mut self, draining: &Draining);

    /// Live sessions and static bindings at the addresses that are being drained, by their prefixes: of a bounded number of slots from one on.
    /// Where to continue; `None`: the end.
    fn sessions_at(&self, draining: &Draining, from: u32, now: Instant) -> (Vec<u64>, Option<u32>);

    /// Ends the sessions of an inside host with a remote host; whether there were any.
    fn end(&mut self, protocol: u8, inside: Ipv4Addr, remote: Ipv4Addr, counters: &mut Counters) -> bool;

    /// Keeps events of its sessions for the translator's sink from now on.
    fn keep_events(&mut self);
}

impl WithoutPorts for () {
    fn occupancy(&self) -> (u32, u32) {
        (0, 0)
    }

    fn has_any(&self) -> bool {
        false
    }

    fn sessions(&self, _: u32, _: u32, _: Instant, _: &mut Vec<PortlessRow>) -> Option<u32> {
        None
    }

    fn bindings(&self, _: u32, _: u32, _: &mut Vec<PortlessBindingRow>) -> Option<u32> {
        None
    }

    fn drain(&mut self, _: &Draining) {}

    fn sessions_at(&self, _: &Draining, _: u32, _: Instant) -> (Vec<u64>, Option<u32>) {
        (Vec::new(), None)
    }

    fn end(&mut self, _: u8, _: Ipv4Addr, _: Ipv4Addr, _: &mut Counters) -> bool {
        false
    }

    fn keep_events(&mut self) {}
}
