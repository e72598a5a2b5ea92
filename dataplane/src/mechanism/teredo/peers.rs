//! The list of peers (RFC 4380 §5.2, §5.4): bounded, and without a scan. Each state has a queue. A peer becomes due a fixed time after it entered the
//! queue, so a queue is in the order of these times.

use super::row::PeerState;
use super::shares::OWN;
use crate::instant::Instant;
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;
use foldhash::fast::FixedState;
use sixway_wire::Endpoint4;
use std::collections::HashMap;

/// Where a peer is in the list.
pub(super) type Place = u32;

/// The end of a queue.
const NONE: u32 = u32::MAX;

/// RFC 4380 §5.2.6: the time between two bubbles.
pub(super) const BUBBLE_INTERVAL: Duration = Duration::from_secs(2);
/// The answer to a test is accepted for this time.
const ANSWERED: Duration = Duration::from_secs(8);
/// How long a peer that did not answer is not contacted: §5.2.6 counts 300 s from the first bubble.
const LEFT_ALONE: Duration = Duration::from_secs(292);
/// The time after which peers in other states are due.
const LOOKED_AT: Duration = Duration::from_secs(30);
/// A new peer may take the place of one of the first few in a queue.
const EXAMINED: usize = 8;

/// The known data about a peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// Its IPv6 address.
    pub(super) address: Ipv6Addr,
    /// Where its packets come from and go to.
    pub(super) endpoint: Endpoint4,
    /// The last packet from it.
    pub(super) heard: Option<Stamp>,
    /// The last packet to it.
    pub(super) sent: Option<Stamp>,
    /// The last bubble.
    pub(super) bubble: Option<Stamp>,
    /// The first bubble of those that it has not answered.
    pub(super) contacted: Stamp,
    due: Instant,
    previous: u32,
    next: u32,
    /// The nonce of its last bubble through a server (RFC 6081 §5.2.4.3); 0: there was none.
    pub(super) nonce: u32,
    /// This client's own port that it is reached from: the service port, or a spare one (RFC 6081 §5.4.1).
    pub(super) port: u16,
    /// The port that it predicts for its own NAT; 0: it sent none.
    pub(super) their_port: u16,
    /// The sender whose packet created it, and whose share it counts for.
    pub(super) creator: u16,
    pub(super) state: PeerState,
    /// Whether its endpoint is proven. A test in progress does not change that.
    pub(super) is_trusted: bool,
    /// Whether it is on the same link.
    pub(super) is_local: bool,
    /// Bubbles that it has not answered.
    pub(super) bubbles: u8,
    /// Packets that wait for it.
    pub(super) waiting: u8,
    /// Whether this host's own traffic needs it, and not only an unknown sender's datagram.
    pub(super) is_wanted: bool,
}

/// A time in nanoseconds, at least 1.
pub(super) type Stamp = core::num::NonZeroU64;

/// The stamp of a time.
pub(super) fn stamp(now: Instant) -> Stamp {
    Stamp::MIN.saturating_add(now.0)
}

/// The time that passed since a stamp, if there is one.
pub(super) fn since(stamp: Option<Stamp>, now: Instant) -> Option<Duration> {
    stamp.map(|stamp| now.since(Instant(stamp.get() - 1)))
}

impl Peer {
    /// Whether something came from it less than this time ago.
    #[inline(always)]
    pub(super) fn was_heard(&self, within: Duration, now: Instant) -> bool {
        since(self.heard, now).is_some_and(|time| time < within)
    }

    /// Whether an answer to a test is awaited.
    pub(super) fn is_tested(&self, now: Instant) -> bool {
        self.bubbles > 0 && since(self.bubble, now).is_some_and(|time| time < ANSWERED)
    }

    /// Whether packets passed one way or the other less than this time ago.
    pub(super) fn is_used(&self, within: Duration, now: Instant) -> bool {
        [self.heard, self.sent].iter().any(|stamp| since(*stamp, now).is_some_and(|time| time < within))
    }
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    first: u32,
    last: u32,
    length: u32,
}

/// All peers.
#[derive(Debug)]
pub(super) struct Peers {
    index: HashMap<Ipv6Addr, u32, FixedState>,
    slots: Vec<Peer>,
    free: Vec<u32>,
    queues: [Queue; 4],
    most: usize,
}

impl Peers {
    /// An empty list for this many peers.
    pub(super) fn new(most: u32, seed: u64) -> Self {
        let most = most as usize;
        Self {
            index: HashMap::with_capacity_and_hasher(most, FixedState::with_seed(seed)),
            slots: Vec::new(),
            free: Vec::new(),
            queues: [Queue { first: NONE, last: NONE, length: 0 }; 4],
            most,
        }
    }

    /// The peer with an address.
    #[inline]
    pub(super) fn find(&self, address: Ipv6Addr) -> Option<u32> {
        self.index.get(&address).copied()
    }

