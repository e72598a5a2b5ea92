//! The mappings of a NAT46: which address of the pool represents which IPv6 server, for a client or for all.
//!
//! ```text
//!                given in an answer,           its client sends nothing, and no       TTL + 120 s
//!                or used before                answer with it is valid any more
//!     (none) ───────────────────▶  live  ─────────────────────────────▶  resting  ───────────────▶ (none)
//!                                    ▲                                      │
//!                                    └──────────────────────────────────────┘
//!                                     its client sends, or asks for the server again
//! ```
//!
//! All workers read one table: a mapping exists for all of them before the answer with it is sent. The threads that answer queries add and
//! remove mappings, under a lock that no worker waits for.

use super::control::{Control, MappingRefused, Table};
use super::lists::{Lists, MappingKey};
use super::records::{self, Mapping, NONE, Records, Words};
use super::settings::{MARGIN, MappingFault, MappingSettings, REST, Sharing};
use crate::instant::Instant;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};
use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Entries that are examined before a mapping is made.
const EXPIRED_FIRST: usize = 8;
/// Use is written only if it prolongs the mapping by this much, in seconds: otherwise each packet would write.
const USE_STEP: u32 = 16;

/// How full the table is, and what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MappingCounts {
    /// Mappings, live and resting, without those of an earlier process that can only rest.
    pub mappings: u32,
    /// Maximum number of them.
    pub max_mappings: u32,
    /// Static ones.
    pub statics: u32,
    /// Addresses of the pool that mappings of all clients may have; 0 if each client has its own use of them.
    pub addresses: u32,
    /// How many of them are used, or rest.
    pub addresses_used: u32,
    /// Mappings made.
    pub made: u64,
    /// Mappings ended after their resting time.
    pub ended: u64,
    /// Queries that got none, by [`MappingRefused::ALL`].
    pub refused: [u64; MappingRefused::ALL.len()],
}

/// A mapping as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingRow {
    /// The client; `None`: all of them.
    pub client: Option<Ipv4Addr>,
    /// The address of the pool.
    pub address: Ipv4Addr,
    /// The server.
    pub server: Ipv6Addr,
    /// How it is.
    pub state: MappingState,
}

/// How a mapping is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingState {
    /// Configured.
    Static,
    /// Packets are translated, for this many more seconds at least.
    Live(u32),
    /// It has ended, and its address represents no other server for this many more seconds.
    Resting(u32),
}

impl MappingState {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Live(_) => "dynamic",
            Self::Resting(_) => "resting",
        }
    }
}

/// The outcome for the mappings of the previous process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MappingsKept {
    /// They continue.
    pub kept: u64,
    /// They ended; their addresses rest.
    pub ended: u64,
}

/// The mappings.
pub struct Mappings {
    settings: MappingSettings,
    records: Records,
    lists: Lists,
    server_of_static: HashMap<Ipv4Addr, Ipv6Addr, FixedState>,
    address_of_static: HashMap<Ipv6Addr, Ipv4Addr, FixedState>,
    control: Mutex<Control>,
    /// The second in which what is due was last ended.
    expired_at: AtomicU32,
    /// Addresses that mappings of all clients could have at the start, and those that are left: for readers that may not wait for the lock.
    gives: u32,
    left: AtomicU32,
    made: AtomicU64,
    ended: AtomicU64,
    refused: [AtomicU64; MappingRefused::ALL.len()],
}

impl fmt::Debug for Mappings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mappings").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl PartialEq for Mappings {
    /// Two tables are the same table or different ones.
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }
}

impl Mappings {
    /// The words that a store for these mappings has.
    pub const fn words(settings: &MappingSettings) -> usize {
        Records::words(settings.max_mappings)
    }

    /// The words of a store with additional space for mappings of another process that can only rest.
    pub fn words_after(settings: &MappingSettings, other: &dyn Words, now: Instant) -> usize {
        let Some((most, mappings)) = records::left(other) else { return Self::words(settings) };
        let rests = |it: &&Mapping| it.rests_only && seconds(now) < it.free_at();
        let resting = u32::try_from(mappings.iter().filter(rests).count()).unwrap_or(u32::MAX);
        Records::words(settings.max_mappings.saturating_add(most).saturating_add(resting))
    }

    /// A table in memory of its own.
    ///
    /// # Errors
    /// The settings are invalid.
    pub fn in_memory(settings: MappingSettings, seed: [u64; 2]) -> Result<Self, MappingFault> {
        let words: Box<[AtomicU32]> = (0..Self::words(&settings)).map(|_| AtomicU32::new(0)).collect();
        Self::new(settings, Box::new(words), seed)
    }

