//! A bounded array of values with slots that are reused.

/// No slot.
pub const NONE: u32 = u32::MAX;

/// A slab. Its room is reserved as a whole but touched only as it fills, so values never move.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    values: Vec<T>,
    free: Vec<u32>,
    most: u32,
}

impl<T> Slab<T> {
    /// A slab for at most `most` values.
    pub fn new(most: u32) -> Self {
        let most = most.min(u32::MAX - 1);
        Self { values: Vec::with_capacity(most as usize), free: Vec::with_capacity(most as usize), most }
    }

    /// The most values.
    #[inline]
    pub const fn most(&self) -> u32 {
        self.most
    }

    /// Number of values.
    #[inline]
    pub fn len(&self) -> u32 {
        (self.values.len() - self.free.len()) as u32
    }

    /// Whether there is no room left.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.free.is_empty() && self.values.len() >= self.most as usize
    }

    /// Number of slots that were ever used: cursors run from zero to here.
    #[inline]
    pub fn slots(&self) -> u32 {
        self.values.len() as u32
    }

    /// Stores a value; `None` when the slab is full.
    pub fn insert(&mut self, value: T) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            self.values[slot as usize] = value;
            return Some(slot);
        }
        if self.is_full() {
            return None;
        }
        self.values.push(value);
        Some(self.values.len() as u32 - 1)
    }

    /// The old content of the slot that the next value will use, if that slot was ever used.
    #[inline]
    pub fn next(&self) -> Option<&T> {
        self.get(*self.free.last()?)
    }

    /// The slot that the next value will take, if it was ever used.
    #[inline]
    pub fn next_slot(&self) -> Option<u32> {
        self.free.last().copied()
    }

    /// Makes a slot free. Its value stays in place until it is reused, so the owner must mark it as removed.
    pub fn release(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// The value in a slot, which may be released.
    #[inline]
    pub fn get(&self, slot: u32) -> Option<&T> {
        self.values.get(slot as usize)
    }

    /// The value in a slot, to be changed.
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.values.get_mut(slot as usize)
    }

    /// Memory in octets, reserved room included.
    pub fn memory(&self) -> usize {
        self.values.capacity() * size_of::<T>() + self.free.capacity() * size_of::<u32>()
    }
}

impl<T> core::ops::Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, slot: u32) -> &T {
        &self.values[slot as usize]
    }
}

impl<T> core::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.values[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_slab_refuses_and_a_released_slot_is_reused() {
        let mut slab = Slab::new(2);
        assert_eq!((slab.insert('a'), slab.insert('b'), slab.insert('c')), (Some(0), Some(1), None));
        assert!(slab.is_full());
        slab.release(0);
        assert_eq!((slab.len(), slab.slots()), (1, 2));
        assert_eq!(slab.insert('d'), Some(0));
        assert_eq!(slab[0], 'd');
        assert_eq!(slab.get(2), None);
    }
}
