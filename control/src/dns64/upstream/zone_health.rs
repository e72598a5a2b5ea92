//! Zones whose servers do not answer, as far as a forwarder can see: names in them that no upstream replied to, one after the other.
//!
//! Such a name keeps its question open for seconds and is queried repeatedly, so a client that asks for many of them costs more than one
//! that asks for others. A forwarder does not know where zones begin. Two ancestors of a name stand for its zone, with two and with three
//! labels; below in-addr.arpa and ip6.arpa those of the prefixes that are delegated.
//!
//! ```text
//!              2 names in a row are silent           8 in a row
//!   Healthy ───────────────────────────────▶ Slow ──────────────▶ Failing
//!      ▲                                       │                     │
//!      └────────── a reply within a second ────┴─────────────────────┘
//! ```
//!
//! Only zones that are not healthy have an entry. The table is bounded: in a full set, the one that was silent least recently is forgotten.

use crate::Instant;
use arrayvec::ArrayVec;
use core::time::Duration;
use foldhash::quality::FixedState;
use std::hash::BuildHasher;

/// A question without a reply for so long is silent.
pub(super) const SILENT: Duration = Duration::from_secs(1);

/// What a silent question counts; what says less counts a part of it.
const WHOLE: u16 = 4;

/// Silent questions in a row that make a zone slow, and failing.
const SLOW: u16 = 2 * WHOLE;
const FAILING: u16 = 8 * WHOLE;

/// Open questions of a failing zone, and the pause between two of them, for those who hold more than a few.
const MOST_OPEN: u16 = 4;
const PAUSE: Duration = Duration::from_millis(250);

/// How long timeouts are remembered (RFC 9520 §3.2: at most 5 min).
const REMEMBERED: Duration = Duration::from_secs(300);

/// Room for 8,192 zones, 32 octets each.
const WAYS: usize = 8;
const SETS: usize = 1_024;

/// RFC 1035 §2.3.4: the longest name, in octets.
const LONGEST_NAME: usize = 255;

/// How a zone is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ZoneState {
    /// It answers, as far as is known.
    Healthy,
    /// Names in it are tried less often.
    Slow,
    /// Few of its names are asked at a time.
    Failing,
}

/// The keys of the zone of a name, the longer ancestor first.
pub(super) type ZoneKeys = ArrayVec<u64, 2>;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Zero: the place is free.
    zone: u64,
    /// The last silence.
    silent: Instant,
    /// When the next question may be put, if it is failing.
    next: Instant,
    silences: u16,
    open: u16,
}

/// The zones that were silent.
#[derive(Debug)]
pub(super) struct ZoneHealth {
    hasher: FixedState,
    /// Empty as long as no zone was silent.
    entries: Vec<Entry>,
}

/// Labels of the two ancestors.
fn depths(lower: &[u8]) -> [usize; 2] {
    if lower.ends_with(b"\x07in-addr\x04arpa\0") {
        // RFC 2317: /16 and /24.
        [5, 4]
    } else if lower.ends_with(b"\x03ip6\x04arpa\0") {
        // A provider's /32 and a site's /48.
        [14, 10]
    } else {
        [3, 2]
    }
}

impl ZoneHealth {
    pub(super) fn new(seed: u64) -> Self {
        Self { hasher: FixedState::with_seed(seed), entries: Vec::new() }
    }

    /// Whether no zone was ever silent.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The keys of the zone of a name in wire form; none for names of few labels.
    pub(super) fn keys(&self, name: &[u8]) -> ZoneKeys {
        let mut lower = ArrayVec::<u8, LONGEST_NAME>::new();
        let mut keys = ZoneKeys::new();
        if lower.try_extend_from_slice(name).is_err() {
            return keys;
        }
        lower.make_ascii_lowercase();
        let mut starts = ArrayVec::<usize, { LONGEST_NAME / 2 + 1 }>::new();
        let mut at = 0;
        while let Some(length) = lower.get(at).filter(|length| **length > 0) {
            if starts.try_push(at).is_err() {
                return keys;
            }
            at += 1 + usize::from(*length);
        }
        for depth in depths(&lower) {
            // A proper ancestor: a name says nothing of the zone that is named so.
            if let Some(start) = starts.len().checked_sub(depth).filter(|place| *place > 0) {
                keys.push(self.hasher.hash_one(&lower[starts[start]..]).max(1));
            }
        }
        keys
    }

    fn set(zone: u64) -> core::ops::Range<usize> {
        let first = (zone as usize % SETS) * WAYS;
        first..first + WAYS
    }

