//! From try to try: whom to put a question to, and when to give it up.

use super::super::ask::{Exchange, QueryTransport, Transmit};
use super::abilities::Case;
use super::alarms::Due;
use super::in_flight::{End, Open, OpenQuestion, Owner, Try};
use super::peer::Peer;
use super::query_message::{Query, Style, query};
use super::question::{Exhausted, Number, Question, Reply};
use super::row::Health;
use super::upstreams::Upstreams;
use crate::Instant;

/// What it costs to ask an upstream again that was silent: more than to ask another, less than one that is down.
const AGAIN: u64 = 2_000_000_000;

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
        match self.choose(now, asked) {
            Some(choice) => self.put(now, number, choice),
            None => self.give_up(number),
        }
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
        // Late replies are waited for while there is room in the table for all.
        let mut oldest = None;
        if self.exchanges.len() >= self.most / 2 {
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
        self.alarms.set(due, Due::Question(number));
    }

    /// Opens an exchange with a question's question.
    pub(super) fn open_for(&mut self, now: Instant, number: u64, owner: Owner, choice: Choice) -> u64 {
        let Some(asked) = self.asked.find(number) else { return u64::MAX };
        let style = Style { edns: choice.edns, cased: self.peers[choice.upstream].is_cased(choice.way) };
        let query = query(&asked.question(), style, &mut self.random);
        self.transmit(now, owner, choice, query)
    }

    /// Opens an exchange with a query, which is handed out.
    pub(super) fn transmit(&mut self, now: Instant, owner: Owner, choice: Choice, query: Query) -> u64 {
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
            message: query.message,
        });
        exchange
    }

    /// The last try's time has passed. Its exchange stays open while others are tried: a late reply is better than none.
    pub(super) fn silent(&mut self, now: Instant, number: u64) {
        let Some(asked) = self.asked.find_mut(number) else { return };
        let is_cut = now >= asked.until;
        let Some(last) = asked.tries.last_mut() else { return };
        last.end = End::Silent;
        let Try { upstream, way, sent, .. } = *last;
        self.peers[upstream].row.unanswered += 1;
        self.go_on(now, number);
        // A try that the end of the question cut short says nothing.
        if !is_cut {
            self.suspect(now, upstream, way, sent);
        }
    }

    /// An answer has come: the question is over, and who let it wait is asked less.
    pub(super) fn settle(&mut self, number: u64, reply: Reply) {
        let Some(asked) = self.asked.remove(number) else { return };
        self.close_all(&asked);
        let missed = |tried: &&Try| tried.upstream != reply.upstream && tried.end != End::Waiting;
        for tried in asked.tries.iter().filter(missed) {
            self.peers[tried.upstream].miss();
        }
        self.peers[reply.upstream].hit();
        self.outcomes.push_back((Number(number), Ok(reply)));
    }

    /// No upstream is left to be asked: what was said goes out, if anything was.
    fn give_up(&mut self, number: u64) {
        let Some(mut asked) = self.asked.remove(number) else { return };
        self.close_all(&asked);
        let silent = asked.tries.iter().any(|tried| matches!(tried.end, End::Silent | End::Waiting));
        let outcome = match asked.kept.take() {
            Some(reply) => Ok(reply),
            None if asked.useless => Err(Exhausted::Unusable),
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
    let refused = asked.tries_at(upstream).any(|tried| tried.end == End::NotUnderstood);
    let suspicious = silences % 2 == 1 && peer.abilities.may_hate_edns();
    question.dnssec_needed || (peer.abilities.edns() && !refused && !suspicious)
}
