//! The outside addresses that an inside host may get for protocols without ports, in the order in which they are tried.
//!
//! Each inside host has an order of its own of all IPv4 addresses, and tries those of the pool in that order: rendezvous hashing (Thaler and
//! Ravishankar 1998). So when the pool grows or shrinks, a host keeps its address, unless that has left or a new one comes first. A keyed
//! hash decides the order: another process with the same key gives the host the same address.
//!
//! The order is that of random times, one for each address, independent and exponentially distributed. They need not be computed one by
//! one: the earliest time of a prefix is that of one of its halves, each with the same probability, and the other half begins later by an
//! exponentially distributed time of its own.
//!
//! ```text
//!     0.0.0.0/0                      0
//!       ├─ 0.0.0.0/1                 0                       the half with the earliest address
//!       │    ├─ 0.0.0.0/2            E / 2^30                E: of this host and 0.0.0.0/1, 1 on average
//!       │    └─ 64.0.0.0/2           0
//!       └─ 128.0.0.0/1               E / 2^31
//! ```
//!
//! So the first address costs some dozens of steps for each prefix of the pool, however many addresses that has.

use crate::nat::{Draining, siphash_word};
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::net::Ipv4Addr;
use sixway_wire::Prefix4;

/// Addresses that are tried for one session.
const TRIED: usize = 64;

/// What the key is for, so that nothing else is hashed alike.
const PURPOSE: u64 = 0x706f_7274_6c65_7373;

/// Bits behind the point of an exponentially distributed time.
const FRACTION: u32 = 24;

/// The addresses of a pool.
#[derive(Debug)]
pub(super) struct OutsideAddresses {
    /// In order, without overlaps.
    prefixes: Vec<Prefix4>,
    /// Those that are not being drained.
    given: Vec<Prefix4>,
    key: [u64; 2],
}

impl OutsideAddresses {
    pub(super) fn new(addresses: &[Prefix4], key: [u64; 2]) -> Self {
        let mut prefixes = addresses.to_vec();
        prefixes.sort_by_key(|prefix| (prefix.address(), prefix.length()));
        prefixes.dedup_by(|next, kept| kept.contains(next.address()));
        Self { given: prefixes.clone(), prefixes, key: [key[0] ^ PURPOSE, key[1]] }
    }

    /// These addresses are being drained: no host gets them.
    pub(super) fn drain(&mut self, draining: &Draining) {
        self.given = draining.rest_of(&self.prefixes);
    }

    /// Those that a host may get, the first one first.
    pub(super) fn of(&self, host: Ipv4Addr) -> impl Iterator<Item = Ipv4Addr> {
        let host = siphash_word(self.key, host.to_bits().into());
        let mut order = Order { prefixes: &self.given, host, branches: BinaryHeap::new() };
        if !self.given.is_empty() {
            order.add(Branch { time: 0, first: 0, length: 0, from: 0, to: self.given.len() });
        }
        order.take(TRIED)
    }
}

/// A part of the address space that contains addresses of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Branch {
    /// No address in it comes earlier.
    time: u64,
    first: u32,
    length: u8,
    /// The prefixes with addresses in it.
    from: usize,
    to: usize,
}

/// The order of one host.
struct Order<'a> {
    prefixes: &'a [Prefix4],
    /// A hash of it.
    host: u64,
    /// What was not looked into yet, the earliest first.
    branches: BinaryHeap<Reverse<Branch>>,
}

impl Order<'_> {
    /// Adds a branch: of it, the longest prefix that contains all of its addresses in the pool.
    fn add(&mut self, mut branch: Branch) {
        while !self.is_whole(&branch) {
            match self.halves(&branch) {
                [Some(half), None] | [None, Some(half)] => branch = half,
                [Some(_), Some(_)] | [None, None] => break,
            }
        }
        self.branches.push(Reverse(branch));
    }

    /// Whether all addresses of a branch are in the pool.
    fn is_whole(&self, branch: &Branch) -> bool {
        self.prefixes[branch.from].length() <= branch.length
    }

    /// The half of a branch with the earliest address, and the other one; each if it contains addresses of the pool.
    fn halves(&self, branch: &Branch) -> [Option<Branch>; 2] {
        let Branch { time, first, length: above, from, to } = *branch;
        let length = above + 1;
        let random = mixed(self.host, u64::from(first) << 8 | u64::from(length));
        let middle = first | 1 << (32 - u32::from(length));
        let split = || {
            let lower = self.prefixes[from..to].partition_point(|prefix| prefix.address().to_bits() < middle);
            [(from, from + lower), (from + lower, to)]
        };
        let [lower, upper] = if self.is_whole(branch) { [(from, to); 2] } else { split() };
        let (earlier, later) = match random & 1 {
            0 => ((first, lower), (middle, upper)),
            _ => ((middle, upper), (first, lower)),
        };
        let half =
            |time, (first, (from, to))| (from < to).then_some(Branch { time, first, length, from, to });
        // In units of 2^-56, so that the sum of all 32 is below 2^64.
        [half(time, earlier), half(time + (exponential(random) << length), later)]
    }
}

