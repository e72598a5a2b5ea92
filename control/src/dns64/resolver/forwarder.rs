//! The resolver: queries and replies in, answers and upstream queries out.

use super::failures::{Failures, in_words};
use super::info_code::OTHER;
use super::lookups::Lookups;
use super::responder::{AAAA_PATIENCE, Evaluation, Need, QueryContext, Responder};
use super::validations::Validations;
use super::waiting::{Waiter, Waiting, WaitingRoom};
use crate::Instant;
use crate::dns64::answer::Answer;
use crate::dns64::ask::{Asker, Exchange, Failure, Heard, Transmit, Transport};
use crate::dns64::cache::{Cache, NameErrors};
use crate::dns64::compose;
use crate::dns64::cookie::{CookieSecret, OwnSecrets};
use crate::dns64::hosts::Hosts;
use crate::dns64::leased::LeasedNames;
use crate::dns64::local::Local;
use crate::dns64::mapping::{MappedNames, NameMappings};
use crate::dns64::outcome::{Counters, Outcome};
use crate::dns64::policy::Policy;
use crate::dns64::query::Query;
use crate::dns64::rate_limit::Rates;
use crate::dns64::settings::{Access, Anchor, Settings};
use crate::dns64::shares::Payer;
use crate::dns64::upstream::{Event, Exhausted, Row, Upstreams};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use sixway_dnssec::{Validate, Validator};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Maximum evaluations of a query; one that is not answered by then never would be.
const MOST_LOOKS: u8 = 48;

/// A DNS64 forwarder. `T` is what the caller needs to send an answer, `V` validates answers.
#[derive(Debug)]
pub struct Resolver<T, V = Validator> {
    pub(super) responder: Responder,
    pub(super) rates: Rates,
    pub(super) upstreams: Upstreams,
    pub(super) lookups: Lookups,
    pub(super) validations: Validations<V>,
    pub(super) waiting: WaitingRoom<T>,
    /// Answers that are to be fetched, each no larger than it is: many may come together.
    pub(super) answers: VecDeque<(Asker<T>, Box<[u8]>, Outcome)>,
    /// Where they are written.
    pub(super) sheet: Vec<u8>,
    /// Queries that are to be examined again.
    pub(super) woken: VecDeque<Waiter>,
    pub(super) counters: Counters,
    pub(super) wall: WallClock,
    pub(super) cookie_secrets: Vec<CookieSecret>,
    /// For cookies of a server that shares its address with no other.
    pub(super) own_secrets: OwnSecrets,
}

/// The wall clock, as last given.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WallClock {
    at: Instant,
    seconds: u64,
}

impl WallClock {
    pub(super) fn at(self, now: Instant) -> u64 {
        self.seconds + now.since(self.at).as_secs()
    }
}

impl<T: Copy> Resolver<T> {
    /// A resolver with an empty cache. The same seed gives the same run; it must be secret.
    #[must_use]
    pub fn new(settings: Settings, seed: [u8; 32], now: Instant) -> Self {
        Self::with_validator(settings, Validator::default(), seed, now)
    }
}

impl<T: Copy, V: Validate> Resolver<T, V> {
    /// As [`new`](Resolver::new), with another validator, which gets the anchors of the settings.
    #[must_use]
    pub fn with_validator(settings: Settings, validator: V, seed: [u8; 32], now: Instant) -> Self {
        let mut random = StdRng::from_seed(seed);
        let mut upstream_seed = [0; 32];
        random.fill_bytes(&mut upstream_seed);
        let mut cookie_seed = CookieSecret::default();
        random.fill_bytes(&mut cookie_seed);
        let own_secrets = OwnSecrets::new(cookie_seed);
        let mut seed = || random.next_u64();
        Self {
            rates: Rates::new(settings.limits.per_client, seed()),
            upstreams: Upstreams::new(
                &settings.upstreams,
                upstream_seed,
                settings.limits.upstream_questions,
                now,
            ),
            lookups: Lookups::new(seed()),
            validations: Validations::new(validator, &settings.dnssec, seed()),
            waiting: WaitingRoom::new(settings.limits.waiting, seed()),
            answers: VecDeque::new(),
            sheet: Vec::new(),
            woken: VecDeque::new(),
            counters: Counters::default(),
            wall: WallClock::default(),
            cookie_secrets: secrets_of(&settings, own_secrets, 0),
            own_secrets,
            responder: Responder {
                policy: Policy::new(&settings),
                local: Local::new(&settings),
                cache: Cache::new(settings.limits.cache, seed()),
                name_errors: NameErrors::new(seed()),
                failures: Failures::new(seed()),
                mapped: None,
                leased: None,
                settings,
            },
        }
    }

