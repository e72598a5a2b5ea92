//! Counts of a shared resource by subscriber: addresses of a dynamic pool. A NAT counts more: [`super::subscriber_table`].
//!
//! A subscriber is a prefix: by default an IPv6 /64, in which a host may have as many addresses as it likes, or one IPv4 address.
//! Nothing is stored where there is no limit.

use super::index::Index;
use super::inside_key::{InsideHost, Subscriber};
use super::keyed::{Purpose, TupleHash};
use super::slab::Slab;
use core::marker::PhantomData;

/// A subscriber that has some.
#[derive(Clone, Copy, Debug)]
struct Known {
    subscriber: Subscriber,
    has: u32,
}

/// Those who have some. `H` is what their hosts are known by.
#[derive(Clone, Debug)]
pub(crate) struct SubscriberCounts<H> {
    /// Bits of a subscriber's prefix.
    bits: u8,
    /// The most that each may have; zero: no limit.
    limit: u32,
    known: Slab<Known>,
    by_subscriber: Index,
    hash: TupleHash,
    hosts: PhantomData<H>,
}

impl<H: InsideHost> SubscriberCounts<H> {
    /// Each has a prefix of this number of bits, and may have `limit`, 0 for no limit, of `most` that there are in all.
    pub(crate) fn new(bits: u8, limit: u32, most: u32, seed: [u64; 2]) -> Self {
        let most = if limit == 0 { 0 } else { most };
        Self {
            bits,
            limit,
            known: Slab::new(most),
            by_subscriber: Index::new(most),
            hash: TupleHash::new(seed, Purpose::Subscribers),
            hosts: PhantomData,
        }
    }

    fn tag(&self, Subscriber([a, b]): Subscriber) -> u32 {
        self.hash.pair(a, b)
    }

    fn find(&self, subscriber: Subscriber) -> Option<u32> {
        self.by_subscriber.find(self.tag(subscriber), |slot| {
            self.known.get(slot).is_some_and(|known| known.subscriber == subscriber)
        })
    }

    /// Whether the host's subscriber may have one more.
    pub(crate) fn may_have_more(&self, host: H) -> bool {
        if self.limit == 0 {
            return true;
        }
        let known = self.find(host.subscriber(self.bits)).and_then(|slot| self.known.get(slot));
        known.is_none_or(|known| known.has < self.limit)
    }

    /// The host has one more.
    pub(crate) fn has_more(&mut self, host: H) {
        if self.limit == 0 {
            return;
        }
        let subscriber = host.subscriber(self.bits);
        if let Some(known) = self.find(subscriber).and_then(|slot| self.known.get_mut(slot)) {
            known.has += 1;
        } else if let Some(slot) = self.known.insert(Known { subscriber, has: 1 }) {
            self.by_subscriber.insert(self.tag(subscriber), slot);
        }
    }

    /// The host has one less.
    pub(crate) fn has_fewer(&mut self, host: H) {
        if self.limit == 0 {
            return;
        }
        let subscriber = host.subscriber(self.bits);
        let Some(slot) = self.find(subscriber) else { return };
        let Some(known) = self.known.get_mut(slot) else { return };
        known.has -= 1;
        if known.has == 0 {
            self.by_subscriber.remove(self.tag(subscriber), slot);
            self.known.release(slot);
        }
    }

    /// Memory in octets.
    pub(crate) fn memory(&self) -> usize {
        self.known.memory() + self.by_subscriber.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn a_network_is_forgotten_with_its_last_one_and_the_limit_is_its_own() {
        let mut subscribers = SubscriberCounts::new(64, 2, 10, [1, 2]);
        let host = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let (one, two, other) = (host("2001:db8::1"), host("2001:db8::2"), host("2001:db8:0:1::1"));
        subscribers.has_more(one);
        assert!(subscribers.may_have_more(two));
        subscribers.has_more(two);
        assert!(
            !subscribers.may_have_more(one)
                && !subscribers.may_have_more(two)
                && subscribers.may_have_more(other)
        );
        subscribers.has_fewer(one);
        assert!(subscribers.may_have_more(two));
        subscribers.has_fewer(two);
        assert_eq!((subscribers.known.len(), subscribers.find(one.subscriber(64))), (0, None));
    }

    #[test]
    fn a_subscriber_of_a_longer_or_shorter_prefix_has_a_limit_of_its_own() {
        let mut subscribers = SubscriberCounts::new(56, 1, 10, [1, 2]);
        let host = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        subscribers.has_more(host("2001:db8:0:1::1"));
        assert!(!subscribers.may_have_more(host("2001:db8:0:ff::1")));
        assert!(subscribers.may_have_more(host("2001:db8:0:100::1")));
        let mut subscribers = SubscriberCounts::new(32, 1, 10, [1, 2]);
        let host = |text: &str| text.parse::<Ipv4Addr>().unwrap();
        subscribers.has_more(host("10.0.0.1"));
        assert!(!subscribers.may_have_more(host("10.0.0.1")) && subscribers.may_have_more(host("10.0.0.2")));
    }

    #[test]
    fn without_a_limit_nothing_is_kept() {
        let mut subscribers = SubscriberCounts::<Ipv6Addr>::new(64, 0, 1 << 20, [1, 2]);
        let host = "2001:db8::1".parse().unwrap();
        for _ in 0..100 {
            subscribers.has_more(host);
        }
        assert!(subscribers.may_have_more(host));
        assert_eq!(subscribers.known.len(), 0);
        assert!(subscribers.memory() < 1_000);
    }
}
