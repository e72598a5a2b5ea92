//! The writers' side of the mappings: free records, addresses and shares. One thread at a time uses it.

use super::lists::{Lists, MappingKey};
use super::records::{Mapping, NONE, Records};
use super::settings::{MappingSettings, Sharing, pool_size};
use crate::translate::address::free_addresses::FreeAddresses;
use core::cmp::Reverse;
use core::fmt;
use core::hash::BuildHasher as _;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::sync::atomic::Ordering::Relaxed;
use foldhash::fast::FixedState;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// A record is reused this much later than it left its lists, in seconds; every batch of a worker takes less.
const GRACE: u32 = 2;
/// Addresses that are tried for a client that has at most half of a pool: that none of them is free does not happen.
const TRIES: u32 = 128;
/// A client may have one more mapping while it has at most this many times as many as are left: the dynamic thresholds of Choudhury
/// and Hahne (1998).
pub(super) const SHARE: u32 = 4;

/// Why a client gets no mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingRefused {
    /// It may not use the translator.
    NotClient,
    /// The server is not one that names may lead to.
    NotServer,
    /// The client has reached its limit.
    ClientLimit,
    /// The client has several times more than are left for others.
    ClientShare,
    /// All mappings are in use, or rest.
    TableFull,
    /// All addresses are.
    PoolEmpty,
    /// The client has half of its limit, and the query's source may be forged.
    Unproven,
}

impl MappingRefused {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::NotClient,
        Self::NotServer,
        Self::ClientLimit,
        Self::ClientShare,
        Self::TableFull,
        Self::PoolEmpty,
        Self::Unproven,
    ];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotClient => "not_client",
            Self::NotServer => "not_server",
            Self::ClientLimit => "client_limit",
            Self::ClientShare => "client_share",
            Self::TableFull => "table_full",
            Self::PoolEmpty => "pool_empty",
            Self::Unproven => "unproven",
        }
    }

    /// The text for the client.
    pub const fn text(self) -> &'static str {
        match self {
            Self::NotClient => "not a client of NAT46",
            Self::NotServer => "no server that NAT46 translates to",
            Self::ClientLimit => "this client has its maximum of NAT46 mappings",
            Self::ClientShare => "this client has most of the NAT46 mappings",
            Self::TableFull => "the NAT46's table is full",
            Self::PoolEmpty => "the NAT46's pool has no free address",
            Self::Unproven => "ask again over TCP",
        }
    }
}

impl fmt::Display for MappingRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// An event that becomes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A mapping may have ended and rested.
    Record(u32),
    /// An address that represented another server in an earlier process may be assigned again. There was no space for a record of it.
    Number(u32),
}

/// The free records and addresses, and when more become free.
pub(super) struct Control {
    /// Records that were used, in the order in which they left their lists, and when.
    freed: VecDeque<(u32, u32)>,
    /// Records from here on were never used.
    fresh: u32,
    /// Mappings of each client that has any.
    counts: HashMap<Ipv4Addr, u32, FixedState>,
    dues: BinaryHeap<Reverse<(u32, Due)>>,
    /// Addresses that may be assigned; with shared mappings, those that are not assigned.
    free: FreeAddresses,
    /// Addresses that could be assigned at the start.
    gives: u32,
    /// Addresses that are resting since an earlier process, and the number of mappings that each had.
    resting: HashMap<u32, u32, FixedState>,
    hasher: FixedState,
}

impl Control {
    pub(super) fn new(settings: &MappingSettings, seed: u64) -> Self {
        let hasher = FixedState::with_seed(seed);
        let mut free = FreeAddresses::all(pool_size(settings.pool));
        let ends = [0, pool_size(settings.pool) - 1];
        let first = settings.pool.address().to_bits();
        let excluded = settings.excluded.iter().filter(|prefix| prefix.overlaps(settings.pool));
        let ranges = excluded.map(|prefix| {
            let from = prefix.address().max(settings.pool.address()).to_bits() - first;
            from..=prefix.last().min(settings.pool.last()).to_bits() - first
        });
        let statics = settings.statics.iter().filter(|(address, _)| settings.pool.contains(*address));
        let taken = ranges.flatten().chain(statics.map(|(address, _)| address.to_bits() - first)).chain(ends);
        taken.filter(|number| !settings.gives(*number)).for_each(|number| {
            free.take(number);
        });
        Self {
            freed: VecDeque::new(),
            fresh: 0,
            counts: HashMap::with_hasher(hasher.clone()),
            dues: BinaryHeap::new(),
            gives: free.free(),
            free,
            resting: HashMap::with_hasher(hasher.clone()),
            hasher,
        }
    }

    /// Addresses that may be given.
    pub(super) const fn addresses_left(&self) -> u32 {
        self.free.free()
    }

