//! The number of connections of each client, and the connections that have been idle longest.
//!
//! The order is by holders first: the subscriber with most connections, and within one the host with most. All steps take logarithmic time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The owner of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// The prefix of the address, or an IPv4 address in its mapped form.
    pub subscriber: u128,
    /// The address, likewise.
    pub host: u128,
}

/// The connections of a subscriber, or of a host.
#[derive(Debug, Default)]
struct Group {
    held: usize,
    /// By the time since when they are idle.
    idle: BTreeSet<u64>,
}

impl Group {
    /// The order in which connections are closed for others; `None`: none is idle.
    fn rank(&self) -> Option<(usize, Reverse<u64>)> {
        Some((self.held, Reverse(*self.idle.first()?)))
    }
}

/// All connections.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    subscribers: HashMap<u128, Group>,
    hosts: HashMap<u128, Group>,
    /// Subscribers with an idle connection; the last one's is closed first.
    largest_subscribers: BTreeSet<(usize, Reverse<u64>, u128)>,
    /// Hosts with an idle connection, by subscriber.
    largest_hosts: BTreeSet<(u128, usize, Reverse<u64>, u128)>,
    /// Idle connections: since when, and which.
    idle: BTreeMap<u64, u64>,
    /// Grows each time that a connection becomes idle.
    time: u64,
}

impl Crowd {
    /// Connections of the subscriber.
    pub(super) fn of_subscriber(&self, owner: Owner) -> usize {
        self.subscribers.get(&owner.subscriber).map_or(0, |group| group.held)
    }

    /// Connections of the host.
    pub(super) fn of_host(&self, owner: Owner) -> usize {
        self.hosts.get(&owner.host).map_or(0, |group| group.held)
    }

    /// A connection comes, idle. Returns since when.
    pub(super) fn come(&mut self, owner: Owner, id: u64) -> u64 {
        self.change(owner, |group| group.held += 1);
        self.rest(owner, id)
    }

    /// A connection goes; `since`: it was idle.
    pub(super) fn go(&mut self, owner: Owner, since: Option<u64>) {
        if let Some(since) = since {
            self.wake(owner, since);
        }
        self.change(owner, |group| group.held = group.held.saturating_sub(1));
        remove_if_empty(&mut self.hosts, owner.host);
        remove_if_empty(&mut self.subscribers, owner.subscriber);
    }

    /// A connection becomes idle. Returns since when.
    pub(super) fn rest(&mut self, owner: Owner, id: u64) -> u64 {
        self.time += 1;
        let since = self.time;
        self.idle.insert(since, id);
        self.change(owner, |group| {
            group.idle.insert(since);
        });
        since
    }

    /// A connection that was idle is in use.
    pub(super) fn wake(&mut self, owner: Owner, since: u64) {
        self.idle.remove(&since);
        self.change(owner, |group| {
            group.idle.remove(&since);
        });
    }

    /// The longest idle connection of the subscriber with most, if that is more than `held`.
    pub(super) fn of_the_largest_subscriber(&self, held: usize) -> Option<u64> {
        let (most, Reverse(since), _) = self.largest_subscribers.last()?;
        (*most > held).then(|| self.idle.get(since).copied())?
    }

    /// The longest idle connection of that host with most in this subscriber, if that is more than `held`.
    pub(super) fn of_the_largest_host(&self, subscriber: u128, held: usize) -> Option<u64> {
        let least = (subscriber, 0, Reverse(u64::MAX), 0);
        let greatest = (subscriber, usize::MAX, Reverse(0), u128::MAX);
        let (_, most, Reverse(since), _) = self.largest_hosts.range(least..=greatest).next_back()?;
        (*most > held).then(|| self.idle.get(since).copied())?
    }

    /// Changes both groups of an owner, and keeps their order.
    fn change(&mut self, owner: Owner, mut how: impl FnMut(&mut Group)) {
        let Owner { subscriber, host } = owner;
        let group = self.subscribers.entry(subscriber).or_default();
        if let Some((held, since)) = group.rank() {
            self.largest_subscribers.remove(&(held, since, subscriber));
        }
        how(group);
        if let Some((held, since)) = group.rank() {
            self.largest_subscribers.insert((held, since, subscriber));
        }
        let group = self.hosts.entry(host).or_default();
        if let Some((held, since)) = group.rank() {
            self.largest_hosts.remove(&(subscriber, held, since, host));
        }
        how(group);
        if let Some((held, since)) = group.rank() {
            self.largest_hosts.insert((subscriber, held, since, host));
        }
    }

    /// Whether nothing is held.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.subscribers.is_empty()
            && self.hosts.is_empty()
            && self.idle.is_empty()
            && self.largest_hosts.is_empty()
            && self.largest_subscribers.is_empty()
    }
}

/// Removes a group that holds nothing.
fn remove_if_empty(groups: &mut HashMap<u128, Group>, key: u128) {
    if groups.get(&key).is_some_and(|group| group.held == 0) {
        groups.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(subscriber: u128, host: u128) -> Owner {
        Owner { subscriber, host: subscriber << 64 | host }
    }

    #[test]
    fn the_longest_idle_connection_of_the_subscriber_and_host_with_most_is_found() {
        let mut crowd = Crowd::default();
        let first = crowd.come(owner(1, 1), 10);
        let second = crowd.come(owner(1, 1), 11);
        let third = crowd.come(owner(1, 2), 12);
        let other = crowd.come(owner(2, 1), 20);
        assert_eq!((crowd.of_subscriber(owner(1, 1)), crowd.of_host(owner(1, 1))), (3, 2));
        assert_eq!(crowd.of_the_largest_subscriber(2), Some(10));
        assert_eq!(crowd.of_the_largest_subscriber(3), None);
        assert_eq!(crowd.of_the_largest_host(1, 0), Some(10));
        assert_eq!(crowd.of_the_largest_host(1, 2), None);
        assert_eq!(crowd.of_the_largest_host(2, 0), Some(20));
        assert_eq!(crowd.of_the_largest_host(3, 0), None);
        // In use, it does not make way; later it is the last to.
        crowd.wake(owner(1, 1), first);
        assert_eq!(crowd.of_the_largest_subscriber(0), Some(11));
        let again = crowd.rest(owner(1, 1), 10);
        assert_eq!(crowd.of_the_largest_subscriber(0), Some(11));
        crowd.go(owner(1, 1), Some(second));
        assert_eq!(crowd.of_the_largest_subscriber(0), Some(12));
        crowd.wake(owner(1, 1), again);
        crowd.go(owner(1, 1), None);
        crowd.go(owner(1, 2), Some(third));
        assert_eq!(crowd.of_the_largest_subscriber(0), Some(20));
        crowd.go(owner(2, 1), Some(other));
        assert!(crowd.is_empty());
    }

    #[test]
    fn of_subscribers_with_as_many_the_longest_idle_connection_makes_way() {
        let mut crowd = Crowd::default();
        let old = crowd.come(owner(5, 1), 1);
        crowd.come(owner(3, 1), 2);
        crowd.come(owner(9, 1), 3);
        assert_eq!(crowd.of_the_largest_subscriber(0), Some(1));
        crowd.wake(owner(5, 1), old);
        crowd.rest(owner(5, 1), 1);
        assert_eq!(crowd.of_the_largest_subscriber(0), Some(2));
    }
}
