//! Subscribers inside, and how many each has of what they share: bindings (RFC 6888 REQ-4), addresses of a dynamic pool.
//!
//! A subscriber is an IPv6 /64: a host may have as many addresses in its network as it likes. Nothing is kept where there is
//! no limit.

use super::index::Index;
use super::keyed::{Purpose, TupleHash};
use super::slab::Slab;
use core::net::Ipv6Addr;

/// A network that has some.
#[derive(Clone, Copy, Debug)]
struct Subscriber {
    /// The upper half of its hosts' addresses.
    network: u64,
    has: u32,
}

/// Those who have some.
#[derive(Clone, Debug)]
pub(crate) struct Subscribers {
    /// The most that each may have; zero: no limit.
    limit: u32,
    known: Slab<Subscriber>,
    by_network: Index,
    hash: TupleHash,
}

impl Subscribers {
    /// Each may have `limit`, 0 for no limit, of `most` that there are in all.
    pub(crate) fn new(limit: u32, most: u32, seed: [u64; 2]) -> Self {
        let most = if limit == 0 { 0 } else { most };
        Self {
            limit,
            known: Slab::new(most),
            by_network: Index::compact(most),
            hash: TupleHash::new(seed, Purpose::Subscribers),
        }
    }

    const fn network(host: Ipv6Addr) -> u64 {
        (host.to_bits() >> 64) as u64
    }

    fn tag(&self, network: u64) -> u32 {
        self.hash.pair(network, 0)
    }

    fn find(&self, network: u64) -> Option<u32> {
        self.by_network.find(self.tag(network), |slot| {
            self.known.get(slot).is_some_and(|subscriber| subscriber.network == network)
        })
    }

    /// Whether the host's subscriber may have one more.
    pub(crate) fn may_have_more(&self, host: Ipv6Addr) -> bool {
        if self.limit == 0 {
            return true;
        }
        let known = self.find(Self::network(host)).and_then(|slot| self.known.get(slot));
        known.is_none_or(|subscriber| subscriber.has < self.limit)
    }

    /// The host has one more.
    pub(crate) fn has_more(&mut self, host: Ipv6Addr) {
        if self.limit == 0 {
            return;
        }
        let network = Self::network(host);
        if let Some(subscriber) = self.find(network).and_then(|slot| self.known.get_mut(slot)) {
            subscriber.has += 1;
        } else if let Some(slot) = self.known.insert(Subscriber { network, has: 1 }) {
            self.by_network.insert(self.tag(network), slot);
        }
    }

    /// The host has one less.
    pub(crate) fn has_fewer(&mut self, host: Ipv6Addr) {
        if self.limit == 0 {
            return;
        }
        let network = Self::network(host);
        let Some(slot) = self.find(network) else { return };
        let Some(subscriber) = self.known.get_mut(slot) else { return };
        subscriber.has -= 1;
        if subscriber.has == 0 {
            self.by_network.remove(self.tag(network), slot);
            self.known.release(slot);
        }
    }

    /// Memory in octets.
    pub(crate) fn memory(&self) -> usize {
        self.known.memory() + self.by_network.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_forgotten_with_its_last_one_and_the_limit_is_its_own() {
        let mut subscribers = Subscribers::new(2, 10, [1, 2]);
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
        assert_eq!((subscribers.known.len(), subscribers.find(Subscribers::network(one))), (0, None));
    }

    #[test]
    fn without_a_limit_nothing_is_kept() {
        let mut subscribers = Subscribers::new(0, 1 << 20, [1, 2]);
        let host = "2001:db8::1".parse().unwrap();
        for _ in 0..100 {
            subscribers.has_more(host);
        }
        assert!(subscribers.may_have_more(host));
        assert_eq!(subscribers.known.len(), 0);
        assert!(subscribers.memory() < 1_000);
    }
}
