//! The share of the flow table that half-open flows may have. A SYN costs its sender little, and a scan sends many; removed entries rest.
//! So half-open flows, and entries that rest after them, take at most an eighth of the flows' number each, and no capacity of the others.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// One in this number of the table's flows may be half-open.
const SHARE: u32 = 8;

/// The numbers of a table, for all its workers. Each may be exceeded by the number of workers.
#[derive(Debug)]
pub(crate) struct HalfOpenShare {
    most: u32,
    /// Ticks for which a removed entry rests.
    rest: u32,
    now: AtomicU32,
    /// When the current period of that length began, and how many were begun in it.
    since: AtomicU32,
    begun: AtomicU32,
}

impl HalfOpenShare {
    /// Of a table with room for this many flows, whose removed entries rest for `rest` ticks.
    pub fn of(capacity: u32, rest: u32) -> Self {
        let none = || AtomicU32::new(0);
        Self { most: capacity.div_ceil(SHARE), rest, now: none(), since: none(), begun: none() }
    }

    /// One more, at this tick, if it is within the share. While an entry rests, at most `most` begin: half of them in each of the two
    /// periods that this time may touch.
    pub fn begin(&self, now: u32) -> bool {
        let passed = now.wrapping_sub(self.since.load(Relaxed));
        // Another worker's clock may be a tick ahead.
        if passed >= self.rest && passed < u32::MAX - self.rest {
            self.since.store(now, Relaxed);
            self.begun.store(0, Relaxed);
        }
        if self.now.load(Relaxed) >= self.most || self.begun.load(Relaxed) >= self.most.div_ceil(2) {
            return false;
        }
        self.now.fetch_add(1, Relaxed);
        self.begun.fetch_add(1, Relaxed);
        true
    }

    /// One that began is not half-open any more.
    pub fn end(&self) {
        self.now.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: u32 = 1_908;

    #[test]
    fn a_share_of_the_flows_may_be_half_open() {
        let share = HalfOpenShare::of(800, REST);
        let mut tick = 7;
        for _ in 0..2 {
            tick += REST;
            assert_eq!((0..100).filter(|_| share.begin(tick)).count(), 50);
        }
        tick += REST;
        assert!(!share.begin(tick), "a hundred are");
        share.end();
        assert!(share.begin(tick) && !share.begin(tick));
    }

    #[test]
    fn removed_ones_rest_so_that_few_begin_in_that_time() {
        let share = HalfOpenShare::of(80, REST);
        let begun = |tick| (0..100).filter(|_| share.begin(tick)).inspect(|_| share.end()).count();
        let first = u32::MAX - REST / 2;
        assert_eq!(begun(first - 2 * REST), 5);
        assert_eq!(begun(first), 5);
        assert_eq!(begun(first.wrapping_add(REST - 1)), 0, "the clock wraps");
        assert_eq!(begun(first.wrapping_add(REST)), 5);
        assert_eq!(begun(first.wrapping_add(REST - 2)), 0, "another worker's clock, two ticks behind");
    }

    #[test]
    fn a_small_table_has_a_share_too() {
        assert!(HalfOpenShare::of(1, REST).begin(REST));
        assert!(!HalfOpenShare::of(0, REST).begin(REST));
    }
}
