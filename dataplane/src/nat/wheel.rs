//! The times at which sessions are checked: a wheel of buckets, one for each second.
//!
//! Packets do not touch the wheel. A session that fires is looked at by its owner, who ends it or parks it again; one that
//! is due beyond the horizon parks there and fires early. Entering, leaving and firing cost the same for any number of
//! sessions.

/// Seconds that the wheel spans: 2 h 16 min, more than the 2 h 4 min of an idle TCP session.
pub const HORIZON: u32 = 8_192;

/// Slots are below this.
pub const MOST_SLOTS: u32 = FIRST;

const NONE: u32 = u32::MAX;

/// Of the first entry of a bucket: the bucket's number is in the other bits.
const FIRST: u32 = 1 << 31;

/// Neighbours of an entry in its bucket.
#[derive(Clone, Copy, Debug)]
struct Link {
    next: u32,
    /// A slot; or, of the first one, [`FIRST`] and the bucket; or [`NONE`]: it is not parked.
    previous: u32,
}

const UNLINKED: Link = Link { next: NONE, previous: NONE };

/// The wheel, for slots below a bound.
#[derive(Clone, Debug)]
pub struct Wheel {
    heads: Box<[u32]>,
    links: Vec<Link>,
    /// The first second whose bucket has not been emptied.
    cursor: u32,
}

impl Wheel {
    /// A wheel for slots below `most`, which is at most [`MOST_SLOTS`].
    pub fn new(most: u32) -> Self {
        Self {
            heads: vec![NONE; HORIZON as usize].into_boxed_slice(),
            links: Vec::with_capacity(most as usize),
            cursor: 0,
        }
    }

    /// Parks a slot until the second `due`, or moves it there. Overdue slots fire next.
    pub fn park(&mut self, slot: u32, due: u32) {
        self.unpark(slot);
        self.enter(slot, due);
    }

    /// The state of a slot, to have it loaded.
    #[inline]
    pub fn touch(&self, slot: u32) -> Option<u32> {
        self.links.get(slot as usize).map(|link| link.next)
    }

    /// As [`Wheel::park`], for a slot that is known not to be parked.
    pub fn enter(&mut self, slot: u32, due: u32) {
        if self.links.len() <= slot as usize {
            self.links.resize(slot as usize + 1, UNLINKED);
        }
        let second = due.clamp(self.cursor, self.cursor.saturating_add(HORIZON - 1));
        let bucket = second % HORIZON;
        let next = std::mem::replace(&mut self.heads[bucket as usize], slot);
        self.links[slot as usize] = Link { next, previous: FIRST | bucket };
        if let Some(next) = self.links.get_mut(next as usize) {
            next.previous = slot;
        }
    }

    /// Takes a slot out.
    pub fn unpark(&mut self, slot: u32) {
        let Some(link) = self.links.get_mut(slot as usize).filter(|link| link.previous != NONE) else {
            return;
        };
        let Link { next, previous } = std::mem::replace(link, UNLINKED);
        if previous & FIRST != 0 {
            self.heads[(previous & !FIRST) as usize] = next;
        } else {
            self.links[previous as usize].next = next;
        }
        if let Some(next) = self.links.get_mut(next as usize) {
            next.previous = previous;
        }
    }

    /// Takes out and returns a slot that is due in the second `now` or before; `None` when there is none. Empty buckets
    /// are skipped together: at most one turn of the wheel.
    pub fn fire(&mut self, now: u32) -> Option<u32> {
        if now >= self.cursor.saturating_add(HORIZON) {
            // A whole turn passed unseen: every bucket is due, wherever the turn begins.
            self.cursor = now - (HORIZON - 1);
        }
        while self.cursor <= now {
            let slot = self.heads[(self.cursor % HORIZON) as usize];
            if slot != NONE {
                self.unpark(slot);
                return Some(slot);
            }
            self.cursor += 1;
        }
        None
    }

    /// Memory in octets.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.heads) + self.links.capacity() * size_of::<Link>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn fired(wheel: &mut Wheel, now: u32) -> Vec<u32> {
        let mut slots: Vec<_> = std::iter::from_fn(|| wheel.fire(now)).collect();
        slots.sort_unstable();
        slots
    }

    #[test]
    fn a_slot_fires_in_its_second_and_not_before() {
        let mut wheel = Wheel::new(4);
        wheel.park(0, 10);
        wheel.park(1, 10);
        wheel.park(2, 11);
        assert_eq!(fired(&mut wheel, 9), []);
        assert_eq!(fired(&mut wheel, 10), [0, 1]);
        wheel.park(3, 5);
        assert_eq!(fired(&mut wheel, 11), [2, 3], "what is overdue fires next");
        assert_eq!(fired(&mut wheel, u32::MAX - HORIZON), []);
    }

    #[test]
    fn beyond_the_horizon_a_slot_fires_early() {
        let mut wheel = Wheel::new(1);
        wheel.park(0, 100_000);
        assert_eq!(fired(&mut wheel, HORIZON - 2), []);
        assert_eq!(fired(&mut wheel, HORIZON - 1), [0]);
    }

    proptest! {
        #[test]
        fn the_wheel_fires_what_an_ordered_map_says(
            steps in prop::collection::vec((0u8..4, 0u32..10, 0u32..HORIZON, 0u32..300), 1..100)
        ) {
            let mut wheel = Wheel::new(10);
            let mut model = BTreeMap::new();
            let mut now = 0;
            for (kind, slot, ahead, pass) in steps {
                match kind {
                    0 | 1 => {
                        wheel.park(slot, now + ahead);
                        model.insert(slot, now + ahead);
                    }
                    2 => {
                        wheel.unpark(slot);
                        model.remove(&slot);
                    }
                    _ => {
                        now += if ahead % 7 == 0 { pass * 60 } else { pass };
                        let due: Vec<_> = model.iter().filter(|(_, due)| **due <= now).map(|(s, _)| *s).collect();
                        model.retain(|_, due| *due > now);
                        prop_assert_eq!(fired(&mut wheel, now), due);
                    }
                }
            }
        }
    }
}
