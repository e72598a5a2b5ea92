//! From entries to validations, and from verdicts back to entries.

use super::super::answer::{Answer, ExtendedError, Kind};
use super::super::ask::Security;
use super::super::key::Key;
use super::super::query::IN;
use super::super::settings::Wire;
use super::super::shares::Payer;
use super::super::upstream::Exhausted;
use super::as_reply::as_reply;
use super::failures::{HOLD, in_words};
use super::forwarder::Resolver;
use super::responder::{Need, fetch};
use super::validations::UnderWay;
use super::waiting::Waiter;
use crate::Instant;
use sixway_dnssec::{CurrentTime, Lookup, Validate, Validation, Verdict};

/// What does not validate is kept so long, in seconds, whatever its TTL (RFC 4035 §4.7, RFC 9520 §3.2).
const BOGUS_TTL: std::ops::RangeInclusive<u32> = 5..=30;
/// How long, in seconds, an answer is cached that could not be validated for lack of data: as long as that data is not queried again.
const INDETERMINATE_TTL: u32 = HOLD.as_secs() as u32;
impl<T: Copy, V: Validate> Resolver<T, V> {
    /// Validates an entry, unless it is being validated; the waiter, if there is one, is woken by the verdict.
    pub(super) fn begin_validation(&mut self, now: Instant, key: Key, waiter: Option<Waiter>, payer: Payer) {
        if let Some(under_way) = self.validations.of(&key) {
            let new = waiter.filter(|waiter| under_way.waiters.last() != Some(waiter));
            under_way.waiters.extend(new);
            return;
        }
        let Some(entry) = self.responder.cache.peek(&key) else { return self.woken.extend(waiter) };
        let stored = entry.stored();
        let Ok(reply) = as_reply(entry, now) else {
            self.conclude(now, key, Security::Bogus, None, waiter.as_slice());
            return;
        };
        self.give_up_old_validations(now);
        let Some(place) = self.validations.admit(now, payer) else {
            self.counters.validations_delayed += 1;
            if let Some(waiter) = waiter {
                let waiting = &self.waiting;
                let waits = |waiter| waiting.waits(waiter);
                self.validations.enqueue(now, (waiter, payer), waiting.len(), waits);
            }
            return;
        };
        self.counters.validations += 1;
        let current_time = self.current_time(now);
        if let Some(begun) = self.validations.begin((now, current_time), (key, stored), place, reply) {
            begun.waiters.extend(waiter);
        }
    }

    /// Validations that no query waits for any more free their places.
    fn give_up_old_validations(&mut self, now: Instant) {
        let longest = self.responder.settings.limits.deadline;
        while let Some(given_up) = self.validations.give_up_one(now, longest) {
            self.woken.extend(given_up.waiters);
        }
    }

    /// Does the validator's lookups, and takes its verdicts.
    pub(super) fn validate(&mut self, now: Instant) {
        while let Some((validation, lookup)) = self.validations.validator.poll_lookup() {
            let key = Key::of(&lookup.name.0, lookup.qtype, IN, false);
            let usable =
                self.responder.cache.get(&key).filter(|entry| entry.has_dnssec() && entry.is_fresh(now));
            match usable.is_some() || self.responder.failures.of(&key, now).is_some() {
                true => self.tell_validator(now, &key),
                false => {
                    let payer = self.validations.payer(validation);
                    self.look_up_for(now, &fetch(key, true), None, payer, true);
                }
            }
        }
        while let Some((number, verdict)) = self.validations.validator.poll_verdict() {
            self.validations.charge(now, number, &verdict);
            match self.validations.refused_for(&verdict) {
                Some(payer) => self.give_up_for_want_of_a_share(now, number, payer),
                None => self.hear_verdict(now, number, &verdict),
            }
        }
        self.validations.refused.clear();
        // A query that is answered meanwhile does not take the place; the next one is admitted after it was examined.
        if self.woken.is_empty() {
            self.woken.extend(self.validations.dequeue(now));
        }
    }

    /// The validator's lookup may not be sent now: the waiting queries get no verdict, and none is cached.
    pub(super) fn refuse_validator(&mut self, now: Instant, key: &Key, payer: Payer) {
        let lookup = Lookup { name: Wire(key.name().into()), qtype: key.qtype() };
        let current_time = self.current_time(now);
        self.validations.validator.handle_lookup(current_time, &lookup, None);
        self.validations.refused.push((lookup, payer));
    }

