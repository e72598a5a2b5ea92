//! An IPv4 address for each IPv6 host that sends and has none, one to one, so that any IPv4-only NAT or firewall can stand
//! behind a stateless translator.
//!
//! ```text
//!                assign                silence of `lifetime`               silence of `remembered`, or
//!     (unknown) ────────▶  live  ─────────────────────────▶  remembered  ─────────────────────────▶ (unknown)
//!                           ▲                                    │          its address is wanted
//!                           └────────────────────────────────────┘
//!                                 the host sends: same address
//! ```
//!
//! When free addresses run out, the host that has been silent longest loses its own, if it is not live; when all are live,
//! a new host is refused. Only the host's own packets count: what is sent to it from outside does not keep it alive.
//!
//! Workers share nothing: an address belongs to the worker (its number in the prefix modulo their count), a host to the
//! worker of its hash, and each worker gives its own addresses to its own hosts.

mod host_index;
mod hosts;
mod record;
mod release_wheel;

pub use record::{Record, RecordError, WallClock, parse_records, write_records};

use crate::drop_reason::DropReason;
use crate::instant::Instant;
use crate::mechanism::contract::BuildFault;
use crate::nat::SubscriberCounts;
use crate::translate::address::free_addresses::FreeAddresses;
use crate::verdict::WorkerId;
use core::fmt;
use core::hash::BuildHasher as _;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use foldhash::quality::FixedState;
use host_index::HostIndex;
use hosts::{HostId, Hosts};
use release_wheel::ReleaseWheel;
use sixway_wire::Prefix4;

/// Where a host's first address is looked for, and which worker it belongs to: the same in every run, so no secret.
const PLACE: FixedState = FixedState::with_seed(0x6877_7915);

/// Maximum number of changes kept for the writer; beyond that it has to write everything.
const MAX_CHANGES: usize = 1 << 16;

/// Bits of a subscriber's prefix: a host may have as many addresses in its /64 as it likes.
const SUBSCRIBER_BITS: u8 = 64;

/// How many hosts an assignment looks at when the pool is exhausted, for one that could have been released.
const RELEASES_FOR_ASSIGNMENT: usize = 256;

/// What a dynamic pool gives, to how many, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicPoolConfig {
    /// The addresses; at least 8 bits long. The first and the last are never given, if there are more than two.
    pub prefix: Prefix4,
    /// Addresses in it that are never given: the gateway's own, and those of explicit mappings.
    pub excluded: Vec<Prefix4>,
    /// A host is released after this time without packets; whole seconds.
    pub lifetime: Duration,
    /// Its address is remembered for this time without packets; whole seconds, at least `lifetime`.
    pub remembered: Duration,
    /// Maximum number of hosts, remembered ones included, all workers together.
    pub max_hosts: u32,
    /// Maximum number of live hosts of a subscriber, an IPv6 /64, at a worker; 0: unlimited.
    pub hosts_per_subscriber: u32,
}

impl DynamicPoolConfig {
    /// 2 h 4 min, the least idle time that RFC 5382 §5 (REQ-5) allows for established TCP connections.
    pub const LIFETIME: Duration = Duration::from_secs(7_440);
    /// Two weeks.
    pub const REMEMBERED: Duration = Duration::from_secs(14 * 86_400);
    /// The shortest prefix, in bits.
    pub const SHORTEST: u8 = 8;

    /// A pool of this prefix with all else as usual.
    pub const fn new(prefix: Prefix4) -> Self {
        Self {
            prefix,
            excluded: Vec::new(),
            lifetime: Self::LIFETIME,
            remembered: Self::REMEMBERED,
            max_hosts: u32::MAX,
            hosts_per_subscriber: 0,
        }
    }

    /// Every fault of the configuration.
    pub fn faults(&self) -> Vec<DynamicPoolFault> {
        let mut faults = Vec::new();
        if self.prefix.length() < Self::SHORTEST {
            faults.push(DynamicPoolFault::PrefixTooShort);
        } else if self.free_for(0, 1).free() == 0 {
            faults.push(DynamicPoolFault::NoAddress);
        }
        if self.lifetime.as_secs() == 0 {
            faults.push(DynamicPoolFault::NoLifetime);
        }
        if self.remembered < self.lifetime {
            faults.push(DynamicPoolFault::RememberedShorterThanLifetime);
        }
        faults
    }

