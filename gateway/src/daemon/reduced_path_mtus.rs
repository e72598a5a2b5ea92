//! Remote ends of tunnels with a reduced path MTU: packets to them are passed to the engine for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// How long packets to a destination go to the engine after its path MTU was reduced (RFC 1191 §6.3).
const NARROW: Duration = Duration::from_secs(600);
/// Maximum destinations with a reduced path MTU: the size of the programs' map. If there are more, the oldest are removed; if the programs
/// then send packets that do not fit, the next error reports it.
const NARROW_PATHS: usize = 4_096;
/// Minimum time between updates of the programs: each one flushes their next hops.
const PACE: Duration = Duration::from_millis(100);

/// The destinations, with the time of the last ICMP error about each.
#[derive(Debug, Default)]
pub(super) struct ReducedPathMtus {
    since: BTreeMap<Ipv4Addr, Instant>,
    /// The same, the oldest first.
    order: BTreeSet<(Instant, Ipv4Addr)>,
    /// The programs have an older list.
    is_outdated: bool,
    /// When the programs were last updated.
    last_update: Option<Instant>,
}

impl ReducedPathMtus {
    /// Adds these, and removes old ones. Returns all if the programs must be updated, until [`Self::updated`].
    pub(super) fn note(
        &mut self,
        destinations: impl Iterator<Item = Ipv4Addr>,
        now: Instant,
    ) -> Option<Vec<Ipv4Addr>> {
        while let Some((since, _)) = self.order.first()
            && now.duration_since(*since) >= NARROW
        {
            self.forget_first();
        }
        for destination in destinations {
            self.add(destination, now);
        }
        let is_soon = self.last_update.is_some_and(|last| now.duration_since(last) < PACE);
        (self.is_outdated && !is_soon).then(|| self.since.keys().copied().collect())
    }

    fn add(&mut self, destination: Ipv4Addr, now: Instant) {
        match self.since.insert(destination, now) {
            Some(before) => drop(self.order.remove(&(before, destination))),
            None => self.is_outdated = true,
        }
        self.order.insert((now, destination));
        if self.order.len() > NARROW_PATHS {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((_, destination)) = self.order.pop_first() {
            self.since.remove(&destination);
            self.is_outdated = true;
        }
    }

    /// The programs have all of them.
    pub(super) fn updated(&mut self, now: Instant) {
        self.is_outdated = false;
        self.last_update = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);
    const OTHER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 10);

    fn nothing() -> std::iter::Empty<Ipv4Addr> {
        std::iter::empty()
    }

    #[test]
    fn a_destination_is_removed_ten_minutes_after_its_last_error() {
        let (mut paths, start) = (ReducedPathMtus::default(), Instant::now());
        assert_eq!(paths.note(nothing(), start), None);
        assert_eq!(paths.note([ONE, OTHER].into_iter(), start), Some(vec![ONE, OTHER]));
        assert_eq!(paths.note(nothing(), start), Some(vec![ONE, OTHER]), "the programs were not updated");
        paths.updated(start);
        assert_eq!(paths.note([ONE].into_iter(), start + NARROW / 2), None, "known");
        assert_eq!(paths.note(nothing(), start + NARROW), Some(vec![ONE]));
        paths.updated(start + NARROW);
        assert_eq!(paths.note(nothing(), start + NARROW + NARROW / 2), Some(vec![]));
    }

    #[test]
    fn the_oldest_destinations_are_removed_when_the_table_is_full() {
        let (mut paths, start) = (ReducedPathMtus::default(), Instant::now());
        let many = |first: u32| (first..first + NARROW_PATHS as u32 - 1).map(Ipv4Addr::from_bits);
        let later = |times: u32| start + PACE * times;
        paths.note([ONE].into_iter(), later(0));
        paths.note(many(1), later(1));
        assert_eq!(paths.note(nothing(), later(2)).unwrap().len(), NARROW_PATHS);
        // Another error: it is no longer the oldest.
        let all = paths.note([ONE, OTHER].into_iter(), later(3)).unwrap();
        assert_eq!(all.len(), NARROW_PATHS);
        assert!(all.contains(&ONE) && all.contains(&OTHER) && !all.contains(&Ipv4Addr::from_bits(1)));
        let all = paths.note(many(10_000), later(4)).unwrap();
        assert!(all.len() == NARROW_PATHS && paths.order.len() == NARROW_PATHS);
        assert_eq!(all.iter().filter(|address| [ONE, OTHER].contains(address)).count(), 1);
    }

    #[test]
    fn the_programs_are_updated_at_most_ten_times_a_second() {
        let (mut paths, start) = (ReducedPathMtus::default(), Instant::now());
        assert!(paths.note([ONE].into_iter(), start).is_some());
        paths.updated(start);
        assert_eq!(paths.note([OTHER].into_iter(), start + PACE / 2), None);
        assert_eq!(paths.note(nothing(), start + PACE), Some(vec![ONE, OTHER]));
    }
}