    /// A table in an empty store. `seed` keeps clients from choosing servers that collide.
    ///
    /// # Errors
    /// The settings are invalid.
    pub fn new(
        settings: MappingSettings,
        store: Box<dyn Words>,
        seed: [u64; 2],
    ) -> Result<Self, MappingFault> {
        if let Some(fault) = settings.fault() {
            return Err(fault);
        }
        let records = Records::new(store, settings.max_mappings);
        let hasher = FixedState::with_seed(seed[0]);
        let (mut server_of_static, mut address_of_static) =
            (HashMap::with_hasher(hasher.clone()), HashMap::with_hasher(hasher));
        for (address, server) in &settings.statics {
            server_of_static.insert(*address, *server);
            // Of several addresses of a server, the first is its source.
            address_of_static.entry(*server).or_insert(*address);
        }
        let control = Control::new(&settings, seed[1]);
        let gives = if settings.sharing == Sharing::All { control.addresses_left() } else { 0 };
        Ok(Self {
            lists: Lists::new(settings.max_mappings, seed),
            control: Mutex::new(control),
            gives,
            left: AtomicU32::new(gives),
            records,
            server_of_static,
            address_of_static,
            settings,
            expired_at: AtomicU32::new(0),
            made: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            refused: Default::default(),
        })
    }

    /// The settings of the mappings.
    pub const fn settings(&self) -> &MappingSettings {
        &self.settings
    }

    /// The first record to look at for a packet of a client.
    #[inline(always)]
    pub(super) fn first_out(&self, client: Ipv4Addr, address: Ipv4Addr) -> u32 {
        self.lists.first(MappingKey::Address(self.settings.key_of(client), address))
    }

    /// The first record to look at for a packet of a server.
    #[inline(always)]
    pub(super) fn first_in(&self, client: Ipv4Addr, server: Ipv6Addr) -> u32 {
        self.lists.first(MappingKey::Server(self.settings.key_of(client), server))
    }

    /// Loads a record.
    #[inline(always)]
    pub(super) fn touch(&self, first: u32) {
        if first != NONE {
            self.records.touch(first);
        }
    }

    /// The server that an address of the pool represents for a client, and the record of a mapping that can be [used](Self::used). `first`: what
    /// [`Self::first_out`] gave, or [`NONE`].
    #[inline(always)]
    pub(super) fn server_from(
        &self,
        first: u32,
        (client, address): (Ipv4Addr, Ipv4Addr),
        now: Instant,
    ) -> Option<(Ipv6Addr, Option<Used>)> {
        if let Some(server) = self.static_server(address) {
            return Some((server, None));
        }
        let key = MappingKey::Address(self.settings.key_of(client), address);
        let (slot, mapping) = self.find(first, key)?;
        let used =
            Used { slot, until: mapping.used_until, live_until: mapping.end(), charged: mapping.charged };
        (seconds(now) < mapping.free_at()).then_some((mapping.server, Some(used)))
    }

    /// The address that represents a server for a client, while the client uses it, or any client if all share it: an answer alone does not let a
    /// server send to the client.
    #[inline(always)]
    pub(super) fn address_from(
        &self,
        first: u32,
        (client, server): (Ipv4Addr, Ipv6Addr),
        now: Instant,
    ) -> Option<Ipv4Addr> {
        if let Some(address) = self.static_address(server) {
            return Some(address);
        }
        let key = MappingKey::Server(self.settings.key_of(client), server);
        let (_, mapping) = self.find(first, key)?;
        (seconds(now) < mapping.used_until).then_some(mapping.address)
    }

    /// A list may have changed since its first record was loaded.
    #[inline(always)]
    fn find(&self, first: u32, key: MappingKey) -> Option<(u32, Mapping)> {
        let found = self.lists.find_from(first, key, &self.records);
        found.or_else(|| self.lists.find(key, &self.records))
    }

    #[inline(always)]
    fn static_server(&self, address: Ipv4Addr) -> Option<Ipv6Addr> {
        if self.server_of_static.is_empty() {
            return None;
        }
        self.server_of_static.get(&address).copied()
    }

    #[inline(always)]
    fn static_address(&self, server: Ipv6Addr) -> Option<Ipv4Addr> {
        if self.address_of_static.is_empty() {
            return None;
        }
        self.address_of_static.get(&server).copied()
    }

    /// The client sends a packet after which it may be silent for `idle` seconds. Whether the packet may pass.
    #[inline(always)]
    #[must_use]
    pub(super) fn used(&self, used: Used, client: Ipv4Addr, now: Instant, idle: u32) -> bool {
        let until = seconds(now).saturating_add(idle);
        if until < used.until {
            return true;
        }
        if used.charged != client {
            return self.used_by_another(used, client, (seconds(now), until));
        }
        self.records.use_until(used.slot, until.saturating_add(USE_STEP));
        true
    }