    /// The worker's part of the prefix, without what is reserved or excluded.
    fn free_for(&self, worker: u32, workers: u32) -> FreeAddresses {
        let length = self.prefix.length().max(Self::SHORTEST);
        let (first, last) = (self.prefix.address().to_bits(), self.prefix.last().to_bits());
        let size = 1u32 << (32 - length);
        let mut free = FreeAddresses::all(size.saturating_sub(worker).div_ceil(workers));
        let mut exclude = |from: u32, to: u32| {
            let below = (workers + worker - from % workers) % workers;
            for number in (u64::from(from + below)..=u64::from(to)).step_by(workers as usize) {
                free.take((number / u64::from(workers)) as u32);
            }
        };
        if length <= 30 {
            exclude(0, 0);
            exclude(size - 1, size - 1);
        }
        for excluded in self.excluded.iter().filter(|excluded| excluded.overlaps(self.prefix)) {
            let from = excluded.address().to_bits().max(first);
            let to = excluded.last().to_bits().min(last);
            exclude(from - first, (to - first).min(size - 1));
        }
        free
    }
}

/// Why there can be no such pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DynamicPoolFault {
    /// The prefix is shorter than [`DynamicPoolConfig::SHORTEST`].
    PrefixTooShort,
    /// Nothing of the prefix is left to give.
    NoAddress,
    /// The lifetime is less than a second.
    NoLifetime,
    /// Hosts would be forgotten before they are released.
    RememberedShorterThanLifetime,
}

impl fmt::Display for DynamicPoolFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PrefixTooShort => "the prefix must be /8 or longer",
            Self::NoAddress => "no address remains after the reserved and excluded ones",
            Self::NoLifetime => "the lifetime must be at least one second",
            Self::RememberedShorterThanLifetime => "hosts must be remembered at least for their lifetime",
        })
    }
}

impl std::error::Error for DynamicPoolFault {}

impl From<DynamicPoolFault> for BuildFault {
    fn from(fault: DynamicPoolFault) -> Self {
        Self::of(&fault)
    }
}

/// Why a record from disk was not restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreFault {
    /// The host has been silent for too long to be remembered.
    TooOld,
    /// The pool does not give this address.
    NotInPool,
    /// A newer record has this host or this address.
    Superseded,
    /// Host and address belong to different workers: there were more or fewer when it was written.
    Divided,
    /// There are records enough.
    Full,
}

impl fmt::Display for RestoreFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooOld => "the host has been silent for too long to be remembered",
            Self::NotInPool => "the pool does not give this address",
            Self::Superseded => "a newer record has this host or this address",
            Self::Divided => {
                "host and address belong to different workers: the number of workers has changed"
            }
            Self::Full => "the pool has no room for more hosts",
        })
    }
}

/// The outcome of records from disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// How many hosts this worker took over.
    pub hosts: usize,
    /// The records that could not be restored, with the reason.
    pub refused: Vec<(Record, RestoreFault)>,
}

/// A host as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRow {
    /// The host, its address, and when it was heard last.
    pub record: Record,
    /// Whether it is live; else it is remembered.
    pub live: bool,
}

/// What has changed since the last time, to be written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Records to append, in order.
    pub records: Vec<Record>,
    /// Whether some were lost because they were not taken in time: write a whole [`DynamicPool::snapshot`] instead.
    pub incomplete: bool,
}

/// One worker's part of a dynamic pool.
///
/// 52 octets for each possible host and 4 for each address, as far as they come into use.
pub struct DynamicPool {
    prefix: Prefix4,
    worker: u32,
    workers: u32,
    lifetime: u32,
    remembered: u32,
    free: FreeAddresses,
    hosts: Hosts,
    by_host: HostIndex,
    /// For each address of this worker its host's id plus one, or zero.
    by_address: Vec<u32>,
    wheel: ReleaseWheel,
    /// How many live hosts each has.
    subscribers: SubscriberCounts<Ipv6Addr>,
    /// Number of the address, host, and when it was heard.
    changes: Vec<(u32, u128, u32)>,
    changes_lost: bool,
}

