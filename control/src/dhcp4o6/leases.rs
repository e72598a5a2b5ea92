//! The leases of a server: an address has one host, a host has one address, and a client prefix has a share.
//!
//! ```text
//!            offer            bind                release, time             another host needs it
//!     free ────────▶ Offered ──────▶ Bound ─────────────────▶ Ended ────────────────────────────▶ free
//!                       └─ time: free                           └─ its host comes back: Offered, Bound
//! ```

use super::lease::{Change, Lease, LeaseState};
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_dataplane::Instant;
use sixway_wire::{Prefix4, Prefix6};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Why a host gets no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoAddress {
    /// Its client prefix has its share.
    Share,
    /// All are leased.
    Empty,
}

/// The leases. Bounded by the pool: there is at most one for each address.
#[derive(Clone, Debug)]
pub(super) struct Leases {
    pool: Vec<Prefix4>,
    /// Addresses of the pool that are never leased to others: those of static leases.
    reserved: BTreeSet<u32>,
    /// The prefix in the pool, and the address in it, from which no address has ever been used.
    fresh: (usize, u32),
    by_address: BTreeMap<u32, Lease>,
    by_host: BTreeMap<u128, u32>,
    /// Offered, bound and declined addresses of each client prefix.
    shares: BTreeMap<u128, u32>,
    share: u32,
    share_bits: u8,
    most: usize,
    /// Ended leases, the oldest first; some have been removed already.
    ended: VecDeque<(u32, Instant)>,
    due: BTreeSet<(Instant, u32)>,
    pub(super) changes: VecDeque<Change>,
    bound: u32,
}

impl Leases {
    pub(super) fn new(
        pool: &[Prefix4],
        reserved: impl Iterator<Item = Ipv4Addr>,
        share: (u8, u32),
        most: u32,
    ) -> Self {
        Self {
            pool: pool.to_vec(),
            reserved: reserved.map(Ipv4Addr::to_bits).collect(),
            fresh: (0, 0),
            by_address: BTreeMap::new(),
            by_host: BTreeMap::new(),
            shares: BTreeMap::new(),
            share: share.1,
            share_bits: share.0,
            most: most as usize,
            ended: VecDeque::new(),
            due: BTreeSet::new(),
            changes: VecDeque::new(),
            bound: 0,
        }
    }

    /// The client prefix of a host, as a number.
    pub(super) fn client(&self, host: Ipv6Addr) -> u128 {
        Prefix6::holding(host, self.share_bits).address().to_bits()
    }

    /// The lease of a host.
    pub(super) fn of_host(&self, host: Ipv6Addr) -> Option<&Lease> {
        self.by_address.get(self.by_host.get(&host.to_bits())?)
    }

    /// The lease of an address.
    pub(super) fn of_address(&self, address: Ipv4Addr) -> Option<&Lease> {
        self.by_address.get(&address.to_bits())
    }

    /// Whether this address of the pool may be leased.
    pub(super) fn lends(&self, address: Ipv4Addr) -> bool {
        self.pool.iter().any(|prefix| prefix.contains(address)) && !self.reserved.contains(&address.to_bits())
    }

    /// Number of leases that are bound.
    pub(super) const fn bound(&self) -> u32 {
        self.bound
    }

    /// The leases from an address on.
    pub(super) fn from(&self, address: Ipv4Addr) -> impl Iterator<Item = &Lease> {
        self.by_address.range(address.to_bits()..).map(|(_, lease)| lease)
    }

    /// Offers a host an address: the one it has or had, the one it asks for, or another.
    pub(super) fn offer(
        &mut self,
        host: Ipv6Addr,
        requested: Option<Ipv4Addr>,
        until: Instant,
    ) -> Result<Ipv4Addr, NoAddress> {
        if let Some(lease) = self.of_host(host).copied() {
            match lease.state {
                LeaseState::Bound => return Ok(lease.ipv4),
                LeaseState::Offered | LeaseState::Ended => {
                    if lease.state == LeaseState::Ended && !self.may_have_more(host) {
                        return Err(NoAddress::Share);
                    }
                    self.set(Lease { state: LeaseState::Offered, until, ..lease });
                    return Ok(lease.ipv4);
                }
                LeaseState::Declined => {}
            }
        }
        if !self.may_have_more(host) {
            return Err(NoAddress::Share);
        }
        let wanted = requested
            .filter(|address| self.lends(*address) && !self.by_address.contains_key(&address.to_bits()));
        let has_room = self.by_address.len() < self.most;
        let fresh = if has_room { wanted.or_else(|| self.next_fresh()) } else { None };
        let ipv4 = fresh.or_else(|| self.oldest_ended()).ok_or(NoAddress::Empty)?;
        self.set(Lease { ipv4, host, state: LeaseState::Offered, until });
        Ok(ipv4)
    }

    /// Leases a host the address that it has, had, or was offered.
    pub(super) fn bind(&mut self, host: Ipv6Addr, until: Instant) -> Result<Lease, NoAddress> {
        let lease = *self.of_host(host).ok_or(NoAddress::Empty)?;
        match lease.state {
            LeaseState::Declined => return Err(NoAddress::Empty),
            LeaseState::Ended if !self.may_have_more(host) => return Err(NoAddress::Share),
            LeaseState::Offered | LeaseState::Bound | LeaseState::Ended => {}
        }
        let lease = Lease { state: LeaseState::Bound, until, ..lease };
        self.set(lease);
        self.changes.push_back(Change::Bound(lease));
        Ok(lease)
    }