    /// Makes its own secrets for cookies from another seed, which all threads of a server have, and the next process. It must be secret.
    #[must_use]
    pub fn with_cookie_seed(mut self, seed: CookieSecret) -> Self {
        self.own_secrets = OwnSecrets::new(seed);
        self.cookie_secrets = secrets_of(&self.responder.settings, self.own_secrets, self.wall.seconds);
        self
    }

    /// Names lead clients of a NAT46 to its mappings.
    #[must_use]
    pub fn with_mappings(mut self, names: Option<NameMappings>) -> Self {
        self.responder.mapped = names.map(MappedNames::new);
        self
    }

    /// Names lead to hosts whose addresses are leased.
    #[must_use]
    pub fn with_leases(mut self, names: Option<Arc<dyn LeasedNames>>) -> Self {
        self.responder.leased = names;
        self
    }

    /// A client's query, without a stream's length field. If it can be answered immediately, the answer is written to `answer`, which is cleared
    /// first; nothing is allocated then as long as `answer` has room.
    pub fn handle_query(
        &mut self,
        now: Instant,
        asker: &Asker<T>,
        query: &[u8],
        answer: &mut Vec<u8>,
    ) -> Heard {
        self.counters.queries += 1;
        answer.clear();
        let outcome = match Query::read(query) {
            Err(unreadable) => {
                let payload = self.responder.settings.limits.udp_payload;
                match compose::unreadable(answer, query, &unreadable, payload) {
                    true => Outcome::Malformed,
                    false => Outcome::Ignored,
                }
            }
            Ok(read) => match self.receive(now, asker, &read, answer) {
                Some(outcome) => outcome,
                None => return Heard::Waiting,
            },
        };
        self.counters.count(outcome);
        match outcome {
            Outcome::Ignored => Heard::Ignored,
            outcome => Heard::Answered(outcome),
        }
    }

    /// Looks at a query for the first time; `None`: it waits.
    fn receive(
        &mut self,
        now: Instant,
        asker: &Asker<T>,
        query: &Query<'_>,
        answer: &mut Vec<u8>,
    ) -> Option<Outcome> {
        let case = QueryContext::new(query, asker, (now, now), &self.responder.settings)
            .with_cookie(&self.cookie_secrets, self.wall.at(now));
        let payer = asker.payer(self.responder.settings.limits.client_prefix_length, case.proven);
        if asker.transport != Transport::Inside {
            if !self.responder.policy.admits(asker.address) {
                return Some(Responder::forbid(&case, answer));
            }
            if !self.rates.admit(now, payer) {
                return Some(Responder::forbid_for_now(&case, answer));
            }
        }
        let mut evaluation = self.responder.evaluate(&case, answer);
        if let Evaluation::Needs(needs) = &evaluation
            && self.cut_off(now, needs)
        {
            evaluation = self.responder.evaluate(&case, answer);
        }
        let needs = match evaluation {
            Evaluation::Answered { outcome, refresh } => {
                self.counters.cached += 1;
                self.refresh(now, query, asker, &refresh);
                return Some(outcome);
            }
            Evaluation::Needs(needs) => needs,
        };
        if !query.recursion_desired {
            return Some(Responder::refuse_recursion(&case, answer));
        }
        // RFC 7873 §5.2.4: with little room left, who shows an address that may be forged comes again with the cookie that it gets here.
        if case.has_bad_cookie() && 4 * self.waiting.len() > 3 * self.responder.settings.limits.waiting {
            return Some(Responder::bad_cookie(&case, answer));
        }
        if let Some(why) = needs.first().and_then(|need| self.refusal(now, need, payer)) {
            self.count_refused(why);
            return Some(self.responder.evaluate_without_asking(&case, in_words(Some(why)), answer));
        }
        let waiting = Waiting { asker: *asker, query: query.message.into(), since: now, looks: 0 };
        let Some(waiter) = self.waiting.admit(waiting, payer, &self.timers()) else {
            self.counters.waiting_refused += 1;
            let why = (OTHER, "too many pending queries");
            return Some(self.responder.evaluate_without_asking(&case, why, answer));
        };
        self.find_out(now, waiter, &needs);
        self.work(now);
        None
    }