    fn find(&self, zone: u64) -> Option<&Entry> {
        self.entries.get(Self::set(zone))?.iter().find(|entry| entry.zone == zone)
    }

    fn find_mut(&mut self, zone: u64) -> Option<&mut Entry> {
        self.entries.get_mut(Self::set(zone))?.iter_mut().find(|entry| entry.zone == zone)
    }

    /// How the zone of a name is.
    pub(super) fn state(&self, now: Instant, keys: &ZoneKeys) -> ZoneState {
        let states = keys.iter().filter_map(|zone| self.find(*zone)).map(|entry| entry.state(now));
        states.max().unwrap_or(ZoneState::Healthy)
    }

    /// Whether one more question of a failing zone may be put.
    pub(super) fn has_room(&self, now: Instant, keys: &ZoneKeys) -> bool {
        let entries = keys.iter().filter_map(|zone| self.find(*zone));
        let mut failing = entries.filter(|entry| entry.state(now) == ZoneState::Failing);
        failing.all(|entry| entry.open < MOST_OPEN && entry.next <= now)
    }

    /// A question is put. It counts in the zones that are returned, until it [ends](Self::end).
    pub(super) fn begin(&mut self, now: Instant, keys: &ZoneKeys) -> ZoneKeys {
        let mut counted = ZoneKeys::new();
        for zone in keys {
            if let Some(entry) = self.find_mut(*zone) {
                entry.open = entry.open.saturating_add(1);
                entry.next = now + PAUSE;
                counted.push(*zone);
            }
        }
        counted
    }

    /// A question is finished.
    pub(super) fn end(&mut self, counted: &ZoneKeys) {
        for zone in counted {
            if let Some(entry) = self.find_mut(*zone) {
                entry.open = entry.open.saturating_sub(1);
            }
        }
    }

    /// A question had no reply in time.
    pub(super) fn silent(&mut self, now: Instant, keys: &ZoneKeys) {
        self.add(now, keys, WHOLE);
    }

    /// An upstream itself took long to fail.
    pub(super) fn failed(&mut self, now: Instant, keys: &ZoneKeys) {
        self.add(now, keys, WHOLE / 2);
    }

    fn add(&mut self, now: Instant, keys: &ZoneKeys, silence: u16) {
        if self.entries.is_empty() {
            self.entries = vec![Entry::default(); WAYS * SETS];
        }
        for zone in keys {
            let entry = self.place(now, *zone);
            entry.silences = entry.silences.saturating_add(silence);
            entry.silent = now;
            // A zone below that fails counts for itself: how much it fails says nothing of its siblings.
            if entry.state(now) == ZoneState::Failing {
                return;
            }
        }
    }

    /// The entry of a zone, or a fresh one.
    fn place(&mut self, now: Instant, zone: u64) -> &mut Entry {
        let set = &mut self.entries[Self::set(zone)];
        let at = set.iter().position(|entry| entry.zone == zone).unwrap_or_else(|| {
            // Free places were never silent.
            let oldest = (0..WAYS).min_by_key(|at| (set[*at].open > 0, set[*at].silent)).unwrap_or(0);
            set[oldest] = Entry { zone, ..Entry::default() };
            oldest
        });
        let entry = &mut set[at];
        if now.since(entry.silent) > REMEMBERED {
            entry.silences = 0;
        }
        entry
    }

    /// A question of the zone had a reply: within a second, the zone is healthy; after that, it is not failing.
    pub(super) fn replied(&mut self, keys: &ZoneKeys, quickly: bool) {
        for zone in keys {
            if let Some(entry) = self.find_mut(*zone) {
                entry.silences = if quickly { 0 } else { entry.silences.min(SLOW) };
            }
        }
    }

    /// All zones are healthy, as far as is known.
    pub(super) fn forget(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.silences = 0);
    }
}

