//! The mappings' records: words that every worker reads without a lock, and that may lie in a file which outlives the process.
//!
//! ```text
//!     words  0        1       2        3 … 6    7           8           9     10       11         12         13
//!            version  client  address  server   used until  told until  rest  charged  next by P  next by S  rests only
//! ```
//!
//! A record takes a cache line. It is written while no list contains it, and not before all readers that may have found it there have
//! finished. Its version is odd meanwhile, so that a reader never combines halves of two mappings.

use core::net::{Ipv4Addr, Ipv6Addr};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, fence};

/// Words of a record, and of the header in front of all of them.
const RECORD: usize = 16;
/// "nt46", then the version of what follows.
const MAGIC: u32 = 0x6e74_3436;
const LAYOUT: u32 = 2;

const VERSION: usize = 0;
const CLIENT: usize = 1;
const ADDRESS: usize = 2;
const SERVER: usize = 3;
const USED: usize = 7;
const TOLD: usize = 8;
const REST: usize = 9;
const CHARGED: usize = 10;
/// The next record of the same list: by client and address, by client and server.
pub(super) const NEXT: [usize; 2] = [11, 12];
const RESTS_ONLY: usize = 13;

/// No record.
pub(super) const NONE: u32 = u32::MAX;

/// The memory of the records.
pub trait Words: Send + Sync {
    /// The words: all zero when they are new.
    fn words(&self) -> &[AtomicU32];
}

impl Words for Box<[AtomicU32]> {
    fn words(&self) -> &[AtomicU32] {
        self
    }
}

/// The client of a mapping, and its end; times in seconds of the caller's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The client; 0.0.0.0 of one that all clients share.
    pub client: Ipv4Addr,
    /// The address of the pool.
    pub address: Ipv4Addr,
    /// The server that it represents.
    pub server: Ipv6Addr,
    /// The client's packets keep it until then.
    pub used_until: u32,
    /// Clients may use the answer with it until then.
    pub told_until: u32,
    /// For how long after its end the address represents no other server.
    pub rest: u32,
    /// The client that it counts for.
    pub charged: Ipv4Addr,
    /// It cannot continue with this process's configuration: no list contains it, and its address represents nothing until it is free.
    pub rests_only: bool,
}

impl Mapping {
    /// Its end, unless it is used or given in an answer again.
    pub const fn end(&self) -> u32 {
        if self.used_until > self.told_until { self.used_until } else { self.told_until }
    }

    /// When its address may represent another server.
    pub const fn free_at(&self) -> u32 {
        self.end().saturating_add(self.rest)
    }
}

/// The records.
pub(super) struct Records {
    store: Box<dyn Words>,
    count: u32,
    /// Those that a list contains.
    pub(super) in_use: AtomicU32,
}

impl Records {
    /// The words that this many records need.
    pub(super) const fn words(count: u32) -> usize {
        RECORD * (count as usize + 1)
    }

    /// Empty records, as many as the store has room for.
    pub(super) fn new(store: Box<dyn Words>, max_mappings: u32) -> Self {
        let words = store.words();
        let count = (words.len() / RECORD).saturating_sub(1);
        let header = [MAGIC, LAYOUT, max_mappings];
        words.iter().zip(header).for_each(|(word, value)| word.store(value, Relaxed));
        let count = u32::try_from(count).unwrap_or(NONE).min(NONE - 1);
        Self { count, store, in_use: AtomicU32::new(0) }
    }

    /// Their number.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    #[inline(always)]
    fn record(&self, slot: u32) -> Option<&[AtomicU32; RECORD]> {
        let at = RECORD * (slot as usize + 1);
        self.store.words().get(at..at + RECORD)?.first_chunk()
    }

    /// Loads its cache line.
    #[inline(always)]
    pub(super) fn touch(&self, slot: u32) {
        core::hint::black_box(self.record(slot).map(|record| record[VERSION].load(Relaxed)));
    }

    /// The mapping in a record; `None`: it is being written, or empty.
    #[inline(always)]
    pub(super) fn get(&self, slot: u32) -> Option<Mapping> {
        read(self.record(slot)?)
    }

    /// Writes a record that no list contains.
    pub(super) fn set(&self, slot: u32, mapping: &Mapping) {
        let Some(record) = self.record(slot) else { return };
        let version = self.clear(slot);
        record[CLIENT].store(mapping.client.to_bits(), Relaxed);
        record[ADDRESS].store(mapping.address.to_bits(), Relaxed);
        let server = mapping.server.to_bits();
        for (word, shift) in record[SERVER..USED].iter().zip([96, 64, 32, 0]) {
            word.store((server >> shift) as u32, Relaxed);
        }
        record[USED].store(mapping.used_until, Relaxed);
        record[TOLD].store(mapping.told_until, Relaxed);
        record[REST].store(mapping.rest, Relaxed);
        record[CHARGED].store(mapping.charged.to_bits(), Relaxed);
        record[RESTS_ONLY].store(mapping.rests_only.into(), Relaxed);
        record[VERSION].store(version.wrapping_add(1).max(2), Release);
    }

