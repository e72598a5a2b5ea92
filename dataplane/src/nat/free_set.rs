//! A set of small numbers that finds the next member at or after any number in a bounded number of steps.
//!
//! Bits, and above each 64-bit word of bits one bit that says whether it holds any, and so on up to a single word. A search
//! climbs until a level shows something ahead, then descends to it: at most two words a level, three levels for 32,768.

/// The set.
#[derive(Clone, Debug)]
pub struct FreeSet {
    words: Box<[u64]>,
    /// Where each level starts in `words`, lowest first.
    levels: Box<[u32]>,
    size: u32,
}

impl FreeSet {
    /// An empty set of numbers below `size`.
    pub fn new(size: u32) -> Self {
        let mut levels = Vec::new();
        let (mut total, mut width) = (0u32, size.max(1));
        loop {
            width = width.div_ceil(64);
            levels.push(total);
            total += width;
            if width == 1 {
                break;
            }
        }
        Self { words: vec![0; total as usize].into_boxed_slice(), levels: levels.into_boxed_slice(), size }
    }

    /// Whether `number` is a member.
    #[inline]
    pub fn contains(&self, number: u32) -> bool {
        number < self.size && self.words[(number / 64) as usize] >> (number % 64) & 1 == 1
    }

    /// Adds a number below the size; whether it was no member.
    pub fn insert(&mut self, number: u32) -> bool {
        if number >= self.size || self.contains(number) {
            return false;
        }
        let mut at = number;
        for level in &self.levels {
            let word = &mut self.words[(level + at / 64) as usize];
            let was_empty = *word == 0;
            *word |= 1 << (at % 64);
            if !was_empty {
                break;
            }
            at /= 64;
        }
        true
    }

    /// Takes a number out; whether it was a member.
    pub fn remove(&mut self, number: u32) -> bool {
        if !self.contains(number) {
            return false;
        }
        let mut at = number;
        for level in &self.levels {
            let word = &mut self.words[(level + at / 64) as usize];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                break;
            }
            at /= 64;
        }
        true
    }

    /// Takes the numbers from `low` to below `high` out, a word at a time; how many were members.
    pub fn remove_range(&mut self, low: u32, high: u32) -> u32 {
        let (mut low, mut high, mut removed) = (low, high.min(self.size), 0);
        for (level, start) in self.levels.iter().enumerate() {
            if low >= high {
                break;
            }
            for (word, mask) in words_of(low, high) {
                let at = &mut self.words[(start + word) as usize];
                if level == 0 {
                    removed += (*at & mask).count_ones();
                }
                *at &= !mask;
            }
            // Of these words, those between the first and the last are empty from now on.
            let (first, last) = (low / 64, (high - 1) / 64);
            let is_used = |word: u32| u32::from(self.words[(start + word) as usize] != 0);
            (low, high) = (first + is_used(first), last + 1 - is_used(last));
        }
        removed
    }

    /// Adds the members of another set of this size from `low` to below `high`, a word at a time; how many were not members.
    pub fn insert_range(&mut self, low: u32, high: u32, from: &Self) -> u32 {
        let (mut low, mut high, mut added) = (low, high.min(self.size), 0);
        for (level, start) in self.levels.iter().enumerate() {
            if low >= high {
                break;
            }
            for (word, mask) in words_of(low, high) {
                let at = (start + word) as usize;
                let new = from.words[at] & mask & !self.words[at];
                if level == 0 {
                    added += new.count_ones();
                }
                self.words[at] |= new;
            }
            // Of these words, those between the first and the last are used if they are in the other set.
            let (first, last) = (low / 64, (high - 1) / 64);
            for word in [first, last] {
                if self.words[(start + word) as usize] != 0 {
                    became_used(&self.levels[level + 1..], &mut self.words, word);
                }
            }
            (low, high) = (first + 1, last);
        }
        added
    }

    /// The smallest member that is `from` or greater. `steps` grows by the number of words looked at.
    fn next(&self, from: u32, steps: &mut u32) -> Option<u32> {
        if from >= self.size {
            return None;
        }
        let (mut at, mut level) = (from, 0);
        loop {
            *steps += 1;
            // Of level 0 the bit at `at` itself counts; above it only those behind, which represent words not yet seen.
            let word = self.words.get((self.levels[level] + at / 64) as usize)?;
            let ahead = word & (u64::MAX << (at % 64));
            if ahead != 0 {
                at = at / 64 * 64 + ahead.trailing_zeros();
                break;
            }
            level += 1;
            at = at / 64 + 1;
            let width = if level < self.levels.len() { self.width(level - 1) } else { return None };
            if at >= width {
                return None;
            }
        }
        while level > 0 {
            level -= 1;
            *steps += 1;
            let word = self.words[(self.levels[level] + at) as usize];
            at = at * 64 + word.trailing_zeros();
        }
        Some(at)
    }

    /// Words in a level.
    fn width(&self, level: usize) -> u32 {
        let end = self.levels.get(level + 1).copied().unwrap_or(self.words.len() as u32);
        end - self.levels[level]
    }

    /// The first member at or behind `start` in `low..high`, going round once. `steps` grows by the words looked at.
    pub fn find(&self, start: u32, low: u32, high: u32, steps: &mut u32) -> Option<u32> {
        let ahead = self.next(start.max(low), steps).filter(|found| *found < high);
        ahead.or_else(|| self.next(low, steps).filter(|found| *found < high))
    }

    /// Memory in octets.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.words) + size_of_val(&*self.levels)
    }
}

