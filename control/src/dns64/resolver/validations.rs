//! Validations under way: each entry is validated once, however many wait for it.

use super::super::key::Key;
use super::super::settings::{Anchor, Dnssec};
use super::super::validator::{Reply, Validation, Validator};
use super::waiting::Waiter;
use crate::Instant;
use foldhash::quality::FixedState;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Validations at a time.
const MOST: usize = 1_024;

/// An entry that is being validated.
#[derive(Debug)]
pub(super) struct UnderWay {
    pub(super) key: Key,
    /// When the entry was stored: another one may take its place.
    pub(super) stored: Instant,
    pub(super) waiters: Vec<Waiter>,
}

/// The validations under way.
#[derive(Debug)]
pub(super) struct Validations {
    pub(super) validator: Validator,
    pub(super) by_number: HashMap<Validation, UnderWay, FixedState>,
    pub(super) by_key: HashMap<Key, Validation, FixedState>,
    /// Who came when there was no room.
    pub(super) outside: VecDeque<Waiter>,
    /// When validations began, the oldest first; some are over.
    begun: VecDeque<(Instant, Validation)>,
}

impl Validations {
    pub(super) fn new(dnssec: &Dnssec, seed: u64) -> Self {
        let hasher = FixedState::with_seed(seed);
        Self {
            validator: Validator::new(dnssec.anchors.clone(), dnssec.insecure.clone()),
            by_number: HashMap::with_hasher(hasher.clone()),
            by_key: HashMap::with_hasher(hasher),
            outside: VecDeque::new(),
            begun: VecDeque::new(),
        }
    }

    /// What was found on the way to signatures is forgotten.
    pub(super) fn forget(&mut self) {
        self.validator.forget();
    }

    /// Whether there is room for one more.
    pub(super) fn has_room(&self) -> bool {
        self.by_number.len() < MOST
    }

    /// A waiter for which there was no room before and is now.
    pub(super) fn let_in(&mut self) -> Option<Waiter> {
        if self.has_room() { self.outside.pop_front() } else { None }
    }

    pub(super) fn begin(
        &mut self,
        now: Instant,
        wall: u64,
        entry: (Key, Instant),
        reply: Reply,
    ) -> &mut UnderWay {
        let (key, stored) = entry;
        let number = self.validator.begin(now, wall, key.name(), key.qtype(), reply);
        self.by_key.insert(key, number);
        self.begun.push_back((now, number));
        self.by_number.entry(number).or_insert(UnderWay { key, stored, waiters: Vec::new() })
    }

    pub(super) fn end(&mut self, number: Validation) -> Option<UnderWay> {
        let under_way = self.by_number.remove(&number)?;
        self.by_key.remove(&under_way.key);
        while self.begun.front().is_some_and(|(_, oldest)| !self.by_number.contains_key(oldest)) {
            self.begun.pop_front();
        }
        if self.begun.len() > 4 * MOST {
            self.begun.retain(|(_, begun)| self.by_number.contains_key(begun));
        }
        Some(under_way)
    }

    /// Gives up one that has gone on for so long that who asked for it has been answered. A zone whose servers are slow on purpose would keep others out.
    pub(super) fn give_up_one(&mut self, now: Instant, longest: Duration) -> Option<UnderWay> {
        let (_, number) = self.begun.front().filter(|(began, _)| now >= *began + longest).copied()?;
        self.validator.abandon(number);
        self.end(number)
    }

    pub(super) fn set_anchors(&mut self, anchors: Vec<Anchor>) {
        self.validator.set_anchors(anchors);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::query::IN;
    use super::super::super::settings::{AnchorKey, Wire};
    use super::*;

    #[test]
    fn who_validates_for_longer_than_anybody_waits_makes_way_for_others() {
        let key = AnchorKey::Ds([&[0, 1, 13, 2][..], &[7; 32]].concat().into());
        let anchors = vec![Anchor { zone: Wire([0].into()), key }];
        let mut validations = Validations::new(&Dnssec { anchors, ..Dnssec::default() }, 1);
        let (start, longest) = (Instant::from_secs(100), Duration::from_secs(5));
        for number in 1_000..1_000 + MOST as u16 {
            assert!(validations.has_room());
            validations.begin(start, 0, (Key::of(b"\x01a\0", number, IN, false), start), Reply::default());
        }
        assert!(!validations.has_room() && validations.validator.poll_verdict().is_none());
        assert!(validations.give_up_one(start + longest / 2, longest).is_none());
        let oldest = validations.give_up_one(start + longest, longest).expect("its time has come");
        assert!(oldest.key.qtype() == 1_000 && validations.has_room());
        let numbers: Vec<Validation> = validations.by_number.keys().copied().collect();
        assert!(numbers.into_iter().all(|number| validations.end(number).is_some()));
        assert!(validations.begun.is_empty() && validations.by_key.is_empty());
    }
}
