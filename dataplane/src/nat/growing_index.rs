//! An index whose memory follows what is in it: for tables of which most sites fill a small part, such as hosts, of which there are far
//! fewer than bindings.
//!
//! When an [`Index`] is full another one of twice the size takes its place. The entries move with the next insertions, a few with each, so that
//! none of these takes long.

use super::index::Index;

/// Entries of the first index.
const FIRST: u32 = 256;

/// Places of the former index that are emptied with an insertion. An index for n entries has less than 2 n places, so it is empty before n more
/// entries have come.
const EMPTIED: usize = 16;

/// The index. Slots are below `u32::MAX`.
#[derive(Clone, Debug)]
pub struct GrowingIndex {
    current: Index,
    /// What it is for, until it is replaced.
    room: u32,
    /// The index that was too small, and the first of its places that may hold an entry.
    former: Option<(Index, usize)>,
    /// Number of entries.
    len: u32,
    most: u32,
}

impl GrowingIndex {
    /// An index for at most `most` slots.
    pub fn new(most: u32) -> Self {
        let room = FIRST.min(most);
        Self { current: Index::new(room), room, former: None, len: 0, most }
    }

    /// The entry at the tag's home, to prefetch it.
    #[inline]
    pub fn touch(&self, tag: u32) -> u64 {
        self.current.touch(tag)
    }

    /// The first slot with this tag that `is` the one looked for.
    #[inline]
    pub fn find(&self, tag: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        match &self.former {
            None => self.current.find(tag, is),
            Some((former, _)) => self.current.find(tag, &is).or_else(|| former.find(tag, is)),
        }
    }

    /// Adds a slot. The owner keeps the number of slots within the bound given at creation.
    pub fn insert(&mut self, tag: u32, slot: u32) {
        if self.len >= self.room && self.room < self.most {
            self.grow();
        }
        self.move_some(EMPTIED);
        self.current.insert(tag, slot);
        self.len += 1;
    }

    /// Takes a slot out.
    pub fn remove(&mut self, tag: u32, slot: u32) {
        let was_current = self.current.remove(tag, slot);
        let was_there =
            was_current || self.former.as_mut().is_some_and(|(former, _)| former.remove(tag, slot));
        self.len -= u32::from(was_there);
    }

    #[cold]
    fn grow(&mut self) {
        self.room = self.room.saturating_mul(2).min(self.most);
        let former = core::mem::replace(&mut self.current, Index::new(self.room));
        self.former = Some((former, 0));
    }

    #[inline]
    fn move_some(&mut self, places: usize) {
        if self.former.is_some() {
            self.move_entries(places);
        }
    }

    #[cold]
    fn move_entries(&mut self, places: usize) {
        let Some((former, at)) = &mut self.former else { return };
        for _ in 0..places {
            if *at >= former.places() {
                self.former = None;
                return;
            }
            // Entries behind an emptied place move back, so it is looked at until it stays empty.
            match former.take(*at) {
                Some((tag, slot)) => self.current.insert(tag, slot),
                None => *at += 1,
            }
        }
    }

    /// Memory in octets.
    pub fn memory(&self) -> usize {
        self.current.memory() + self.former.as_ref().map_or(0, |(former, _)| former.memory())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_growing_index_finds_what_a_set_holds_and_nothing_else(
            steps in prop::collection::vec((0..4, prop_oneof![0u32..3, (u32::MAX - 2)..=u32::MAX, any::<u32>()]), 1..4_000)
        ) {
            let mut index = GrowingIndex::new(1_000);
            let mut model = BTreeSet::new();
            for (slot, (kind, tag)) in steps.into_iter().enumerate() {
                let slot = slot as u32;
                if kind == 0 && let Some(&(tag, slot)) = model.range((tag, 0)..).next() {
                    index.remove(tag, slot);
                    model.remove(&(tag, slot));
                } else if model.len() < 1_000 && model.insert((tag, slot)) {
                    index.insert(tag, slot);
                }
                prop_assert_eq!(index.len as usize, model.len());
                prop_assert_eq!(index.find(tag, |s| s == slot).is_some(), model.contains(&(tag, slot)));
            }
            for &(tag, slot) in &model {
                prop_assert_eq!(index.find(tag, |s| s == slot), Some(slot));
            }
        }
    }

    /// Tags that are spread as those of hosts.
    fn tag(slot: u32) -> u32 {
        slot.wrapping_mul(0x9e37_79b9)
    }

    #[test]
    fn memory_follows_the_number_of_entries_up_to_the_bound() {
        let mut index = GrowingIndex::new(100_000);
        let of_bound = Index::new(100_000).memory();
        assert!(index.memory() * 100 < of_bound);
        for slot in 0..100_000 {
            index.insert(tag(slot), slot);
        }
        assert_eq!(index.room, 100_000);
        // Once its entries have moved the former one is gone.
        index.move_some(usize::MAX);
        assert_eq!(index.memory(), of_bound);
        assert!((0..100_000).all(|slot| index.find(tag(slot), |s| s == slot) == Some(slot)));
    }

    #[test]
    fn the_former_index_is_empty_before_another_growth() {
        let mut index = GrowingIndex::new(1 << 20);
        for slot in 0..FIRST * 64 {
            if index.len >= index.room {
                assert!(index.former.is_none(), "with {slot} entries");
            }
            index.insert(tag(slot), slot);
        }
    }
}
