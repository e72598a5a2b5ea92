//! The handling of replies and of failures.

use super::super::ask::{Failure, QueryTransport};
use super::in_flight::{End, Open, Owner};
use super::question::Reply;
use super::reply::{Sent, Verdict, judge};
use super::row::Event;
use super::timers::Due;
use super::tries::Choice;
use super::upstreams::Upstreams;
use super::zone_health::SILENT;
use crate::Instant;

/// After this number of replies that are not to its question, an exchange by datagrams is given up for a stream: an attacker is guessing.
const GUESSES: u8 = 8;

impl Upstreams {
    pub(super) fn replied(&mut self, now: Instant, exchange: u64, message: &[u8]) {
        let Some(open) = self.exchanges.find(exchange) else {
            self.rejected += 1;
            return;
        };
        let sent = Sent { id: open.id, question: &open.question, cased: open.style.cased };
        match judge(&sent, message) {
            Verdict::Rejected => self.strange(now, exchange),
            Verdict::OtherCase => self.other_case(now, exchange),
            verdict => {
                let Some(open) = self.take(exchange) else { return };
                self.believed(now, &open, verdict);
                if let Owner::Question { number, at } = open.owner {
                    self.learn_edns(now, &open, verdict, number);
                    self.learn_of_zone(now, &open, verdict, number);
                    self.conclude(now, &open, verdict, message, (number, at));
                }
            }
        }
    }

    /// A reply that is not to the question. By stream there will be no other.
    fn strange(&mut self, now: Instant, exchange: u64) {
        let Some(open) = self.exchanges.find_mut(exchange) else { return };
        open.strange = open.strange.saturating_add(1);
        let (owner, upstream, way, strange) = (open.owner, open.upstream, open.way, open.strange);
        self.rejected += 1;
        self.peers[upstream].row.rejected += 1;
        if way == QueryTransport::Datagram && strange < GUESSES {
            return;
        }
        self.close(exchange);
        let Owner::Question { number, at } = owner else { return };
        let Some(asked) = self.asked.find_mut(number) else { return };
        asked.useless |= way == QueryTransport::Stream;
        asked.tries[at].exchange = None;
        self.ended(
            now,
            (number, at),
            if way == QueryTransport::Stream { End::Failed } else { End::ByStream },
        );
    }

    /// The right reply except for the case of the name: either a forgery, or the upstream does not keep the case. A query over a stream
    /// shows which, and the datagram with the right case may still come.
    fn other_case(&mut self, now: Instant, exchange: u64) {
        let Some(open) = self.exchanges.find(exchange) else { return };
        let (owner, upstream) = (open.owner, open.upstream);
        self.rejected += 1;
        let peer = &mut self.peers[upstream];
        peer.row.rejected += 1;
        if peer.abilities.changed_case(now) {
            self.events.push_back(Event::ByStream { upstream });
        }
        if let Owner::Question { number, at } = owner
            && self.asked.find(number).is_some_and(|asked| asked.tries[at].end != End::OtherCase)
        {
            self.ended(now, (number, at), End::OtherCase);
        }
    }

    /// What an accepted reply shows about its upstream.
    fn believed(&mut self, now: Instant, open: &Open, verdict: Verdict) {
        let upstream = open.upstream;
        let peer = &mut self.peers[upstream];
        peer.row.replies += 1;
        peer.latency_mut(open.way).sample(now - open.sent);
        if open.way == QueryTransport::Stream {
            peer.abilities.has_stream();
        }
        match verdict {
            Verdict::Definite => {}
            Verdict::Truncated => peer.row.truncated += 1,
            Verdict::Failed | Verdict::Useless | Verdict::NotUnderstood | Verdict::OddWithEdns => {
                peer.row.failed += 1
            }
            Verdict::Rejected | Verdict::OtherCase => return,
        }
        let has_question = matches!(verdict, Verdict::Definite | Verdict::Truncated | Verdict::Failed);
        if has_question && open.style.cased && open.question.iter().any(u8::is_ascii_alphabetic) {
            peer.abilities.kept_case();
        }
        if (has_question || verdict == Verdict::OddWithEdns) && open.style.edns {
            peer.abilities.understood_edns();
        }
        if open.owner == Owner::Measure && verdict == Verdict::Definite {
            peer.hit();
        }
        if let Some(after) = peer.liveness.alive(now) {
            peer.back();
            self.events.push_back(Event::Up { upstream, after });
        }
    }

    /// An answer to a question without EDNS, which with it was not understood or not answered.
    fn learn_edns(&mut self, now: Instant, open: &Open, verdict: Verdict, number: u64) {
        let answered = matches!(verdict, Verdict::Definite | Verdict::Truncated | Verdict::Failed);
        if open.style.edns || !answered {
            return;
        }
        let upstream = open.upstream;
        let Some(asked) = self.asked.find(number) else { return };
        let with_edns = |end| asked.tries_at(upstream).find(|tried| tried.edns && tried.end == end);
        let abilities = &mut self.peers[upstream].abilities;
        let news = with_edns(End::NotUnderstood).is_some_and(|tried| abilities.refused_edns(now, tried.sent))
            || with_edns(End::Silent).is_some_and(|tried| abilities.ignored_edns(now, tried.sent));
        if news {
            self.events.push_back(Event::WithoutEdns { upstream });
        }
    }

    /// The upstreams reply for names of the zone, or an upstream reported failure after its own timeout.
    fn learn_of_zone(&mut self, now: Instant, open: &Open, verdict: Verdict, number: u64) {
        if self.zone_health.is_empty() && verdict != Verdict::Failed {
            return;
        }
        let Some(asked) = self.asked.find_mut(number) else { return };
        if asked.zone.is_empty() {
            asked.zone = self.zone_health.keys(asked.question().name);
        }
        if verdict == Verdict::Failed && now - asked.since > SILENT {
            self.zone_health.failed(now, &asked.zone);
        } else {
            self.zone_health.replied(&asked.zone, now - open.sent <= SILENT);
        }
    }

