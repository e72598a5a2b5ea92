//! An open-addressing index: from a keyed 32-bit tag to slots of a slab.
//!
//! ```text
//!     entry:  | tag, 32 bits | slot + 1, 32 bits |      0: empty
//! ```
//!
//! Eight entries share a cache line, and an entry is stored at its home (the tag scaled to the table's size) or in the first
//! gap behind it, so nearly every lookup touches one line. Because the home follows from the tag alone, removal shifts
//! later entries back and leaves no tombstones. The table never grows: its owner's bound is known from the start. Memory of
//! zeros is an empty table, so the system lends it page by page as it fills, and a small site pays for what it uses.

use arrayvec::ArrayVec;

const EMPTY: u64 = 0;

/// An entry; `slot` is below `u32::MAX`.
#[inline]
const fn entry_of(tag: u32, slot: u32) -> u64 {
    (tag as u64) << 32 | (slot as u64 + 1)
}

/// The slot of an entry that is not empty.
#[inline]
const fn slot_of(entry: u64) -> u32 {
    (entry as u32).wrapping_sub(1)
}

/// Entries that wait together for their lines.
const LATE: usize = 16;

/// The index. Slots are below `u32::MAX`.
#[derive(Clone, Debug)]
pub struct Index {
    entries: Box<[u64]>,
    /// Entries added by [`Index::insert_late`] that are not in their places.
    late: ArrayVec<u64, LATE>,
}

impl Index {
    /// An index for at most `most` slots, at most two thirds full: larger ones cost more misses than their shorter runs save.
    pub fn new(most: u32) -> Self {
        Self::with_places(u64::from(most) * 3 / 2)
    }

    /// An index for at most `most` slots, at most a third full: its runs are short.
    pub fn sparse(most: u32) -> Self {
        Self::with_places(u64::from(most) * 3)
    }

