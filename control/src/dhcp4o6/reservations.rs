//! Addresses reserved because a DNS client looked up a host's name, until the host itself requests its lease.
//!
//! Their number is limited, so that other hosts get addresses. Half of them are for clients that have proven their address, since a datagram may have
//! a forged source: queries with a client's forged address take nothing from what the client may have when it proves its address.

use core::net::{IpAddr, Ipv6Addr};
use core::time::Duration;
use sixway_dataplane::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// How long an address is reserved for its host.
pub(super) const RESERVED: Duration = Duration::from_secs(120);
/// At most one of this number of addresses is reserved.
const ONE_OF: u64 = 8;
/// The maximum for a large pool.
const MOST: u64 = 1_024;
/// A client can cause one of this number of reservations.
const ONE_OF_THEM: usize = 4;
/// Clients whose address may be forged can cause one of this number of reservations.
const ONE_OF_THEM_UNPROVEN: usize = 2;

/// The client that looks up a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asker {
    /// Its address.
    pub client: IpAddr,
    /// Whether that is certain, as by a TCP connection.
    pub is_proven: bool,
}

/// Why no address may be reserved for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// The client has to prove its address.
    Unproven,
    /// The client has its share, or the limit of reserved addresses is reached.
    Full,
}

/// Addresses that are reserved for their hosts.
#[derive(Clone, Debug)]
pub(super) struct Reservations {
    /// By host: whose query it was, and until when.
    waiting: BTreeMap<Ipv6Addr, (Asker, Instant)>,
    /// The same by the time of its end.
    due: BTreeSet<(Instant, Ipv6Addr)>,
    /// Their number for each client.
    shares: BTreeMap<Asker, usize>,
    unproven: usize,
    most: usize,
}

impl Reservations {
    /// For a pool with this number of addresses.
    pub(super) fn new(addresses: u64) -> Self {
        Self {
            waiting: BTreeMap::new(),
            due: BTreeSet::new(),
            shares: BTreeMap::new(),
            unproven: 0,
            most: (addresses / ONE_OF).clamp(1, MOST) as usize,
        }
    }

    /// Until when the address of this host is reserved.
    pub(super) fn until(&self, host: Ipv6Addr) -> Option<Instant> {
        self.waiting.get(&host).map(|(_, until)| *until)
    }

    /// The client that caused the reservation for this host.
    pub(super) fn asker(&self, host: Ipv6Addr) -> Option<Asker> {
        self.waiting.get(&host).map(|(asker, _)| *asker)
    }

    /// Forgets those whose time has passed.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((_, host)) = self.due.first().copied().filter(|(until, _)| *until <= now) {
            self.remove(host);
        }
    }

    /// Whether a query of this client may cause another reservation.
    pub(super) fn room_for(&self, asker: Asker) -> Result<(), NoRoom> {
        let asker = one_client(asker);
        if self.waiting.len() >= self.most {
            return Err(NoRoom::Full);
        }
        let share = (self.most / ONE_OF_THEM).max(1);
        let has_share = self.shares.get(&asker).is_none_or(|own| *own < share);
        match asker.is_proven {
            false if !has_share || self.unproven >= self.most / ONE_OF_THEM_UNPROVEN => Err(NoRoom::Unproven),
            true if !has_share => Err(NoRoom::Full),
            true | false => Ok(()),
        }
    }

    /// Reserves an address, or prolongs a reservation, which still counts for the client that looked the name up first.
    pub(super) fn add(&mut self, host: Ipv6Addr, asker: Asker, until: Instant) {
        let asker = self.asker(host).unwrap_or(one_client(asker));
        self.remove(host);
        self.waiting.insert(host, (asker, until));
        self.due.insert((until, host));
        *self.shares.entry(asker).or_default() += 1;
        self.unproven += usize::from(!asker.is_proven);
    }

    /// The host has requested the address, or has none any more.
    pub(super) fn remove(&mut self, host: Ipv6Addr) {
        let Some((asker, until)) = self.waiting.remove(&host) else { return };
        self.due.remove(&(until, host));
        self.unproven -= usize::from(!asker.is_proven);
        if let Some(own) = self.shares.get_mut(&asker) {
            *own -= 1;
            if *own == 0 {
                self.shares.remove(&asker);
            }
        }
    }
}

/// What counts as one client that looks up names: an IPv4 address, or an IPv6 /64.
fn one_client(asker: Asker) -> Asker {
    let client = match asker.client.to_canonical() {
        IpAddr::V6(client) => IpAddr::V6(Ipv6Addr::from_bits(client.to_bits() >> 64 << 64)),
        client @ IpAddr::V4(_) => client,
    };
    Asker { client, ..asker }
}