impl Entry {
    fn state(&self, now: Instant) -> ZoneState {
        match self.silences {
            _ if now.since(self.silent) > REMEMBERED => ZoneState::Healthy,
            FAILING.. => ZoneState::Failing,
            SLOW.. => ZoneState::Slow,
            _ => ZoneState::Healthy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(name: &str) -> Vec<u8> {
        let labels = name.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
        labels.chain([0]).collect()
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    #[test]
    fn two_ancestors_stand_for_a_zone_in_any_case() {
        let health = ZoneHealth::new(7);
        let keys = |name: &str| health.keys(&wire(name));
        assert_eq!(keys("a.example.org"), keys("B.EXAMPLE.org"));
        assert_eq!(keys("a.example.org").len(), 1);
        let below = keys("a.b.example.org");
        assert_eq!((below.len(), below[1]), (2, keys("x.example.org")[0]));
        assert_eq!(below, keys("z.y.b.example.org"));
        assert!(keys("example.org").is_empty() && keys("org").is_empty() && health.keys(&[0]).is_empty());
        assert!(keys("2.0.192.in-addr.arpa").len() == 1 && keys("192.in-addr.arpa").is_empty());
        assert_eq!(keys("7.1.2.0.192.in-addr.arpa"), keys("9.3.2.0.192.in-addr.arpa"));
        assert!(health.keys(&[63; 300]).is_empty() && health.keys(&[]).is_empty());
        assert!(health.keys(&[1; 255]).len() <= 2);
    }

    #[test]
    fn silences_in_a_row_make_a_zone_slow_then_failing_and_a_reply_heals_it() {
        let mut health = ZoneHealth::new(7);
        let keys = health.keys(&wire("a.dead.test"));
        let states: Vec<ZoneState> = (0..9)
            .map(|second| {
                health.silent(at(second), &keys);
                health.state(at(second), &keys)
            })
            .collect();
        assert_eq!(states[..2], [ZoneState::Healthy, ZoneState::Slow]);
        assert_eq!(states[6..], [ZoneState::Slow, ZoneState::Failing, ZoneState::Failing]);
        health.replied(&keys, false);
        assert_eq!(health.state(at(10), &keys), ZoneState::Slow, "a late reply");
        health.replied(&keys, true);
        assert_eq!(health.state(at(10), &keys), ZoneState::Healthy);
        (0..3).for_each(|_| health.failed(at(11), &keys));
        assert_eq!(health.state(at(11), &keys), ZoneState::Healthy);
        health.failed(at(11), &keys);
        assert_eq!(health.state(at(11), &keys), ZoneState::Slow, "four failures are two silences");
        assert_eq!(health.state(at(400), &keys), ZoneState::Healthy, "that was long ago");
    }

    #[test]
    fn a_zone_below_that_fails_counts_for_itself_alone() {
        let mut health = ZoneHealth::new(7);
        let (dead, sibling) = (health.keys(&wire("n.a.host.test")), health.keys(&wire("n.b.host.test")));
        (0..7).for_each(|_| health.silent(at(1), &dead));
        assert!(health.state(at(1), &dead) == ZoneState::Slow);
        (0..3).for_each(|_| health.silent(at(1), &dead));
        assert_eq!(health.state(at(1), &dead), ZoneState::Failing);
        assert_eq!(health.state(at(1), &sibling), ZoneState::Slow);
        (0..20).for_each(|_| health.silent(at(1), &dead));
        assert_eq!(health.state(at(1), &sibling), ZoneState::Slow, "however many more");
        health.replied(&sibling, true);
        assert_eq!(health.state(at(1), &sibling), ZoneState::Healthy);
        assert_eq!(health.state(at(1), &dead), ZoneState::Failing);
    }

    #[test]
    fn a_failing_zone_has_few_open_questions_and_a_new_one_now_and_then() {
        let mut health = ZoneHealth::new(7);
        let keys = health.keys(&wire("a.dead.test"));
        (0..8).for_each(|_| health.silent(at(1), &keys));
        let mut open = Vec::new();
        for second in 2..6 {
            assert!(health.has_room(at(second), &keys));
            open.push(health.begin(at(second), &keys));
            assert!(!health.has_room(at(second), &keys), "not at the same time");
        }
        assert!(!health.has_room(at(9), &keys), "four are open");
        open.iter().for_each(|counted| health.end(counted));
        assert!(health.has_room(at(9), &keys));
        health.end(&keys);
        assert!(health.has_room(at(9), &keys));
    }

    #[test]
    fn a_full_set_forgets_the_zone_that_was_silent_least_recently() {
        let mut health = ZoneHealth::new(7);
        let of_a_set = (1..).map(|number| 1 + number * SETS as u64).take(WAYS + 1);
        let keys: Vec<ZoneKeys> = of_a_set.map(|zone| ZoneKeys::from_iter([zone])).collect();
        for (second, keys) in keys.iter().enumerate() {
            (0..2).for_each(|_| health.silent(at(second as u64 + 1), keys));
        }
        let slow = keys.iter().filter(|keys| health.state(at(20), keys) == ZoneState::Slow).count();
        assert_eq!((slow, health.state(at(20), &keys[0])), (WAYS, ZoneState::Healthy));
    }
}