    /// Empties a record, so that readers find nothing. Returns its version, which is odd.
    pub(super) fn clear(&self, slot: u32) -> u32 {
        let Some(record) = self.record(slot) else { return 1 };
        let version = record[VERSION].load(Relaxed) | 1;
        record[VERSION].store(version, Relaxed);
        fence(Release);
        version
    }

    /// The client uses the mapping until then at least.
    #[inline(always)]
    pub(super) fn use_until(&self, slot: u32, until: u32) {
        if let Some(record) = self.record(slot) {
            record[USED].fetch_max(until, Relaxed);
        }
    }

    /// It counts for another client.
    pub(super) fn charge(&self, slot: u32, client: Ipv4Addr) {
        if let Some(record) = self.record(slot) {
            record[CHARGED].store(client.to_bits(), Relaxed);
        }
    }

    /// It was given in another answer.
    pub(super) fn tell(&self, slot: u32, until: u32, rest: u32) {
        if let Some(record) = self.record(slot) {
            record[TOLD].fetch_max(until, Relaxed);
            record[REST].fetch_max(rest, Relaxed);
        }
    }

    /// The record after this one in a list.
    #[inline(always)]
    pub(super) fn next(&self, slot: u32, list: usize) -> u32 {
        self.record(slot).map_or(NONE, |record| record[NEXT[list]].load(Acquire))
    }

    pub(super) fn set_next(&self, slot: u32, list: usize, next: u32) {
        if let Some(record) = self.record(slot) {
            record[NEXT[list]].store(next, Release);
        }
    }
}

/// The records that a process left in a store, and how many mappings it could have. `None`: it is not such a store.
pub(super) fn left(store: &dyn Words) -> Option<(u32, Vec<Mapping>)> {
    let words = store.words();
    let word = |at: usize| words.get(at).map(|word| word.load(Relaxed));
    if (word(0)?, word(1)?) != (MAGIC, LAYOUT) {
        return None;
    }
    let records = words.get(RECORD..)?.chunks_exact(RECORD);
    let found = records.filter_map(|record| read(record.first_chunk()?));
    Some((word(2)?, found.collect()))
}

#[inline(always)]
fn read(record: &[AtomicU32; RECORD]) -> Option<Mapping> {
    let version = record[VERSION].load(Acquire);
    if version & 1 == 1 || version == 0 {
        return None;
    }
    let word = |at: usize| record[at].load(Relaxed);
    let server = (0..4).fold(0, |bits, place| bits << 32 | u128::from(word(SERVER + place)));
    let mapping = Mapping {
        client: Ipv4Addr::from_bits(word(CLIENT)),
        address: Ipv4Addr::from_bits(word(ADDRESS)),
        server: Ipv6Addr::from_bits(server),
        used_until: word(USED),
        told_until: word(TOLD),
        rest: word(REST),
        charged: Ipv4Addr::from_bits(word(CHARGED)),
        rests_only: word(RESTS_ONLY) != 0,
    };
    fence(Acquire);
    (word(VERSION) == version).then_some(mapping)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(count: u32) -> Box<dyn Words> {
        let words: Box<[AtomicU32]> = (0..Records::words(count)).map(|_| AtomicU32::new(0)).collect();
        Box::new(words)
    }

    fn mapping(number: u32) -> Mapping {
        Mapping {
            client: Ipv4Addr::from_bits(number),
            address: Ipv4Addr::from_bits(number + 1),
            server: Ipv6Addr::from_bits(u128::from(number) << 100 | 5 << 64 | 6 << 32 | 7),
            used_until: number + 2,
            told_until: number + 3,
            rest: number + 4,
            charged: Ipv4Addr::from_bits(number + 5),
            rests_only: number.is_multiple_of(2),
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_an_empty_one_is_not_read() {
        let records = Records::new(memory(3), 3);
        assert_eq!((records.count(), records.get(0), records.get(3)), (3, None, None));
        for number in [7, 9] {
            records.set(2, &mapping(number));
            assert_eq!(records.get(2), Some(mapping(number)));
        }
        records.use_until(2, 100);
        records.use_until(2, 90);
        records.tell(2, 50, 1);
        let changed = records.get(2).unwrap();
        assert_eq!((changed.used_until, changed.told_until, changed.rest), (100, 50, 13));
        assert_eq!((changed.end(), changed.free_at()), (100, 113));
        records.clear(2);
        assert_eq!(records.get(2), None);
    }

    #[test]
    fn what_a_process_left_is_read_from_its_store() {
        let records = Records::new(memory(3), 2);
        records.set(0, &mapping(1));
        records.set(2, &mapping(2));
        records.clear(0);
        assert_eq!(left(&*records.store), Some((2, vec![mapping(2)])));
        assert_eq!(left(&*memory(1)), None);
        assert_eq!(left(&*memory(0)), None);
    }
}
