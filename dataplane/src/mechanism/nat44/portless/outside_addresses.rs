//! The outside addresses that an inside host may get for protocols without ports, in the order in which they are tried. The order is a keyed
//! hash of the host's address: another process with the same key gives the host the same address.

use crate::nat::{Draining, siphash_word};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use sixway_wire::Prefix4;

/// Addresses that are tried for one session.
const TRIED: u64 = 64;

/// What the key is for, so that nothing else is hashed alike.
const PURPOSE: u64 = 0x706f_7274_6c65_7373;

/// The addresses of a pool.
#[derive(Debug)]
pub(super) struct OutsideAddresses {
    /// Each with the number of addresses before it.
    prefixes: Vec<(u64, Prefix4)>,
    total: u64,
    key: [u64; 2],
    draining: Draining,
    /// The addresses that are not being drained, while others are.
    rest: Option<Box<Self>>,
}

impl OutsideAddresses {
    pub(super) fn new(addresses: &[Prefix4], key: [u64; 2]) -> Self {
        let mut total = 0;
        let prefixes = addresses.iter().map(|prefix| {
            let before = total;
            total += 1 << (32 - prefix.length());
            (before, *prefix)
        });
        let prefixes = prefixes.collect();
        let key = [key[0] ^ PURPOSE, key[1]];
        Self { prefixes, total, key, draining: Draining::default(), rest: None }
    }

    /// These addresses are being drained: no host gets them.
    pub(super) fn drain(&mut self, draining: &Draining) {
        let prefixes: Vec<Prefix4> = self.prefixes.iter().map(|(_, prefix)| *prefix).collect();
        let rest = || Self::new(&draining.rest_of(&prefixes), [self.key[0] ^ PURPOSE, self.key[1]]);
        self.rest = (!draining.is_empty()).then(rest).map(Box::new);
        self.draining = draining.clone();
    }

    /// Those that a host may get, the first one first. While addresses are being drained, hosts of others keep theirs.
    pub(super) fn of(&self, host: Ipv4Addr) -> impl Iterator<Item = Ipv4Addr> {
        let all = self.all_of(host).filter(|address| !self.draining.contains(*address));
        all.chain(self.rest.iter().flat_map(move |rest| rest.all_of(host)))
    }

    fn all_of(&self, host: Ipv4Addr) -> impl Iterator<Item = Ipv4Addr> {
        let hash = siphash_word(self.key, host.to_bits().into());
        (0..self.total.min(TRIED)).map(move |more| self.address((hash % self.total + more) % self.total))
    }

    /// The address of this number.
    fn address(&self, number: u64) -> Ipv4Addr {
        let at = self.prefixes.partition_point(|(before, _)| *before <= number).saturating_sub(1);
        let (before, prefix) = self.prefixes[at];
        Ipv4Addr::from_bits(prefix.address().to_bits().wrapping_add((number - before) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn addresses(texts: &[&str], key: [u64; 2]) -> OutsideAddresses {
        let prefixes: Vec<Prefix4> = texts.iter().map(|text| text.parse().unwrap()).collect();
        OutsideAddresses::new(&prefixes, key)
    }

    #[test]
    fn no_host_gets_an_address_that_is_being_drained_and_others_keep_theirs() {
        let host = |n| Ipv4Addr::new(10, 0, 0, n);
        let mut some = addresses(&["192.0.2.0/24"], [1, 2]);
        let before: Vec<_> = (0..64).map(|n| some.of(host(n)).next().unwrap()).collect();
        let draining = Draining::of(&["192.0.2.0/25".parse().unwrap()]);
        some.drain(&draining);
        for (n, before) in (0..64).zip(before) {
            let after = some.of(host(n)).next().unwrap();
            assert!(!draining.contains(after));
            assert!(draining.contains(before) || after == before, "{before} became {after}");
        }
        some.drain(&Draining::of(&["192.0.2.0/24".parse().unwrap()]));
        assert_eq!(some.of(host(1)).next(), None);
    }

    #[test]
    fn a_host_may_get_every_address_once_in_an_order_that_the_key_decides() {
        let texts = ["192.0.2.0/30", "198.51.100.7/32"];
        let host = |n| Ipv4Addr::new(10, 0, 0, n);
        let one = addresses(&texts, [1, 2]);
        let all: Vec<_> = one.of(host(1)).collect();
        let distinct: BTreeSet<_> = all.iter().copied().collect();
        assert_eq!((all.len(), distinct.len()), (5, 5));
        assert!(
            distinct.contains(&Ipv4Addr::new(198, 51, 100, 7))
                && distinct.contains(&Ipv4Addr::new(192, 0, 2, 3))
        );
        assert!(addresses(&texts, [1, 2]).of(host(1)).eq(all), "the same in another process");
        let first = |key| (0..64).map(|n| addresses(&texts, key).of(host(n)).next()).collect::<Vec<_>>();
        assert_ne!(first([1, 2]), first([3, 2]));
        assert_ne!(first([1, 2]), first([1, 3]));
        let spread: BTreeSet<_> = first([1, 2]).into_iter().collect();
        assert_eq!(spread.len(), 5, "hosts spread over the addresses");
    }

    #[test]
    fn of_a_large_pool_a_bounded_number_is_tried_and_of_none_nothing() {
        assert_eq!(addresses(&["10.0.0.0/8"], [1, 2]).of(Ipv4Addr::LOCALHOST).count(), 64);
        assert_eq!(addresses(&[], [1, 2]).of(Ipv4Addr::LOCALHOST).count(), 0);
        assert_eq!(addresses(&["0.0.0.0/0"], [1, 2]).of(Ipv4Addr::LOCALHOST).count(), 64);
    }
}