    fn give_up_for_want_of_a_share(&mut self, now: Instant, number: Validation, payer: Payer) {
        let Some(under_way) = self.validations.end(number) else { return };
        self.turn_away_those_of(now, payer, &under_way.waiters, in_words(Some(Exhausted::NoShare)));
    }

    /// Gives the validator what is known of a question that it asked.
    pub(super) fn tell_validator(&mut self, now: Instant, key: &Key) {
        let failed = self.responder.failures.of(key, now).is_some();
        let entry = self.responder.cache.peek(key).filter(|entry| entry.is_fresh(now) || !failed);
        let reply = entry.and_then(|entry| as_reply(entry, now).ok());
        let lookup = Lookup { name: Wire(key.name().into()), qtype: key.qtype() };
        let current_time = self.current_time(now);
        self.validations.validator.handle_lookup(current_time, &lookup, reply.as_ref());
    }

    /// Now, by both clocks of a validator.
    fn current_time(&self, now: Instant) -> CurrentTime {
        CurrentTime { monotonic: now.since(Instant::default()), wall: self.wall.at(now) }
    }

    fn hear_verdict(&mut self, now: Instant, number: Validation, verdict: &Verdict) {
        let Some(under_way) = self.validations.end(number) else { return };
        let same = |entry: &&Answer| entry.stored() == under_way.stored;
        if self.responder.cache.peek(&under_way.key).filter(same).is_none() {
            self.woken.extend(under_way.waiters);
            return;
        }
        if let Some(bound) = verdict.ttl_bound {
            self.responder.cache.limit_lifetime(&under_way.key, now, bound);
        }
        if verdict.security == Security::Bogus && self.ask_elsewhere(now, &under_way, verdict.blamed.as_ref())
        {
            return;
        }
        self.conclude(now, under_way.key, verdict.security, verdict.extended_error, &under_way.waiters);
    }

    /// What does not validate is queried once more, from another upstream (RFC 4035 §4.7), and so is what was blamed for it; `false`: it was already.
    fn ask_elsewhere(&mut self, now: Instant, under_way: &UnderWay, blamed: Option<&Lookup>) -> bool {
        let Some(origin) = self.responder.cache.peek(&under_way.key).map(Answer::origin) else {
            return false;
        };
        if origin.again {
            return false;
        }
        if let Some(blamed) = blamed {
            let key = Key::of(&blamed.name.0, blamed.qtype, IN, false);
            let first = |entry: &&Answer| !entry.origin().again;
            if let Some(origin) = self.responder.cache.peek(&key).filter(first).map(Answer::origin) {
                self.responder.cache.remove(&key);
                let unlike = Some(origin.upstream.into());
                self.look_up_for(now, &Need { unlike, ..fetch(key, true) }, None, under_way.payer, false);
            }
        }
        let unlike = Some(origin.upstream.into());
        let need = Need { unlike, ..fetch(under_way.key, true) };
        // Until then, the known data must not be examined again.
        self.responder.cache.remove(&under_way.key);
        self.look_up_for(now, &need, None, under_way.payer, false);
        for waiter in &under_way.waiters {
            self.look_up(now, &need, *waiter);
        }
        true
    }

    /// Names below one that does not exist are not asked for.
    pub(super) fn note_name_error(&mut self, key: &Key) {
        if self.responder.cache.peek(key).is_some_and(|entry| entry.kind() == Kind::NameError) {
            self.responder.name_errors.note(key);
        }
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
        self.responder.cache.set_security(&key, security, error);
        if security == Security::Secure {
            self.note_name_error(&key);
        }
        match security {
            Security::Bogus => self.responder.cache.hold(&key, now, *BOGUS_TTL.start(), *BOGUS_TTL.end()),
            Security::Indeterminate => {
                self.responder.cache.hold(&key, now, INDETERMINATE_TTL, INDETERMINATE_TTL);
            }
            Security::Unchecked | Security::Secure | Security::Insecure => {}
        }
        self.woken.extend(waiters);
    }
}
