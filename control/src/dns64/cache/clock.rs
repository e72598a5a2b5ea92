//! The table: an index of slots, and the hand that goes round them.

use crate::Instant;
use crate::dns64::answer::{Answer, ExtendedError, allocated};
use crate::dns64::ask::Security;
use crate::dns64::key::Key;
use crate::dns64::name::is_within;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};

/// Octets of a small entry, by which the index is laid out.
const SMALL_ENTRY: usize = 192;

/// Answers by question.
#[derive(Debug)]
pub struct Cache {
    index: HashTable<u32>,
    slots: Vec<Slot>,
    hand: usize,
    hasher: FixedState,
    /// Octets that the answers hold outside their slots.
    held: usize,
    limit: usize,
    evicted: u64,
}

#[derive(Debug)]
struct Slot {
    answer: Answer,
    hash: u32,
    used: AtomicBool,
}

/// The index takes 64 bits and looks at the lowest and the highest of them.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

impl Cache {
    /// An empty cache of at most this many octets. The seed must be secret, or an attacker could choose names that collide.
    #[must_use]
    pub fn new(octets: usize, seed: u64) -> Self {
        Self {
            index: HashTable::with_capacity(octets / SMALL_ENTRY),
            slots: Vec::new(),
            hand: 0,
            hasher: FixedState::with_seed(seed),
            held: 0,
            limit: octets,
            evicted: 0,
        }
    }

    /// The answer to a question, fresh or not; marks it as used.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<&Answer> {
        let slot = &self.slots[self.place(key)?];
        slot.used.store(true, Ordering::Relaxed);
        Some(&slot.answer)
    }

    /// As [`Self::get`], without marking it as used.
    #[must_use]
    pub fn peek(&self, key: &Key) -> Option<&Answer> {
        Some(&self.slots[self.place(key)?].answer)
    }

    /// Stores an answer, replacing the previous one to that question. Evicts others for it; an answer larger than the cache is not stored.
    pub fn insert(&mut self, key: &Key, answer: Answer) {
        debug_assert_eq!(answer.key(), *key, "an answer is kept under its own question");
        let size = answer.allocated();
        if let Some(place) = self.place(key) {
            self.held = self.held - self.slots[place].answer.allocated() + size;
            self.slots[place].answer = answer;
        } else {
            self.append(key, answer, size);
        }
        while self.octets() > self.limit && !self.slots.is_empty() {
            self.evict();
        }
    }

    /// Sets the DNSSEC status of the answer to a question.
    pub fn set_security(&mut self, key: &Key, security: Security, extended_error: Option<ExtendedError>) {
        let Some(place) = self.place(key) else { return };
        let answer = &mut self.slots[place].answer;
        self.held -= answer.allocated();
        answer.set_security(security, extended_error);
        self.held += answer.allocated();
    }

    /// Forgets all DNSSEC statuses; removes answers that did not validate.
    pub fn forget_verdicts(&mut self) {
        let mut place = 0;
        while let Some(slot) = self.slots.get_mut(place) {
            if matches!(slot.answer.security(), Security::Bogus | Security::Indeterminate) {
                self.take(place);
            } else {
                slot.answer.set_security(Security::Unchecked, None);
                place += 1;
            }
        }
    }

    /// Limits the lifetime of the answer to a question to this many seconds from `now`.
    pub fn limit_lifetime(&mut self, key: &Key, now: Instant, seconds: u32) {
        if let Some(place) = self.place(key) {
            self.slots[place].answer.limit_lifetime(now, seconds);
        }
    }

    /// Clamps the lifetime of the answer to a question to these seconds from `now`.
    pub fn hold(&mut self, key: &Key, now: Instant, least: u32, most: u32) {
        if let Some(place) = self.place(key) {
            self.slots[place].answer.hold(now, least, most);
        }
    }

    /// Removes the answer to a question.
    pub fn remove(&mut self, key: &Key) -> Option<Answer> {
        self.place(key).map(|place| self.take(place))
    }

    /// Removes all answers for a name, in lower case, and, unless `exactly`, for all names below it. Returns how many.
    pub fn remove_below(&mut self, name: &[u8], exactly: bool) -> usize {
        let before = self.len();
        let mut place = 0;
        while let Some(slot) = self.slots.get(place) {
            let question = slot.answer.question();
            let own = &question[..question.len() - 4];
            if own == name || !exactly && is_within(own, name) {
                self.take(place);
            } else {
                place += 1;
            }
        }
        before - self.len()
    }

    /// Entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Octets of memory, the allocator's own included.
    #[must_use]
    pub fn octets(&self) -> usize {
        let slots = allocated(self.slots.capacity() * size_of::<Slot>());
        self.held + slots + allocated(self.index.allocation_size())
    }

    /// Evicted entries.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    fn hash(&self, key: &[u8]) -> u32 {
        self.hasher.hash_one(key) as u32
    }

    fn place(&self, key: &Key) -> Option<usize> {
        let hash = self.hash(key.octets());
        let same = |place: &u32| {
            let slot = &self.slots[*place as usize];
            slot.hash == hash && slot.answer.octets().starts_with(key.octets())
        };
        self.index.find(spread(hash), same).map(|place| *place as usize)
    }

    fn append(&mut self, key: &Key, answer: Answer, size: usize) {
        if self.slots.len() == self.slots.capacity() {
            // An eighth more: a table that doubles wastes up to half of what it takes.
            self.slots.reserve_exact(self.slots.len() / 8 + 16);
        }
        let hash = self.hash(key.octets());
        let Ok(place) = u32::try_from(self.slots.len()) else { return };
        self.slots.push(Slot { answer, hash, used: AtomicBool::new(false) });
        self.held += size;
        let slots = &self.slots;
        self.index.insert_unique(spread(hash), place, |place| spread(slots[*place as usize].hash));
    }

    /// One step of the hand.
    fn evict(&mut self) {
        if self.hand >= self.slots.len() {
            self.hand = 0;
        }
        if !std::mem::take(self.slots[self.hand].used.get_mut()) {
            self.take(self.hand);
            self.evicted += 1;
        }
        self.hand += 1;
    }

    fn take(&mut self, place: usize) -> Answer {
        self.unlist(place);
        let slot = self.slots.swap_remove(place);
        if let Some(moved) = self.slots.get(place) {
            let last = self.slots.len() as u32;
            if let Some(listed) = self.index.find_mut(spread(moved.hash), |listed| *listed == last) {
                *listed = place as u32;
            }
        }
        self.held -= slot.answer.allocated();
        slot.answer
    }

    fn unlist(&mut self, place: usize) {
        let hash = spread(self.slots[place].hash);
        if let Ok(entry) = self.index.find_entry(hash, |listed| *listed as usize == place) {
            entry.remove();
        }
    }
}

#[cfg(test)]
mod tests;
