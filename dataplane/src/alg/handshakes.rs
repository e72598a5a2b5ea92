//! SYNs of clients that no server has answered yet. A control connection begins with the answer (RFC 9293 §3.5), so that a flood of SYNs does
//! not use entries of connections.
//!
//! A new SYN always has room: it replaces the oldest one of a subscriber at its limit, or, if the table is full, the oldest of all.

use super::ends::Ends;
use super::shares::{Sharer, Shares};
use crate::instant::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// SYNs of a worker's share of a translator.
const MOST: usize = 4_096;
/// Timeout of the answer. Each retransmission of the SYN renews it.
const ANSWERED_IN: Duration = Duration::from_secs(60);

/// A client's SYN.
#[derive(Clone, Debug)]
struct Syn {
    sequence: u32,
    subscriber: Sharer,
    number: u64,
    since: Instant,
}

/// The SYNs.
#[derive(Clone, Debug)]
pub(super) struct Handshakes {
    all: BTreeMap<Ends, Syn>,
    /// In the order of their arrival: of all, and of each subscriber.
    order: BTreeMap<u64, Ends>,
    of_subscribers: BTreeSet<(Sharer, u64)>,
    shares: Shares,
    next: u64,
}

impl Handshakes {
    pub(super) const fn new() -> Self {
        Self {
            all: BTreeMap::new(),
            order: BTreeMap::new(),
            of_subscribers: BTreeSet::new(),
            shares: Shares::new(MOST),
            next: 0,
        }
    }

    /// A client has sent a SYN with this sequence number.
    pub(super) fn add(&mut self, ends: Ends, sequence: u32, subscriber: Sharer, now: Instant) {
        self.remove(ends);
        while !self.shares.may_have_more(subscriber) {
            let own = self.of_subscribers.range((subscriber, 0)..=(subscriber, u64::MAX)).next();
            let oldest = match own {
                Some((_, number)) => self.order.get(number),
                None => self.order.values().next(),
            };
            let Some(oldest) = oldest.copied() else { break };
            self.remove(oldest);
        }
        let number = self.next;
        self.next += 1;
        self.all.insert(ends, Syn { sequence, subscriber, number, since: now });
        self.order.insert(number, ends);
        self.of_subscribers.insert((subscriber, number));
        self.shares.add(subscriber);
    }

    /// A server has answered a SYN, acknowledging what comes before this number. The client's sequence number and its subscriber, if it was this SYN
    /// that the server has seen (RFC 9293 §3.10.7.3).
    pub(super) fn answer(&mut self, ends: Ends, acknowledgment: u32) -> Option<(u32, Sharer)> {
        let syn = self.all.get(&ends).filter(|syn| syn.sequence.wrapping_add(1) == acknowledgment)?;
        let answered = (syn.sequence, syn.subscriber);
        self.remove(ends);
        Some(answered)
    }

    fn remove(&mut self, ends: Ends) {
        let Some(Syn { subscriber, number, .. }) = self.all.remove(&ends) else { return };
        self.order.remove(&number);
        self.of_subscribers.remove(&(subscriber, number));
        self.shares.remove(subscriber);
    }

    /// Removes those whose timeout has expired, `budget` of them at most.
    pub(super) fn expire(&mut self, now: Instant, budget: usize) {
        for _ in 0..budget {
            let oldest = self.order.values().next().copied();
            let Some((ends, syn)) = oldest.and_then(|ends| Some((ends, self.all.get(&ends)?))) else { break };
            if now.since(syn.since) < ANSWERED_IN {
                break;
            }
            self.remove(ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;
    use sixway_wire::Endpoint4;

    fn ends(port: u16) -> Ends {
        let [outside, server] = [[192, 0, 2, 1], [203, 0, 113, 1]].map(Ipv4Addr::from);
        Ends { outside: Endpoint4::new(outside, port), server: Endpoint4::new(server, 21) }
    }

    const NOW: Instant = Instant::from_secs(100);

    #[test]
    fn an_answer_to_another_syn_is_none() {
        let mut handshakes = Handshakes::new();
        handshakes.add(ends(1), u32::MAX, [1, 1], NOW);
        for other in [u32::MAX, 1, 7] {
            assert_eq!(handshakes.answer(ends(1), other), None);
        }
        assert_eq!(handshakes.answer(ends(2), 0), None);
        assert_eq!(handshakes.answer(ends(1), 0), Some((u32::MAX, [1, 1])));
        assert_eq!(handshakes.answer(ends(1), 0), None, "it has been removed");
    }

    #[test]
    fn a_flood_affects_only_its_own_subscriber_and_the_table_stays_bounded() {
        let mut handshakes = Handshakes::new();
        handshakes.add(ends(0), 5, [2, 2], NOW);
        (1..10_000).for_each(|port| handshakes.add(ends(port), 5, [1, 1], NOW));
        assert_eq!(handshakes.all.len(), 1 + 64);
        assert!(handshakes.answer(ends(0), 6).is_some());
        assert!(handshakes.answer(ends(9_999), 6).is_some() && handshakes.answer(ends(1), 6).is_none());
        // And many subscribers together: the newest has room.
        (0..10_000).for_each(|port| handshakes.add(ends(port), 5, [3, u64::from(port)], NOW));
        assert_eq!(handshakes.all.len(), MOST);
        assert!(handshakes.answer(ends(9_999), 6).is_some());
        let Handshakes { all, order, of_subscribers, .. } = &handshakes;
        assert_eq!((order.len(), of_subscribers.len()), (all.len(), all.len()));
    }

    #[test]
    fn a_syn_without_an_answer_is_removed_after_a_minute_unless_it_is_retransmitted() {
        let mut handshakes = Handshakes::new();
        (1..=3).for_each(|port| handshakes.add(ends(port), 5, [1, 1], NOW));
        handshakes.add(ends(1), 5, [1, 1], NOW + Duration::from_secs(30));
        handshakes.expire(NOW + Duration::from_secs(59), 10);
        assert_eq!(handshakes.all.len(), 3);
        handshakes.expire(NOW + Duration::from_secs(60), 10);
        assert_eq!(handshakes.all.keys().copied().collect::<Vec<_>>(), [ends(1)]);
    }
}
