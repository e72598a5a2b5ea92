//! Validations under way: each entry is validated once, whoever waits for it.

use super::super::answer::{Answer, ExtendedError};
use super::super::ask::Security;
use super::super::key::Key;
use super::super::settings::{Anchor, Dnssec, Wire};
use super::super::validator::{Lookup, Reply, Validation, Validator, Verdict};
use super::Resolver;
use super::desk::{Need, fetch};
use super::look::IN;
use super::waiting::Waiter;
use crate::Instant;
use foldhash::quality::FixedState;
use std::collections::HashMap;

/// What does not validate is kept no longer, in seconds (RFC 4035 §4.7).
const BOGUS_TTL: u32 = 30;
/// Validations at a time.
const MOST: usize = 1_024;

/// An entry that is being validated.
#[derive(Debug)]
struct UnderWay {
    key: Key,
    /// When the entry was stored: another one may take its place.
    stored: Instant,
    waiters: Vec<Waiter>,
}

/// The validations under way.
#[derive(Debug)]
pub(super) struct Validations {
    validator: Validator,
    by_number: HashMap<Validation, UnderWay, FixedState>,
    by_key: HashMap<Key, Validation, FixedState>,
}

impl Validations {
    pub(super) fn new(dnssec: &Dnssec, seed: u64) -> Self {
        let hasher = FixedState::with_seed(seed);
        Self {
            validator: Validator::new(dnssec.anchors.clone(), dnssec.insecure.clone()),
            by_number: HashMap::with_hasher(hasher.clone()),
            by_key: HashMap::with_hasher(hasher),
        }
    }

    pub(super) fn set_anchors(&mut self, anchors: Vec<Anchor>) {
        self.validator.set_anchors(anchors);
    }
}

impl<T: Copy> Resolver<T> {
    /// Validates an entry, unless it is being validated; the waiter is woken by the verdict.
    pub(super) fn begin_validation(&mut self, now: Instant, key: Key, waiter: Waiter) {
        let under_way = self.validations.by_key.get(&key);
        if let Some(under_way) = under_way.and_then(|number| self.validations.by_number.get_mut(number)) {
            if under_way.waiters.last() != Some(&waiter) {
                under_way.waiters.push(waiter);
            }
            return;
        }
        let Some(entry) = self.desk.cache.get(&key).filter(|_| self.validations.by_number.len() < MOST)
        else {
            // It is looked at again when its patience ends.
            return;
        };
        let stored = entry.stored();
        let Ok(reply) = Reply::of(entry, now) else {
            self.conclude(now, key, Security::Bogus, None, &[waiter]);
            return;
        };
        self.counters.validations += 1;
        let wall = self.wall.at(now);
        let number = self.validations.validator.begin(now, wall, key.name(), key.qtype(), reply);
        self.validations.by_key.insert(key, number);
        self.validations.by_number.insert(number, UnderWay { key, stored, waiters: vec![waiter] });
    }

    /// Meets the validator's needs, and hears its verdicts.
    pub(super) fn validate(&mut self, now: Instant) {
        while let Some(lookup) = self.validations.validator.poll_lookup() {
            let key = Key::of(&lookup.name.0, lookup.qtype, IN, false);
            let usable = self.desk.cache.get(&key).filter(|entry| entry.has_dnssec() && entry.is_fresh(now));
            match usable.is_some() || self.desk.failures.of(&key, now).is_some() {
                true => self.tell_validator(now, &key),
                false => self.look_up(now, &fetch(key, true), None, true),
            }
        }
        while let Some((number, verdict)) = self.validations.validator.poll_verdict() {
            self.hear_verdict(now, number, &verdict);
        }
    }

    /// Gives the validator what is known of a question that it asked.
    pub(super) fn tell_validator(&mut self, now: Instant, key: &Key) {
        let failed = self.desk.failures.of(key, now).is_some();
        let entry = self.desk.cache.get(key).filter(|_| !failed);
        let reply = entry.and_then(|entry| Reply::of(entry, now).ok());
        let lookup = Lookup { name: Wire(key.name().into()), qtype: key.qtype() };
        let wall = self.wall.at(now);
        self.validations.validator.handle_lookup(now, wall, &lookup, reply.as_ref());
    }

    fn hear_verdict(&mut self, now: Instant, number: Validation, verdict: &Verdict) {
        let Some(under_way) = self.validations.by_number.remove(&number) else { return };
        self.validations.by_key.remove(&under_way.key);
        let same = |entry: &&Answer| entry.stored() == under_way.stored;
        if self.desk.cache.get(&under_way.key).filter(same).is_none() {
            self.woken.extend(under_way.waiters);
            return;
        }
        if let Some(bound) = verdict.ttl_bound {
            self.desk.cache.limit_lifetime(&under_way.key, now, bound);
        }
        if verdict.security == Security::Bogus && self.ask_elsewhere(now, &under_way, verdict.blamed.as_ref())
        {
            return;
        }
        self.conclude(now, under_way.key, verdict.security, verdict.extended_error, &under_way.waiters);
    }

    /// What does not validate is asked for once more, from another upstream (RFC 4035 §4.7), and so is what was blamed for it; `false`: it was already.
    fn ask_elsewhere(&mut self, now: Instant, under_way: &UnderWay, blamed: Option<&Lookup>) -> bool {
        let Some(origin) = self.desk.cache.peek(&under_way.key).map(Answer::origin) else { return false };
        if origin.again {
            return false;
        }
        if let Some(blamed) = blamed {
            let key = Key::of(&blamed.name.0, blamed.qtype, IN, false);
            if let Some(entry) = self.desk.cache.remove(&key) {
                let unlike = Some(entry.origin().upstream.into());
                self.look_up(now, &Need { unlike, ..fetch(key, true) }, None, false);
            }
        }
        let unlike = Some(origin.upstream.into());
        let need = Need { unlike, ..fetch(under_way.key, true) };
        // Until then, what is there must not be looked at again.
        self.desk.cache.remove(&under_way.key);
        self.look_up(now, &need, None, false);
        for waiter in &under_way.waiters {
            self.look_up(now, &need, Some(*waiter), false);
        }
        true
    }

    /// An entry has its verdict.
    fn conclude(
        &mut self,
        now: Instant,
        key: Key,
        security: Security,
        code: Option<u16>,
        waiters: &[Waiter],
    ) {
        let error = code.map(|code| ExtendedError { code, text: "".into() });
        self.desk.cache.set_security(&key, security, error);
        if matches!(security, Security::Bogus | Security::Indeterminate) {
            self.desk.cache.limit_lifetime(&key, now, BOGUS_TTL);
        }
        self.woken.extend(waiters);
    }
}