    /// Needs that are met without asking, since a name above does not exist.
    fn cut_off(&mut self, now: Instant, needs: &[Need]) -> bool {
        let mut met = false;
        for need in needs.iter().filter(|need| !need.validate && need.unlike.is_none()) {
            let denied = self.responder.cut(now, &need.key);
            let of_same = |denied: &Answer| {
                let origin = usize::from(denied.origin().upstream);
                self.upstreams.is_asked(origin, need.key.name(), need.key.qtype())
                    && (denied.has_dnssec() || !need.dnssec_ok)
            };
            if let Some(denied) = denied.filter(of_same) {
                self.responder.cache.insert(&need.key, denied);
                met = true;
            }
        }
        met
    }

    /// When a query that waits is examined again at the latest, after its arrival.
    fn timers(&self) -> [Duration; 3] {
        let settings = &self.responder.settings;
        let patience = settings.stale.map_or(AAAA_PATIENCE, |stale| stale.patience);
        [patience, AAAA_PATIENCE, settings.limits.deadline]
    }

    /// The next answer to a query that was [waiting](Heard::Waiting), and what it is.
    pub fn poll_answer(&mut self, now: Instant, answer: &mut Vec<u8>) -> Option<(Asker<T>, Outcome)> {
        self.work(now);
        let (asker, message, outcome) = self.answers.pop_front()?;
        answer.clear();
        answer.extend_from_slice(&message);
        Some((asker, outcome))
    }

