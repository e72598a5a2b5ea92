//! Queries for one upstream that no connection has sent yet. Connections take them as they have room: one of each subscriber in turn, and within a
//! subscriber one of each host. An upstream that closes connections after a number of replies gets at most that many queries at a time: further ones
//! would be lost.

use super::limits::IN_FLIGHT;
use super::slots::{Slot, Slots};
use crate::seed::unpredictable;
use crate::{ReplyTo, UpstreamQuery};
use sixway_control::dns64::{Payer, Place, Shares};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Questions that wait here at most.
const ROOM: usize = 4_096;
/// How often a question is sent again after its connection was closed.
const REPEATS: u8 = 4;
/// Hosts of a subscriber that are examined for one that has room.
const HOSTS: usize = 8;

/// A question, how often it was sent, and its slot while it is on its way.
#[derive(Debug)]
pub struct Waiting {
    /// The query, and who gets the reply.
    pub query: UpstreamQuery,
    sent: u8,
    slot: Option<Slot>,
}

/// The questions.
#[derive(Debug)]
pub struct Backlog {
    queues: Mutex<Queues>,
    slots: Arc<Slots>,
    /// Questions under way on one connection.
    at_a_time: AtomicUsize,
    /// Connections that accept no further questions.
    retired: Arc<AtomicUsize>,
    /// One has come to be of these.
    has_retired: Notify,
}

/// A connection that accepts no further questions, until it ends.
#[derive(Debug)]
pub struct Retired(Arc<AtomicUsize>);

impl Drop for Retired {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Questions by subscriber and host.
#[derive(Debug)]
struct Queues {
    room: Shares,
    subscribers: HashMap<u128, Subscriber>,
    /// Those with questions, in turn.
    turn: VecDeque<u128>,
}

#[derive(Debug, Default)]
struct Subscriber {
    hosts: HashMap<Payer, VecDeque<Entry>>,
    turn: VecDeque<Payer>,
}

#[derive(Debug)]
struct Entry {
    query: UpstreamQuery,
    sent: u8,
    /// Its place in the room.
    place: Place,
}

impl Default for Backlog {
    fn default() -> Self {
        let queues = Queues {
            room: Shares::new(ROOM, unpredictable()),
            subscribers: HashMap::new(),
            turn: VecDeque::new(),
        };
        Self {
            queues: Mutex::new(queues),
            slots: Arc::default(),
            at_a_time: AtomicUsize::new(IN_FLIGHT),
            retired: Arc::default(),
            has_retired: Notify::default(),
        }
    }
}

impl Waiting {
    /// Where the reply goes. Its slot is free then.
    pub fn into_reply(self) -> ReplyTo {
        self.query.reply
    }
}

impl Backlog {
    /// How many questions one connection may have under way.
    pub fn at_a_time(&self) -> usize {
        self.at_a_time.load(Ordering::Relaxed)
    }

    /// Notes how many queries a connection has answered so far: one that answers more than the limit gets a higher limit.
    pub fn has_answered(&self, replies: usize) {
        let now = self.at_a_time();
        if now < IN_FLIGHT && replies > now * 2 {
            self.at_a_time.store((now * 2).min(IN_FLIGHT), Ordering::Relaxed);
        }
    }

    /// Notes that a connection closed after this many replies, while queries were waiting.
    pub fn was_closed_after(&self, replies: usize) {
        self.at_a_time.fetch_min(replies.max(1), Ordering::Relaxed);
    }

    /// A connection accepts no further questions: another is needed.
    pub fn retire(&self) -> Retired {
        self.retired.fetch_add(1, Ordering::Relaxed);
        self.has_retired.notify_one();
        Retired(Arc::clone(&self.retired))
    }

    /// Connections that accept no further questions.
    pub fn retired(&self) -> usize {
        self.retired.load(Ordering::Relaxed)
    }

    /// Waits until a connection accepts no further questions.
    pub async fn has_retired(&self) {
        self.has_retired.notified().await;
    }

    /// Appends a query; returns who waits for its reply if its payer has its share of the room.
    ///
    /// # Errors
    /// There is no room.
    pub fn put(&self, query: UpstreamQuery) -> Result<(), ReplyTo> {
        self.queues().put(query, 0, VecDeque::push_back)?;
        self.slots.changed();
        Ok(())
    }

    /// The next that is still waited for, of those whose payers may have one more under way.
    pub fn take(&self) -> Option<Waiting> {
        self.queues().take(&self.slots)
    }

