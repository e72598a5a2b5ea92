//! Lookups: from missing data to queries to upstreams, and from their replies to cache entries.

use super::super::answer::{Answer, Bounds, ExtendedError, Kind, Origin};
use super::super::ask::{Asker, Security};
use super::super::key::Key;
use super::super::query::Query;
use super::super::shares::Payer;
use super::super::upstream::{Exhausted, Number, Question, Reply};
use super::failures::{Failed, HOLD, HOLD_STALE, in_words};
use super::forwarder::Resolver;
use super::info_code::OTHER;
use super::lookups::{Lookup, MOST_LINKS};
use super::reconfigure::GONE;
use super::responder::{Need, Types, fetch, may_be_stale};
use super::waiting::Waiter;
use crate::Instant;
use sixway_dnssec::Validate;
use std::time::Duration;

impl<T: Copy, V: Validate> Resolver<T, V> {
    /// Begins a lookup of missing data, unless one is under way. The answer wakes the waiter.
    pub(super) fn look_up(&mut self, now: Instant, need: &Need, waiter: Waiter) {
        let payer = self.waiting.payer(waiter);
        self.look_up_for(now, need, Some(waiter), payer, false);
    }

    /// The same, for a validation that this payer began.
    pub(super) fn look_up_for(
        &mut self,
        now: Instant,
        need: &Need,
        waiter: Option<Waiter>,
        payer: Payer,
        for_validator: bool,
    ) {
        if let Some(lookup) = self.lookups.under_way(&need.key, need.dnssec_ok) {
            lookup.for_validator |= for_validator;
            if let Some(waiter) = waiter.filter(|waiter| lookup.waiters.last() != Some(waiter)) {
                lookup.waiters.push(waiter);
            }
            return;
        }
        let lookup = Lookup {
            key: need.key,
            dnssec_ok: need.dnssec_ok,
            waiters: waiter.into_iter().collect(),
            for_validator,
            unlike: need.unlike,
            so_far: None,
            links: 0,
            payer,
        };
        self.ask(now, lookup, &need.key);
    }

    /// Sends a lookup's question, or that for the end of its chain, to the upstreams.
    fn ask(&mut self, now: Instant, lookup: Lookup, about: &Key) {
        let dnssec = &self.responder.settings.dnssec;
        let question = Question {
            name: about.name(),
            qtype: about.qtype(),
            qclass: about.qclass(),
            dnssec_ok: lookup.dnssec_ok,
            dnssec_needed: dnssec.validate,
            checking_disabled: dnssec.validate || about.checking_disabled(),
            authentic_data: dnssec.trust_upstream && !dnssec.validate,
            unlike: lookup.unlike,
            payer: lookup.payer,
        };
        let number = self.upstreams.ask(now, &question);
        self.lookups.begin(number, lookup);
    }

    /// Processes the outcome of a question.
    pub(super) fn hear(&mut self, now: Instant, number: Number, outcome: Result<Reply, Exhausted>) {
        let Some(mut lookup) = self.lookups.finish(number) else { return };
        let about =
            lookup.so_far.as_ref().and_then(|so_far| so_far.target().map(|to| lookup.key.with_name(&to.0)));
        let about = about.unwrap_or(lookup.key);
        let read = outcome.as_ref().ok().and_then(|reply| {
            // An upstream without EDNS has no DNSSEC records: the query is not repeated with them.
            let zone = self.responder.settings.zone(reply.upstream, about.name());
            let bounds = self.bounds(lookup.dnssec_ok, zone);
            let mut answer = Answer::read(&about, &reply.message, now, &bounds).ok()?;
            let upstream = reply.upstream.try_into().unwrap_or(GONE);
            answer.set_origin(Origin { upstream, again: lookup.unlike.is_some() });
            if let Kind::Failure(_) = answer.kind() {
                let text = self.responder.settings.blames(reply.upstream, &reply.message);
                answer.set_own_error(ExtendedError { code: OTHER, text });
            }
            Some(answer)
        });
        let Some(read) = read else {
            let exhausted = outcome.err();
            let (code, why) = in_words(exhausted);
            if let Some(refused @ (Exhausted::NoShare | Exhausted::SilentZone)) = exhausted {
                self.count_refused(refused);
                return self.refuse(now, lookup, (code, why));
            }
            return self.fail(now, lookup, code, why);
        };
        let whole = match lookup.so_far.take() {
            None => Some(read),
            Some(so_far) => so_far.joined(&read),
        };
        let Some(whole) = whole else {
            return self.fail(now, lookup, OTHER, "a chain of CNAME records that loops");
        };
        if let (Kind::Unfinished, Some(target)) = (whole.kind(), whole.target()) {
            if lookup.links >= MOST_LINKS {
                return self.fail(now, lookup, OTHER, "a chain of CNAME records that is too long");
            }
            let next = lookup.key.with_name(&target.0);
            lookup.links += 1;
            lookup.so_far = Some(whole);
            return self.ask(now, lookup, &next);
        }
        self.keep(now, lookup, whole);
    }

