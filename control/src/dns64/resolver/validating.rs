//! From entries to validations, and from verdicts back to entries.

use super::super::answer::{Answer, ExtendedError};
use super::super::ask::Security;
use super::super::key::Key;
use super::super::query::IN;
use super::super::settings::Wire;
use super::super::validator::{Lookup, Reply, Validation, Verdict};
use super::failures::HOLD;
use super::forwarder::Resolver;
use super::responder::{Need, fetch};
use super::validations::UnderWay;
use super::waiting::Waiter;
use crate::Instant;

/// What does not validate is kept so long, in seconds, whatever its TTL (RFC 4035 §4.7, RFC 9520 §3.2).
const BOGUS_TTL: std::ops::RangeInclusive<u32> = 5..=30;
/// So long, in seconds, is kept what could not be validated for want of an answer: as long as that is not asked for again.
const INDETERMINATE_TTL: u32 = HOLD.as_secs() as u32;
impl<T: Copy> Resolver<T> {
    /// Validates an entry, unless it is being validated; the waiter, if there is one, is woken by the verdict.
    pub(super) fn begin_validation(&mut self, now: Instant, key: Key, waiter: Option<Waiter>) {
        let under_way = self.validations.by_key.get(&key);
        if let Some(under_way) = under_way.and_then(|number| self.validations.by_number.get_mut(number)) {
            let new = waiter.filter(|waiter| under_way.waiters.last() != Some(waiter));
            under_way.waiters.extend(new);
            return;
        }
        if !self.validations.has_room() && !self.give_up_validation(now) {
            return self.validations.outside.extend(waiter);
        }
        let Some(entry) = self.responder.cache.peek(&key) else { return self.woken.extend(waiter) };
        let stored = entry.stored();
        let Ok(reply) = Reply::of(entry, now) else {
            self.conclude(now, key, Security::Bogus, None, waiter.as_slice());
            return;
        };
        self.counters.validations += 1;
        let wall = self.wall.at(now);
        self.validations.begin(now, wall, (key, stored), reply).waiters.extend(waiter);
    }

    /// Makes room; `false`: nothing can be evicted.
    fn give_up_validation(&mut self, now: Instant) -> bool {
        while let Some(gone) = self.validations.outside.front().copied()
            && self.waiting.look(gone).is_none()
        {
            self.validations.outside.pop_front();
        }
        let given_up = self.validations.give_up_one(now, self.responder.settings.limits.deadline);
        let made_room = given_up.is_some();
        self.woken.extend(given_up.into_iter().flat_map(|under_way| under_way.waiters));
        made_room
    }

    /// Meets the validator's needs, and hears its verdicts.
    pub(super) fn validate(&mut self, now: Instant) {
        while let Some(lookup) = self.validations.validator.poll_lookup() {
            let key = Key::of(&lookup.name.0, lookup.qtype, IN, false);
            let usable =
                self.responder.cache.get(&key).filter(|entry| entry.has_dnssec() && entry.is_fresh(now));
            match usable.is_some() || self.responder.failures.of(&key, now).is_some() {
                true => self.tell_validator(now, &key),
                false => self.look_up(now, &fetch(key, true), None, true),
            }
        }
        while let Some((number, verdict)) = self.validations.validator.poll_verdict() {
            self.hear_verdict(now, number, &verdict);
        }
        // One who is answered meanwhile does not take the room, and the next is let in after it was looked at.
        if self.woken.is_empty() {
            self.woken.extend(self.validations.let_in());
        }
    }

    /// Gives the validator what is known of a question that it asked.
    pub(super) fn tell_validator(&mut self, now: Instant, key: &Key) {
        let failed = self.responder.failures.of(key, now).is_some();
        let entry = self.responder.cache.get(key).filter(|entry| entry.is_fresh(now) || !failed);
        let reply = entry.and_then(|entry| Reply::of(entry, now).ok());
        let lookup = Lookup { name: Wire(key.name().into()), qtype: key.qtype() };
        let wall = self.wall.at(now);
        self.validations.validator.handle_lookup(now, wall, &lookup, reply.as_ref());
    }

    fn hear_verdict(&mut self, now: Instant, number: Validation, verdict: &Verdict) {
        let Some(under_way) = self.validations.end(number) else { return };
        let same = |entry: &&Answer| entry.stored() == under_way.stored;
        if self.responder.cache.get(&under_way.key).filter(same).is_none() {
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
                self.look_up(now, &Need { unlike, ..fetch(key, true) }, None, false);
            }
        }
        let unlike = Some(origin.upstream.into());
        let need = Need { unlike, ..fetch(under_way.key, true) };
        // Until then, what is there must not be looked at again.
        self.responder.cache.remove(&under_way.key);
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
        self.responder.cache.set_security(&key, security, error);
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
