//! Exchanges for which no question waits: probes of upstreams that may be dead, and copies of questions that measure upstreams that are not
//! queried otherwise.

use super::super::ask::QueryTransport;
use super::super::shares::Payer;
use super::in_flight::Owner;
use super::query_message::{Style, query};
use super::question::Question;
use super::row::{Event, Health};
use super::timers::Due;
use super::tries::Choice;
use super::upstreams::Upstreams;
use super::zone_health::ZoneState;
use crate::Instant;
use core::time::Duration;
use rand::Rng;

/// One question in this many goes to another upstream too.
const EXPLORED: u32 = 32;

/// A copy of a question is waited for so long.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// TYPE NS (RFC 1035 §3.2.2), which every server has for its zone.
const NS: u16 = 2;

impl Upstreams {
    /// A copy of a question may go to an upstream that was not chosen, so that it is known how fast that is: no client waits for it. Each one that
    /// was never measured gets one, later one question in [`EXPLORED`].
    pub(super) fn explore(&mut self, now: Instant, number: u64) {
        let Some(asked) = self.asked.find(number) else { return };
        let (question, first) = (asked.question(), asked.tries.first().map(|tried| tried.upstream));
        let members = self.zones.asked(question.name, question.qtype);
        if members.len() < 2
            || question.unlike.is_some()
            || self.exchanges.len() >= self.most
            || self.zone_health.state(now, &asked.zone) != ZoneState::Healthy
        {
            return;
        }
        let other = |at: &usize| Some(*at) != first && self.peers[*at].liveness.health == Health::Up;
        let unmeasured =
            |at: &usize| other(at) && !self.peers[*at].is_measured() && self.peers[*at].row.open == 0;
        let draw = self.random.next_u32();
        let drawn = members[(draw / EXPLORED) as usize % members.len()];
        let lot = (draw.is_multiple_of(EXPLORED) && other(&drawn)).then_some(drawn);
        let Some(upstream) = members.iter().copied().find(unmeasured).or(lot) else { return };
        let peer = &self.peers[upstream];
        let choice =
            Choice { upstream, way: peer.way(), edns: peer.abilities.edns() || question.dnssec_needed };
        let exchange = self.open_for(now, number, Owner::Measure, choice);
        self.timers.set(now + PATIENCE, Due::Alone(exchange));
    }

    /// An upstream did not reply to what was sent then, by this way. A way that is not its first says nothing: TCP may be shut where UDP is open.
    pub(super) fn suspect(&mut self, now: Instant, upstream: usize, way: QueryTransport, sent: Instant) {
        // It may be gone meanwhile.
        let Some(peer) = self.peers.get_mut(upstream) else { return };
        let counts = peer.way() == way;
        if way == QueryTransport::Stream && peer.abilities.stream_failed(now) {
            self.events.push_back(Event::WithoutCase { upstream });
        }
        if counts && self.peers[upstream].liveness.silent(now, sent) {
            self.probe(now, upstream);
        }
    }

    /// Asks an upstream something that it knows.
    pub(super) fn probe(&mut self, now: Instant, upstream: usize) {
        let peer = &mut self.peers[upstream];
        if self.exchanges.len() >= 2 * self.most {
            self.timers.set(peer.liveness.put_off(now), Due::Probe(upstream));
            return;
        }
        peer.liveness.probe_due = None;
        peer.abilities.refresh(now);
        // An upstream that never was heard to know EDNS may be silent because of it: every other probe is without.
        let edns =
            peer.abilities.edns() && (!peer.abilities.may_hate_edns() || self.random.next_u32() & 1 == 0);
        let choice = Choice { upstream, way: peer.way(), edns };
        let style = Style { edns, cased: peer.is_cased(choice.way) };
        let due = now + peer.latency(choice.way).timeout(1);
        let query = query(&Question::new(&self.probes[upstream], NS), style, &mut self.random);
        let exchange = self.transmit(now, (Owner::Probe, Payer::OWN), choice, query);
        self.timers.set(due, Due::Alone(exchange));
    }

    /// The time of an exchange has passed for which no question waits.
    pub(super) fn alone_silent(&mut self, now: Instant, exchange: u64) {
        let Some(open) = self.take(exchange) else { return };
        self.peers[open.upstream].row.unanswered += 1;
        if open.owner == Owner::Probe {
            return self.probe_silent(now, open.upstream, open.sent);
        }
        self.peers[open.upstream].miss();
        self.suspect(now, open.upstream, open.way, open.sent);
    }

    pub(super) fn probe_silent(&mut self, now: Instant, upstream: usize, sent: Instant) {
        let spread = Duration::from_millis(u64::from(self.random.next_u32() % 256));
        let liveness = &mut self.peers[upstream].liveness;
        if liveness.probe_silent(now, sent, spread) {
            self.events.push_back(Event::Down { upstream });
        }
        if let Some(due) = liveness.probe_due {
            self.timers.set(due, Due::Probe(upstream));
        }
    }
}
