//! The table: an index of slots, in two regions, each with a hand that goes round it.

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

/// The part of the octets that entries on probation keep when the cache is full: a tenth.
const PROBATION: usize = 10;

/// The regions, by the highest bit of a place.
const REGION: u32 = 31;
const PROVEN: usize = 0;
const NEW: usize = 1;

/// Answers by question.
#[derive(Debug)]
pub struct Cache {
    index: HashTable<u32>,
    regions: [Region; 2],
    hasher: FixedState,
    limit: usize,
    evicted: u64,
}

/// Slots without gaps, and the hand.
#[derive(Debug, Default)]
struct Region {
    slots: Vec<Slot>,
    hand: usize,
    /// Octets that the answers hold outside their slots.
    held: usize,
}

impl Region {
    fn octets(&self) -> usize {
        self.held + allocated(self.slots.capacity() * size_of::<Slot>())
    }

    /// Makes room for one more slot: a sixteenth more, since a table that doubles wastes up to half of what it takes.
    fn grow(&mut self) {
        if self.slots.len() == self.slots.capacity() {
            self.slots.reserve_exact(self.slots.len() / 16 + 16);
        }
    }

    /// Gives memory back to the other region.
    fn shrink(&mut self) {
        let (length, spare) = (self.slots.len(), self.slots.len() / 16 + 16);
        if self.slots.capacity() > length + 2 * spare {
            self.slots.shrink_to(length + spare);
        }
    }
}

#[derive(Debug)]
struct Slot {
    answer: Answer,
    hash: u32,
    used: AtomicBool,
}

/// Where an entry is: its region and its slot there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place(u32);

impl Place {
    fn new(region: usize, slot: usize) -> Option<Self> {
        let slot = u32::try_from(slot).ok().filter(|slot| slot >> REGION == 0)?;
        Some(Self((region as u32) << REGION | slot))
    }

    fn region(self) -> usize {
        (self.0 >> REGION) as usize
    }

    fn slot(self) -> usize {
        (self.0 & !(1 << REGION)) as usize
    }
}

/// The index takes 64 bits and looks at the lowest and the highest of them.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

fn slot_at(regions: &[Region; 2], place: u32) -> &Slot {
    let place = Place(place);
    &regions[place.region()].slots[place.slot()]
}

impl Cache {
    /// An empty cache of at most this many octets. The seed must be secret, or an attacker could choose names that collide.
    #[must_use]
    pub fn new(octets: usize, seed: u64) -> Self {
        Self {
            index: HashTable::with_capacity(octets / SMALL_ENTRY),
            regions: Default::default(),
            hasher: FixedState::with_seed(seed),
            limit: octets,
            evicted: 0,
        }
    }

