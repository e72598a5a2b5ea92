//! Subscribers inside, and how many bindings each has (RFC 6888 REQ-4).
//!
//! A subscriber is an IPv6 /64: a host may have as many addresses in its network as it likes. Only dynamic bindings count, and
//! only when there is a limit: else nothing is kept.

use super::index::Index;
use super::keyed::{Purpose, TupleHash};
use super::slab::Slab;
use core::net::Ipv6Addr;

/// A network that has bindings.
#[derive(Clone, Copy, Debug)]
struct Subscriber {
    /// The upper half of its hosts' addresses.
    network: u64,
    bindings: u32,
}

/// Those who have bindings.
#[derive(Clone, Debug)]
pub(super) struct Subscribers {
    /// Most bindings of each; zero: no limit.
    limit: u32,
    known: Slab<Subscriber>,
    by_network: Index,
    hash: TupleHash,
}

impl Subscribers {
    /// `limit` is the most bindings of each, 0 for no limit; there are `most` bindings at most.
    pub(super) fn new(limit: u32, most: u32, seed: [u64; 2]) -> Self {
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

    /// Whether the host's subscriber may have another binding.
    pub(super) fn may_bind(&self, host: Ipv6Addr) -> bool {
        if self.limit == 0 {
            return true;
        }
        let known = self.find(Self::network(host)).and_then(|slot| self.known.get(slot));
        known.is_none_or(|subscriber| subscriber.bindings < self.limit)
    }

    /// The host has a binding more.
    pub(super) fn bound(&mut self, host: Ipv6Addr) {
        if self.limit == 0 {
            return;
        }
        let network = Self::network(host);
        if let Some(subscriber) = self.find(network).and_then(|slot| self.known.get_mut(slot)) {
            subscriber.bindings += 1;
        } else if let Some(slot) = self.known.insert(Subscriber { network, bindings: 1 }) {
            self.by_network.insert(self.tag(network), slot);
        }
    }

    /// The host has a binding less.
    pub(super) fn unbound(&mut self, host: Ipv6Addr) {
        if self.limit == 0 {
            return;
        }
        let network = Self::network(host);
        let Some(slot) = self.find(network) else { return };
        let Some(subscriber) = self.known.get_mut(slot) else { return };
        subscriber.bindings -= 1;
        if subscriber.bindings == 0 {
            self.by_network.remove(self.tag(network), slot);
            self.known.release(slot);
        }
    }

    /// Memory in octets.
    pub(super) fn memory(&self) -> usize {
        self.known.memory() + self.by_network.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_forgotten_with_its_last_binding_and_the_limit_is_its_own() {
        let mut subscribers = Subscribers::new(2, 10, [1, 2]);
        let host = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let (one, two, other) = (host("2001:db8::1"), host("2001:db8::2"), host("2001:db8:0:1::1"));
        subscribers.bound(one);
        assert!(subscribers.may_bind(two));
        subscribers.bound(two);
        assert!(!subscribers.may_bind(one) && !subscribers.may_bind(two) && subscribers.may_bind(other));
        subscribers.unbound(one);
        assert!(subscribers.may_bind(two));
        subscribers.unbound(two);
        assert_eq!((subscribers.known.len(), subscribers.find(Subscribers::network(one))), (0, None));
    }

    #[test]
    fn without_a_limit_nothing_is_kept() {
        let mut subscribers = Subscribers::new(0, 1 << 20, [1, 2]);
        let host = "2001:db8::1".parse().unwrap();
        for _ in 0..100 {
            subscribers.bound(host);
        }
        assert!(subscribers.may_bind(host));
        assert_eq!(subscribers.known.len(), 0);
        assert!(subscribers.memory() < 1_000);
    }
}