    /// A question whose connection was closed, to be sent by another. If that was tried often enough, who waits for its reply is returned.
    ///
    /// # Errors
    /// It was sent too often, or there is no room.
    pub fn put_back(&self, waiting: Waiting) -> Result<(), ReplyTo> {
        let Waiting { query, sent, slot } = waiting;
        drop(slot);
        if sent > REPEATS {
            return Err(query.reply);
        }
        self.queues().put(query, sent, VecDeque::push_front)?;
        self.slots.changed();
        Ok(())
    }

    /// All of them, when none can be asked.
    pub fn take_all(&self) -> Vec<ReplyTo> {
        let mut queues = self.queues();
        let subscribers = std::mem::take(&mut queues.subscribers);
        queues.turn.clear();
        let entries =
            subscribers.into_values().flat_map(|subscriber| subscriber.hosts.into_values()).flatten();
        entries
            .map(|Entry { query, place, .. }| {
                queues.room.leave(place);
                query.reply
            })
            .collect()
    }

    /// Their number.
    pub fn len(&self) -> usize {
        self.queues().room.used()
    }

    /// Questions that could be sent if a connection took them: those whose payers have their share under way are left out. At least this many of more.
    pub fn ready(&self) -> usize {
        self.queues().ready(&self.slots)
    }

    /// Waits for a question or a slot. A connection that cannot take all says so by [`pass_on`](Self::pass_on).
    pub async fn arrived(&self) {
        self.slots.has_changed().await;
    }