impl Iterator for Order<'_> {
    type Item = Ipv4Addr;

    fn next(&mut self) -> Option<Ipv4Addr> {
        let mut branch = self.branches.pop()?.0;
        while branch.length < 32 {
            let [earlier, later] = self.halves(&branch);
            later.into_iter().for_each(|later| self.add(later));
            // Nothing that waits comes before the earlier half.
            branch = match earlier {
                Some(earlier) => earlier,
                None => self.branches.pop()?.0,
            };
        }
        Some(Ipv4Addr::from_bits(branch.first))
    }
}

/// A random number that follows from two. Whoever does not know the first cannot foretell it; it need not withstand more than that.
fn mixed(host: u64, number: u64) -> u64 {
    let mut bits = host ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        bits = (bits ^ bits >> 31).wrapping_mul(factor);
    }
    bits ^ bits >> 32
}

/// An exponentially distributed number, with [`FRACTION`] bits behind the point: the negative binary logarithm of a random number between 0
/// and 1, to which a parabola comes as close as 0.008. At most 2^30.
fn exponential(random: u64) -> u64 {
    let random = random | 1;
    let zeros = random.leading_zeros();
    let mantissa = (random << zeros << 1) >> (64 - FRACTION);
    let bend = ((mantissa * ((1 << FRACTION) - mantissa)) >> FRACTION) * 11 / 32;
    (u64::from(zeros + 1) << FRACTION) - mantissa - bend
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn addresses(texts: &[&str], key: [u64; 2]) -> OutsideAddresses {
        let prefixes: Vec<Prefix4> = texts.iter().map(|text| text.parse().unwrap()).collect();
        OutsideAddresses::new(&prefixes, key)
    }

    #[test]
    fn no_host_gets_an_address_that_is_being_drained_and_others_keep_theirs() {
        let host = |n| Ipv4Addr::new(10, 0, 0, n);
        let mut some = addresses(&["192.0.2.0/24"], [1, 2]);
        let before: Vec<_> = (0..64).map(|n| some.of(host(n)).next().unwrap()).collect();
        let first = before.clone();
        let draining = Draining::of(&["192.0.2.0/25".parse().unwrap()]);
        some.drain(&draining);
        for (n, before) in (0..64).zip(before) {
            let after = some.of(host(n)).next().unwrap();
            assert!(!draining.contains(after));
            assert!(draining.contains(before) || after == before, "{before} became {after}");
        }
        some.drain(&Draining::of(&["192.0.2.0/24".parse().unwrap()]));
        assert_eq!(some.of(host(1)).next(), None);
        some.drain(&Draining::default());
        assert!((0..64).map(|n| some.of(host(n)).next().unwrap()).eq(first));
    }

    /// Whatever a pool consists of: of hosts, only those change whose address has left, or who get a new one.
    fn only_these_change(before: &[&str], after: &[&str]) -> (usize, usize) {
        let (old, new) = (addresses(before, [1, 2]), addresses(after, [1, 2]));
        let is_in = |texts: &[&str], address: Ipv4Addr| {
            texts.iter().any(|text| text.parse::<Prefix4>().unwrap().contains(address))
        };
        let (mut kept, mut changed) = (0, 0);
        for n in 0..4_000 {
            let host = Ipv4Addr::from_bits(0x0a00_0000 + n);
            let (was, is) = (old.of(host).next().unwrap(), new.of(host).next().unwrap());
            if was == is {
                kept += 1;
                continue;
            }
            changed += 1;
            assert!(!is_in(after, was) || !is_in(before, is), "{host}: {was} became {is}");
            // The order of what both pools have is the same, too.
            let common = |all: &OutsideAddresses| {
                let both = all.of(host).filter(|it| is_in(before, *it) && is_in(after, *it));
                both.take(8).collect::<Vec<_>>()
            };
            let (some, others) = (common(&old), common(&new));
            let common = some.len().min(others.len());
            assert_eq!(some[..common], others[..common]);
        }
        (kept, changed)
    }

    #[test]
    fn when_a_pool_grows_only_hosts_that_get_a_new_address_change() {
        let (_, changed) = only_these_change(&["192.0.2.0/30"], &["192.0.2.0/30", "198.51.100.7/32"]);
        assert!((700..900).contains(&changed), "a fifth of 4,000: {changed}");
        let (_, changed) = only_these_change(&["198.51.100.0/25"], &["198.51.100.0/24"]);
        assert!((1_850..2_150).contains(&changed), "half of them: {changed}");
        let (kept, _) = only_these_change(&["10.0.0.0/8"], &["10.0.0.0/8", "192.0.2.0/24"]);
        assert!(kept > 3_990, "{kept}");
    }

    #[test]
    fn when_a_pool_shrinks_only_hosts_whose_address_has_left_change() {
        let (_, changed) =
            only_these_change(&["192.0.2.0/29"], &["192.0.2.0/30", "192.0.2.4/32", "192.0.2.6/31"]);
        assert!((420..580).contains(&changed), "an eighth of 4,000: {changed}");
        let (kept, _) = only_these_change(&["10.0.0.0/8"], &["10.0.0.0/9", "10.192.0.0/10"]);
        assert!((2_850..3_150).contains(&kept), "three quarters of 4,000: {kept}");
    }

    #[test]
    fn every_address_gets_as_many_hosts_whatever_its_neighbours_are() {
        let texts = ["10.0.0.0/29", "10.0.0.9/32", "192.0.2.1/32", "203.0.113.0/31"];
        let all = addresses(&texts, [1, 2]);
        let mut hosts = BTreeMap::<Ipv4Addr, u32>::new();
        for n in 0..12_000 {
            *hosts.entry(all.of(Ipv4Addr::from_bits(0x0a00_0000 + n)).next().unwrap()).or_default() += 1;
        }
        assert_eq!(hosts.len(), 12);
        assert!(hosts.values().all(|count| (880..1_120).contains(count)), "{hosts:?}");
    }

    #[test]
    fn overlapping_prefixes_are_one() {
        let mut all = addresses(&["192.0.2.4/32", "192.0.2.0/29", "192.0.2.6/31", "192.0.2.0/30"], [1, 2]);
        let distinct: BTreeSet<_> = all.of(Ipv4Addr::LOCALHOST).collect();
        assert_eq!((all.of(Ipv4Addr::LOCALHOST).count(), distinct.len()), (8, 8));
        let mut plain = addresses(&["192.0.2.0/29"], [1, 2]);
        assert!(all.of(Ipv4Addr::LOCALHOST).eq(plain.of(Ipv4Addr::LOCALHOST)));
        let draining = Draining::of(&["192.0.2.1/32".parse().unwrap()]);
        all.drain(&draining);
        plain.drain(&draining);
        assert_eq!(all.of(Ipv4Addr::LOCALHOST).count(), 7);
        assert!(all.of(Ipv4Addr::LOCALHOST).eq(plain.of(Ipv4Addr::LOCALHOST)));
    }

    #[test]
    fn exponential_times_are_those_of_a_logarithm_and_never_too_large() {
        assert_eq!(exponential(0), 1 << 30);
        assert!(exponential(u64::MAX) < 1 << 10);
        let mut sum = 0.0;
        for n in 0..100_000u64 {
            let random = siphash_word([1, 2], n);
            let expected = -(random as f64 / 2f64.powi(64)).log2();
            let time = exponential(random) as f64 / f64::from(1 << FRACTION);
            assert!((time - expected).abs() < 0.01, "{time} and {expected}");
            sum += time;
        }
        assert!((1.42..1.47).contains(&(sum / 100_000.0)), "1 / ln 2 on average: {sum}");
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
