//! Validations in progress: each entry is validated once, however many queries wait for it.
//!
//! Their places are divided among subscribers, and so are the signatures that are checked for each. A subscriber with its share waits
//! in a [queue](super::validation_queue).

use super::super::key::Key;
use super::super::rate_limit::Rates;
use super::super::settings::{Anchor, Dnssec, Wire};
use super::super::shares::{Payer, Place, Shares};
use super::validation_queue::ValidationQueue;
use super::waiting::Waiter;
use crate::Instant;
use foldhash::quality::FixedState;
use sixway_dnssec::{CurrentTime, Lookup, Reply, Security, Validate, Validation, Verdict};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Validations at a time.
const MOST: usize = 1_024;

/// Signatures that are checked for a subscriber in a second, and at the same time. An ordinary answer needs one to eight, a hostile one up to 160, and each
/// about 0.1 ms.
const CHECKS: (u32, u32) = (2_000, 2_000);

/// Maximum number of subscribers that are examined to admit one.
const MOST_ASKED: usize = 8;

/// Waiting queries are examined again after this time: by then there are new tokens.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// An entry that is being validated.
#[derive(Debug)]
pub(super) struct UnderWay {
    pub(super) key: Key,
    /// When the entry was stored: another one may take its place.
    pub(super) stored: Instant,
    pub(super) waiters: Vec<Waiter>,
    /// The payer of its lookups: who began it.
    pub(super) payer: Payer,
}

/// The validations under way.
#[derive(Debug)]
pub(super) struct Validations<V> {
    pub(super) validator: V,
    by_number: HashMap<Validation, (UnderWay, Place), FixedState>,
    by_key: HashMap<Key, Validation, FixedState>,
    shares: Shares,
    /// Signatures that each subscriber may have checked.
    checks: Rates,
    /// Waiters whose validation cannot begin yet.
    queue: ValidationQueue,
    /// When to check again whether a waiting validation may start.
    look_at: Option<Instant>,
    /// Lookups that could not be made since their payers have no share; until their verdicts are heard.
    pub(super) refused: Vec<(Lookup, Payer)>,
    /// When validations began, the oldest first; some are over.
    begun: VecDeque<(Instant, Validation)>,
}

impl<V: Validate> Validations<V> {
    pub(super) fn new(mut validator: V, dnssec: &Dnssec, seed: u64) -> Self {
        let hasher = FixedState::with_seed(seed);
        validator.set_anchors(dnssec.anchors.clone(), dnssec.insecure.clone());
        Self {
            validator,
            by_number: HashMap::with_hasher(hasher.clone()),
            by_key: HashMap::with_hasher(hasher),
            shares: Shares::new(MOST, seed),
            checks: Rates::new(dnssec.validate.then_some(CHECKS), seed),
            queue: ValidationQueue::new(seed),
            look_at: None,
            refused: Vec::new(),
            begun: VecDeque::new(),
        }
    }

    /// Answers are validated from now on, or not.
    pub(super) fn reconfigure(&mut self, dnssec: &Dnssec) {
        self.checks.reconfigure(dnssec.validate.then_some(CHECKS));
        self.set_anchors(dnssec.anchors.clone(), &dnssec.insecure);
    }

    /// What was found on the way to signatures is forgotten.
    pub(super) fn forget(&mut self) {
        self.validator.forget();
    }

    /// The payer without a share that caused a verdict, if one did.
    pub(super) fn refused_for(&self, verdict: &Verdict) -> Option<Payer> {
        let blamed = verdict.blamed.as_ref().filter(|_| verdict.security == Security::Indeterminate)?;
        self.refused.iter().find(|(lookup, _)| lookup == blamed).map(|(_, payer)| *payer)
    }

    /// The validation of an entry, if it is under way.
    pub(super) fn of(&mut self, key: &Key) -> Option<&mut UnderWay> {
        let number = self.by_key.get(key)?;
        self.by_number.get_mut(number).map(|(under_way, _)| under_way)
    }

    /// The payer of a validation.
    pub(super) fn payer(&self, number: Validation) -> Payer {
        self.by_number.get(&number).map_or(Payer::OWN, |(under_way, _)| under_way.payer)
    }

    /// Whether a payer may begin one more: it has a share of the places, and of the signatures.
    fn has_room(&mut self, now: Instant, payer: Payer) -> bool {
        let may_check = payer == Payer::OWN || self.checks.has_token(now, payer);
        may_check && self.shares.has_room(payer)
    }

    /// Takes a place, which is to be [used](Self::begin); `None`: this payer has no share left.
    pub(super) fn admit(&mut self, now: Instant, payer: Payer) -> Option<Place> {
        if self.has_room(now, payer) { self.shares.admit(payer).ok() } else { None }
    }

    pub(super) fn begin(
        &mut self,
        (now, current_time): (Instant, CurrentTime),
        (key, stored): (Key, Instant),
        place: Place,
        reply: Reply,
    ) -> Option<&mut UnderWay> {
        let number = self.validator.begin(current_time, key.name(), key.qtype(), reply);
        self.by_key.insert(key, number);
        self.begun.push_back((now, number));
        let under_way = UnderWay { key, stored, waiters: Vec::new(), payer: place.payer() };
        if let Some((_, unused)) = self.by_number.insert(number, (under_way, place)) {
            self.shares.leave(unused);
        }
        self.by_number.get_mut(&number).map(|(under_way, _)| under_way)
    }

    pub(super) fn end(&mut self, number: Validation) -> Option<UnderWay> {
        let (under_way, place) = self.by_number.remove(&number)?;
        self.shares.leave(place);
        self.by_key.remove(&under_way.key);
        while self.begun.front().is_some_and(|(_, oldest)| !self.by_number.contains_key(oldest)) {
            self.begun.pop_front();
        }
        if self.begun.len() > 4 * MOST {
            self.begun.retain(|(_, begun)| self.by_number.contains_key(begun));
        }
        Some(under_way)
    }