    /// A new mapping of a client, in the lists.
    pub(super) fn admit(
        &mut self,
        (client, server): (Ipv4Addr, Ipv6Addr),
        (told_until, rest): (u32, u32),
        (is_proven, now): (bool, u32),
        table: &Table<'_>,
    ) -> Result<Mapping, MappingRefused> {
        let count = self.count(client);
        let (limit, left) = self.limit_and_left(table);
        if table.left() == 0 {
            return Err(MappingRefused::TableFull);
        }
        if left == 0 {
            return Err(MappingRefused::PoolEmpty);
        }
        if count >= limit {
            return Err(MappingRefused::ClientLimit);
        }
        if !is_proven && (count >= limit.div_ceil(2) || self.is_half_used(table)) {
            return Err(MappingRefused::Unproven);
        }
        if count > SHARE.saturating_mul(left) {
            return Err(MappingRefused::ClientShare);
        }
        let key = table.settings.key_of(client);
        let number = self.pick(key, server, table).ok_or(MappingRefused::PoolEmpty)?;
        let slot = self.take_record(now, table.records.count()).ok_or(MappingRefused::TableFull)?;
        let address = table.address(number);
        let mapping = Mapping {
            client: key,
            address,
            server,
            used_until: 0,
            told_until,
            rest,
            charged: client,
            rests_only: false,
        };
        self.enter(slot, &mapping, table);
        Ok(mapping)
    }

    /// A client other than the one that a mapping counts for prolongs it: from now on it counts for this client. `false`: the client is at its limit.
    pub(super) fn recharge(&mut self, slot: u32, client: Ipv4Addr, table: &Table<'_>) -> bool {
        let Some(mapping) = table.records.get(slot) else { return false };
        let (count, other) = (self.count(client), self.count(mapping.charged));
        let (limit, left) = self.limit_and_left(table);
        // A client with fewer mappings than the one that it counted for takes nothing from others.
        if count >= limit || (count > SHARE.saturating_mul(left) && count >= other) {
            return false;
        }
        self.discharge(mapping.charged);
        *self.counts.entry(client).or_default() += 1;
        table.records.charge(slot, client);
        true
    }

    fn count(&self, client: Ipv4Addr) -> u32 {
        self.counts.get(&client).copied().unwrap_or_default()
    }