    fn with_places(places: u64) -> Self {
        let entries = usize::try_from(places + 8).unwrap_or(usize::MAX);
        Self { entries: vec![EMPTY; entries].into_boxed_slice(), late: ArrayVec::new() }
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        ((u64::from(tag) * self.entries.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.entries.len() { 0 } else { at + 1 }
    }

    /// The entry at the tag's home, to be handed to [`Index::candidate`]: one load, which a batch can have in flight many
    /// times over.
    #[inline]
    pub fn touch(&self, tag: u32) -> u64 {
        self.entries.get(self.home(tag)).copied().unwrap_or(EMPTY)
    }

    /// The first slot with this tag, `touched` being what [`Index::touch`] returned. It may be another tuple's, or stale.
    #[inline(always)]
    pub fn candidate(&self, tag: u32, touched: u64) -> Option<u32> {
        if touched == EMPTY && self.late.is_empty() {
            return None;
        }
        if (touched >> 32) as u32 == tag && touched != EMPTY {
            return Some(slot_of(touched));
        }
        self.first(tag)
    }

    #[inline(never)]
    fn first(&self, tag: u32) -> Option<u32> {
        self.find(tag, |_| true)
    }

    /// The first slot with this tag that `is` the one looked for.
    #[inline]
    pub fn find(&self, tag: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = self.home(tag);
        loop {
            let entry = self.entries[at];
            if entry == EMPTY {
                return self.find_late(tag, is);
            }
            if (entry >> 32) as u32 == tag && is(slot_of(entry)) {
                return Some(slot_of(entry));
            }
            at = self.after(at);
        }
    }

    #[inline]
    fn find_late(&self, tag: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        if self.late.is_empty() {
            return None;
        }
        // All of them, without a branch for each: nearly always there is not one.
        let is_any = self.late.iter().fold(false, |is_any, entry| is_any | ((*entry >> 32) as u32 == tag));
        if !is_any {
            return None;
        }
        let mut tagged = self.late.iter().filter(|entry| (**entry >> 32) as u32 == tag);
        tagged.find(|entry| is(slot_of(**entry))).map(|entry| slot_of(*entry))
    }

    /// Adds a slot whose line is probably in no cache: it is found immediately, but put into its place together with others,
    /// so that one does not wait for its line after the other. Until then lookups that find nothing look among them, too.
    #[inline]
    pub fn insert_late(&mut self, tag: u32, slot: u32) {
        if self.late.is_full() {
            self.settle();
        }
        self.late.push(entry_of(tag, slot));
    }

    /// Puts what was inserted late into its place.
    pub fn settle(&mut self) {
        let late = core::mem::take(&mut self.late);
        core::hint::black_box(late.iter().fold(0, |sum, entry| sum ^ self.touch((*entry >> 32) as u32)));
        for entry in late {
            self.insert((entry >> 32) as u32, slot_of(entry));
        }
    }

    /// Adds a slot. The owner keeps the number of slots within the bound given at creation.
    pub fn insert(&mut self, tag: u32, slot: u32) {
        let mut at = self.home(tag);
        while self.entries[at] != EMPTY {
            at = self.after(at);
        }
        self.entries[at] = entry_of(tag, slot);
    }

    /// Takes a slot out; entries behind it move back to close the gap. Whether it was there.
    pub fn remove(&mut self, tag: u32, slot: u32) -> bool {
        let wanted = entry_of(tag, slot);
        if let Some(at) = self.late.iter().position(|entry| *entry == wanted) {
            self.late.swap_remove(at);
            return true;
        }
        let mut gap = self.home(tag);
        while self.entries[gap] != wanted {
            if self.entries[gap] == EMPTY {
                return false;
            }
            gap = self.after(gap);
        }
        self.close(gap);
        true
    }

    /// What is in a place: its tag and slot. What was inserted late has none yet.
    #[inline]
    pub fn at(&self, place: usize) -> Option<(u32, u32)> {
        let entry = self.entries.get(place).copied()?;
        (entry as u32 != 0).then(|| ((entry >> 32) as u32, slot_of(entry)))
    }

    /// Makes a slot's entry one without slot, which stays where it is. Whether it was there.
    pub fn blank(&mut self, tag: u32, slot: u32) -> bool {
        let wanted = entry_of(tag, slot);
        let mut at = self.home(tag);
        while self.entries[at] != wanted {
            if self.entries[at] == EMPTY {
                return false;
            }
            at = self.after(at);
        }
        // Not empty, even with the tag 0.
        self.entries[at] = (u64::from(tag) | 1) << 32;
        true
    }

    /// Number of places.
    pub fn places(&self) -> usize {
        self.entries.len()
    }

    /// Closes the gap of a removed entry.
    fn close(&mut self, mut gap: usize) {
        let mut at = self.after(gap);
        while self.entries[at] != EMPTY {
            let home = self.home((self.entries[at] >> 32) as u32);
            let home_is_between = if gap < at { gap < home && home <= at } else { gap < home || home <= at };
            if !home_is_between {
                self.entries[gap] = self.entries[at];
                gap = at;
            }
            at = self.after(at);
        }
        self.entries[gap] = EMPTY;
    }

    /// Memory in octets.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_index_finds_what_a_set_holds_and_nothing_else(
            // Few tags near both ends, so that runs form, merge and wrap around.
            steps in prop::collection::vec((0..3, prop_oneof![0u32..3, (u32::MAX - 2)..=u32::MAX, any::<u32>()], 0u32..12), 1..200)
        ) {
            let mut index = Index::new(40);
            let mut model = BTreeSet::new();
            for (insert, tag, slot) in steps {
                if insert == 0 {
                    index.remove(tag, slot);
                    model.remove(&(tag, slot));
                } else if model.len() < 40 && model.insert((tag, slot)) {
                    if insert == 1 { index.insert(tag, slot) } else { index.insert_late(tag, slot) }
                }
                for &(tag, slot) in &model {
                    prop_assert_eq!(index.find(tag, |s| s == slot), Some(slot));
                }
                let placed = index.entries.iter().filter(|entry| **entry != EMPTY).count();
                prop_assert_eq!(placed + index.late.len(), model.len());
                prop_assert_eq!(index.find(tag, |s| s == slot).is_some(), model.contains(&(tag, slot)));
            }
        }
    }

    #[test]
    fn homes_are_spread_over_all_entries() {
        let index = Index::new(100);
        let homes = [0, 1 << 30, 1 << 31, u32::MAX].map(|tag| index.home(tag));
        assert_eq!(homes, [0, index.entries.len() / 4, index.entries.len() / 2, index.entries.len() - 1]);
    }

    #[test]
    fn a_candidate_is_found_at_home_or_behind_it() {
        let mut index = Index::new(8);
        index.insert(5, 1);
        index.insert(6, 2);
        assert_eq!(index.candidate(5, index.touch(5)), Some(1));
        assert_eq!(index.candidate(6, index.touch(6)), Some(2));
        assert_eq!(index.candidate(7, index.touch(7)), None);
    }
}
