//! Clients' queries that wait for something, each with the times at which it is looked at again.

use super::super::ask::Asker;
use crate::Instant;
use foldhash::quality::FixedState;
use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};
use std::net::IpAddr;
use std::time::Duration;

/// A waiting query's place. It is given out once only, so that who is gone cannot be mistaken for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Waiter {
    place: u32,
    turn: u32,
}

/// A query that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiting<T> {
    /// Who asked.
    pub asker: Asker<T>,
    /// What.
    pub query: Box<[u8]>,
    /// When.
    pub since: Instant,
    /// How often it was looked at; a bound against going round in a circle.
    pub looks: u8,
}

#[derive(Debug)]
struct WaitingSlot<T> {
    turn: u32,
    waiting: Option<Waiting<T>>,
}

/// The queries that wait: bounded; who comes when it is full is turned away, and no query is evicted. When it is half full, who has a quarter of
/// the places gets no more, so that one client with many random names does not keep the others out.
#[derive(Debug)]
pub(super) struct WaitingRoom<T> {
    places: Vec<WaitingSlot<T>>,
    free: Vec<u32>,
    most: usize,
    /// Places of each client that has any.
    shares: HashMap<Client, usize, FixedState>,
    alarms: BinaryHeap<Reverse<(Instant, Waiter)>>,
}

/// A client: a /64, or an IPv4 address.
type Client = u64;

fn client(address: IpAddr) -> Client {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
    }
}

impl<T> WaitingRoom<T> {
    pub(super) fn new(most: usize, seed: u64) -> Self {
        let shares = HashMap::with_hasher(FixedState::with_seed(seed));
        Self { places: Vec::new(), free: Vec::new(), most, shares, alarms: BinaryHeap::new() }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Lets a query in, to be looked at again after each of the times at the latest; `None`: there is no room.
    pub(super) fn admit(&mut self, waiting: Waiting<T>, alarms: &[Duration]) -> Option<Waiter> {
        let (since, client) = (waiting.since, client(waiting.asker.address));
        let share = self.shares.get(&client).copied().unwrap_or_default();
        if 2 * self.len() >= self.most && 4 * share >= self.most && self.most >= 4 {
            return None;
        }
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.places.len() < self.most => {
                self.places.push(WaitingSlot { turn: 0, waiting: None });
                u32::try_from(self.places.len() - 1).ok()?
            }
            None => return None,
        };
        let seat = &mut self.places[place as usize];
        seat.waiting = Some(waiting);
        self.shares.insert(client, share + 1);
        let waiter = Waiter { place, turn: seat.turn };
        self.tidy(alarms.len());
        self.alarms.extend(alarms.iter().map(|after| Reverse((since + *after, waiter))));
        Some(waiter)
    }

    /// Drops the alarms of those who are gone, when there are more of them than of those who wait.
    fn tidy(&mut self, each: usize) {
        const FEW: usize = 1_024;
        if self.alarms.len() > FEW + 2 * each * self.len() {
            let places = &self.places;
            self.alarms.retain(|Reverse((_, waiter))| places[waiter.place as usize].turn == waiter.turn);
        }
    }

    /// The query, if it still waits.
    pub(super) fn look(&mut self, waiter: Waiter) -> Option<&mut Waiting<T>> {
        let place = self.places.get_mut(waiter.place as usize)?;
        if place.turn == waiter.turn { place.waiting.as_mut() } else { None }
    }

    /// It waits no more.
    pub(super) fn dismiss(&mut self, waiter: Waiter) -> Option<Waiting<T>> {
        let place = self.places.get_mut(waiter.place as usize).filter(|place| place.turn == waiter.turn)?;
        let waiting = place.waiting.take()?;
        place.turn = place.turn.wrapping_add(1);
        self.free.push(waiter.place);
        if let Entry::Occupied(mut share) = self.shares.entry(client(waiting.asker.address)) {
            *share.get_mut() -= 1;
            if *share.get() == 0 {
                share.remove();
            }
        }
        Some(waiting)
    }

