//! Which addresses are free: a bitmap under summaries of itself, so that the next free one is found in a few steps however
//! few are left.
//!
//! ```text
//!     summary  |      1      |      0      |  …     a bit for each word below that is not zero
//!     bitmap   | 0…1…0…0…1…  | 0…0…0…0…0…  |  …     a bit for each address, set when it is free
//! ```

/// A set of numbers below a size, free ones marked.
pub(crate) struct FreeAddresses {
    /// The bitmap first, then its summaries up to one of a single word.
    levels: Vec<Vec<u64>>,
    size: u32,
    free: u32,
}

impl FreeAddresses {
    /// All numbers below `size`, free.
    pub(crate) fn all(size: u32) -> Self {
        let mut levels = Vec::new();
        let mut bits = size as usize;
        loop {
            let mut words = vec![u64::MAX; bits.div_ceil(64)];
            if let Some(last) = words.last_mut()
                && !bits.is_multiple_of(64)
            {
                *last = (1 << (bits % 64)) - 1;
            }
            bits = words.len();
            levels.push(words);
            if bits <= 1 {
                return Self { levels, size, free: size };
            }
        }
    }

    /// How many are free.
    pub(crate) const fn free(&self) -> u32 {
        self.free
    }

    /// Whether this one is free.
    pub(crate) fn is_free(&self, number: u32) -> bool {
        self.levels[0][number as usize / 64] >> (number % 64) & 1 == 1
    }

    /// Takes one that may be free; says whether it was.
    pub(crate) fn take(&mut self, number: u32) -> bool {
        if !self.is_free(number) {
            return false;
        }
        self.free -= 1;
        let mut at = number as usize;
        for words in &mut self.levels {
            words[at / 64] &= !(1 << (at % 64));
            if words[at / 64] != 0 {
                break;
            }
            at /= 64;
        }
        true
    }

    /// Gives one back that was taken.
    pub(crate) fn give_back(&mut self, number: u32) {
        debug_assert!(!self.is_free(number));
        self.free += 1;
        let mut at = number as usize;
        for words in &mut self.levels {
            words[at / 64] |= 1 << (at % 64);
            at /= 64;
        }
    }

    /// The first free one at or after `start`, or else from the beginning.
    pub(crate) fn next(&self, start: u32) -> Option<u32> {
        if start < self.size {
            self.at_or_after(start as usize).or_else(|| self.at_or_after(0))
        } else {
            self.at_or_after(0)
        }
    }

    fn at_or_after(&self, start: usize) -> Option<u32> {
        let mut at = start;
        for (level, words) in self.levels.iter().enumerate() {
            let rest = words.get(at / 64)? & (u64::MAX << (at % 64));
            if rest != 0 {
                let mut found = at / 64 * 64 + rest.trailing_zeros() as usize;
                for below in self.levels[..level].iter().rev() {
                    found = found * 64 + below[found].trailing_zeros() as usize;
                }
                return Some(found as u32);
            }
            at = at / 64 + 1;
        }
        None
    }

    /// Octets of memory.
    pub(crate) fn memory(&self) -> usize {
        self.levels.iter().map(|words| words.capacity() * 8).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_last_free_address_of_a_million_is_found_from_anywhere() {
        let mut free = FreeAddresses::all(1 << 20);
        for number in 0..1 << 20 {
            if number != 777_777 {
                assert!(free.take(number));
            }
        }
        assert_eq!(free.free(), 1);
        for start in [0, 1, 777_777, 777_778, (1 << 20) - 1] {
            assert_eq!(free.next(start), Some(777_777));
        }
        assert!(free.take(777_777));
        assert_eq!(free.next(0), None);
        free.give_back(5);
        assert_eq!(free.next(6), Some(5));
    }

    #[test]
    fn an_empty_set_has_no_next() {
        assert_eq!(FreeAddresses::all(0).next(0), None);
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_plain_set(size in 1u32..5_000, steps in prop::collection::vec((any::<u32>(), 0u8..4), 1..300)) {
            let mut free = FreeAddresses::all(size);
            let mut model: BTreeSet<u32> = (0..size).collect();
            for (number, step) in steps {
                let number = number % size;
                match step {
                    0 => prop_assert_eq!(free.take(number), model.remove(&number)),
                    1 => {
                        if model.insert(number) {
                            free.give_back(number);
                        }
                    }
                    2 => for near in number..size.min(number + 200) {
                        prop_assert_eq!(free.take(near), model.remove(&near));
                    },
                    _ => {
                        let expected = model.range(number..).next().or_else(|| model.first()).copied();
                        prop_assert_eq!(free.next(number), expected);
                    }
                }
                prop_assert_eq!(free.free() as usize, model.len());
            }
        }
    }
}
