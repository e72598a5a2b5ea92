//! An index whose memory grows with its contents: most sites fill a small part of their tables. A small index is in the CPU's caches as a
//! whole, whatever the tables' bounds are.
//!
//! When an [`Index`] is full another one of four times the size takes its place, of twice the size where that is much memory. The entries move
//! with the next insertions, a few with each, so that none of these takes long. Behind [`DOUBLED`] entries the next one has all the room there
//! may be: its memory is touched as it fills, and giving a still larger one back would take the operating system too long.

use super::index::Index;
use super::slab::NONE;

/// Entries of the first index.
const FIRST: u32 = 256;

/// Up to this room it grows fourfold: a third as many entries move as if it doubled.
const FOURFOLD: u32 = 1 << 18;

/// With this room it does not double any more.
const DOUBLED: u32 = 1 << 20;

/// Up to this room an index is sparse: it fits into a cache with all its gaps.
const SPARSE: u32 = 1 << 15;

/// Places of the former index whose entries move with an insertion. An index for n entries has about 3 n places at most, so all have moved
/// before n more entries have come.
const MOVED: usize = 8;

/// The index. Slots are below `u32::MAX`.
#[derive(Clone, Debug)]
pub struct GrowingIndex {
    current: Index,
    /// What it is for, until it is replaced.
    room: u32,
    /// The index that was too small, and the first of its places whose entry has not moved. What has moved is in both.
    former: Option<(Index, usize)>,
    /// Number of entries.
    len: u32,
    most: u32,
}

impl GrowingIndex {
    /// An index for at most `most` slots.
    pub fn new(most: u32) -> Self {
        let room = FIRST.min(most);
        Self { current: index_for(room), room, former: None, len: 0, most }
    }

    /// The entry at the tag's home, to be handed to [`GrowingIndex::candidate`], as [`Index::touch`].
    #[inline]
    pub fn touch(&self, tag: u32) -> u64 {
        self.current.touch(tag)
    }

    /// The first slot with this tag, as [`Index::candidate`].
    #[inline(always)]
    pub fn candidate(&self, tag: u32, touched: u64) -> Option<u32> {
        match self.current.candidate(tag, touched) {
            None if self.former.is_some() => self.former_candidate(tag),
            found => found,
        }
    }

    #[cold]
    #[inline(never)]
    fn former_candidate(&self, tag: u32) -> Option<u32> {
        self.former.as_ref()?.0.find(tag, |slot| slot != NONE)
    }

    /// The first slot with this tag that `is` the one looked for.
    #[inline]
    pub fn find(&self, tag: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        match &self.former {
            None => self.current.find(tag, is),
            Some((former, _)) => {
                self.current.find(tag, &is).or_else(|| former.find(tag, |slot| slot != NONE && is(slot)))
            }
        }
    }

    /// Adds a slot. The owner keeps the number of slots within the bound given at creation.
    pub fn insert(&mut self, tag: u32, slot: u32) {
        self.make_room();
        self.current.insert(tag, slot);
    }

    /// Adds a slot whose line is probably in no cache, as [`Index::insert_late`].
    #[inline]
    pub fn insert_late(&mut self, tag: u32, slot: u32) {
        self.make_room();
        self.current.insert_late(tag, slot);
    }

    /// Puts what was inserted late into its place.
    pub fn settle(&mut self) {
        self.current.settle();
    }

    /// Makes room for one more entry, and counts it.
    #[inline]
    fn make_room(&mut self) {
        if self.len >= self.room && self.room < self.most {
            self.grow();
        }
        self.move_some(MOVED);
        self.len += 1;
    }

    /// Takes a slot out.
    pub fn remove(&mut self, tag: u32, slot: u32) {
        let was_current = self.current.remove(tag, slot);
        let was_former = self.former.as_mut().is_some_and(|(former, _)| former.blank(tag, slot));
        self.len -= u32::from(was_current | was_former);
    }

    #[cold]
    fn grow(&mut self) {
        self.room = match self.room {
            room if room < FOURFOLD => (room * 4).min(self.most),
            room if room < DOUBLED => (room * 2).min(self.most),
            _ => self.most,
        };
        self.current.settle();
        let former = core::mem::replace(&mut self.current, index_for(self.room));
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
        let end = at.saturating_add(places).min(former.places());
        for place in *at..end {
            if let Some((tag, slot)) = former.at(place) {
                self.current.insert(tag, slot);
            }
        }
        *at = end;
        if end == former.places() {
            self.former = None;
        }
    }

