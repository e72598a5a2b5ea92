//! Cached delegations: bounded; the oldest is replaced, after a second chance if it was used meanwhile.

use super::delegation::Cut;
use super::limits::CUTS;
use crate::wire::Wire;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// A day: nothing is trusted longer than that without another lookup.
const LONGEST: u32 = 86_400;

/// What is known, by name.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    table: BTreeMap<Wire, (KnownCut, Used)>,
    /// Those that are known, the oldest first.
    order: VecDeque<Wire>,
}

type Used = bool;

/// What was found, and how long it holds.
#[derive(Clone, Debug)]
pub(super) struct KnownCut {
    pub(super) cut: Cut,
    /// By the monotonic clock.
    pub(super) until: Duration,
}

impl KnownCut {
    /// It holds for this number of seconds, and not beyond `end`.
    pub(super) fn for_seconds(cut: Cut, now: Duration, seconds: u32, end: Option<Duration>) -> Self {
        let until = now + Duration::from_secs(seconds.min(LONGEST).into());
        Self { cut, until: end.map_or(until, |end| end.min(until)) }
    }
}

impl Cuts {
    /// The known data about a name.
    pub(super) fn lookup(&mut self, now: Duration, name: &Wire) -> Option<KnownCut> {
        let (known, used) = self.table.get_mut(name).filter(|(known, _)| now < known.until)?;
        *used = true;
        Some(known.clone())
    }

    /// From now on this is known of a name.
    pub(super) fn admit(&mut self, name: &Wire, known: KnownCut) {
        if self.table.insert(name.clone(), (known, false)).is_some() {
            return;
        }
        while self.order.len() >= CUTS {
            self.evict();
        }
        self.order.push_back(name.clone());
    }

    /// One turn: the oldest goes, or goes to the end if it was used.
    fn evict(&mut self) {
        let Some(oldest) = self.order.pop_front() else { return };
        match self.table.get_mut(&oldest) {
            Some((_, used)) if *used => {
                *used = false;
                self.order.push_back(oldest);
            }
            Some(_) | None => {
                self.table.remove(&oldest);
            }
        }
    }

    /// Nothing is known any more.
    pub(super) fn clear(&mut self) {
        self.table.clear();
        self.order.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> Wire {
        let text = format!("{number:08}");
        Wire([&[8], text.as_bytes(), &[0]].concat().into())
    }

    fn known(cut: Cut, from: u64) -> KnownCut {
        KnownCut::for_seconds(cut, Duration::from_secs(from), 60, None)
    }

    #[test]
    fn the_table_is_bounded_and_keeps_what_is_used() {
        let (mut cuts, now) = (Cuts::default(), Duration::from_secs(1));
        cuts.admit(&name(0), known(Cut::Inside, 1));
        for number in 1..2 * CUTS {
            cuts.admit(&name(number), known(Cut::Nothing, 1));
            assert!(cuts.lookup(now, &name(0)).is_some(), "{number}");
        }
        assert_eq!((cuts.table.len(), cuts.order.len()), (CUTS, CUTS));
        assert!(cuts.lookup(now, &name(1)).is_none());
        assert!(cuts.lookup(now, &name(2 * CUTS - 1)).is_some());
    }

    #[test]
    fn what_is_known_ends_and_is_renewed() {
        let mut cuts = Cuts::default();
        cuts.admit(&name(0), known(Cut::Inside, 1));
        assert!(cuts.lookup(Duration::from_secs(60), &name(0)).is_some());
        assert!(cuts.lookup(Duration::from_secs(61), &name(0)).is_none());
        cuts.admit(&name(0), known(Cut::Inside, 61));
        assert!(cuts.lookup(Duration::from_secs(62), &name(0)).is_some());
        assert_eq!(cuts.order.len(), 1);
    }
}
