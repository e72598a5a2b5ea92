//! The tries of a question: which upstream is queried next, and when the question fails.

use super::super::ask::{Exchange, QueryTransport, Transmit};
use super::super::shares::Payer;
use super::abilities::Case;
use super::in_flight::{End, MAX_TRIES, Open, OpenQuestion, Owner, Try};
use super::peer::Peer;
use super::query_message::{Query, Style, query};
use super::question::{Exhausted, Number, Question, Reply};
use super::row::Health;
use super::timers::Due;
use super::upstreams::Upstreams;
use super::zone_health::{SILENT, ZoneState};
use crate::Instant;
use core::time::Duration;

/// What it costs to ask an upstream again that was silent: more than to ask another, less than one that is down.
const AGAIN: u64 = 2_000_000_000;

/// An upstream that was heard within this time is not suspected for the silence of a zone.
const HEARD: Duration = Duration::from_secs(1);

/// What it costs to ask the one whose reply was of no use: it is the last.
const UNLIKE: u64 = 60_000_000_000;

/// Whom to ask, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) upstream: usize,
    pub(super) way: QueryTransport,
    pub(super) edns: bool,
}

impl Upstreams {
    /// Puts a question to the best upstream that is left, or ends it.
    pub(super) fn go_on(&mut self, now: Instant, number: u64) {
        let Some(asked) = self.asked.find(number) else { return };
        if now < asked.until && asked.silences() >= self.most_silences(now, asked) && asked.is_open() {
            return self.wait(now, number);
        }
        match self.choose(now, asked) {
            Some(choice) => self.put(now, number, choice),
            None => self.give_up(number),
        }
    }

    /// After this number of tries without a reply a question is not sent again, so that unanswered names cost an upstream less.
    fn most_silences(&self, now: Instant, asked: &OpenQuestion) -> usize {
        let question = asked.question();
        // Each upstream is asked: the silence of one says nothing of what another would answer.
        let upstreams = self.zones.asked(question.name, question.qtype).len();
        match self.zone_health.state(now, &asked.zone) {
            ZoneState::Failing if !self.shares.holds_few(question.payer) => upstreams,
            ZoneState::Failing | ZoneState::Slow => 2 * upstreams,
            ZoneState::Healthy if self.shares.holds_much(question.payer) => 2 * upstreams,
            ZoneState::Healthy => MAX_TRIES,
        }
    }

    /// A question is not sent to another upstream, and waits for a late reply.
    fn wait(&mut self, now: Instant, number: u64) {
        let Some(asked) = self.asked.find_mut(number) else { return };
        let is_silent = asked.since + SILENT;
        asked.due = if now < is_silent { is_silent.min(asked.until) } else { asked.until };
        self.timers.set(asked.due, Due::Question(number));
    }

    fn choose(&self, now: Instant, asked: &OpenQuestion) -> Option<Choice> {
        if asked.tries.is_full() || now >= asked.until {
            return None;
        }
        let question = asked.question();
        let members = self.zones.asked(question.name, question.qtype).iter();
        let able = members.filter_map(|at| candidate(*at, &self.peers[*at], asked));
        able.min_by_key(|(cost, _)| *cost).map(|(_, choice)| choice)
    }

