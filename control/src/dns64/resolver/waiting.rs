//! Clients' queries that wait for something, each with the times at which it is examined again.

use super::super::ask::Asker;
use super::super::shares::{Payer, Place, Shares};
use crate::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// A waiting query's place. It is never reused, so that a query that ended cannot be mistaken for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Waiter {
    place: u32,
    turn: u32,
}

/// A query that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiting<T> {
    /// The client.
    pub asker: Asker<T>,
    /// What.
    pub query: Box<[u8]>,
    /// When.
    pub since: Instant,
    /// How often it was examined; a limit against endless loops.
    pub looks: u8,
}

#[derive(Debug)]
struct WaitingSlot<T> {
    turn: u32,
    waiting: Option<(Waiting<T>, Place)>,
}

/// The queries that wait: bounded, by [`Shares`]; who comes when its share is taken is turned away, and no query is evicted.
#[derive(Debug)]
pub(super) struct WaitingRoom<T> {
    places: Vec<WaitingSlot<T>>,
    free: Vec<u32>,
    shares: Shares,
    timers: BinaryHeap<Reverse<(Instant, Waiter)>>,
}

impl<T> WaitingRoom<T> {
    pub(super) fn new(most: usize, seed: u64) -> Self {
        let shares = Shares::new(most, seed);
        Self { places: Vec::new(), free: Vec::new(), shares, timers: BinaryHeap::new() }
    }