    /// When the next is to be looked at.
    pub(super) fn next_alarm(&mut self) -> Option<Instant> {
        while let Some(Reverse((at, waiter))) = self.alarms.peek().copied() {
            if self.look(waiter).is_some() {
                return Some(at);
            }
            self.alarms.pop();
        }
        None
    }

    /// The next that is to be looked at, the time having come.
    pub(super) fn alarmed(&mut self, now: Instant) -> Option<Waiter> {
        self.next_alarm().filter(|at| *at <= now)?;
        self.alarms.pop().map(|Reverse((_, waiter))| waiter)
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
        let mut room = WaitingRoom::new(8, 0);
        let from = |address: &str, ticket| {
            let asker = Asker { address: address.parse().unwrap(), transport: Transport::Udp, ticket };
            Waiting { asker, query: Box::default(), since: Instant::from_secs(10), looks: 0 }
        };
        let greedy: Vec<_> = (0..8).map(|n| room.admit(from(&format!("2001:db8::{n}"), n), &[])).collect();
        assert_eq!(greedy.iter().flatten().count(), 4, "half of the room, as long as nobody else comes");
        assert!(room.admit(from("2001:db8:1::1", 8), &[]).is_some());
        assert!(room.admit(from("192.0.2.1", 9), &[]).is_some());
        assert!(room.admit(from("2001:db8::9", 10), &[]).is_none());
        greedy[1..].iter().flatten().for_each(|waiter| drop(room.dismiss(*waiter)));
        assert!(room.admit(from("2001:db8::9", 11), &[]).is_some());
    }

    #[test]
    fn who_is_gone_is_not_mistaken_for_who_took_the_place() {
        let mut room = WaitingRoom::new(1, 0);
        let first = room.admit(waiting(1), &[]).expect("there is room");
        assert!(room.admit(waiting(2), &[]).is_none());
        assert_eq!(room.dismiss(first).expect("it waits").asker.ticket, 1);
        let second = room.admit(waiting(2), &[]).expect("there is room again");
        assert!(room.look(first).is_none());
        assert!(room.dismiss(first).is_none());
        assert_eq!((room.len(), room.look(second).expect("it waits").asker.ticket), (1, 2));
    }

    #[test]
    fn alarms_of_those_who_are_gone_do_not_pile_up() {
        let mut room = WaitingRoom::new(3, 0);
        let stays = room.admit(waiting(1), &[Duration::from_secs(5); 3]).expect("room");
        for ticket in 0..100_000 {
            let goes = room.admit(waiting(ticket), &[Duration::from_secs(5); 3]).expect("room");
            room.dismiss(goes);
            assert!(room.alarms.len() < 1_100);
        }
        assert_eq!(room.next_alarm(), Some(Instant::from_secs(15)));
        assert!(room.look(stays).is_some());
        assert_eq!(room.alarms.iter().filter(|Reverse((_, waiter))| *waiter == stays).count(), 3);
    }

    #[test]
    fn alarms_ring_in_order_for_those_who_still_wait() {
        let mut room = WaitingRoom::new(3, 0);
        let one = room.admit(waiting(1), &[Duration::from_secs(2), Duration::from_secs(5)]).expect("room");
        let two = room.admit(waiting(2), &[Duration::from_secs(1)]).expect("room");
        assert_eq!(room.next_alarm(), Some(Instant::from_secs(11)));
        assert_eq!(room.alarmed(Instant::from_secs(10)), None);
        assert_eq!(room.alarmed(Instant::from_secs(12)), Some(two));
        assert_eq!(room.alarmed(Instant::from_secs(12)), Some(one));
        assert_eq!(room.alarmed(Instant::from_secs(12)), None);
        room.dismiss(one);
        assert_eq!(room.next_alarm(), None);
    }
}