    /// Takes up a lease of the time before a restart. Whether it could be: the pool has its address, and neither that nor the host has another.
    pub(super) fn restore(&mut self, lease: Lease) -> bool {
        let is_free = !self.by_address.contains_key(&lease.ipv4.to_bits())
            && !self.by_host.contains_key(&lease.host.to_bits());
        let fits = is_free && self.lends(lease.ipv4) && self.by_address.len() < self.most;
        if fits {
            self.set(lease);
            if lease.state == LeaseState::Bound {
                self.changes.push_back(Change::Bound(lease));
            }
        }
        fits
    }

    /// Ends the lease of an address. Whether it was bound.
    pub(super) fn end(&mut self, address: Ipv4Addr, now: Instant) -> bool {
        let Some(lease) = self.of_address(address).copied() else { return false };
        match lease.state {
            LeaseState::Bound => {
                let ended = Lease { state: LeaseState::Ended, until: now, ..lease };
                self.set(ended);
                self.changes.push_back(Change::Ended(ended));
                true
            }
            LeaseState::Offered => {
                self.forget(lease);
                false
            }
            LeaseState::Ended | LeaseState::Declined => false,
        }
    }

    /// A host says that another one uses its address. It counts for its client's share until then.
    pub(super) fn decline(&mut self, lease: Lease, until: Instant) {
        if lease.state == LeaseState::Bound {
            self.changes.push_back(Change::Ended(lease));
        }
        self.set(Lease { state: LeaseState::Declined, until, ..lease });
        // The host may have another address meanwhile.
        self.by_host.remove(&lease.host.to_bits());
    }

    /// Ends what is due, at most `budget` leases.
    pub(super) fn expire(&mut self, now: Instant, budget: usize) {
        for _ in 0..budget {
            let Some((until, address)) = self.due.first().copied().filter(|(until, _)| *until <= now) else {
                return;
            };
            let Some(lease) = self.by_address.get(&address).copied() else {
                self.due.remove(&(until, address));
                continue;
            };
            match lease.state {
                LeaseState::Bound => {
                    self.end(lease.ipv4, now);
                }
                LeaseState::Offered | LeaseState::Declined | LeaseState::Ended => self.forget(lease),
            }
        }
    }

    /// When the next one is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(until, _)| *until)
    }

    fn may_have_more(&self, host: Ipv6Addr) -> bool {
        self.shares.get(&self.client(host)).is_none_or(|count| *count < self.share)
    }

    /// Stores a lease in place of the address's former one.
    fn set(&mut self, lease: Lease) {
        if let Some(former) = self.of_address(lease.ipv4).copied() {
            self.forget(former);
        }
        let (address, host) = (lease.ipv4.to_bits(), lease.host.to_bits());
        match lease.state {
            LeaseState::Ended => self.ended.push_back((address, lease.until)),
            LeaseState::Offered | LeaseState::Bound | LeaseState::Declined => {
                *self.shares.entry(self.client(lease.host)).or_default() += 1;
                self.due.insert((lease.until, address));
            }
        }
        self.bound += u32::from(lease.state == LeaseState::Bound);
        self.by_address.insert(address, lease);
        self.by_host.insert(host, address);
        // The queue of ended leases holds at most one entry more for each lease.
        if self.ended.len() > 2 * self.by_address.len() + 16 {
            let by_address = &self.by_address;
            self.ended.retain(|(address, until)| is_ended(by_address, *address, *until));
        }
    }

    fn forget(&mut self, lease: Lease) {
        let (address, host) = (lease.ipv4.to_bits(), lease.host.to_bits());
        self.by_address.remove(&address);
        self.due.remove(&(lease.until, address));
        if self.by_host.get(&host) == Some(&address) {
            self.by_host.remove(&host);
        }
        self.bound -= u32::from(lease.state == LeaseState::Bound);
        if lease.state != LeaseState::Ended {
            let client = self.client(lease.host);
            if let Some(count) = self.shares.get_mut(&client) {
                *count -= 1;
                if *count == 0 {
                    self.shares.remove(&client);
                }
            }
        }
    }

    /// The next address that was never used.
    fn next_fresh(&mut self) -> Option<Ipv4Addr> {
        // Addresses that were skipped may be free later: the search begins again when it has reached the end.
        for _round in 0..2 {
            while let Some(prefix) = self.pool.get(self.fresh.0) {
                let (first, last) = (prefix.address().to_bits(), prefix.last().to_bits());
                while self.fresh.1 <= last - first {
                    let address = first + self.fresh.1;
                    self.fresh.1 += 1;
                    if !self.reserved.contains(&address) && !self.by_address.contains_key(&address) {
                        return Some(address.into());
                    }
                }
                self.fresh = (self.fresh.0 + 1, 0);
            }
            let addresses: u64 = self.pool.iter().map(|prefix| 1_u64 << (32 - prefix.length())).sum();
            if self.by_address.len() as u64 + self.reserved.len() as u64 >= addresses {
                return None;
            }
            self.fresh = (0, 0);
        }
        None
    }

    /// The address whose lease ended first, which becomes free.
    fn oldest_ended(&mut self) -> Option<Ipv4Addr> {
        while let Some((address, until)) = self.ended.pop_front() {
            if is_ended(&self.by_address, address, until)
                && let Some(lease) = self.by_address.get(&address).copied()
            {
                self.forget(lease);
                return Some(lease.ipv4);
            }
        }
        None
    }
}

fn is_ended(by_address: &BTreeMap<u32, Lease>, address: u32, until: Instant) -> bool {
    by_address.get(&address).is_some_and(|lease| lease.state == LeaseState::Ended && lease.until == until)
}