    pub(super) fn bounds(&self, dnssec_ok: bool, zone: u8) -> Bounds {
        let limits = &self.responder.settings.limits;
        Bounds {
            dnssec_ok,
            longest_ttl: limits.longest_ttl,
            longest_negative_ttl: limits.longest_negative_ttl,
            failure_ttl: HOLD.as_secs() as u32,
            zone,
        }
    }

    /// Caches an answer, and wakes the queries that wait for it.
    fn keep(&mut self, now: Instant, lookup: Lookup, mut answer: Answer) {
        // An upstream's failure does not displace what still serves, fresh or stale.
        if let Kind::Failure(_) = answer.kind()
            && self.is_worth_keeping(now, &lookup.key)
        {
            return self.fail(now, lookup, OTHER, "the upstream failed");
        }
        let kept = self.responder.cache.peek(&lookup.key);
        if !lookup.dnssec_ok && kept.is_some_and(|kept| kept.has_dnssec() && kept.is_fresh(now)) {
            return self.wake(now, lookup);
        }
        if self.responder.settings.dnssec.trust_upstream && !self.responder.settings.dnssec.validate {
            let security = if answer.authentic() { Security::Secure } else { Security::Insecure };
            answer.set_security(security, None);
        }
        // What was fetched ahead of an entry's end is validated ahead of it too.
        let is_ahead = lookup.waiters.is_empty() && kept.is_some_and(was_validated);
        self.responder.failures.forget(&lookup.key);
        let is_secure = answer.security() == Security::Secure;
        self.responder.cache.insert(&lookup.key, answer);
        if is_secure {
            self.note_name_error(&lookup.key);
        }
        if is_ahead && self.responder.settings.dnssec.validate {
            self.begin_validation(now, lookup.key, None, lookup.payer);
        }
        self.wake(now, lookup);
    }

    /// Whether there is a cache entry that a failure must not replace.
    fn is_worth_keeping(&self, now: Instant, key: &Key) -> bool {
        let longest = self.responder.settings.stale.map_or(Duration::ZERO, |stale| stale.longest);
        let serves = |entry: &Answer| may_be_stale(entry) && now < entry.expires() + longest;
        self.responder.cache.peek(key).is_some_and(serves)
    }

    /// Records the failure of a question, which is then not repeated for some time.
    fn fail(&mut self, now: Instant, lookup: Lookup, code: u16, why: &'static str) {
        let hold = if self.is_worth_keeping(now, &lookup.key) { HOLD_STALE } else { HOLD };
        let failed = Failed { at: now, until: now + hold, code, why };
        self.responder.failures.note(lookup.key, failed, lookup.payer);
        self.wake(now, lookup);
    }

    /// Counts a lookup that was refused for this reason, if it was for lack of a share.
    pub(super) fn count_refused(&mut self, why: Exhausted) {
        match why {
            Exhausted::NoShare => self.counters.upstream_queries_refused += 1,
            Exhausted::SilentZone => self.counters.silent_zone_refused += 1,
            Exhausted::NoUpstream | Exhausted::NoReply | Exhausted::Unreachable | Exhausted::Unusable => {}
        }
    }

    /// Ends a lookup whose payer has no share. The name did not fail, so this is not cached (RFC 9520 §2). Other queries that wait begin the lookup themselves.
    fn refuse(&mut self, now: Instant, lookup: Lookup, why: (u16, &'static str)) {
        self.turn_away_those_of(now, lookup.payer, &lookup.waiters, why);
        if lookup.for_validator {
            self.refuse_validator(now, &lookup.key, lookup.payer);
        }
    }

    /// Those of a payer have no share; the others are examined again. Another host of the same subscriber, and the same host with a proven
    /// address, may have a share where this payer has none: each is refused by its own.
    pub(super) fn turn_away_those_of(
        &mut self,
        now: Instant,
        payer: Payer,
        waiters: &[Waiter],
        why: (u16, &'static str),
    ) {
        for waiter in waiters {
            match self.waiting.payer(*waiter) == payer {
                true => self.turn_away(now, *waiter, why),
                false => self.woken.push_back(*waiter),
            }
        }
    }

    fn wake(&mut self, now: Instant, lookup: Lookup) {
        self.woken.extend(&lookup.waiters);
        if lookup.for_validator {
            self.tell_validator(now, &lookup.key);
        }
    }

    /// Queries types at the name of a query, although no query waits for them.
    pub(super) fn refresh(&mut self, now: Instant, query: &Query<'_>, asker: &Asker<T>, types: &Types) {
        if types.is_empty() {
            return;
        }
        // Nobody waits for it: it needs nothing of what is reserved for proven addresses.
        let payer = asker.payer(self.responder.settings.limits.client_prefix_length, false);
        for qtype in types.iter().filter(|_| query.recursion_desired) {
            let key = self.responder.key(query.name, *qtype, query);
            let need = fetch(key, self.responder.wants_dnssec(query));
            let is_new = self.lookups.under_way(&key, need.dnssec_ok).is_none();
            if is_new && self.upstreams.refusal(now, key.name(), payer).is_none() {
                self.counters.prefetched += 1;
                self.look_up_for(now, &need, None, payer, false);
            }
        }
    }
}

fn was_validated(answer: &Answer) -> bool {
    matches!(answer.security(), Security::Secure | Security::Insecure)
}
