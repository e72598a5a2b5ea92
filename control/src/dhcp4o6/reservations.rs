//! Addresses that were leased because somebody looked up a host's name, until the host itself asks for its lease.
//!
//! They are few, whoever looks up names: others need addresses, too.

use super::leases::Leases;
use core::net::{IpAddr, Ipv6Addr};
use core::time::Duration;
use sixway_dataplane::Instant;
use std::collections::BTreeMap;

/// How long an address waits for its host.
pub(super) const RESERVED: Duration = Duration::from_secs(120);
/// Of this number of addresses, at most one waits.
const ONE_OF: u64 = 8;
/// The maximum for a large pool.
const MOST: u64 = 1_024;
/// Of this number of addresses that may wait, one is for each client.
const ONE_OF_THEM: usize = 4;

/// Addresses that wait for their hosts.
#[derive(Clone, Debug)]
pub(super) struct Reservations {
    /// By host: whose query it was, and until when.
    waiting: BTreeMap<Ipv6Addr, (IpAddr, Instant)>,
    most: usize,
}

impl Reservations {
    /// For a pool with this number of addresses.
    pub(super) fn new(addresses: u64) -> Self {
        Self { waiting: BTreeMap::new(), most: (addresses / ONE_OF).clamp(1, MOST) as usize }
    }

    /// Until when the address of this host waits for it.
    pub(super) fn until(&self, host: Ipv6Addr) -> Option<Instant> {
        self.waiting.get(&host).map(|(_, until)| *until)
    }

    /// Whether one more may wait for a query of this client.
    pub(super) fn has_room(&mut self, client: IpAddr, leases: &Leases) -> bool {
        self.waiting.retain(|host, (_, until)| leases.of_host(*host).is_some_and(|it| it.until == *until));
        let share = (self.most / ONE_OF_THEM).max(1);
        let own = self.waiting.values().filter(|(other, _)| *other == client).count();
        self.waiting.len() < self.most && own < share
    }

    /// One waits.
    pub(super) fn add(&mut self, host: Ipv6Addr, client: IpAddr, until: Instant) {
        self.waiting.insert(host, (client, until));
    }

    /// The host has asked for it, or has none.
    pub(super) fn remove(&mut self, host: Ipv6Addr) {
        self.waiting.remove(&host);
    }
}

/// Who counts as one that looks up names: an IPv4 address, or an IPv6 network of 64 bits.
pub(super) fn one_client(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(client) => IpAddr::V6(Ipv6Addr::from_bits(client.to_bits() >> 64 << 64)),
        client @ IpAddr::V4(_) => client,
    }
}