    /// The next question for an upstream.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.work(now);
        self.upstreams.poll_transmit().inspect(|_| self.counters.asked += 1)
    }

    /// An exchange that no query waits for any more: its socket may be closed.
    pub fn poll_cancel(&mut self) -> Option<Exchange> {
        self.upstreams.poll_cancel()
    }

    /// The outcome of an exchange. A reply that does not match its question is counted and ignored: the exchange continues.
    pub fn handle_reply(&mut self, now: Instant, exchange: Exchange, reply: Result<&[u8], Failure>) {
        self.upstreams.handle_reply(now, exchange, reply);
        self.work(now);
    }

    /// The wall clock, in seconds since 1970 (Unix time): signatures are checked against it. To be set at the start and about once a
    /// second.
    pub fn set_wall_clock(&mut self, now: Instant, seconds: u64) {
        self.wall = WallClock { at: now, seconds };
        self.cookie_secrets = secrets_of(&self.responder.settings, self.own_secrets, seconds);
    }

    /// Changes the trust anchors (RFC 5011): results of the old ones must be validated again.
    pub fn set_anchors(&mut self, anchors: Vec<Anchor>) {
        self.responder.settings.dnssec.anchors.clone_from(&anchors);
        self.woken.extend(self.validations.give_up_all());
        self.validations.set_anchors(anchors, &self.responder.settings.dnssec.insecure);
        if self.responder.settings.dnssec.validate {
            self.responder.cache.forget_verdicts();
        }
    }

    /// Other records of this network are known from now on.
    pub fn set_hosts(&mut self, hosts: Arc<Hosts>) {
        self.responder.local.set_hosts(Arc::clone(&hosts));
        self.responder.settings.hosts = hosts;
    }

    /// Others may ask from now on.
    pub fn set_access(&mut self, access: Access) {
        self.responder.policy.set_access(&access);
        self.responder.settings.access = access;
    }

    /// When the polls are to be made again, if nothing happens before.
    #[must_use]
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        let timer = self.waiting.next_timer();
        timer.into_iter().chain(self.upstreams.poll_timeout()).chain(self.validations.poll_timeout()).min()
    }

    /// Events of an upstream, for the log.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.upstreams.poll_event()
    }

    /// Forgets what is kept of a name and of those below it; of all names for the root. Says how many answers that were.
    pub fn flush(&mut self, name: &[u8]) -> usize {
        self.responder.failures.clear();
        self.upstreams.forget_zones();
        self.validations.forget();
        self.responder.cache.remove_below(&name.to_ascii_lowercase(), false)
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let total = self.upstreams.total();
        Counters {
            replies: total.replies,
            unanswered: total.unanswered,
            rejected: self.upstreams.rejected(),
            evicted: self.responder.cache.evicted(),
            ..self.counters.clone()
        }
    }

    /// Queries that wait for an answer.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Answers in the cache, and the octets that they take.
    #[must_use]
    pub fn cached(&self) -> (usize, usize) {
        (self.responder.cache.len(), self.responder.cache.octets())
    }

    /// Each upstream, in the order of the settings.
    pub fn upstreams(&self) -> impl ExactSizeIterator<Item = Row> + '_ {
        self.upstreams.rows()
    }

    /// Does what has become due, until nothing is.
    pub(super) fn work(&mut self, now: Instant) {
        if self.upstreams.poll_timeout().is_some_and(|at| at <= now) {
            self.upstreams.handle_timeout(now);
        }
        loop {
            while let Some((number, outcome)) = self.upstreams.poll_outcome() {
                self.hear(now, number, outcome);
            }
            self.validate(now);
            if let Some(waiter) = self.woken.pop_front().or_else(|| self.waiting.pop_expired(now)) {
                self.look_again(now, waiter);
            } else {
                return;
            }
        }
    }

    /// A query that waits is examined again.
    fn look_again(&mut self, now: Instant, waiter: Waiter) {
        let Some(waiting) = self.waiting.look(waiter) else { return };
        waiting.looks += 1;
        let (asker, since, looks) = (waiting.asker, waiting.since, waiting.looks);
        let octets = std::mem::take(&mut waiting.query);
        // It was read when it came.
        let Ok(query) = Query::read(&octets) else { return };
        let case = QueryContext::new(&query, &asker, (now, since), &self.responder.settings)
            .with_cookie(&self.cookie_secrets, self.wall.at(now));
        let mut answer = std::mem::take(&mut self.sheet);
        let over = looks >= MOST_LOOKS || now >= since + self.responder.settings.limits.deadline;
        let outcome = match self.responder.evaluate(&case, &mut answer) {
            Evaluation::Answered { outcome, refresh } => {
                self.refresh(now, &query, &asker, &refresh);
                Some(outcome)
            }
            Evaluation::Needs(_) if over => Some(Responder::too_late(&case, &mut answer)),
            Evaluation::Needs(needs) => {
                self.find_out(now, waiter, &needs);
                None
            }
        };
        match outcome {
            Some(outcome) => {
                self.waiting.dismiss(waiter);
                self.counters.count(outcome);
                self.answers.push_back((asker, answer.as_slice().into(), outcome));
            }
            None => {
                if let Some(waiting) = self.waiting.look(waiter) {
                    waiting.query = octets;
                }
            }
        }
        self.sheet = answer;
    }

    /// A query that waits gets what is known, stale or not, or SERVFAIL: its payer has no share of the questions to upstreams.
    pub(super) fn turn_away(&mut self, now: Instant, waiter: Waiter, why: (u16, &str)) {
        let Some(Waiting { asker, query: octets, since, .. }) = self.waiting.dismiss(waiter) else { return };
        let Ok(query) = Query::read(&octets) else { return };
        let case = QueryContext::new(&query, &asker, (now, since), &self.responder.settings)
            .with_cookie(&self.cookie_secrets, self.wall.at(now));
        let mut answer = std::mem::take(&mut self.sheet);
        let outcome = self.responder.evaluate_without_asking(&case, why, &mut answer);
        self.counters.count(outcome);
        self.answers.push_back((asker, answer.as_slice().into(), outcome));
        self.sheet = answer;
    }

    /// Sees to it that a waiting query's needs are met, and that it is woken then.
    fn find_out(&mut self, now: Instant, waiter: Waiter, needs: &[Need]) {
        let payer = self.waiting.payer(waiter);
        for (at, need) in needs.iter().enumerate() {
            // What is only likely to be needed does not fail the query for lack of a share, and does not double what a dead name costs.
            let name = need.key.name();
            if at > 0 && (self.upstreams.is_slow(now, name) || self.refusal(now, need, payer).is_some()) {
                return;
            }
            match need.validate {
                true => self.begin_validation(now, need.key, Some(waiter), payer),
                false => self.look_up(now, need, waiter),
            }
        }
    }

    /// Why the missing data may not be queried for this payer now; `None`: it may, or it is being queried already.
    fn refusal(&mut self, now: Instant, need: &Need, payer: Payer) -> Option<Exhausted> {
        if need.validate || self.lookups.under_way(&need.key, need.dnssec_ok).is_some() {
            return None;
        }
        self.upstreams.refusal(now, need.key.name(), payer)
    }
}

/// The secrets by which cookies are made and checked; the first one makes.
pub(super) fn secrets_of(settings: &Settings, own: OwnSecrets, seconds: u64) -> Vec<CookieSecret> {
    match settings.cookie_secrets.is_empty() {
        true => own.at(seconds).to_vec(),
        false => settings.cookie_secrets.clone(),
    }
}