impl DynamicPool {
    /// The part of worker `worker` among `workers`. `seed` keeps hosts from choosing addresses that collide in the index.
    ///
    /// Fails with the first of [`DynamicPoolConfig::faults`].
    pub fn new(
        config: &DynamicPoolConfig,
        worker: WorkerId,
        workers: u8,
        seed: [u64; 2],
    ) -> Result<Self, DynamicPoolFault> {
        if let Some(fault) = config.faults().first() {
            return Err(*fault);
        }
        let seconds = |duration: Duration| u32::try_from(duration.as_secs()).unwrap_or(u32::MAX).min(1 << 30);
        let (worker, workers) = (u32::from(worker.0), u32::from(workers.max(1)));
        let free = config.free_for(worker, workers);
        let hosts = free.free().min(config.max_hosts.div_ceil(workers));
        let size = 1u32 << (32 - config.prefix.length());
        Ok(Self {
            prefix: config.prefix,
            worker,
            workers,
            lifetime: seconds(config.lifetime),
            remembered: seconds(config.remembered),
            hosts: Hosts::new(hosts),
            by_host: HostIndex::new(hosts, seed),
            by_address: vec![0; size.saturating_sub(worker).div_ceil(workers) as usize],
            wheel: ReleaseWheel::new(seconds(config.lifetime)),
            subscribers: SubscriberCounts::new(SUBSCRIBER_BITS, config.hosts_per_subscriber, hosts, seed),
            free,
            changes: Vec::new(),
            changes_lost: false,
        })
    }

    /// The prefix whose addresses are given.
    pub const fn prefix(&self) -> Prefix4 {
        self.prefix
    }

    /// Whether the address belongs to the pool.
    #[inline]
    pub fn contains4(&self, address: Ipv4Addr) -> bool {
        self.prefix.contains(address)
    }

    /// The worker that may give this address; `None` if it is not in the pool.
    pub fn worker_of4(&self, address: Ipv4Addr) -> Option<WorkerId> {
        let number = address.to_bits().wrapping_sub(self.prefix.address().to_bits());
        self.prefix.contains(address).then(|| WorkerId((number % self.workers) as u8))
    }

    /// The worker that this host belongs to.
    pub fn worker_of6(&self, host: Ipv6Addr) -> WorkerId {
        WorkerId(worker_of_host(host, self.workers))
    }

    /// The address of a live host that has just sent a packet.
    #[inline]
    pub fn lookup6(&mut self, host: Ipv6Addr, now: Instant) -> Option<Ipv4Addr> {
        let id = self.by_host.find(host.to_bits(), &self.hosts)?;
        if !self.hosts.is_live(id) {
            return None;
        }
        self.hosts.touch(id, self.second(now));
        Some(self.address4(self.hosts.number(id)))
    }

    /// The address of a live host, without having heard from it: for packets towards it and packets that errors quote.
    #[inline]
    pub fn peek6(&self, host: Ipv6Addr, now: Instant) -> Option<Ipv4Addr> {
        let id = self.by_host.find(host.to_bits(), &self.hosts)?;
        self.lives(id, now).then(|| self.address4(self.hosts.number(id)))
    }

    /// The live host that has the address.
    #[inline]
    pub fn lookup4(&self, address: Ipv4Addr, now: Instant) -> Option<Ipv6Addr> {
        let id = self.by_address.get(self.number(address)? as usize)?.checked_sub(1)?;
        self.lives(id, now).then(|| Ipv6Addr::from_bits(self.hosts.address6(id)))
    }

    /// The address of a host that has just sent a packet: the one it has or had, or else a free one, or else that of the
    /// remembered host that has been silent longest.
    ///
    /// Refuses [`DropReason::DynamicPoolEmpty`] when all are live, and [`DropReason::SubscriberLimit`] when too many of the
    /// host's network are. Takes a bounded time in any case.
    pub fn assign(&mut self, host: Ipv6Addr, now: Instant) -> Result<Ipv4Addr, DropReason> {
        let second = self.second(now);
        let known = self.by_host.find(host.to_bits(), &self.hosts);
        if !known.is_some_and(|id| self.hosts.is_live(id)) {
            self.refuse_above_limit(host, now)?;
        }
        if let Some(id) = self.by_host.find(host.to_bits(), &self.hosts) {
            self.hosts.touch(id, second);
            if !self.hosts.is_live(id) {
                self.hosts.revive(id);
                self.subscribers.has_more(host);
                self.wheel.insert(id, &mut self.hosts);
                self.note(id);
            }
            return Ok(self.address4(self.hosts.number(id)));
        }
        if self.free.free() == 0 || !self.hosts.has_room() {
            if self.hosts.oldest().is_none() {
                self.expire(now, RELEASES_FOR_ASSIGNMENT);
            }
            if self.free.free() == 0 || !self.hosts.has_room() {
                self.forget(self.hosts.oldest().ok_or(DropReason::DynamicPoolEmpty)?);
            }
        }
        let number = self.free.next(self.first_choice(host)).ok_or(DropReason::DynamicPoolEmpty)?;
        let id = self.admit(host, number, second);
        self.subscribers.has_more(host);
        self.wheel.insert(id, &mut self.hosts);
        self.note(id);
        Ok(self.address4(number))
    }

