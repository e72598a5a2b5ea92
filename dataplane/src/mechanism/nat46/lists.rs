//! Records found by client and address, and by client and server: lists from hash buckets, which workers walk while a mapping is added or
//! removed.
//!
//! A record that leaves a list keeps its link, so that a reader that is at this record still reaches the rest of the list. It may be written again only
//! when no reader can be at it any more (see `control.rs`).

use super::records::{Mapping, NONE, Records};
use core::hash::Hasher as _;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Release};
use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;

/// The most records of a list that are read: no list has more, but a list may change while it is read.
const LONGEST: usize = 64;

/// How often a list that changes is walked.
const TRIES: usize = 8;

/// The lists of one kind of key.
pub(super) const BY_ADDRESS: usize = 0;
/// The other.
pub(super) const BY_SERVER: usize = 1;

/// The key of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MappingKey {
    /// The client and the address of the pool.
    Address(Ipv4Addr, Ipv4Addr),
    /// The client and the server.
    Server(Ipv4Addr, Ipv6Addr),
}

impl MappingKey {
    const fn list(self) -> usize {
        match self {
            Self::Address(..) => BY_ADDRESS,
            Self::Server(..) => BY_SERVER,
        }
    }

    #[inline(always)]
    fn is_of(self, mapping: &Mapping) -> bool {
        match self {
            Self::Address(client, address) => mapping.address == address && mapping.client == client,
            Self::Server(client, server) => mapping.server == server && mapping.client == client,
        }
    }
}

/// All lists.
pub(super) struct Lists {
    heads: [Box<[AtomicU32]>; 2],
    /// A hash shifted right by this many bits is a bucket.
    shift: u32,
    per_hasher: u64,
    shared: SharedSeed,
    /// Records that have left their lists.
    removed: AtomicU32,
}

impl Lists {
    /// Lists for this many records. The seed is secret, so that an attacker cannot make lists long.
    pub(super) fn new(records: u32, seed: [u64; 2]) -> Self {
        let buckets = (u64::from(records) * 2).next_power_of_two().max(4);
        let heads = || (0..buckets).map(|_| AtomicU32::new(NONE)).collect();
        Self {
            heads: [heads(), heads()],
            shift: 64 - buckets.trailing_zeros(),
            per_hasher: seed[0],
            shared: SharedSeed::from_u64(seed[1]),
            removed: AtomicU32::new(0),
        }
    }

    #[inline(always)]
    pub(super) fn hash(&self, key: MappingKey) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.per_hasher, &self.shared);
        match key {
            MappingKey::Address(client, address) => {
                hasher.write_u64(u64::from(client.to_bits()) << 32 | u64::from(address.to_bits()));
            }
            MappingKey::Server(client, server) => {
                hasher.write_u128(server.to_bits());
                hasher.write_u32(client.to_bits());
            }
        }
        hasher.finish()
    }

    #[inline(always)]
    fn head(&self, key: MappingKey) -> Option<&AtomicU32> {
        self.heads[key.list()].get((self.hash(key) >> self.shift) as usize)
    }

    /// The first record of the list in which the mapping is.
    #[inline(always)]
    pub(super) fn first(&self, key: MappingKey) -> u32 {
        self.head(key).map_or(NONE, |head| head.load(Acquire))
    }

    /// The mapping, from a record of its list on.
    #[inline(always)]
    pub(super) fn find_from(
        &self,
        mut slot: u32,
        key: MappingKey,
        records: &Records,
    ) -> Option<(u32, Mapping)> {
        for _ in 0..LONGEST {
            if slot == NONE {
                return None;
            }
            if let Some(mapping) = records.get(slot).filter(|mapping| key.is_of(mapping)) {
                return Some((slot, mapping));
            }
            slot = records.next(slot, key.list());
        }
        None
    }

    /// The mapping. If it is not found because a record left its list meanwhile, the search is repeated.
    pub(super) fn find(&self, key: MappingKey, records: &Records) -> Option<(u32, Mapping)> {
        for _ in 0..TRIES {
            let removed = self.removed.load(Acquire);
            let found = self.find_from(self.first(key), key, records);
            if found.is_some() || self.removed.load(Acquire) == removed {
                return found;
            }
        }
        None
    }

    /// Adds a record to both of its lists. Only one thread at a time adds and removes.
    pub(super) fn add(&self, slot: u32, mapping: &Mapping, records: &Records) {
        for key in keys(mapping) {
            if let Some(head) = self.head(key) {
                records.set_next(slot, key.list(), head.load(Acquire));
                head.store(slot, Release);
            }
        }
    }

    /// Removes a record from both.
    pub(super) fn remove(&self, slot: u32, mapping: &Mapping, records: &Records) {
        self.removed.fetch_add(1, Release);
        for key in keys(mapping) {
            let (list, after) = (key.list(), records.next(slot, key.list()));
            let mut before = self.first(key);
            if before == slot {
                self.head(key).into_iter().for_each(|head| head.store(after, Release));
                continue;
            }
            while before != NONE {
                let next = records.next(before, list);
                if next == slot {
                    records.set_next(before, list, after);
                    break;
                }
                before = next;
            }
        }
    }
}

fn keys(mapping: &Mapping) -> [MappingKey; 2] {
    let Mapping { client, address, server, .. } = *mapping;
    [MappingKey::Address(client, address), MappingKey::Server(client, server)]
}
