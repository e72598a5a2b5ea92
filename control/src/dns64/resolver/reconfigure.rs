//! Changes the settings, and keeps the cache, the waiting queries and the state of upstreams.

use super::super::answer::{Answer, Origin};
use super::super::ask::Security;
use super::super::local::Local;
use super::super::policy::Policy;
use super::super::settings::{Dnssec, Settings};
use super::super::upstream::{Moves, Number};
use super::forwarder::{Resolver, secrets_of};
use crate::Instant;
use sixway_dnssec::Validate;

/// The upstream of an answer, if it was removed: no upstream has this place.
pub(super) const GONE: u16 = u16::MAX;

impl<T: Copy, V: Validate> Resolver<T, V> {
    /// Takes other settings. `kept` says for each upstream of the new settings which place the same one, at the same address and by the same
    /// transport, had in the old ones; `None`: it is new. Events that were not fetched are dropped.
    ///
    /// What stays: answers, failures aside; queries that wait; latency, health and abilities of upstreams that are kept. What an upstream said of
    /// names that now are asked of others only is forgotten. With other settings of DNSSEC all verdicts are forgotten.
    ///
    /// Returns how many answers were forgotten.
    pub fn reconfigure(&mut self, now: Instant, settings: Settings, kept: &[Option<usize>]) -> usize {
        self.work(now);
        let before = std::mem::replace(&mut self.responder.settings, settings);
        let settings = &self.responder.settings;
        let limits = &settings.limits;
        self.responder.policy = Policy::new(settings);
        self.responder.local = Local::new(settings);
        self.responder.failures.clear();
        self.cookie_secrets = secrets_of(settings, self.own_secrets, self.wall.at(now));
        self.rates.reconfigure(limits.per_client);
        self.waiting.resize(limits.waiting);
        let moves = self.upstreams.reconfigure(now, &settings.upstreams, kept, limits.upstream_questions);
        let has_other_dnssec = before.dnssec != settings.dnssec;
        let mut forgotten = self.forget_what_others_say(&moves);
        if has_other_dnssec {
            forgotten += self.forget_verdicts(&before.dnssec);
        }
        self.responder.cache.resize(self.responder.settings.limits.cache);
        self.woken.extend(self.validations.give_up_all());
        self.validations.forget();
        self.begin_lookups_again(&moves, has_other_dnssec);
        self.work(now);
        forgotten
    }

    /// Split horizons: an answer is forgotten if the upstream that gave it is not asked about its name any more.
    fn forget_what_others_say(&mut self, moves: &Moves) -> usize {
        let upstreams = &self.upstreams;
        self.responder.cache.retain(|answer| {
            let origin = answer.origin();
            let said_by = moves.place(origin.upstream.into());
            let upstream = said_by.and_then(|place| place.try_into().ok()).unwrap_or(GONE);
            answer.set_origin(Origin { upstream, ..origin });
            let key = answer.key();
            upstreams.still_holds(moves, (key.name(), key.qtype()), said_by)
        })
    }

    /// What was fetched to be validated here was not validated by the upstream: without a verdict it is forgotten.
    fn forget_verdicts(&mut self, before: &Dnssec) -> usize {
        let dnssec = &self.responder.settings.dnssec;
        let mut forgotten = 0;
        if before.validate && !dnssec.validate {
            let has_verdict = |answer: &mut Answer| match answer.security() {
                Security::Secure | Security::Insecure => true,
                Security::Unchecked | Security::Bogus | Security::Indeterminate => false,
            };
            forgotten = self.responder.cache.retain(has_verdict);
        }
        self.validations.reconfigure(dnssec);
        self.responder.cache.forget_verdicts();
        forgotten
    }

    /// Lookups that would be others now are given up, and who waits for them is examined again.
    fn begin_lookups_again(&mut self, moves: &Moves, all: bool) {
        let mut others: Vec<Number> = Vec::new();
        for (number, lookup) in self.lookups.iter_mut() {
            lookup.unlike = lookup.unlike.and_then(|upstream| moves.place(upstream));
            let target = lookup.so_far.as_ref().and_then(Answer::target);
            let is_same = |name: &[u8]| self.upstreams.is_asked_the_same(moves, name, lookup.key.qtype());
            if all || !is_same(lookup.key.name()) || target.is_some_and(|target| !is_same(&target.0)) {
                others.push(number);
            }
        }
        for number in others {
            self.upstreams.abandon(number);
            let waiters = self.lookups.finish(number).map(|lookup| lookup.waiters);
            self.woken.extend(waiters.into_iter().flatten());
        }
    }
}
