//! Changes the upstreams: unchanged ones keep their state, and questions to a removed one are sent to another.

use super::super::settings::Upstream;
use super::in_flight::{End, Owner};
use super::peer::Peer;
use super::timers::Due;
use super::upstreams::{Upstreams, probe_names};
use super::zones::Zones;
use crate::Instant;
use rand::Rng;

/// The place of an upstream that was removed; no upstream has it.
const GONE: usize = usize::MAX;

/// The new place of each previous upstream.
#[derive(Debug)]
pub(in super::super) struct Moves {
    to: Vec<Option<usize>>,
    /// Which upstreams were asked about a name.
    zones: Zones,
}

impl Moves {
    /// The new place of the upstream that had this one; `None`: it was removed.
    pub(in super::super) fn place(&self, before: usize) -> Option<usize> {
        self.to.get(before).copied().flatten()
    }
}

impl Upstreams {
    /// Takes other upstreams and another bound of open questions. `kept` says for each new upstream which place it had before, if it is the same.
    pub(in super::super) fn reconfigure(
        &mut self,
        now: Instant,
        upstreams: &[Upstream],
        kept: &[Option<usize>],
        questions: usize,
    ) -> Moves {
        let mut to = vec![None; self.peers.len()];
        for (place, upstream) in upstreams.iter().enumerate() {
            let before = kept.get(place).copied().flatten();
            let same = before.filter(|before| {
                self.peers.get(*before).is_some_and(|peer| peer.datagrams == upstream.datagrams)
            });
            if let Some(free) = same.and_then(|before| to.get_mut(before)).filter(|to| to.is_none()) {
                *free = Some(place);
            }
        }
        let zones = Zones::new(upstreams, self.random.next_u64());
        let moves = Moves { to, zones: core::mem::replace(&mut self.zones, zones) };
        let stranded = self.end_exchanges_with_the_gone(&moves);
        self.move_peers(now, upstreams, &moves);
        self.move_what_is_open(&moves);
        self.zone_health.forget();
        self.probes = probe_names(upstreams);
        self.most = questions;
        self.shares.resize(questions);
        stranded.into_iter().for_each(|number| self.go_on(now, number));
        self.tidy();
        moves
    }

    /// Questions that waited for an upstream that was removed.
    fn end_exchanges_with_the_gone(&mut self, moves: &Moves) -> Vec<u64> {
        let gone = self.exchanges.iter_mut().filter(|(_, open)| moves.place(open.upstream).is_none());
        let gone: Vec<(u64, Owner)> = gone.map(|(exchange, open)| (exchange, open.owner)).collect();
        let mut stranded = Vec::new();
        for (exchange, owner) in gone {
            self.close(exchange);
            let Owner::Question { number, at } = owner else { continue };
            let Some(asked) = self.asked.find_mut(number) else { continue };
            (asked.tries[at].exchange, asked.tries[at].end) = (None, End::NoWay);
            if at + 1 == asked.tries.len() {
                stranded.push(number);
            }
        }
        stranded
    }

    fn move_peers(&mut self, now: Instant, upstreams: &[Upstream], moves: &Moves) {
        let mut peers: Vec<Peer> = upstreams.iter().map(|upstream| Peer::new(upstream, now)).collect();
        for (before, peer) in core::mem::take(&mut self.peers).into_iter().enumerate() {
            match moves.place(before) {
                Some(place) => peers[place] = peer,
                None => self.gone = self.gone.with(&peer.row),
            }
        }
        for (place, peer) in peers.iter().enumerate() {
            if let Some(due) = peer.liveness.probe_due {
                self.timers.set(due, Due::Probe(place));
            }
        }
        self.peers = peers;
    }

    fn move_what_is_open(&mut self, moves: &Moves) {
        let place = |before: usize| moves.place(before).unwrap_or(GONE);
        self.exchanges.iter_mut().for_each(|(_, open)| open.upstream = place(open.upstream));
        for (_, asked) in self.asked.iter_mut() {
            asked.tries.iter_mut().for_each(|tried| tried.upstream = place(tried.upstream));
            asked.kept.iter_mut().for_each(|reply| reply.upstream = place(reply.upstream));
            asked.move_unlike(|before| moves.place(before));
        }
        self.transmits.retain(|transmit| moves.place(transmit.upstream).is_some());
        self.transmits.iter_mut().for_each(|transmit| transmit.upstream = place(transmit.upstream));
        self.events.clear();
    }

    /// Whether what an upstream, by its place now, said of a question before still holds: it is asked about that name now too. Upstreams for all
    /// names are taken to say the same, one that is gone included.
    pub(in super::super) fn still_holds(
        &self,
        moves: &Moves,
        (name, qtype): (&[u8], u16),
        said_by: Option<usize>,
    ) -> bool {
        let for_all = moves.zones.is_for_all_names(name, qtype) && self.zones.is_for_all_names(name, qtype);
        for_all || said_by.is_some_and(|said_by| self.zones.asked(name, qtype).contains(&said_by))
    }

    /// Whether the same upstreams as before are asked about a question.
    pub(in super::super) fn is_asked_the_same(&self, moves: &Moves, name: &[u8], qtype: u16) -> bool {
        let before = moves.zones.asked(name, qtype);
        let moved = before.iter().filter_map(|before| moves.place(*before));
        let now = self.zones.asked(name, qtype);
        before.len() == now.len() && moved.eq(now.iter().copied())
            || moves.zones.is_for_all_names(name, qtype) && self.zones.is_for_all_names(name, qtype)
    }
}