    /// Releases hosts that have been silent for the lifetime, and forgets those that were remembered long enough; looks at
    /// no more than `budget` hosts. Call it often: what is late is released late.
    pub fn expire(&mut self, now: Instant, mut budget: usize) {
        let second = self.second(now);
        while let Some(id) = self.wheel.pop(second, &mut self.hosts, &mut budget) {
            self.hosts.remember(id);
            self.subscribers.has_fewer(Ipv6Addr::from_bits(self.hosts.address6(id)));
            self.note(id);
        }
        while budget > 0
            && let Some(id) = self.hosts.oldest()
            && second.saturating_sub(self.hosts.seen(id)) >= self.remembered
        {
            budget -= 1;
            self.forget(id);
        }
    }

    /// Hosts that have an address.
    pub const fn live(&self) -> u32 {
        self.hosts.live()
    }

    /// Hosts that would get their address back.
    pub const fn remembered(&self) -> u32 {
        self.hosts.remembered()
    }

    /// Addresses that no host has or had.
    pub const fn free(&self) -> u32 {
        self.free.free()
    }

    /// Octets of memory that this part takes when all of it is in use.
    pub fn memory(&self) -> usize {
        let index = self.by_host.memory() + self.by_address.capacity() * 4;
        let subscribers = self.subscribers.memory();
        size_of::<Self>()
            + self.free.memory()
            + self.hosts.memory()
            + index
            + self.wheel.memory()
            + subscribers
    }

    /// All hosts, live and remembered.
    pub fn snapshot(&self, wall: WallClock) -> impl Iterator<Item = Record> {
        (0..self.hosts.len()).filter(|id| !self.hosts.is_vacant(*id)).map(move |id| {
            let (number, host, seen) = (self.hosts.number(id), self.hosts.address6(id), self.hosts.seen(id));
            self.record(number, host, seen, wall)
        })
    }

    /// Some hosts: those in the `limit` places from `cursor` on, and where to continue; begin at 0, end at `None`. Between
    /// calls hosts may come and go.
    pub fn hosts_from(&self, cursor: u32, limit: u32, wall: WallClock) -> (Vec<HostRow>, Option<u32>) {
        let end = cursor.saturating_add(limit).min(self.hosts.len());
        let row = |id| HostRow {
            record: self.record(self.hosts.number(id), self.hosts.address6(id), self.hosts.seen(id), wall),
            live: self.hosts.is_live(id),
        };
        let rows = (cursor..end).filter(|id| !self.hosts.is_vacant(*id)).map(row).collect();
        (rows, (end < self.hosts.len()).then_some(end))
    }

    /// What has changed since the last call: hosts that got an address, and hosts that were released.
    pub fn take_changes(&mut self, wall: WallClock) -> Changes {
        let changes = core::mem::take(&mut self.changes);
        let incomplete = core::mem::take(&mut self.changes_lost);
        let record = |(number, host, seen)| self.record(number, host, seen, wall);
        Changes { records: changes.into_iter().map(record).collect(), incomplete }
    }

    /// Takes over what was written down: the hosts that belong to this worker, the newest record of each host and each
    /// address. For a fresh pool.
    pub fn restore(&mut self, records: impl IntoIterator<Item = Record>, wall: WallClock) -> Restored {
        let mut records: Vec<Record> = records.into_iter().collect();
        records.reverse();
        records.sort_by_key(|record| core::cmp::Reverse(record.last_seen));
        let (mut restored, mut silent) = (Restored::default(), Vec::new());
        for record in records {
            if u32::from(self.worker_of6(record.host).0) != self.worker {
                continue;
            }
            match self.restore_one(record, wall) {
                Ok((id, true)) => {
                    self.subscribers.has_more(record.host);
                    self.wheel.insert(id, &mut self.hosts);
                }
                Ok((id, false)) => silent.push(id),
                Err(fault) => {
                    restored.refused.push((record, fault));
                    continue;
                }
            }
            restored.hosts += 1;
        }
        silent.into_iter().rev().for_each(|id| self.hosts.remember(id));
        restored
    }