    /// The peer at a place that [`Peers::find`] or [`Peers::insert`] returned.
    #[inline(always)]
    pub(super) fn get(&mut self, place: u32) -> &mut Peer {
        &mut self.slots[place as usize]
    }

    /// Number of peers of a state.
    pub(super) const fn count(&self, state: PeerState) -> u32 {
        self.queues[state as usize].length
    }

    pub(super) fn is_full(&self) -> bool {
        self.index.len() >= self.most
    }

    /// The peer that a new one replaces: the oldest that did not answer; otherwise the oldest that has not answered yet and for which no packet waits;
    /// otherwise the oldest with packets in at most one direction; otherwise the oldest that has not answered yet. Never an established one, one that
    /// was established recently, or one that this host itself is contacting.
    pub(super) fn displaced(&self) -> Option<u32> {
        let is_unproven = |peer: &Peer| !peer.is_trusted && peer.creator != OWN;
        self.first_of(PeerState::Unreachable, |_| true)
            .or_else(|| self.first_of(PeerState::Contacting, |peer| is_unproven(peer) && peer.waiting == 0))
            .or_else(|| self.first_of(PeerState::Trusted, |_| true))
            .or_else(|| self.first_of(PeerState::Contacting, is_unproven))
    }

    fn first_of(&self, state: PeerState, may_go: impl Fn(&Peer) -> bool) -> Option<u32> {
        self.queue(state).take(EXAMINED).find(|place| may_go(&self.slots[*place as usize]))
    }

    fn queue(&self, state: PeerState) -> impl Iterator<Item = u32> {
        let next = |place: u32| (place != NONE).then_some(place);
        let first = next(self.queues[state as usize].first);
        core::iter::successors(first, move |place| next(self.slots[*place as usize].next))
    }