    /// Puts a question to an upstream, as far as it may be put at all.
    pub(super) fn put(&mut self, now: Instant, number: u64, choice: Choice) {
        let Some(asked) = self.asked.find_mut(number) else { return };
        if asked.tries.is_full() || now >= asked.until {
            return self.give_up(number);
        }
        // Late replies are waited for while there is room for all; first by those who do not hold much.
        let mut oldest = None;
        let crowded = if self.shares.holds_much(asked.question().payer) { self.most / 2 } else { self.most };
        if self.exchanges.len() >= crowded {
            oldest = asked.tries.iter_mut().find_map(|tried| tried.exchange.take());
        }
        let doubled = asked.tries_at(choice.upstream).filter(|tried| tried.end == End::Silent).count();
        let waits = self.peers[choice.upstream].latency(choice.way).timeout(doubled as u32);
        asked.due = asked.until.min(now + waits);
        let (at, due) = (asked.tries.len(), asked.due);
        if let Some(oldest) = oldest {
            self.close(oldest);
        }
        let exchange = self.open_for(now, number, Owner::Question { number, at }, choice);
        let Choice { upstream, way, edns } = choice;
        if let Some(asked) = self.asked.find_mut(number) {
            asked.tries.push(Try {
                upstream,
                way,
                edns,
                exchange: Some(exchange),
                end: End::Waiting,
                sent: now,
            });
        }
        self.timers.set(due, Due::Question(number));
    }

    /// Opens an exchange with a question's question.
    pub(super) fn open_for(&mut self, now: Instant, number: u64, owner: Owner, choice: Choice) -> u64 {
        let Some(asked) = self.asked.find(number) else { return u64::MAX };
        let style = Style { edns: choice.edns, cased: self.peers[choice.upstream].is_cased(choice.way) };
        let question = asked.question();
        let payer = match owner {
            Owner::Question { .. } => question.payer,
            Owner::Measure | Owner::Probe => Payer::OWN,
        };
        let query = query(&question, style, &mut self.random);
        self.transmit(now, (owner, payer), choice, query)
    }

    /// Opens an exchange with a query, which is handed out.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        (owner, payer): (Owner, Payer),
        choice: Choice,
        query: Query,
    ) -> u64 {
        let Choice { upstream, way, .. } = choice;
        let open = Open {
            owner,
            upstream,
            way,
            style: query.style,
            dnssec_ok: query.dnssec_ok,
            id: query.id,
            question: query.question().into(),
            sent: now,
            transmitted: false,
            strange: 0,
        };
        let row = &mut self.peers[upstream].row;
        (row.asked, row.open) = (row.asked + 1, row.open + 1);
        let exchange = self.exchanges.insert(open);
        self.transmits.push_back(Transmit {
            exchange: Exchange(exchange),
            upstream,
            way,
            payer,
            message: query.message,
        });
        exchange
    }

    /// The last try's time has passed. Its exchange stays open while others are tried: a late reply is better than none.
    pub(super) fn silent(&mut self, now: Instant, number: u64) {
        let Some(asked) = self.asked.find_mut(number) else { return };
        let is_cut = now >= asked.until;
        let Some(last) = asked.tries.last_mut() else { return };
        if last.end == End::NoRoom {
            return self.go_on(now, number);
        }
        // A try that ended otherwise was no silence: its question waits for others.
        let is_new = last.end == End::Waiting;
        if is_new {
            last.end = End::Silent;
        }
        let Try { upstream, way, sent, .. } = *last;
        let zone = self.tell_zone(now, number);
        if is_new && let Some(peer) = self.peers.get_mut(upstream) {
            peer.row.unanswered += 1;
        }
        self.go_on(now, number);
        // A try that the end of the question cut short says nothing, and a zone that is silent little, as long as others are answered.
        let is_the_zones = zone != ZoneState::Healthy
            && self.peers.get(upstream).is_some_and(|peer| peer.liveness.was_heard_since(now, HEARD));
        if is_new && !is_cut && !is_the_zones {
            self.suspect(now, upstream, way, sent);
        }
    }

    /// Counts a question that no upstream replied to for its zone, except upstreams that do not reply at all. Returns the state of the
    /// zone.
    fn tell_zone(&mut self, now: Instant, number: u64) -> ZoneState {
        let Some(asked) = self.asked.find_mut(number) else { return ZoneState::Healthy };
        let question = asked.question();
        let mut is_up = false;
        let had_none = self.zones.asked(question.name, question.qtype).iter().all(|at| {
            let answers_others = self.peers[*at].liveness.health == Health::Up;
            is_up |= answers_others;
            !answers_others || asked.tries_at(*at).any(|tried| tried.end == End::Silent)
        });
        if is_up && had_none && !asked.is_silent && now >= asked.since + SILENT {
            asked.is_silent = true;
            // While no zone was silent, none was looked up.
            if asked.zone.is_empty() {
                asked.zone = self.zone_health.keys(asked.question().name);
            }
            self.zone_health.silent(now, &asked.zone);
        }
        self.zone_health.state(now, &asked.zone)
    }

    /// An answer has come: the question is finished, and upstreams that did not answer it are queried less.
    pub(super) fn settle(&mut self, number: u64, reply: Reply) {
        let Some(asked) = self.end(number) else { return };
        let missed = |tried: &&Try| tried.upstream != reply.upstream && tried.end != End::Waiting;
        for tried in asked.tries.iter().filter(missed) {
            // It may be gone meanwhile.
            if let Some(peer) = self.peers.get_mut(tried.upstream) {
                peer.miss();
            }
        }
        self.peers[reply.upstream].hit();
        self.outcomes.push_back((Number(number), Ok(reply)));
    }

    /// No upstream is left to be asked: what was said goes out, if anything was.
    fn give_up(&mut self, number: u64) {
        let Some(mut asked) = self.end(number) else { return };
        let silent = asked.tries.iter().any(|tried| matches!(tried.end, End::Silent | End::Waiting));
        let outcome = match asked.kept.take() {
            Some(reply) => Ok(reply),
            None if asked.useless => Err(Exhausted::Unusable),
            None if asked.tries.iter().any(|tried| tried.end == End::NoRoom) => Err(Exhausted::NoShare),
            None if silent => Err(Exhausted::NoReply),
            None => Err(Exhausted::Unreachable),
        };
        self.outcomes.push_back((Number(number), outcome));
    }
}

