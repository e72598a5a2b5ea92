//! The writers' side of the mappings: which records, addresses and shares are free. One thread at a time has it.

use super::lists::{Lists, MappingKey};
use super::records::{Mapping, NONE, Records};
use super::settings::{MappingSettings, Sharing, pool_size};
use crate::translate::address::free_addresses::FreeAddresses;
use core::cmp::Reverse;
use core::fmt;
use core::hash::BuildHasher as _;
use core::net::{Ipv4Addr, Ipv6Addr};
use foldhash::fast::FixedState;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};

/// A record is written again this much later than it left its lists, in seconds: no worker needs as long for a batch.
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
    /// No server that a name may lead to.
    NotServer,
    /// The client has as many as it may.
    ClientLimit,
    /// The client has several times more than are left for others.
    ClientShare,
    /// All mappings are in use, or rest.
    TableFull,
    /// All addresses are.
    PoolEmpty,
    /// The client has half of what it may, and the query may be somebody else's in its name.
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

    /// What is said of it to a client.
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

/// What becomes due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A mapping may have ended and rested.
    Record(u32),
    /// An address that represented another server in the previous process may be given.
    Number(u32),
}

/// What is free, and when more will be.
pub(super) struct Control {
    /// Records that were used, in the order in which they left their lists, and when.
    freed: VecDeque<(u32, u32)>,
    /// Records from here on were never used.
    fresh: u32,
    in_use: u32,
    /// Mappings of each client that has any.
    counts: HashMap<Ipv4Addr, u32, FixedState>,
    dues: BinaryHeap<Reverse<(u32, Due)>>,
    /// Addresses that may be given: of shared mappings those that are not given.
    free: FreeAddresses,
    /// Addresses that rest from what the previous process gave.
    resting: HashSet<u32, FixedState>,
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
            in_use: 0,
            counts: HashMap::with_hasher(hasher.clone()),
            dues: BinaryHeap::new(),
            free,
            resting: HashSet::with_hasher(hasher.clone()),
            hasher,
        }
    }

    /// Records in use.
    pub(super) const fn in_use(&self) -> u32 {
        self.in_use
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
        let count = self.counts.get(&client).copied().unwrap_or_default();
        let left = table.records.count() - self.in_use;
        if left == 0 {
            return Err(MappingRefused::TableFull);
        }
        let (limit, left) = match table.settings.sharing {
            Sharing::Client => (self.limit_of_client(table.settings), left),
            Sharing::All => (table.settings.max_per_client, left.min(self.free.free())),
        };
        if left == 0 {
            return Err(MappingRefused::PoolEmpty);
        }
        if count >= limit {
            return Err(MappingRefused::ClientLimit);
        }
        if !is_proven && count >= limit.div_ceil(2) {
            return Err(MappingRefused::Unproven);
        }
        if count > SHARE.saturating_mul(left) {
            return Err(MappingRefused::ClientShare);
        }
        let key = table.settings.key_of(client);
        let number = self.pick(key, server, table).ok_or(MappingRefused::PoolEmpty)?;
        let slot = self.take_record(now, table.records.count()).ok_or(MappingRefused::TableFull)?;
        let address = Ipv4Addr::from_bits(table.settings.pool.address().to_bits() + number);
        let mapping =
            Mapping { client: key, address, server, used_until: 0, told_until, rest, charged: client };
        self.enter(slot, &mapping, table);
        Ok(mapping)
    }

    /// What a client may have: of a large pool at most half, so that a free address is found soon.
    fn limit_of_client(&self, settings: &MappingSettings) -> u32 {
        let addresses = self.free.free();
        let most = if pool_size(settings.pool) > TRIES { addresses / 2 } else { addresses };
        settings.max_per_client.min(most)
    }

    /// A free address: the same one for the same server, if it can be.
    fn pick(&self, key: Ipv4Addr, server: Ipv6Addr, table: &Table<'_>) -> Option<u32> {
        let size = pool_size(table.settings.pool);
        let hash = self.hasher.hash_one(server);
        let start = hash as u32 % size;
        if table.settings.sharing == Sharing::All {
            return self.free.next(start);
        }
        // Sizes are powers of two, so that an odd stride comes to every number.
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
        self.in_use += 1;
        *self.counts.entry(mapping.charged).or_default() += 1;
        if table.settings.sharing == Sharing::All {
            self.free.take(table.number(mapping.address));
        }
        self.dues.push(Reverse((mapping.free_at(), Due::Record(slot))));
    }

    /// Ends what has rested, at most `budget` of it. How many mappings.
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
                Due::Number(number) => {
                    self.resting.remove(&number);
                    self.free.give_back(number);
                }
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
        table.lists.remove(slot, &mapping, table.records);
        table.records.clear(slot);
        self.freed.push_back((now, slot));
        self.in_use -= 1;
        if let Some(count) = self.counts.get_mut(&mapping.charged) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&mapping.charged);
            }
        }
        if table.settings.sharing == Sharing::All {
            self.free.give_back(table.number(mapping.address));
        }
        true
    }

    /// Goes on with a mapping of the previous process; `false`: its address only rests.
    pub(super) fn restore(&mut self, mapping: &Mapping, now: u32, table: &Table<'_>) -> bool {
        let number = table.number(mapping.address);
        if now >= mapping.free_at() || !self.free.is_free(number) {
            return false;
        }
        let key = MappingKey::Server(mapping.client, mapping.server);
        let is_kept = table.settings.key_of(mapping.charged) == mapping.client
            && table.settings.is_client(mapping.charged)
            && table.settings.statics.iter().all(|(_, server)| *server != mapping.server)
            && table.lists.find(key, table.records).is_none()
            && table
                .lists
                .find(MappingKey::Address(mapping.client, mapping.address), table.records)
                .is_none();
        let slot = if is_kept { self.take_record(now, table.records.count()) } else { None };
        if let Some(slot) = slot {
            self.enter(slot, mapping, table);
        }
        slot.is_some()
    }

    /// An address represents no server until then: another process gave it, and its mapping could not go on.
    pub(super) fn let_rest(&mut self, address: Ipv4Addr, until: u32, table: &Table<'_>) {
        let number = table.number(address);
        if self.free.take(number) {
            self.resting.insert(number);
            self.dues.push(Reverse((until, Due::Number(number))));
        }
    }
}

/// What the control works on.
pub(super) struct Table<'t> {
    pub(super) settings: &'t MappingSettings,
    pub(super) records: &'t Records,
    pub(super) lists: &'t Lists,
}

impl Table<'_> {
    fn number(&self, address: Ipv4Addr) -> u32 {
        address.to_bits().wrapping_sub(self.settings.pool.address().to_bits())
    }
}

const _: () = assert!(NONE == u32::MAX);
