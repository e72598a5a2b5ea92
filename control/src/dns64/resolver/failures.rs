//! Questions that lately had no usable answer, so that they are not asked again immediately (RFC 9520 §3.2: at least 1 s, at most 5 min).

use super::super::key::Key;
use crate::Instant;
use foldhash::quality::FixedState;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// For this time a question without an answer is not asked again.
pub(super) const HOLD: Duration = Duration::from_secs(5);
/// So long it is not asked again where something stale serves in the meantime (RFC 8767 §5: 30 s).
pub(super) const HOLD_STALE: Duration = Duration::from_secs(30);
/// For this time it is not asked again after there was no room to ask it: that may be over soon, and no upstream was troubled.
pub(super) const HOLD_FULL: Duration = Duration::from_secs(1);
/// Failures that are kept; beyond, the oldest is forgotten.
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

/// The failures of late.
#[derive(Debug)]
pub(super) struct Failures {
    by_key: HashMap<Key, Failed, FixedState>,
    /// In the order in which they came; a key may be there more than once.
    order: VecDeque<(Instant, Key)>,
}

impl Failures {
    pub(super) fn new(seed: u64) -> Self {
        Self { by_key: HashMap::with_hasher(FixedState::with_seed(seed)), order: VecDeque::new() }
    }

    /// Takes note of one.
    pub(super) fn note(&mut self, key: Key, failed: Failed) {
        self.order.push_back((failed.at, key));
        self.by_key.insert(key, failed);
        while let Some((at, oldest)) = self.order.front().copied() {
            let over = self.by_key.get(&oldest).is_none_or(|kept| kept.at != at || kept.until <= failed.at);
            if !over && self.by_key.len() <= MOST && self.order.len() <= 2 * MOST {
                return;
            }
            self.order.pop_front();
            if self.by_key.get(&oldest).is_some_and(|kept| kept.at == at) {
                self.by_key.remove(&oldest);
            }
        }
    }

    /// Whether it failed and is not to be asked again yet.
    pub(super) fn of(&self, key: &Key, now: Instant) -> Option<Failed> {
        if self.by_key.is_empty() {
            return None;
        }
        self.by_key.get(key).copied().filter(|failed| now < failed.until)
    }

    /// All is forgotten.
    pub(super) fn clear(&mut self) {
        self.by_key.clear();
        self.order.clear();
    }

    /// It has an answer again.
    pub(super) fn forget(&mut self, key: &Key) {
        if !self.by_key.is_empty() {
            self.by_key.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_bound_are_kept() {
        let mut failures = Failures::new(7);
        let at = Instant::from_secs(10);
        let key = |number: u32| Key::of(&[&[4], &number.to_be_bytes()[..], &[0]].concat(), 1, 1, false);
        for number in 0..3 * MOST as u32 {
            failures.note(key(number), Failed { at, until: at + HOLD, code: 22, why: "" });
            // The same question over and over takes no more room than once.
            failures.note(key(0), Failed { at, until: at + HOLD, code: 22, why: "" });
        }
        assert!(failures.by_key.len() <= MOST && failures.order.len() <= 2 * MOST);
        assert!(failures.of(&key(3 * MOST as u32 - 1), at).is_some());
        assert!(failures.of(&key(1), at).is_none());
    }
}
