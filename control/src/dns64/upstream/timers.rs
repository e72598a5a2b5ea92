//! Timers: a heap whose entries are not removed when they become obsolete.

use crate::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The due actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The next try of a question, by its number.
    Question(u64),
    /// The end of an exchange for which no question waits.
    Alone(u64),
    /// The next probe of an upstream.
    Probe(usize),
}

/// Obsolete entries stay in the heap until they are at its top, or until they are the majority: the heap is swept then.
/// So setting a timer costs O(1) on average and cancelling it nothing, and the heap is bounded by the timers that are set.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, Due)>>,
    /// Sweep beyond this length.
    sweep: usize,
}

impl Timers {
    pub(super) fn set(&mut self, at: Instant, due: Due) {
        self.heap.push(Reverse((at, due)));
    }

    /// The first of all.
    pub(super) fn first(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the first timer if it has expired.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Instant, Due)> {
        let Reverse((at, _)) = self.heap.peek()?;
        if *at > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// Drops obsolete timers: at the top always, elsewhere if there are many.
    pub(super) fn tidy(&mut self, matters: impl Fn(Instant, Due) -> bool) {
        const SMALL: usize = 1_024;
        while let Some(Reverse((at, due))) = self.heap.peek()
            && !matters(*at, *due)
        {
            self.heap.pop();
        }
        if self.heap.len() > self.sweep.max(SMALL) {
            self.heap.retain(|Reverse((at, due))| matters(*at, *due));
            self.sweep = self.heap.len() * 2;
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_expire_in_order_and_not_early() {
        let mut timers = Timers::default();
        for (at, number) in [(3, 30), (1, 10), (2, 20)] {
            timers.set(Instant::from_secs(at), Due::Question(number));
        }
        assert_eq!(timers.first(), Some(Instant::from_secs(1)));
        assert_eq!(timers.pop_due(Instant(999_999_999)), None);
        let expired: Vec<_> = std::iter::from_fn(|| timers.pop_due(Instant::from_secs(2))).collect();
        assert_eq!(
            expired,
            [(Instant::from_secs(1), Due::Question(10)), (Instant::from_secs(2), Due::Question(20))]
        );
    }

    #[test]
    fn obsolete_timers_do_not_accumulate() {
        let mut timers = Timers::default();
        for number in 0..100_000 {
            timers.set(Instant(number), Due::Question(number));
            timers.tidy(|_, due| due <= Due::Question(7));
        }
        assert!(timers.len() <= 1_025, "{}", timers.len());
        assert_eq!(timers.first(), Some(Instant(0)));
    }
}
