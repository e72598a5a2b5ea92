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

/// Entries that no longer matter lie in the heap until they come to its top, or until they are more than the others: the heap is swept then.
/// So setting an alarm costs O(1) on average and cancelling it nothing, and the heap is bounded by the alarms that are set.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    heap: BinaryHeap<Reverse<(Instant, Due)>>,
    /// Sweep beyond this length.
    sweep: usize,
}

impl Alarms {
    pub(super) fn set(&mut self, at: Instant, due: Due) {
        self.heap.push(Reverse((at, due)));
    }

    /// The first of all.
    pub(super) fn first(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the first if its time has come.
    pub(super) fn ring(&mut self, now: Instant) -> Option<(Instant, Due)> {
        let Reverse((at, _)) = self.heap.peek()?;
        if *at > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// Drops what no longer matters: at the top always, elsewhere now and then.
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
    fn alarms_ring_in_order_and_not_before_their_time() {
        let mut alarms = Alarms::default();
        for (at, number) in [(3, 30), (1, 10), (2, 20)] {
            alarms.set(Instant::from_secs(at), Due::Question(number));
        }
        assert_eq!(alarms.first(), Some(Instant::from_secs(1)));
        assert_eq!(alarms.ring(Instant(999_999_999)), None);
        let rung: Vec<_> = std::iter::from_fn(|| alarms.ring(Instant::from_secs(2))).collect();
        assert_eq!(
            rung,
            [(Instant::from_secs(1), Due::Question(10)), (Instant::from_secs(2), Due::Question(20))]
        );
    }

    #[test]
    fn alarms_that_no_longer_matter_do_not_pile_up() {
        let mut alarms = Alarms::default();
        for number in 0..100_000 {
            alarms.set(Instant(number), Due::Question(number));
            alarms.tidy(|_, due| due <= Due::Question(7));
        }
        assert!(alarms.len() <= 1_025, "{}", alarms.len());
        assert_eq!(alarms.first(), Some(Instant(0)));
    }
}