/// Whether an upstream can be put this question to, how, and at what cost.
fn candidate(upstream: usize, peer: &Peer, asked: &OpenQuestion) -> Option<(u64, Choice)> {
    let question = asked.question();
    let silences = asked.tries_at(upstream).filter(|tried| tried.end == End::Silent).count();
    if asked.tries_at(upstream).any(|tried| tried.end == End::Failed) {
        return None;
    }
    if asked.something_was_said() && (silences > 0 || peer.liveness.health == Health::Down) {
        return None;
    }
    let unlike = question.unlike == Some(upstream);
    let way = way_to(upstream, peer, asked, unlike)?;
    let again = AGAIN * silences as u64 + if unlike { UNLIKE } else { 0 };
    let edns = with_edns(upstream, peer, asked, &question, silences);
    Some((peer.cost() + again, Choice { upstream, way, edns }))
}

/// The way that is left, if there is one.
fn way_to(upstream: usize, peer: &Peer, asked: &OpenQuestion, unlike: bool) -> Option<QueryTransport> {
    let plain = matches!(peer.abilities.case(), Case::Plain(_));
    let ended = |way, end| asked.tries_at(upstream).any(|tried| tried.way == way && tried.end == end);
    let will_not_do = ended(QueryTransport::Datagram, End::ByStream)
        || (ended(QueryTransport::Datagram, End::OtherCase) && !plain);
    let way = if unlike || will_not_do { QueryTransport::Stream } else { peer.way() };
    (!ended(way, End::NoWay)).then_some(way)
}

/// With EDNS, unless the upstream does not understand it, or was silent to it and never was heard to understand it.
fn with_edns(
    upstream: usize,
    peer: &Peer,
    asked: &OpenQuestion,
    question: &Question<'_>,
    silences: usize,
) -> bool {
    let refused =
        asked.tries_at(upstream).any(|tried| matches!(tried.end, End::NotUnderstood | End::OddWithEdns));
    let suspicious = silences % 2 == 1 && peer.abilities.may_hate_edns();
    question.dnssec_needed || (peer.abilities.edns() && !refused && !suspicious)
}