    /// A client uses a mapping that counts for another one, and prolonging it makes it count for this client. A client at its limit does not prolong it,
    /// and does not resume a resting one: the address could represent another server while the client still uses it.
    #[cold]
    fn used_by_another(&self, used: Used, client: Ipv4Addr, (now, until): (u32, u32)) -> bool {
        let may = match self.control.try_lock() {
            Ok(mut control) => control.recharge(used.slot, client, &self.table()),
            // The lock is held by a thread that answers queries: the next packet counts.
            Err(_) => true,
        };
        if may {
            self.records.use_until(used.slot, until.saturating_add(USE_STEP));
        }
        may || now < used.live_until
    }

    /// The server that an address of the pool represents for a client.
    pub fn server_of(&self, client: Ipv4Addr, address: Ipv4Addr, now: Instant) -> Option<Ipv6Addr> {
        self.server_from(NONE, (client, address), now).map(|(server, _)| server)
    }

    /// The address that represents a server for a client, while the mapping is live.
    pub fn address_of(&self, client: Ipv4Addr, server: Ipv6Addr, now: Instant) -> Option<Ipv4Addr> {
        let key = MappingKey::Server(self.settings.key_of(client), server);
        let found = || self.lists.find(key, &self.records);
        self.static_address(server).or_else(|| {
            let (_, mapping) = found()?;
            (seconds(now) < mapping.end()).then_some(mapping.address)
        })
    }

    /// For how many more seconds an address that represents a server for a client cannot represent another one; `None`: without end.
    pub fn certain_for(&self, client: Ipv4Addr, address: Ipv4Addr, now: Instant) -> Option<u32> {
        if self.static_server(address).is_some() {
            return None;
        }
        let key = MappingKey::Address(self.settings.key_of(client), address);
        let free_at = self.lists.find(key, &self.records).map_or(0, |(_, mapping)| mapping.free_at());
        Some(free_at.saturating_sub(seconds(now)))
    }

    /// Whether a server has a static mapping.
    pub fn is_static(&self, server: Ipv6Addr) -> bool {
        self.static_address(server).is_some()
    }

    /// Whether a server has a mapping for this client, so that no new one is needed.
    pub fn knows(&self, client: Ipv4Addr, server: Ipv6Addr) -> bool {
        let key = MappingKey::Server(self.settings.key_of(client), server);
        self.static_address(server).is_some() || self.lists.find(key, &self.records).is_some()
    }

    /// The address that represents a server for a client, which may use the answer for `ttl` seconds.
    ///
    /// # Errors
    /// No mapping, with the reason.
    pub fn map(
        &self,
        client: Ipv4Addr,
        server: Ipv6Addr,
        ttl: u32,
        now: Instant,
    ) -> Result<Ipv4Addr, MappingRefused> {
        self.map_for(client, server, (ttl, true), now)
    }

    /// The same for a client whose address may be forged, unless it is `proven`: forged queries must not use up the client's limit.
    ///
    /// # Errors
    /// No mapping, with the reason.
    pub fn map_for(
        &self,
        client: Ipv4Addr,
        server: Ipv6Addr,
        (ttl, proven): (u32, bool),
        now: Instant,
    ) -> Result<Ipv4Addr, MappingRefused> {
        let mapped = self.map_uncounted(client, server, (ttl, proven), now);
        if let Err(why) = mapped {
            self.refused[why as usize].fetch_add(1, Relaxed);
        }
        mapped
    }

    fn map_uncounted(
        &self,
        client: Ipv4Addr,
        server: Ipv6Addr,
        (ttl, proven): (u32, bool),
        now: Instant,
    ) -> Result<Ipv4Addr, MappingRefused> {
        if !self.settings.is_client(client) {
            return Err(MappingRefused::NotClient);
        }
        if let Some(address) = self.static_address(server) {
            return Ok(address);
        }
        if !self.settings.is_server(server) {
            return Err(MappingRefused::NotServer);
        }
        let now = seconds(now);
        let (told_until, rest) = (now.saturating_add(ttl).saturating_add(MARGIN), ttl.saturating_add(REST));
        let mut control = self.control();
        self.end_due(&mut control, now, EXPIRED_FIRST);
        let key = MappingKey::Server(self.settings.key_of(client), server);
        if let Some((slot, mapping)) = self.lists.find(key, &self.records) {
            self.records.tell(slot, told_until, rest);
            return Ok(mapping.address);
        }
        let made = control.admit((client, server), (told_until, rest), (proven, now), &self.table())?;
        self.note_left(&control);
        self.made.fetch_add(1, Relaxed);
        Ok(made.address)
    }

    /// Ends mappings that have rested, examining at most `budget` entries. Does nothing while a query is answered, which does the same.
    pub fn expire(&self, now: Instant, budget: usize) {
        let now = seconds(now);
        if self.expired_at.load(Relaxed) == now {
            return;
        }
        if let Ok(mut control) = self.control.try_lock()
            && self.end_due(&mut control, now, budget) < budget as u64
        {
            self.expired_at.store(now, Relaxed);
        }
    }