/// A word below these levels is not empty any more.
fn became_used(levels: &[u32], words: &mut [u64], word: u32) {
    let mut at = word;
    for level in levels {
        let above = &mut words[(level + at / 64) as usize];
        let was_empty = *above == 0;
        *above |= 1 << (at % 64);
        if !was_empty {
            break;
        }
        at /= 64;
    }
}

/// The words that hold the numbers from `low` to below `high`, each with the bits of these.
fn words_of(low: u32, high: u32) -> impl Iterator<Item = (u32, u64)> {
    (low / 64..high.div_ceil(64)).map(move |word| {
        let first = low.saturating_sub(word * 64);
        let behind = high - word * 64;
        let below = if behind >= 64 { u64::MAX } else { (1 << behind) - 1 };
        (word, below & (u64::MAX << first))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_next_member_is_the_one_an_ordered_set_names(
            size in 1u32..70_000,
            numbers in prop::collection::vec(any::<u32>(), 0..60),
            removed in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
            asked in prop::collection::vec((any::<u32>(), any::<u32>(), any::<u32>()), 1..20),
        ) {
            let mut set = FreeSet::new(size);
            let mut model = BTreeSet::new();
            for number in &numbers {
                prop_assert_eq!(set.insert(number % size), model.insert(number % size));
            }
            for index in removed.iter().filter(|_| !numbers.is_empty()) {
                let number = index.get(&numbers) % size;
                prop_assert_eq!(set.remove(number), model.remove(&number));
            }
            prop_assert!((0..size).filter(|n| set.contains(*n)).eq(model.iter().copied()));
            for (start, a, b) in asked {
                let (start, a, b) = (start % size, a % size, b % size);
                let (low, high) = (a.min(b), a.max(b));
                let expected = model.range(start.max(low)..).next().filter(|n| **n < high)
                    .or_else(|| model.range(low..).next().filter(|n| **n < high)).copied();
                let mut steps = 0;
                prop_assert_eq!(set.find(start, low, high, &mut steps), expected);
                prop_assert!(steps <= 12, "{} steps", steps);
            }
        }
    }

    proptest! {
        #[test]
        fn a_range_is_added_and_removed_as_number_by_number(
            size in 1u32..20_000,
            own in prop::collection::vec(any::<u32>(), 0..60),
            others in prop::collection::vec(any::<u32>(), 0..200),
            ranges in prop::collection::vec((any::<u32>(), 0u32..6_000, any::<bool>()), 1..8),
        ) {
            let (mut set, mut other) = (FreeSet::new(size), FreeSet::new(size));
            let mut model: BTreeSet<u32> = own.iter().map(|number| number % size).collect();
            model.iter().for_each(|number| { set.insert(*number); });
            others.iter().for_each(|number| { other.insert(number % size); });
            for (low, length, adds) in ranges {
                let low = low % size;
                let range = low..low + length;
                let expected = range.clone().filter(|number| if adds {
                    other.contains(*number) && model.insert(*number)
                } else {
                    model.remove(number)
                }).count();
                let changed = match adds {
                    true => set.insert_range(range.start, range.end, &other),
                    false => set.remove_range(range.start, range.end),
                };
                prop_assert_eq!(changed as usize, expected);
                prop_assert!((0..size).filter(|number| set.contains(*number)).eq(model.iter().copied()));
                // What is above the lowest level is right, too.
                let (mut at, mut found) = (0, Vec::new());
                while let Some(number) = set.next(at, &mut 0) {
                    found.push(number);
                    at = number + 1;
                }
                prop_assert!(found.into_iter().eq(model.iter().copied()));
            }
        }
    }

    #[test]
    fn an_empty_set_and_numbers_beyond_it_have_no_members() {
        let mut set = FreeSet::new(64);
        assert_eq!(set.find(0, 0, 64, &mut 0), None);
        assert!(!set.insert(64));
        assert!(set.insert(63));
        assert_eq!(set.find(0, 0, 64, &mut 0), Some(63));
        assert_eq!(set.find(0, 0, 63, &mut 0), None);
    }
}