    /// Signatures were checked for a validation.
    pub(super) fn charge(&mut self, now: Instant, number: Validation, verdict: &Verdict) {
        let payer = self.payer(number);
        if payer != Payer::OWN && verdict.checks > 0 {
            self.checks.charge(now, payer, verdict.checks.into());
        }
    }

    /// Queues a waiter. `most` is the number of all that wait, and `waits` returns whether one still does.
    pub(super) fn enqueue(
        &mut self,
        now: Instant,
        (waiter, payer): (Waiter, Payer),
        most: usize,
        waits: impl Fn(Waiter) -> bool,
    ) {
        const FEW: usize = 64;
        if self.queue.len() > FEW + 4 * most {
            self.queue.tidy(waits);
        }
        self.queue.push(waiter, payer);
        self.look_at.get_or_insert(now + LOOK_AGAIN);
    }

    /// Returns a queued waiter for which there is room now.
    pub(super) fn dequeue(&mut self, now: Instant) -> Option<Waiter> {
        for _ in 0..self.queue.queues().min(MOST_ASKED) {
            let (_, payer) = self.queue.first()?;
            if self.has_room(now, payer) {
                return self.queue.pop();
            }
            self.queue.turn();
        }
        self.look_at = (self.queue.queues() > 0).then_some(now + LOOK_AGAIN);
        None
    }

    /// When a waiting validation may start, if nothing happens before.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.look_at
    }

    /// Abandons one that has taken so long that its query has been answered. A zone with deliberately slow servers would otherwise keep others out.
    pub(super) fn give_up_one(&mut self, now: Instant, longest: Duration) -> Option<UnderWay> {
        let (_, number) = self.begun.front().filter(|(began, _)| now >= *began + longest).copied()?;
        self.validator.abandon(number);
        self.end(number)
    }

    /// Abandons all. Waiting queries must be examined again.
    pub(super) fn give_up_all(&mut self) -> Vec<Waiter> {
        let mut waiters = self.queue.drain();
        self.look_at = None;
        let numbers: Vec<Validation> = self.by_number.keys().copied().collect();
        for number in numbers {
            self.validator.abandon(number);
            waiters.extend(self.end(number).into_iter().flat_map(|under_way| under_way.waiters));
        }
        waiters
    }

    pub(super) fn set_anchors(&mut self, anchors: Vec<Anchor>, insecure: &[Wire]) {
        self.validator.set_anchors(anchors, insecure.into());
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::query::IN;
    use super::super::super::settings::AnchorKey;
    use super::*;
    use sixway_dnssec::Validator;

    #[test]
    fn who_validates_for_longer_than_anybody_waits_makes_way_for_others() {
        let key = AnchorKey::Ds([&[0, 1, 13, 2][..], &[7; 32]].concat().into());
        let anchors = vec![Anchor { zone: Wire([0].into()), key }];
        let mut validations =
            Validations::new(Validator::default(), &Dnssec { anchors, ..Dnssec::default() }, 1);
        let (start, longest) = (Instant::from_secs(100), Duration::from_secs(5));
        let mut number = 1_000;
        while let Some(place) = validations.admit(start, Payer::OWN) {
            let key = Key::of(b"\x01a\0", number, IN, false);
            validations.begin((start, CurrentTime::default()), (key, start), place, Reply::default());
            number += 1;
        }
        assert_eq!(number, 1_480, "half of what is not for who has none");
        assert!(validations.validator.poll_verdict().is_none());
        assert!(validations.give_up_one(start + longest / 2, longest).is_none());
        let oldest = validations.give_up_one(start + longest, longest).expect("its time has come");
        assert!(oldest.key.qtype() == 1_000 && validations.has_room(start, Payer::OWN));
        let numbers: Vec<Validation> = validations.by_number.keys().copied().collect();
        assert!(numbers.into_iter().all(|number| validations.end(number).is_some()));
        assert!(validations.begun.is_empty() && validations.by_key.is_empty());
        assert_eq!(validations.shares.used(), 0);
    }

    #[test]
    fn who_has_many_signatures_checked_waits_for_tokens_and_others_do_not() {
        let dnssec = Dnssec { validate: true, ..Dnssec::default() };
        let mut validations = Validations::new(Validator::default(), &dnssec, 1);
        let (now, current_time) = (Instant::from_secs(100), CurrentTime::default());
        let payer = |text: &str| Payer::of(text.parse().unwrap(), 64, false);
        let (greedy, other) = (payer("2001:db8::1"), payer("2001:db8:1::1"));
        let mut spent = 0;
        while let Some(place) = validations.admit(now, greedy) {
            let key = Key::of(b"\x01a\0", spent, IN, false);
            validations.begin((now, current_time), (key, now), place, Reply::default());
            let number = validations.by_key[&key];
            let verdict = Verdict {
                security: Security::Bogus,
                extended_error: None,
                ttl_bound: None,
                blamed: None,
                checks: 160,
            };
            validations.charge(now, number, &verdict);
            validations.end(number);
            spent += 160;
        }
        assert_eq!(spent, 2_080);
        assert!(validations.has_room(now, other) && validations.has_room(now, Payer::OWN));
        assert!(!validations.has_room(now, payer("2001:db8::2")), "a host of the same subscriber");
        let proven = Payer::of("2001:db8::1".parse().unwrap(), 64, true);
        assert!(validations.has_room(now, proven), "others may have asked in its name");
        assert!(validations.has_room(now + Duration::from_millis(50), greedy));
    }
}
