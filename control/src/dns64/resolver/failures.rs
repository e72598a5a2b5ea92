//! Questions that recently had no usable answer, so that they are not repeated immediately (RFC 9520 §3.2: at least 1 s, at most 5 min).

use super::super::key::Key;
use super::super::shares::{Payer, Place, Shares};
use super::super::upstream::Exhausted;
use super::info_code::{NETWORK_ERROR, NO_REACHABLE_AUTHORITY, OTHER};
use crate::Instant;
use foldhash::quality::FixedState;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// For this time a question without an answer is not asked again.
pub(super) const HOLD: Duration = Duration::from_secs(5);
/// So long it is not asked again where something stale serves in the meantime (RFC 8767 §5: 30 s).
pub(super) const HOLD_STALE: Duration = Duration::from_secs(30);
/// Failures that are kept.
const MOST: usize = 10_000;

/// How a question failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    /// When.
    pub at: Instant,
    /// Until when it is not asked again.
    pub until: Instant,
    /// Why: an INFO-CODE of RFC 8914 §4.
    pub code: u16,
    /// And in words.
    pub why: &'static str,
}

/// Recent failures. Their places are shared: a client that has reached its share stores nothing further, and entries of others are not displaced.
#[derive(Debug)]
pub(super) struct Failures {
    by_key: HashMap<Key, (Failed, Place), FixedState>,
    shares: Shares,
    /// In the order in which they came; a key may be there more than once.
    order: VecDeque<(Instant, Key)>,
}

impl Failures {
    pub(super) fn new(seed: u64) -> Self {
        let by_key = HashMap::with_hasher(FixedState::with_seed(seed));
        Self { by_key, shares: Shares::new(MOST, seed), order: VecDeque::new() }
    }

    /// Takes note of one.
    pub(super) fn note(&mut self, key: Key, failed: Failed, payer: Payer) {
        self.drop_old(failed.at);
        if let Some((kept, _)) = self.by_key.get_mut(&key) {
            if std::mem::replace(kept, failed).at == failed.at {
                return;
            }
        } else {
            let Ok(place) = self.shares.admit(payer) else { return };
            self.by_key.insert(key, (failed, place));
        }
        self.order.push_back((failed.at, key));
    }

    /// Forgets what is over, and entries of the order that a newer one follows.
    fn drop_old(&mut self, now: Instant) {
        while let Some((at, oldest)) = self.order.front().copied() {
            let kept = self.by_key.get(&oldest).map(|(kept, _)| *kept).filter(|kept| kept.at == at);
            if kept.is_some_and(|kept| now < kept.until) && self.order.len() < 2 * MOST {
                return;
            }
            self.order.pop_front();
            if kept.is_some() {
                self.forget(&oldest);
            }
        }
    }

    /// Whether it failed and is not to be asked again yet.
    pub(super) fn of(&self, key: &Key, now: Instant) -> Option<Failed> {
        if self.by_key.is_empty() {
            return None;
        }
        self.by_key.get(key).map(|(failed, _)| *failed).filter(|failed| now < failed.until)
    }

    /// All is forgotten.
    pub(super) fn clear(&mut self) {
        self.by_key.drain().for_each(|(_, (_, place))| self.shares.leave(place));
        self.order.clear();
    }

    /// It has an answer again.
    pub(super) fn forget(&mut self, key: &Key) {
        if self.by_key.is_empty() {
            return;
        }
        if let Some((_, place)) = self.by_key.remove(key) {
            self.shares.leave(place);
        }
    }
}

/// Why there is no answer of an upstream: an INFO-CODE, and in words.
pub(super) const fn in_words(exhausted: Option<Exhausted>) -> (u16, &'static str) {
    match exhausted {
        Some(Exhausted::NoShare) => (OTHER, "too many upstream queries are pending"),
        Some(Exhausted::SilentZone) => (NO_REACHABLE_AUTHORITY, "no reply for names of this zone lately"),
        Some(Exhausted::NoUpstream) => (NO_REACHABLE_AUTHORITY, "no upstream for this name"),
        Some(Exhausted::NoReply) => (NO_REACHABLE_AUTHORITY, "no upstream answered"),
        Some(Exhausted::Unreachable) => (NETWORK_ERROR, "no upstream is reachable"),
        Some(Exhausted::Unusable) | None => (OTHER, "no upstream gave a usable answer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> Key {
        Key::of(&[&[4], &number.to_be_bytes()[..], &[0]].concat(), 1, 1, false)
    }

    #[test]
    fn no_more_than_the_bound_are_kept() {
        let mut failures = Failures::new(7);
        let payer = |number: u32| Payer::of(std::net::Ipv4Addr::from_bits(number).into(), 64, false);
        let at = Instant::from_secs(10);
        let failed = Failed { at, until: at + HOLD, code: 22, why: "" };
        for number in 0..3 * MOST as u32 {
            failures.note(key(number), failed, payer(number));
            // The same question over and over takes no more room than once.
            failures.note(key(0), failed, payer(0));
        }
        assert!(failures.by_key.len() <= MOST && failures.order.len() <= 2 * MOST);
        assert!(failures.of(&key(1), at).is_some());
        assert!(failures.of(&key(3 * MOST as u32 - 1), at).is_none());
        let later = at + HOLD;
        failures.note(key(7), Failed { at: later, until: later + HOLD, ..failed }, payer(7));
        assert_eq!((failures.by_key.len(), failures.order.len(), failures.shares.used()), (1, 1, 1));
        failures.clear();
        assert_eq!(failures.shares.used(), 0);
    }

    #[test]
    fn who_has_many_failures_does_not_displace_those_of_others() {
        let mut failures = Failures::new(7);
        let of = |text: &str| Payer::of(text.parse().unwrap(), 64, false);
        let at = Instant::from_secs(10);
        let failed = Failed { at, until: at + HOLD, code: 22, why: "" };
        failures.note(key(0), failed, of("192.0.2.1"));
        (1..20_000).for_each(|number| failures.note(key(number), failed, of("192.0.2.2")));
        assert!(failures.of(&key(0), at).is_some());
        failures.note(key(30_000), failed, of("192.0.2.1"));
        assert!(failures.of(&key(30_000), at).is_some());
    }
}