    /// The answer to a question, fresh or not; marks it as used.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<&Answer> {
        let slot = self.slot(key)?;
        slot.used.store(true, Ordering::Relaxed);
        Some(&slot.answer)
    }

    /// As [`Self::get`], for who waits since that time: what was stored for it is not used by that.
    #[must_use]
    pub fn get_since(&self, key: &Key, since: Instant) -> Option<&Answer> {
        let slot = self.slot(key)?;
        if slot.answer.stored() < since {
            slot.used.store(true, Ordering::Relaxed);
        }
        Some(&slot.answer)
    }

    /// As [`Self::get`], without marking it as used.
    #[must_use]
    pub fn peek(&self, key: &Key) -> Option<&Answer> {
        Some(&self.slot(key)?.answer)
    }

    /// Stores an answer, replacing the previous one to that question. Evicts others for it; an answer larger than the cache is not stored.
    pub fn insert(&mut self, key: &Key, answer: Answer) {
        debug_assert_eq!(answer.key(), *key, "an answer is kept under its own question");
        if let Some(place) = self.place(key) {
            let region = &mut self.regions[place.region()];
            let slot = &mut region.slots[place.slot()];
            region.held = region.held - slot.answer.allocated() + answer.allocated();
            slot.answer = answer;
        } else {
            let hash = self.hash(key.octets());
            self.append(NEW, Slot { answer, hash, used: AtomicBool::new(false) });
        }
        self.evict_down_to_the_limit();
    }

    /// Sets the DNSSEC status of the answer to a question.
    pub fn set_security(&mut self, key: &Key, security: Security, extended_error: Option<ExtendedError>) {
        let Some(place) = self.place(key) else { return };
        let region = &mut self.regions[place.region()];
        let answer = &mut region.slots[place.slot()].answer;
        region.held -= answer.allocated();
        answer.set_security(security, extended_error);
        region.held += answer.allocated();
    }

    /// Forgets all DNSSEC statuses; removes answers that did not validate.
    pub fn forget_verdicts(&mut self) {
        self.retain(|answer| {
            let kept = !matches!(answer.security(), Security::Bogus | Security::Indeterminate);
            if kept {
                answer.set_security(Security::Unchecked, None);
            }
            kept
        });
    }

    /// Limits the lifetime of the answer to a question to this many seconds from `now`.
    pub fn limit_lifetime(&mut self, key: &Key, now: Instant, seconds: u32) {
        if let Some(answer) = self.answer_mut(key) {
            answer.limit_lifetime(now, seconds);
        }
    }

    /// Clamps the lifetime of the answer to a question to these seconds from `now`.
    pub fn hold(&mut self, key: &Key, now: Instant, least: u32, most: u32) {
        if let Some(answer) = self.answer_mut(key) {
            answer.hold(now, least, most);
        }
    }

    /// Removes the answer to a question.
    pub fn remove(&mut self, key: &Key) -> Option<Answer> {
        self.place(key).map(|place| self.take(place).answer)
    }

    /// Removes the answers for which `keeps` is false. Returns how many.
    pub fn retain(&mut self, mut keeps: impl FnMut(&mut Answer) -> bool) -> usize {
        let before = self.len();
        for number in [PROVEN, NEW] {
            let mut at = 0;
            while let Some(slot) = self.regions[number].slots.get_mut(at) {
                let allocated = slot.answer.allocated();
                let kept = keeps(&mut slot.answer);
                let now = slot.answer.allocated();
                self.regions[number].held = self.regions[number].held - allocated + now;
                match Place::new(number, at).filter(|_| !kept) {
                    Some(place) => drop(self.take(place)),
                    None => at += 1,
                }
            }
        }
        before - self.len()
    }

    /// Takes another limit, in octets.
    pub fn resize(&mut self, octets: usize) {
        self.limit = octets;
        self.evict_down_to_the_limit();
    }

    /// Removes all answers for a name, in lower case, and, unless `exactly`, for all names below it. Returns how many.
    pub fn remove_below(&mut self, name: &[u8], exactly: bool) -> usize {
        self.retain(|answer| {
            let question = answer.question();
            let own = &question[..question.len() - 4];
            own != name && (exactly || !is_within(own, name))
        })
    }

    /// All answers, fresh or not: first those that were queried again, and of these those that were used since the hand passed them; then those on
    /// probation in the same order.
    pub fn answers_by_use(&self) -> impl Iterator<Item = &Answer> {
        [(PROVEN, true), (PROVEN, false), (NEW, true), (NEW, false)].into_iter().flat_map(|(number, used)| {
            let slots = self.regions[number].slots.iter();
            slots.filter(move |slot| slot.used.load(Ordering::Relaxed) == used).map(|slot| &slot.answer)
        })
    }

    /// Entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.regions.iter().map(|region| region.slots.len()).sum()
    }

    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Octets of memory, the allocator's own included.
    #[must_use]
    pub fn octets(&self) -> usize {
        let regions: usize = self.regions.iter().map(Region::octets).sum();
        regions + allocated(self.index.allocation_size())
    }

    /// Evicted entries.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    fn hash(&self, key: &[u8]) -> u32 {
        self.hasher.hash_one(key) as u32
    }

    fn place(&self, key: &Key) -> Option<Place> {
        let hash = self.hash(key.octets());
        let same = |place: &u32| {
            let slot = slot_at(&self.regions, *place);
            slot.hash == hash && slot.answer.octets().starts_with(key.octets())
        };
        self.index.find(spread(hash), same).map(|place| Place(*place))
    }

    fn slot(&self, key: &Key) -> Option<&Slot> {
        self.place(key).map(|place| slot_at(&self.regions, place.0))
    }

    fn answer_mut(&mut self, key: &Key) -> Option<&mut Answer> {
        let place = self.place(key)?;
        Some(&mut self.regions[place.region()].slots[place.slot()].answer)
    }

    fn append(&mut self, number: usize, slot: Slot) {
        let region = &mut self.regions[number];
        let Some(place) = Place::new(number, region.slots.len()) else { return };
        region.grow();
        region.held += slot.answer.allocated();
        let hash = spread(slot.hash);
        region.slots.push(slot);
        let regions = &self.regions;
        self.index.insert_unique(hash, place.0, |place| spread(slot_at(regions, *place).hash));
    }

    fn evict_down_to_the_limit(&mut self) {
        while self.octets() > self.limit && !self.is_empty() {
            self.evict();
        }
    }

    /// One step of a hand: of those on probation while they have more than their part, else of the others.
    fn evict(&mut self) {
        let new = self.regions[NEW].octets() * PROBATION > self.limit && !self.regions[NEW].slots.is_empty();
        let number = if new || self.regions[PROVEN].slots.is_empty() { NEW } else { PROVEN };
        let region = &mut self.regions[number];
        if region.hand >= region.slots.len() {
            region.hand = 0;
        }
        let at = region.hand;
        let used = region.slots.get_mut(at).is_some_and(|slot| std::mem::take(slot.used.get_mut()));
        region.hand += 1;
        let Some(place) = Place::new(number, at).filter(|_| number == NEW || !used) else { return };
        let slot = self.take(place);
        match used {
            true => self.append(PROVEN, slot),
            false => self.evicted += 1,
        }
    }

    fn take(&mut self, place: Place) -> Slot {
        self.unlist(place);
        let region = &mut self.regions[place.region()];
        let slot = region.slots.swap_remove(place.slot());
        region.held -= slot.answer.allocated();
        let last = Place::new(place.region(), region.slots.len());
        if let Some((moved, last)) = region.slots.get(place.slot()).zip(last)
            && let Some(listed) = self.index.find_mut(spread(moved.hash), |listed| *listed == last.0)
        {
            *listed = place.0;
        }
        self.regions[place.region()].shrink();
        slot
    }

    fn unlist(&mut self, place: Place) {
        let hash = spread(slot_at(&self.regions, place.0).hash);
        if let Ok(entry) = self.index.find_entry(hash, |listed| *listed == place.0) {
            entry.remove();
        }
    }
}

#[cfg(test)]
mod tests;