    /// Adds a new peer. The list must not be full.
    pub(super) fn insert(
        &mut self,
        address: Ipv6Addr,
        endpoint: Endpoint4,
        (creator, port): (u16, u16),
        now: Instant,
    ) -> u32 {
        let peer = Peer {
            address,
            endpoint,
            heard: None,
            sent: None,
            bubble: None,
            contacted: stamp(now),
            due: now,
            previous: NONE,
            next: NONE,
            nonce: 0,
            port,
            their_port: 0,
            creator,
            state: PeerState::Contacting,
            is_trusted: false,
            is_local: false,
            bubbles: 0,
            waiting: 0,
            is_wanted: false,
        };
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(peer);
            (self.slots.len() - 1) as u32
        });
        self.slots[place as usize] = peer;
        self.index.insert(address, place);
        self.append(place, PeerState::Contacting, now);
        place
    }

    /// Removes a peer.
    pub(super) fn remove(&mut self, place: u32) {
        self.unlink(place);
        let address = self.slots[place as usize].address;
        self.index.remove(&address);
        self.free.push(place);
    }

    /// Moves a peer to the end of a state's queue: it is due after that state's time.
    pub(super) fn put(&mut self, place: u32, state: PeerState, now: Instant) {
        self.unlink(place);
        self.append(place, state, now);
    }

    /// A peer, if there is any.
    pub(super) fn any(&self) -> Option<u32> {
        self.queues.iter().map(|queue| queue.first).find(|first| *first != NONE)
    }

    /// The peer that is due first, if it is due now.
    pub(super) fn due(&self, now: Instant) -> Option<u32> {
        let firsts = self.queues.iter().map(|queue| queue.first).filter(|first| *first != NONE);
        firsts.into_iter().find(|first| self.slots[*first as usize].due <= now)
    }

    /// Some peers from a place on, and the next place, if there are more.
    pub(super) fn page(&self, from: u32, most: usize) -> (impl Iterator<Item = &Peer>, Option<u32>) {
        let is_there = |(place, peer): &(u32, &Peer)| self.index.get(&peer.address) == Some(place);
        let (from, most) = (from as usize, most.max(1));
        let end = (from + most).min(self.slots.len());
        let slots = self.slots.get(from..end).unwrap_or_default();
        let rows = (from as u32..).zip(slots).filter(is_there).map(|(_, peer)| peer);
        let rows: Vec<&Peer> = rows.collect();
        (rows.into_iter(), (end < self.slots.len()).then_some(end as u32))
    }

    /// Octets of memory.
    pub(super) fn memory_used(&self) -> usize {
        // One octet of control for each place of the index, of which one in eight is left free.
        let places = self.index.capacity() / 7 * 8;
        places * (size_of::<(Ipv6Addr, u32)>() + 1)
            + self.slots.capacity() * size_of::<Peer>()
            + self.free.capacity() * size_of::<u32>()
    }

    fn append(&mut self, place: u32, state: PeerState, now: Instant) {
        let queue = &mut self.queues[state as usize];
        let last = core::mem::replace(&mut queue.last, place);
        queue.length += 1;
        match self.slots.get_mut(last as usize) {
            Some(before) => before.next = place,
            None => queue.first = place,
        }
        let peer = &mut self.slots[place as usize];
        (peer.previous, peer.next, peer.state) = (last, NONE, state);
        peer.due = now
            + match state {
                PeerState::Contacting => BUBBLE_INTERVAL,
                PeerState::Unreachable => LEFT_ALONE,
                PeerState::Trusted | PeerState::Established => LOOKED_AT,
            };
    }

    fn unlink(&mut self, place: u32) {
        let Peer { previous, next, state, .. } = self.slots[place as usize];
        let queue = &mut self.queues[state as usize];
        queue.length -= 1;
        match self.slots.get_mut(previous as usize) {
            Some(before) => before.next = next,
            None => queue.first = next,
        }
        match self.slots.get_mut(next as usize) {
            Some(behind) => behind.previous = previous,
            None => queue.last = previous,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDPOINT: Endpoint4 = Endpoint4::new(core::net::Ipv4Addr::new(192, 0, 2, 1), 40_000);

    fn at(number: u32) -> Ipv6Addr {
        Ipv6Addr::from_bits(0x2001_0000 << 96 | u128::from(number))
    }

    #[test]
    fn a_peer_has_at_most_88_octets() {
        assert!(size_of::<Peer>() <= 88, "{}", size_of::<Peer>());
    }

    #[test]
    fn what_did_not_answer_gives_way_first_and_an_established_peer_never() {
        let mut peers = Peers::new(4, 1);
        let places: Vec<u32> =
            (0..4).map(|number| peers.insert(at(number), ENDPOINT, (1, 3_544), Instant(0))).collect();
        assert!(peers.is_full());
        peers.put(places[0], PeerState::Established, Instant(0));
        peers.put(places[1], PeerState::Trusted, Instant(0));
        peers.put(places[3], PeerState::Unreachable, Instant(0));
        for expected in [places[3], places[2], places[1]] {
            assert_eq!(peers.displaced(), Some(expected));
            peers.remove(expected);
        }
        assert_eq!(peers.displaced(), None);
        assert_eq!(peers.find(at(0)), Some(places[0]));
    }

    /// First those without waiting packets, then idle ones, then those with waiting packets.
    #[test]
    fn a_peer_that_packets_wait_for_gives_way_after_the_idle_ones_and_one_of_this_host_never() {
        let mut peers = Peers::new(4, 1);
        let [waited, own, idle, asked] =
            [0, 1, 2, 3].map(|number| peers.insert(at(number), ENDPOINT, (1, 3_544), Instant(0)));
        peers.get(waited).waiting = 1;
        peers.get(own).creator = OWN;
        peers.put(idle, PeerState::Trusted, Instant(0));
        for expected in [asked, idle, waited] {
            assert_eq!(peers.displaced(), Some(expected));
            peers.remove(expected);
        }
        assert_eq!(peers.displaced(), None);
    }

    #[test]
    fn a_proven_peer_that_is_contacted_again_does_not_give_way() {
        let mut peers = Peers::new(2, 1);
        let [proven, other] = [0, 1].map(|number| peers.insert(at(number), ENDPOINT, (1, 3_544), Instant(0)));
        peers.get(proven).is_trusted = true;
        assert_eq!(peers.displaced(), Some(other));
        peers.remove(other);
        assert_eq!(peers.displaced(), None);
    }

    #[test]
    fn peers_are_looked_at_in_the_order_of_their_times_and_no_other_is() {
        let mut peers = Peers::new(9, 1);
        let [a, b] = [0, 1]
            .map(|number| peers.insert(at(number), ENDPOINT, (1, 3_544), Instant::from_secs(number.into())));
        assert_eq!(peers.due(Instant::from_secs(1)), None);
        assert_eq!(peers.due(Instant::from_secs(2)), Some(a));
        peers.put(a, PeerState::Established, Instant::from_secs(2));
        assert_eq!(peers.due(Instant::from_secs(2)), None);
        assert_eq!(peers.due(Instant::from_secs(3)), Some(b));
        peers.remove(b);
        assert_eq!(peers.due(Instant::from_secs(31)), None);
        assert_eq!(peers.due(Instant::from_secs(32)), Some(a));
    }

    #[test]
    fn a_page_has_every_peer_once() {
        let mut peers = Peers::new(100, 1);
        let places: Vec<u32> =
            (0..100).map(|number| peers.insert(at(number), ENDPOINT, (1, 3_544), Instant(0))).collect();
        places.iter().step_by(3).for_each(|place| peers.remove(*place));
        let (mut seen, mut from) = (Vec::new(), Some(0));
        while let Some(place) = from {
            let (rows, next) = peers.page(place, 7);
            seen.extend(rows.map(|peer| peer.address));
            from = next;
        }
        let expected: Vec<Ipv6Addr> = (0..100).filter(|number| number % 3 != 0).map(at).collect();
        assert_eq!(seen, expected);
    }
}