    fn end_due(&self, control: &mut Control, now: u32, budget: usize) -> u64 {
        let ended = control.expire(now, budget, &self.table());
        if ended > 0 {
            self.ended.fetch_add(ended, Relaxed);
        }
        self.note_left(control);
        ended
    }

    fn note_left(&self, control: &Control) {
        self.left.store(control.addresses_left(), Relaxed);
    }

    /// Continues the mappings that another process left in its store.
    pub fn restore(&self, store: &dyn Words, now: Instant) -> MappingsKept {
        let Some((_, mut mappings)) = records::left(store) else { return MappingsKept::default() };
        let (now, table) = (seconds(now), self.table());
        let mut control = self.control();
        mappings.retain(|mapping| now < mapping.free_at());
        // Mappings that were live come before those that only rested, and may continue.
        mappings.sort_by_key(|mapping| mapping.rests_only);
        let left = mappings.len();
        mappings.retain(|mapping| !control.restore(mapping, now, &table));
        mappings.iter().for_each(|mapping| control.let_rest(mapping, now, &table));
        self.note_left(&control);
        MappingsKept { kept: (left - mappings.len()) as u64, ended: mappings.len() as u64 }
    }

    /// Continues one mapping of another process for an hour; `client` is `None` for one that all clients share. Returns whether it could.
    pub fn adopt(
        &self,
        (client, asking): (Option<Ipv4Addr>, Ipv4Addr),
        address: Ipv4Addr,
        server: Ipv6Addr,
        now: Instant,
    ) -> bool {
        const HOUR: u32 = 3_600;
        let (now, table) = (seconds(now), self.table());
        let until = now.saturating_add(HOUR);
        let mapping = Mapping {
            client: client.unwrap_or(Ipv4Addr::UNSPECIFIED),
            address,
            server,
            used_until: until,
            told_until: until,
            rest: 0,
            charged: client.unwrap_or(asking),
            rests_only: false,
        };
        let mut control = self.control();
        let is_kept = control.restore(&mapping, now, &table);
        self.note_left(&control);
        is_kept
    }

    /// The use of the table, and counters of events.
    pub fn counts(&self) -> MappingCounts {
        let mut refused = [0; MappingRefused::ALL.len()];
        refused.iter_mut().zip(&self.refused).for_each(|(number, count)| *number = count.load(Relaxed));
        MappingCounts {
            mappings: self.records.in_use.load(Relaxed),
            max_mappings: self.settings.max_mappings,
            statics: self.settings.statics.len() as u32,
            addresses: self.gives,
            addresses_used: self.gives.saturating_sub(self.left.load(Relaxed)),
            made: self.made.load(Relaxed),
            ended: self.ended.load(Relaxed),
            refused,
        }
    }

    /// Addresses that no shared mapping has, and that are not resting.
    pub fn addresses_left(&self) -> u32 {
        self.control().addresses_left()
    }

    /// Adds the mappings at `places` places from `from` on, static ones first. Returns where to continue; `None` at the end.
    pub fn rows(&self, from: u32, places: u32, now: Instant, rows: &mut Vec<MappingRow>) -> Option<u32> {
        let (now, statics) = (seconds(now), self.settings.statics.len() as u32);
        let end = statics.saturating_add(self.records.count());
        let until = from.saturating_add(places).min(end);
        for place in from..until {
            match place.checked_sub(statics) {
                None => rows.extend(self.settings.statics.get(place as usize).map(|(address, server)| {
                    let state = MappingState::Static;
                    MappingRow { client: None, address: *address, server: *server, state }
                })),
                Some(slot) => rows.extend(self.records.get(slot).map(|mapping| row(&mapping, now))),
            }
        }
        (until < end).then_some(until)
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    const fn table(&self) -> Table<'_> {
        Table { settings: &self.settings, records: &self.records, lists: &self.lists }
    }
}

/// A mapping that a packet uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    slot: u32,
    until: u32,
    live_until: u32,
    charged: Ipv4Addr,
}

fn row(mapping: &Mapping, now: u32) -> MappingRow {
    let state = match mapping.end().checked_sub(now) {
        Some(left @ 1..) if !mapping.rests_only => MappingState::Live(left),
        Some(_) | None => MappingState::Resting(mapping.free_at().saturating_sub(now)),
    };
    let client = Some(mapping.client).filter(|client| !client.is_unspecified());
    MappingRow { client, address: mapping.address, server: mapping.server, state }
}

fn seconds(now: Instant) -> u32 {
    u32::try_from(now.as_secs()).unwrap_or(u32::MAX)
}