    /// Makes the host's record; says whether it is live. It is in no chain yet.
    fn restore_one(&mut self, record: Record, wall: WallClock) -> Result<(HostId, bool), RestoreFault> {
        let silence = wall.unix_seconds.saturating_sub(record.last_seen);
        if silence >= u64::from(self.remembered) {
            return Err(RestoreFault::TooOld);
        }
        match self.worker_of4(record.address) {
            None => return Err(RestoreFault::NotInPool),
            Some(worker) if u32::from(worker.0) != self.worker => return Err(RestoreFault::Divided),
            Some(_) => {}
        }
        let number = self.number(record.address).ok_or(RestoreFault::NotInPool)?;
        let known = self.by_host.find(record.host.to_bits(), &self.hosts).is_some();
        if known || self.by_address[number as usize] != 0 {
            return Err(RestoreFault::Superseded);
        }
        if !self.free.is_free(number) {
            return Err(RestoreFault::NotInPool);
        }
        if !self.hosts.has_room() {
            return Err(RestoreFault::Full);
        }
        let seen = self.second(wall.now) - silence as u32;
        Ok((self.admit(record.host, number, seen), silence < u64::from(self.lifetime)))
    }

    /// Gives a free address to a host that has none. The caller chains it.
    fn admit(&mut self, host: Ipv6Addr, number: u32, seen: u32) -> HostId {
        self.free.take(number);
        let id = self.hosts.add(host.to_bits(), number, seen);
        self.by_host.insert(host.to_bits(), id);
        self.by_address[number as usize] = id + 1;
        id
    }

    /// Takes the address from a remembered host.
    fn forget(&mut self, id: HostId) {
        let number = self.hosts.number(id);
        self.by_host.remove(self.hosts.address6(id), id);
        self.by_address[number as usize] = 0;
        self.free.give_back(number);
        self.hosts.forget(id);
    }

    /// Refuses a host of whose network too many are live, those that are late to be released left out.
    fn refuse_above_limit(&mut self, host: Ipv6Addr, now: Instant) -> Result<(), DropReason> {
        if !self.subscribers.may_have_more(host) {
            self.expire(now, RELEASES_FOR_ASSIGNMENT);
            if !self.subscribers.may_have_more(host) {
                return Err(DropReason::SubscriberLimit);
            }
        }
        Ok(())
    }

    /// Whether the host was heard within the lifetime.
    #[inline]
    fn lives(&self, id: HostId, now: Instant) -> bool {
        self.hosts.is_live(id) && self.second(now).saturating_sub(self.hosts.seen(id)) < self.lifetime
    }

    fn note(&mut self, id: HostId) {
        if self.changes.len() == MAX_CHANGES {
            self.changes.clear();
            self.changes_lost = true;
        }
        if !self.changes_lost {
            self.changes.push((self.hosts.number(id), self.hosts.address6(id), self.hosts.seen(id)));
        }
    }

    fn record(&self, number: u32, host: u128, seen: u32, wall: WallClock) -> Record {
        let silence = self.second(wall.now).saturating_sub(seen);
        Record {
            address: self.address4(number),
            host: Ipv6Addr::from_bits(host),
            last_seen: wall.unix_seconds.saturating_sub(u64::from(silence)),
        }
    }

    /// Seconds on a clock that started before any host that may be remembered.
    #[inline]
    fn second(&self, now: Instant) -> u32 {
        u32::try_from(now.as_secs()).unwrap_or(u32::MAX).saturating_add(self.remembered)
    }

    /// The worker's number of one of its addresses.
    #[inline]
    fn number(&self, address: Ipv4Addr) -> Option<u32> {
        let number = address.to_bits().wrapping_sub(self.prefix.address().to_bits());
        if self.workers == 1 {
            return Some(number);
        }
        (number % self.workers == self.worker).then_some(number / self.workers)
    }

    #[inline]
    fn address4(&self, number: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.prefix.address().to_bits() + number * self.workers + self.worker)
    }

    fn first_choice(&self, host: Ipv6Addr) -> u32 {
        let hash = PLACE.hash_one(host.to_bits()) as u32;
        ((u64::from(hash) * self.by_address.len() as u64) >> 32) as u32
    }
}

/// The worker, of `workers`, that a host of a dynamic pool belongs to.
pub fn worker_of_host(host: Ipv6Addr, workers: u32) -> u8 {
    ((PLACE.hash_one(host.to_bits()) >> 32) % u64::from(workers.max(1))) as u8
}

#[cfg(test)]
mod tests;