    /// What an accepted reply says about its question.
    fn conclude(&mut self, now: Instant, open: &Open, verdict: Verdict, message: &[u8], of: (u64, usize)) {
        let (number, at) = of;
        let Some(asked) = self.asked.find_mut(number) else { return };
        asked.tries[at].exchange = None;
        let reply = || Reply {
            message: message.to_vec(),
            upstream: open.upstream,
            way: open.way,
            dnssec_ok: open.dnssec_ok,
        };
        let may_be_edns = open.style.edns && !asked.question().dnssec_needed;
        // A header alone may have anything behind it.
        let has_question = message[4..6] == [0, 1];
        let end = match verdict {
            Verdict::Definite => return self.settle(number, reply()),
            Verdict::Truncated if open.way == QueryTransport::Datagram => End::ByStream,
            Verdict::NotUnderstood if may_be_edns => End::NotUnderstood,
            Verdict::OddWithEdns if may_be_edns => End::OddWithEdns,
            Verdict::Failed | Verdict::NotUnderstood | Verdict::OddWithEdns if has_question => {
                asked.keep(reply());
                End::Failed
            }
            Verdict::Truncated
            | Verdict::NotUnderstood
            | Verdict::OddWithEdns
            | Verdict::Failed
            | Verdict::Useless => {
                asked.useless = true;
                End::Failed
            }
            // Does not occur here: the exchange continues, or its try has ended otherwise.
            Verdict::Rejected | Verdict::OtherCase => return,
        };
        self.ended(now, of, end);
    }

    pub(super) fn failed(&mut self, now: Instant, exchange: u64, failure: Failure) {
        if failure == Failure::NoRoom {
            return self.not_sent(now, exchange);
        }
        let Some(open) = self.exchanges.remove(exchange) else { return };
        let upstream = open.upstream;
        let row = &mut self.peers[upstream].row;
        (row.open, row.unreachable) = (row.open - 1, row.unreachable + 1);
        match open.owner {
            Owner::Question { number, at } => {
                let Some(asked) = self.asked.find_mut(number) else { return };
                asked.tries[at].exchange = None;
                asked.useless |= failure == Failure::Malformed;
                let end = match failure {
                    Failure::Malformed => End::Failed,
                    Failure::Closed if open.way == QueryTransport::Stream => End::Closed,
                    Failure::Closed | Failure::Unreachable | Failure::Untrusted | Failure::NoRoom => {
                        End::NoWay
                    }
                };
                self.ended(now, (number, at), end);
                self.suspect(now, upstream, open.way, open.sent);
            }
            Owner::Measure => self.suspect(now, upstream, open.way, open.sent),
            Owner::Probe => self.probe_silent(now, upstream, open.sent),
        }
    }

    /// There was no room to send it: this is not a failure of the upstream. The question continues when the time of the try has passed,
    /// since there may be room then.
    fn not_sent(&mut self, now: Instant, exchange: u64) {
        let Some(open) = self.exchanges.remove(exchange) else { return };
        let row = &mut self.peers[open.upstream].row;
        (row.open, row.asked) = (row.open - 1, row.asked - 1);
        match open.owner {
            Owner::Question { number, at } => {
                if let Some(asked) = self.asked.find_mut(number) {
                    let tried = &mut asked.tries[at];
                    (tried.exchange, tried.end) = (None, End::NoRoom);
                }
            }
            Owner::Measure => {}
            Owner::Probe => {
                let due = self.peers[open.upstream].liveness.put_off(now);
                self.timers.set(due, Due::Probe(open.upstream));
            }
        }
    }

    /// A try has ended; the question continues, if it waited for this try.
    fn ended(&mut self, now: Instant, (number, at): (u64, usize), end: End) {
        let Some(asked) = self.asked.find_mut(number) else { return };
        let first_closed = !asked.tries_at(asked.tries[at].upstream).any(|tried| tried.end == End::Closed);
        let end = if end == End::Closed && !first_closed { End::NoWay } else { end };
        asked.tries[at].end = end;
        let (tried, last) = (asked.tries[at], asked.tries.last().copied());
        if last.is_none_or(|last| last.upstream != tried.upstream) {
            return;
        }
        let same = |way, edns| Choice { upstream: tried.upstream, way, edns };
        match end {
            // What comes next is another way to the same upstream.
            End::NotUnderstood | End::OddWithEdns => self.put(now, number, same(tried.way, false)),
            End::ByStream | End::OtherCase if self.turns_to_stream(number, at) => {
                self.put(now, number, same(QueryTransport::Stream, tried.edns));
            }
            // RFC 7766 §6.2.4: an idle connection may be closed while the question is on its way.
            End::Closed => self.put(now, number, same(QueryTransport::Stream, tried.edns)),
            End::Waiting
            | End::Silent
            | End::Failed
            | End::NoWay
            | End::ByStream
            | End::OtherCase
            | End::NoRoom => {
                self.go_on(now, number);
            }
        }
    }

    /// Whether a question that was truncated, or is not safe by datagrams, has not gone by stream yet.
    fn turns_to_stream(&self, number: u64, at: usize) -> bool {
        self.asked.find(number).is_some_and(|asked| {
            let tried = asked.tries[at];
            let streamed = asked.tries_at(tried.upstream).any(|other| other.way == QueryTransport::Stream);
            tried.way == QueryTransport::Datagram && !streamed
        })
    }
}