    /// Wakes another connection, after one that has no room.
    pub fn pass_on(&self) {
        if self.len() > 0 {
            self.slots.changed();
        }
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queues {
    fn put(
        &mut self,
        query: UpstreamQuery,
        sent: u8,
        at: fn(&mut VecDeque<Entry>, Entry),
    ) -> Result<(), ReplyTo> {
        let payer = query.payer;
        if !self.room.has_room(payer) {
            self.forget_cancelled(payer);
        }
        let Ok(place) = self.room.admit(payer) else { return Err(query.reply) };
        let subscriber = self.subscribers.entry(payer.subscriber_bits()).or_insert_with(|| {
            self.turn.push_back(payer.subscriber_bits());
            Subscriber::default()
        });
        let queue = subscriber.hosts.entry(payer).or_insert_with(|| {
            subscriber.turn.push_back(payer);
            VecDeque::new()
        });
        at(queue, Entry { query, sent, place });
        Ok(())
    }

    /// Questions of a host that no query waits for any more free their places.
    fn forget_cancelled(&mut self, payer: Payer) {
        let Some(subscriber) = self.subscribers.get_mut(&payer.subscriber_bits()) else { return };
        let Some(queue) = subscriber.hosts.get_mut(&payer) else { return };
        // An empty queue is removed when its turn comes.
        for mut entry in std::mem::take(queue) {
            match entry.query.reply.is_cancelled() {
                true => {
                    self.room.leave(entry.place);
                    entry.query.reply.forget();
                }
                false => queue.push_back(entry),
            }
        }
    }

    fn take(&mut self, slots: &Arc<Slots>) -> Option<Waiting> {
        for _ in 0..self.turn.len() {
            let number = self.turn.pop_front()?;
            let Some(subscriber) = self.subscribers.get_mut(&number) else { continue };
            let taken = subscriber.take(&mut self.room, slots);
            match subscriber.hosts.is_empty() {
                true => drop(self.subscribers.remove(&number)),
                false => self.turn.push_back(number),
            }
            if taken.is_some() {
                return taken;
            }
        }
        None
    }

    fn ready(&self, slots: &Slots) -> usize {
        let ready = |subscriber: &Subscriber| {
            let first = subscriber.turn.front();
            if first.is_some_and(|payer| slots.has_room(*payer)) {
                subscriber.hosts.values().map(VecDeque::len).sum()
            } else {
                0
            }
        };
        self.subscribers.values().map(ready).sum()
    }
}

impl Subscriber {
    /// The next of the host whose turn it is.
    fn take(&mut self, room: &mut Shares, slots: &Arc<Slots>) -> Option<Waiting> {
        let mut looked = 0;
        while looked < self.turn.len().min(HOSTS) {
            let payer = self.turn.pop_front()?;
            let Some(queue) = self.hosts.get_mut(&payer) else { continue };
            while let Some(entry) = queue.front_mut()
                && entry.query.reply.is_cancelled()
                && let Some(entry) = queue.pop_front()
            {
                room.leave(entry.place);
                entry.query.reply.forget();
            }
            if queue.is_empty() {
                self.hosts.remove(&payer);
                continue;
            }
            let Some(slot) = Slots::take(slots, payer) else {
                self.turn.push_back(payer);
                looked += 1;
                continue;
            };
            let Entry { query, sent, place } = queue.pop_front()?;
            room.leave(place);
            match queue.is_empty() {
                true => drop(self.hosts.remove(&payer)),
                false => self.turn.push_back(payer),
            }
            return Some(Waiting { query, sent: sent + 1, slot: Some(slot) });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sixway_control::dns64::Failure;
    use std::net::IpAddr;

    /// A question, and what is to be kept as long as it is waited for.
    fn question(address: &str, number: u8) -> (UpstreamQuery, crate::Waiting) {
        let address: IpAddr = address.parse().unwrap();
        let (reply, wanted) = ReplyTo::waiting();
        (
            UpstreamQuery { upstream: 0, payer: Payer::of(address, 64, false), message: vec![number], reply },
            wanted,
        )
    }

    /// Puts this many of a client, and says which find room.
    fn put(backlog: &Backlog, address: &str, number: usize) -> Vec<crate::Waiting> {
        let all = (0..number).map(|_| question(address, 0));
        all.filter_map(|(query, wanted)| backlog.put(query).is_ok().then_some(wanted)).collect()
    }

    #[test]
    fn subscribers_and_hosts_are_asked_for_in_turn() {
        let backlog = Backlog::default();
        let mut wanted = Vec::new();
        for (address, number) in [
            ("2001:db8::1", 1),
            ("2001:db8::1", 2),
            ("2001:db8::1", 3),
            ("2001:db8::2", 4),
            ("192.0.2.1", 5),
            ("192.0.2.1", 6),
        ] {
            let (query, keep) = question(address, number);
            backlog.put(query).unwrap();
            wanted.push(keep);
        }
        let order: Vec<u8> =
            std::iter::from_fn(|| backlog.take()).map(|waiting| waiting.query.message[0]).collect();
        assert_eq!(order, [1, 5, 4, 6, 2, 3]);
        let queues = backlog.queues();
        assert!(queues.turn.is_empty() && queues.subscribers.is_empty() && queues.room.used() == 0);
    }

    #[test]
    fn a_client_with_ten_thousand_questions_leaves_another_room_and_slots() {
        let backlog = Backlog::default();
        let greedy = put(&backlog, "192.0.2.1", 10_000);
        assert!((1_900..2_100).contains(&greedy.len()), "{}", greedy.len());
        let under_way: Vec<Waiting> = std::iter::from_fn(|| backlog.take()).collect();
        assert!((150..250).contains(&under_way.len()), "{}", under_way.len());
        assert_eq!(backlog.ready(), 0, "it has its share");
        let good = put(&backlog, "192.0.2.2", 30);
        assert_eq!((good.len(), backlog.ready()), (30, 30));
        let taken: Vec<Waiting> = std::iter::from_fn(|| backlog.take()).collect();
        assert_eq!(taken.len(), 30);
        assert!(
            taken.iter().all(|waiting| waiting.query.payer == Payer::of([192, 0, 2, 2].into(), 64, false))
        );
        // A question that ends makes room for the next of the same client.
        under_way.into_iter().next().unwrap().into_reply().give(Err(Failure::Closed));
        assert!(backlog.take().is_some());
    }

    #[test]
    fn a_neighbour_in_the_same_subnet_has_slots_too() {
        let backlog = Backlog::default();
        let _greedy = put(&backlog, "2001:db8::1", 10_000);
        let _under_way: Vec<Waiting> = std::iter::from_fn(|| backlog.take()).collect();
        let _good = put(&backlog, "2001:db8::2", 30);
        assert_eq!(std::iter::from_fn(|| backlog.take()).collect::<Vec<_>>().len(), 30);
    }

    #[test]
    fn what_nobody_waits_for_any_more_makes_room_and_is_not_asked() {
        let backlog = Backlog::default();
        let greedy = put(&backlog, "192.0.2.1", 10_000);
        let before = greedy.len();
        drop(greedy);
        assert_eq!(put(&backlog, "192.0.2.1", 10).len(), 10);
        assert!(backlog.len() < before);
        let kept = put(&backlog, "192.0.2.1", 1);
        assert_eq!(kept.len(), 1);
        assert!(backlog.take().is_some());
        assert_eq!((backlog.take().is_none(), backlog.len()), (true, 0));
    }

    #[test]
    fn a_question_that_was_sent_too_often_goes_back() {
        let backlog = Backlog::default();
        let _wanted = put(&backlog, "192.0.2.1", 1);
        for _ in 0..REPEATS {
            assert!(backlog.put_back(backlog.take().unwrap()).is_ok());
        }
        assert!(backlog.put_back(backlog.take().unwrap()).is_err());
        let _wanted = put(&backlog, "192.0.2.1", 3);
        assert_eq!((backlog.take_all().len(), backlog.len(), backlog.take().is_none()), (3, 0, true));
    }
}