    /// Another number of places.
    pub(super) fn resize(&mut self, most: usize) {
        self.shares.resize(most);
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Admits a query, to be examined again after each of the times at the latest; `None`: its payer has its share.
    pub(super) fn admit(&mut self, waiting: Waiting<T>, payer: Payer, timers: &[Duration]) -> Option<Waiter> {
        let paid = self.shares.admit(payer).ok()?;
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(WaitingSlot { turn: 0, waiting: None });
            (self.places.len() - 1) as u32
        });
        let since = waiting.since;
        let seat = &mut self.places[place as usize];
        seat.waiting = Some((waiting, paid));
        let waiter = Waiter { place, turn: seat.turn };
        self.tidy(timers.len());
        self.timers.extend(timers.iter().map(|after| Reverse((since + *after, waiter))));
        Some(waiter)
    }

    /// Drops the timers of queries that have ended, when they are more than those of waiting queries.
    fn tidy(&mut self, each: usize) {
        const FEW: usize = 1_024;
        if self.timers.len() > FEW + 2 * each * self.len() {
            let places = &self.places;
            self.timers.retain(|Reverse((_, waiter))| places[waiter.place as usize].turn == waiter.turn);
        }
    }

    /// The query, if it still waits.
    pub(super) fn look(&mut self, waiter: Waiter) -> Option<&mut Waiting<T>> {
        let place = self.places.get_mut(waiter.place as usize)?;
        if place.turn == waiter.turn { place.waiting.as_mut().map(|(waiting, _)| waiting) } else { None }
    }

    /// Whether a query still waits.
    pub(super) fn waits(&self, waiter: Waiter) -> bool {
        self.places.get(waiter.place as usize).is_some_and(|place| place.turn == waiter.turn)
    }

    /// The payer of a query that waits.
    pub(super) fn payer(&self, waiter: Waiter) -> Payer {
        let place = self.places.get(waiter.place as usize).filter(|place| place.turn == waiter.turn);
        place.and_then(|place| place.waiting.as_ref()).map_or(Payer::OWN, |(_, paid)| paid.payer())
    }

    /// It waits no more.
    pub(super) fn dismiss(&mut self, waiter: Waiter) -> Option<Waiting<T>> {
        let place = self.places.get_mut(waiter.place as usize).filter(|place| place.turn == waiter.turn)?;
        let (waiting, paid) = place.waiting.take()?;
        place.turn = place.turn.wrapping_add(1);
        self.free.push(waiter.place);
        self.shares.leave(paid);
        Some(waiting)
    }

    /// When the next is to be examined.
    pub(super) fn next_timer(&mut self) -> Option<Instant> {
        while let Some(Reverse((at, waiter))) = self.timers.peek().copied() {
            if self.look(waiter).is_some() {
                return Some(at);
            }
            self.timers.pop();
        }
        None
    }

    /// The next that is to be examined, the time having come.
    pub(super) fn pop_expired(&mut self, now: Instant) -> Option<Waiter> {
        self.next_timer().filter(|at| *at <= now)?;
        self.timers.pop().map(|Reverse((_, waiter))| waiter)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::ask::Transport;
    use super::*;
    use std::net::Ipv6Addr;

    fn waiting(ticket: u32) -> Waiting<u32> {
        let asker = Asker { address: Ipv6Addr::LOCALHOST.into(), transport: Transport::Udp, ticket };
        Waiting { asker, query: Box::default(), since: Instant::from_secs(10), looks: 0 }
    }

    #[test]
    fn one_client_does_not_take_the_places_of_all() {
        let mut room = WaitingRoom::new(64, 0);
        let mut admit = |address: &str| {
            let asker = Asker { address: address.parse().unwrap(), transport: Transport::Udp, ticket: 0 };
            let query = Waiting { asker, query: Box::default(), since: Instant::from_secs(10), looks: 0 };
            room.admit(query, asker.payer(64, false), &[])
        };
        let greedy = (0..64).filter_map(|_| admit("192.0.2.1")).count();
        assert_eq!(greedy, 30, "half of what is not kept for who has none");
        assert!(admit("2001:db8:1::1").is_some() && admit("192.0.2.2").is_some());
        assert!(admit("192.0.2.1").is_none());
    }

    #[test]
    fn who_is_gone_is_not_mistaken_for_who_took_the_place() {
        let mut room = WaitingRoom::new(1, 0);
        let first = room.admit(waiting(1), Payer::OWN, &[]).expect("there is room");
        assert!(room.admit(waiting(2), Payer::OWN, &[]).is_none());
        assert_eq!(room.dismiss(first).expect("it waits").asker.ticket, 1);
        let second = room.admit(waiting(2), Payer::OWN, &[]).expect("there is room again");
        assert!(room.look(first).is_none());
        assert!(room.dismiss(first).is_none());
        assert_eq!((room.len(), room.look(second).expect("it waits").asker.ticket), (1, 2));
    }

    #[test]
    fn timers_of_queries_that_ended_do_not_accumulate() {
        let mut room = WaitingRoom::new(8, 0);
        let stays = room.admit(waiting(1), Payer::OWN, &[Duration::from_secs(5); 3]).expect("room");
        for ticket in 0..100_000 {
            let goes = room.admit(waiting(ticket), Payer::OWN, &[Duration::from_secs(5); 3]).expect("room");
            room.dismiss(goes);
            assert!(room.timers.len() < 1_100);
        }
        assert_eq!(room.next_timer(), Some(Instant::from_secs(15)));
        assert!(room.look(stays).is_some());
        assert_eq!(room.timers.iter().filter(|Reverse((_, waiter))| *waiter == stays).count(), 3);
    }

    #[test]
    fn timers_expire_in_order_for_queries_that_wait() {
        let mut room = WaitingRoom::new(8, 0);
        let one = room
            .admit(waiting(1), Payer::OWN, &[Duration::from_secs(2), Duration::from_secs(5)])
            .expect("room");
        let two = room.admit(waiting(2), Payer::OWN, &[Duration::from_secs(1)]).expect("room");
        assert_eq!(room.next_timer(), Some(Instant::from_secs(11)));
        assert_eq!(room.pop_expired(Instant::from_secs(10)), None);
        assert_eq!(room.pop_expired(Instant::from_secs(12)), Some(two));
        assert_eq!(room.pop_expired(Instant::from_secs(12)), Some(one));
        assert_eq!(room.pop_expired(Instant::from_secs(12)), None);
        room.dismiss(one);
        assert_eq!(room.next_timer(), None);
    }
}