    /// Memory in octets.
    pub fn memory(&self) -> usize {
        self.current.memory() + self.former.as_ref().map_or(0, |(former, _)| former.memory())
    }
}

/// An index for at most this many slots.
fn index_for(room: u32) -> Index {
    if room <= SPARSE { Index::sparse(room) } else { Index::new(room) }
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
                    if kind == 1 { index.insert_late(tag, slot) } else { index.insert(tag, slot) }
                }
                prop_assert_eq!(index.len as usize, model.len());
                prop_assert_eq!(index.find(tag, |s| s == slot).is_some(), model.contains(&(tag, slot)));
                let tagged: Vec<_> = model.range((tag, 0)..=(tag, u32::MAX)).map(|(_, slot)| *slot).collect();
                let candidate = index.candidate(tag, index.touch(tag));
                prop_assert!(candidate.map_or(tagged.is_empty(), |slot| tagged.contains(&slot)));
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
        // Once its entries have moved, the old table is freed.
        index.move_some(usize::MAX);
        assert_eq!(index.memory(), of_bound);
        assert!((0..100_000).all(|slot| index.find(tag(slot), |s| s == slot) == Some(slot)));
    }

    /// Of the tag 0 nothing would be left but an empty place, behind which nothing is found.
    #[test]
    fn what_is_removed_while_entries_move_is_not_found_and_hides_nothing() {
        for tag in [0, 1, 7, u32::MAX] {
            let mut index = GrowingIndex::new(1 << 16);
            (0..FIRST).for_each(|slot| index.insert(tag, slot));
            // The next one finds no room: all have to move, and none of them has.
            index.insert(tag, FIRST);
            assert!(index.former.is_some());
            for slot in (0..=FIRST).step_by(2) {
                index.remove(tag, slot);
                assert!(index.find(tag, |_| true) != Some(slot));
                assert_ne!(index.candidate(tag, index.touch(tag)), Some(NONE));
                assert_ne!(index.find(tag, |_| true), Some(NONE));
            }
            assert_eq!(index.len, FIRST / 2);
            // A slot that is used again is one entry, though the former index knew it.
            index.insert(tag, 0);
            index.remove(tag, 0);
            let is_left = |slot: u32| index.find(tag, |it| it == slot).is_some();
            assert!((0..=FIRST).all(|slot| is_left(slot) == (slot % 2 == 1)), "{tag}");
            index.move_some(usize::MAX);
            let is_left = |slot: u32| index.find(tag, |it| it == slot).is_some();
            assert!((0..=FIRST).all(|slot| is_left(slot) == (slot % 2 == 1)), "{tag}, when all have moved");
        }
    }

    #[test]
    fn what_waits_for_its_place_moves_with_the_others() {
        let mut index = GrowingIndex::new(1 << 16);
        (0..FIRST).for_each(|slot| index.insert_late(tag(slot), slot));
        assert!(index.former.is_none());
        index.insert_late(tag(FIRST), FIRST);
        assert!((0..=FIRST).all(|slot| index.find(tag(slot), |it| it == slot).is_some()));
        assert!((0..=FIRST).all(|slot| index.candidate(tag(slot), index.touch(tag(slot))).is_some()));
    }

    /// The last growth is to all the room there may be, and no insertion moves more than a few entries.
    #[test]
    fn behind_a_million_entries_there_is_one_more_growth_and_no_long_one() {
        let most = 4 * DOUBLED;
        let mut index = GrowingIndex::new(most);
        let mut rooms = vec![index.room];
        for slot in 0..=DOUBLED {
            let before = index.former.as_ref().map_or(0, |(_, at)| *at);
            index.insert(tag(slot), slot);
            let after = index.former.as_ref().map_or(before, |(_, at)| *at);
            assert!(after.saturating_sub(before) <= MOVED, "{slot}");
            if rooms.last() != Some(&index.room) {
                rooms.push(index.room);
            }
        }
        let fourfold: Vec<u32> = (8..=18).step_by(2).map(|bits| 1 << bits).collect();
        assert_eq!(rooms, [fourfold, vec![1 << 19, DOUBLED, most]].concat());
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
