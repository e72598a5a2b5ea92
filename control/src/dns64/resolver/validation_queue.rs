//! Queries whose validation cannot begin yet: a queue for each subscriber, and another one for its proven addresses. The queues are served in turn.

use super::super::shares::{Payer, Subscriber};
use super::waiting::Waiter;
use foldhash::quality::FixedState;
use std::collections::{HashMap, HashSet, VecDeque};

/// A queue: of a subscriber, and whether of proven addresses.
type Queue = (Subscriber, bool);

/// Queries that wait for their validation to begin. A waiter may be in it more than once, and may no longer exist.
#[derive(Debug)]
pub(super) struct ValidationQueue {
    queues: HashMap<Queue, VecDeque<(Waiter, Payer)>, FixedState>,
    /// The subscribers in the order of their turns.
    ring: VecDeque<Queue>,
    waiters: usize,
}

impl ValidationQueue {
    pub(super) fn new(seed: u64) -> Self {
        let queues = HashMap::with_hasher(FixedState::with_seed(seed));
        Self { queues, ring: VecDeque::new(), waiters: 0 }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiters
    }

    /// How many queues there are.
    pub(super) fn queues(&self) -> usize {
        self.ring.len()
    }

    /// Appends a waiter to its queue.
    pub(super) fn push(&mut self, waiter: Waiter, payer: Payer) {
        let whose = (payer.subscriber(), payer.is_proven());
        let queue = self.queues.entry(whose).or_default();
        if queue.is_empty() {
            self.ring.push_back(whose);
        }
        queue.push_back((waiter, payer));
        self.waiters += 1;
    }

    /// The first waiter of the queue that is next.
    pub(super) fn first(&self) -> Option<(Waiter, Payer)> {
        self.queues.get(self.ring.front()?)?.front().copied()
    }

    /// Takes the first. The next queue has the next turn.
    pub(super) fn pop(&mut self) -> Option<Waiter> {
        let whose = self.ring.pop_front()?;
        let queue = self.queues.get_mut(&whose)?;
        let first = queue.pop_front();
        match queue.is_empty() {
            true => drop(self.queues.remove(&whose)),
            false => self.ring.push_back(whose),
        }
        self.waiters -= usize::from(first.is_some());
        first.map(|(waiter, _)| waiter)
    }

    /// Passes the turn to the next queue.
    pub(super) fn turn(&mut self) {
        if let Some(whose) = self.ring.pop_front() {
            self.ring.push_back(whose);
        }
    }

    /// Removes duplicates, and waiters that no longer wait.
    pub(super) fn tidy(&mut self, waits: impl Fn(Waiter) -> bool) {
        let mut seen = HashSet::with_hasher(FixedState::default());
        for queue in self.queues.values_mut() {
            queue.retain(|(waiter, _)| waits(*waiter) && seen.insert(*waiter));
        }
        self.queues.retain(|_, queue| !queue.is_empty());
        self.ring.retain(|whose| self.queues.contains_key(whose));
        self.waiters = self.queues.values().map(VecDeque::len).sum();
    }

    /// Removes all.
    pub(super) fn drain(&mut self) -> Vec<Waiter> {
        self.ring.clear();
        self.waiters = 0;
        self.queues.drain().flat_map(|(_, queue)| queue).map(|(waiter, _)| waiter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::ask::{Asker, Transport};
    use super::super::waiting::{Waiting, WaitingRoom};
    use super::*;
    use crate::Instant;

    #[test]
    fn subscribers_take_turns_whatever_the_length_of_their_queues() {
        let mut room = WaitingRoom::new(1_024, 0);
        let mut queue = ValidationQueue::new(7);
        let mut waiters = Vec::new();
        // The last one is the first client again, with a cookie.
        for (ticket, host) in [1, 1, 1, 1, 2, 1, 3, 1].into_iter().enumerate() {
            let address = std::net::Ipv4Addr::new(192, 0, 2, host).into();
            let asker = Asker { address, transport: Transport::Udp, ticket };
            let payer = asker.payer(64, ticket == 7);
            let query = Waiting { asker, query: Box::default(), since: Instant::default(), looks: 0 };
            let waiter = room.admit(query, payer, &[]).expect("there is room");
            queue.push(waiter, payer);
            queue.push(waiter, payer);
            waiters.push(waiter);
        }
        queue.tidy(|waiter| waiter != waiters[1]);
        assert_eq!((queue.len(), queue.queues()), (7, 4));
        assert_eq!(queue.first().map(|(waiter, _)| waiter), Some(waiters[0]));
        let order: Vec<Waiter> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [0, 4, 6, 7, 2, 3, 5].map(|at| waiters[at]));
        assert!(queue.len() == 0 && queue.queues() == 0 && queue.queues.is_empty());
        queue.push(waiters[0], Payer::OWN);
        queue.turn();
        assert_eq!(queue.drain(), [waiters[0]]);
    }
}