    fn discharge(&mut self, client: Ipv4Addr) {
        if let Some(count) = self.counts.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&client);
            }
        }
    }

    /// The limit of a client, and what is left for all.
    fn limit_and_left(&self, table: &Table<'_>) -> (u32, u32) {
        match table.settings.sharing {
            Sharing::Client => (self.limit_of_client(table.settings), table.left()),
            Sharing::All => (table.settings.max_per_client, table.left().min(self.free.free())),
        }
    }

    /// Whether half of the table or shared pool is used: the other half is for clients that have proven their address.
    fn is_half_used(&self, table: &Table<'_>) -> bool {
        let is_shared = table.settings.sharing == Sharing::All;
        table.left() <= table.settings.max_mappings / 2 || is_shared && self.free.free() <= self.gives / 2
    }

    /// The limit of a client: of a large pool at most half, so that a free address is found quickly.
    fn limit_of_client(&self, settings: &MappingSettings) -> u32 {
        let addresses = self.free.free();
        let most = if pool_size(settings.pool) > TRIES { addresses / 2 } else { addresses };
        settings.max_per_client.min(most)
    }

    /// A free address: the same one for the same server, if possible.
    fn pick(&self, key: Ipv4Addr, server: Ipv6Addr, table: &Table<'_>) -> Option<u32> {
        let size = pool_size(table.settings.pool);
        let hash = self.hasher.hash_one(server);
        let start = hash as u32 % size;
        if table.settings.sharing == Sharing::All {
            return self.free.next(start);
        }
        // Sizes are powers of two, so an odd stride reaches every number.
        let stride = (hash >> 32) as u32 | 1;
        let base = table.settings.pool.address().to_bits();
        let is_free = |number: &u32| {
            let address = Ipv4Addr::from_bits(base + number);
            self.free.is_free(*number)
                && table.lists.find(MappingKey::Address(key, address), table.records).is_none()
        };
        let tries = (0..size.min(TRIES)).map(|step| start.wrapping_add(step.wrapping_mul(stride)) % size);
        tries.into_iter().find(is_free)
    }

    fn take_record(&mut self, now: u32, count: u32) -> Option<u32> {
        if self.fresh < count {
            self.fresh += 1;
            return Some(self.fresh - 1);
        }
        let (at, _) = self.freed.front()?;
        if now < at.saturating_add(GRACE) {
            return None;
        }
        self.freed.pop_front().map(|(_, slot)| slot)
    }

    fn enter(&mut self, slot: u32, mapping: &Mapping, table: &Table<'_>) {
        table.records.set(slot, mapping);
        table.lists.add(slot, mapping, table.records);
        table.records.in_use.fetch_add(1, Relaxed);
        *self.counts.entry(mapping.charged).or_default() += 1;
        if table.settings.sharing == Sharing::All
            && let Some(number) = table.number(mapping.address)
        {
            self.free.take(number);
        }
        self.dues.push(Reverse((mapping.free_at(), Due::Record(slot))));
    }

    /// Ends mappings that have rested, at most `budget`. Returns how many.
    pub(super) fn expire(&mut self, now: u32, budget: usize, table: &Table<'_>) -> u64 {
        let mut ended = 0;
        for _ in 0..budget {
            let due = match self.dues.peek() {
                Some(Reverse((at, due))) if *at <= now => *due,
                Some(_) | None => break,
            };
            self.dues.pop();
            match due {
                Due::Record(slot) => ended += u64::from(self.end(slot, now, table)),
                Due::Number(number) => self.release(number, table),
            }
        }
        ended
    }

    /// Ends a mapping that has rested; whether it had.
    fn end(&mut self, slot: u32, now: u32, table: &Table<'_>) -> bool {
        let Some(mapping) = table.records.get(slot) else { return false };
        if now < mapping.free_at() {
            self.dues.push(Reverse((mapping.free_at(), Due::Record(slot))));
            return false;
        }
        let number = table.number(mapping.address);
        if mapping.rests_only {
            table.records.clear(slot);
            self.freed.push_back((now, slot));
            number.into_iter().for_each(|number| self.release(number, table));
            return false;
        }
        table.lists.remove(slot, &mapping, table.records);
        table.records.clear(slot);
        self.freed.push_back((now, slot));
        table.records.in_use.fetch_sub(1, Relaxed);
        self.discharge(mapping.charged);
        if table.settings.sharing == Sharing::All {
            number.into_iter().for_each(|number| self.give_back(number, table));
        }
        true
    }

    /// One of the mappings that an address is resting for has ended.
    fn release(&mut self, number: u32, table: &Table<'_>) {
        let Some(mappings) = self.resting.get_mut(&number) else { return };
        *mappings -= 1;
        if *mappings == 0 {
            self.resting.remove(&number);
            self.give_back(number, table);
        }
    }

    /// An address may be assigned again, unless it is resting for another reason, or a mapping of all clients has it.
    fn give_back(&mut self, number: u32, table: &Table<'_>) {
        let key = MappingKey::Address(Ipv4Addr::UNSPECIFIED, table.address(number));
        if !self.resting.contains_key(&number) && table.lists.find(key, table.records).is_none() {
            self.free.give_back(number);
        }
    }

    /// Continues a mapping of an earlier process; `false`: its address only rests.
    pub(super) fn restore(&mut self, mapping: &Mapping, now: u32, table: &Table<'_>) -> bool {
        let is_free = table.number(mapping.address).is_some_and(|number| self.free.is_free(number));
        if !is_free || table.left() == 0 {
            return false;
        }
        let key = MappingKey::Server(mapping.client, mapping.server);
        let is_kept = table.settings.key_of(mapping.charged) == mapping.client
            && table.settings.is_client(mapping.charged)
            && table.settings.is_server(mapping.server)
            && table.settings.statics.iter().all(|(_, server)| *server != mapping.server)
            && table.lists.find(key, table.records).is_none()
            && table
                .lists
                .find(MappingKey::Address(mapping.client, mapping.address), table.records)
                .is_none();
        let slot = if is_kept { self.take_record(now, table.records.count()) } else { None };
        if let Some(slot) = slot {
            self.enter(slot, &Mapping { rests_only: false, ..*mapping }, table);
        }
        slot.is_some()
    }

    /// The address of a mapping of an earlier process, which cannot continue, represents no server until it is free. The record says so to
    /// the processes to come, of whatever pool they are.
    pub(super) fn let_rest(&mut self, mapping: &Mapping, now: u32, table: &Table<'_>) {
        let number = table.number(mapping.address).filter(|number| table.settings.gives(*number));
        if let Some(number) = number {
            self.free.take(number);
            *self.resting.entry(number).or_default() += 1;
        }
        let due = match self.take_record(now, table.records.count()) {
            Some(slot) => {
                table.records.set(slot, &Mapping { rests_only: true, ..*mapping });
                Some(Due::Record(slot))
            }
            None => number.map(Due::Number),
        };
        self.dues.extend(due.map(|due| Reverse((mapping.free_at(), due))));
    }
}

/// The data of the control side.
pub(super) struct Table<'t> {
    pub(super) settings: &'t MappingSettings,
    pub(super) records: &'t Records,
    pub(super) lists: &'t Lists,
}

impl Table<'_> {
    /// The number of an address; `None`: it is not the pool's.
    fn number(&self, address: Ipv4Addr) -> Option<u32> {
        let number = address.to_bits().wrapping_sub(self.settings.pool.address().to_bits());
        self.settings.pool.contains(address).then_some(number)
    }

    fn address(&self, number: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.settings.pool.address().to_bits() + number)
    }

    /// The number of mappings that still fit.
    fn left(&self) -> u32 {
        self.settings.max_mappings.saturating_sub(self.records.in_use.load(Relaxed))
    }
}

const _: () = assert!(NONE == u32::MAX);
