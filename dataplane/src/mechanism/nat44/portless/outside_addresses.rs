//! The outside addresses that an inside host may get for protocols without ports, in the order in which they are tried.
//!
//! Each inside host has an order of its own of all IPv4 addresses, and tries those of the pool in that order: rendezvous hashing (Thaler and
//! Ravishankar 1998). So when the pool grows or shrinks, a host keeps its address, unless that has left or a new one comes first. A keyed
//! hash decides the order: another process with the same key gives the host the same address.
//!
//! The order is that of random times, one for each address, independent and exponentially distributed. They need not be computed one by
//! one: the earliest time of a prefix is that of one of its sixteen parts, each with the same probability, and the other parts begin later by
//! exponentially distributed times of their own.
//!
//! ```text
//!     0.0.0.0/0                      0
//!       ├─ 0.0.0.0/4                 E / 2^28                E: of this host and 0.0.0.0/4, 1 on average
//!       ├─ 16.0.0.0/4                0                       the part with the earliest address
//!       │    ├─ 16.0.0.0/8           0
//!       │    └─ 17.0.0.0/8           E / 2^24
//!       └─ 32.0.0.0/4                E / 2^28
//! ```
//!
//! So the first address costs some dozens of steps for a pool of one prefix, however many addresses that has, and less than ten for each prefix
//! of a scattered pool.

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

/// Bits by which the parts of a prefix are longer than it, and how many parts that are.
const PART: u32 = 4;
const PARTS: u32 = 1 << PART;

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
    /// What was not examined yet, the earliest first.
    branches: BinaryHeap<Reverse<Branch>>,
}

impl Order<'_> {
    /// Adds a branch: of it, the longest prefix that contains all of its addresses in the pool.
    fn add(&mut self, mut branch: Branch) {
        while !self.is_whole(&branch) {
            // Where the first address is, the last one has to be, too.
            let child = self.nibble(&branch, self.prefixes[branch.from].address());
            if self.nibble(&branch, self.prefixes[branch.to - 1].last()) != child {
                break;
            }
            branch = Branch {
                from: branch.from,
                to: branch.to,
                ..self.part(&branch, self.random(&branch), child)
            };
        }
        self.branches.push(Reverse(branch));
    }

    /// Whether all addresses of a branch are in the pool.
    fn is_whole(&self, branch: &Branch) -> bool {
        self.prefixes[branch.from].length() <= branch.length
    }

    /// The part of a branch that an address is in.
    fn nibble(&self, branch: &Branch, address: Ipv4Addr) -> u32 {
        address.to_bits() >> (32 - u32::from(branch.length) - PART) & (PARTS - 1)
    }

    /// What decides a branch's parts.
    fn random(&self, branch: &Branch) -> u64 {
        mixed(self.host, u64::from(branch.first) << 8 | u64::from(branch.length))
    }

    /// A part of a branch, with as many prefixes. In units of 2^-56, so that the sum of all levels' times is below 2^64.
    fn part(&self, branch: &Branch, random: u64, number: u32) -> Branch {
        let length = branch.length + PART as u8;
        let later = match (random >> (64 - PART)) as u32 == number {
            true => 0,
            false => exponential(mixed(random, u64::from(number))) << length,
        };
        let first = branch.first | number << (32 - u32::from(length));
        Branch { time: branch.time + later, first, length, ..*branch }
    }

    /// Adds the parts of a branch that contain addresses of the pool.
    fn split(&mut self, branch: &Branch) {
        let (is_whole, random) = (self.is_whole(branch), self.random(branch));
        let mut from = branch.from;
        for number in 0..PARTS {
            let part = self.part(branch, random, number);
            if is_whole {
                self.branches.push(Reverse(part));
                continue;
            }
            let last = part.first | (u64::from(u32::MAX) >> part.length) as u32;
            let prefixes = &self.prefixes[from..branch.to];
            let to = from + prefixes.partition_point(|prefix| prefix.address().to_bits() <= last);
            if from < to {
                self.add(Branch { from, to, ..part });
            }
            // A range that continues beyond this part is also in the next one.
            from = if from < to && self.prefixes[to - 1].last().to_bits() > last { to - 1 } else { to };
        }
    }
}

impl Iterator for Order<'_> {
    type Item = Ipv4Addr;

    fn next(&mut self) -> Option<Ipv4Addr> {
        loop {
            let branch = self.branches.pop()?.0;
            if branch.length == 32 {
                return Some(Ipv4Addr::from_bits(branch.first));
            }
            self.split(&branch);
        }
    }
}

/// A pseudo-random number derived from two numbers. It cannot be predicted without the first, which is sufficient here.
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

    /// The branches that are examined before the first address is known.
    #[test]
    fn a_scattered_pool_costs_a_few_steps_for_each_of_its_prefixes() {
        let scattered: Vec<Prefix4> = (0..1_024_u32)
            .map(|n| Prefix4::holding(Ipv4Addr::from_bits(n.wrapping_mul(0x9e37_79b1)), 32))
            .collect();
        for (prefixes, most) in [(scattered, 2_048), (vec!["10.0.0.0/8".parse().unwrap()], 7)] {
            let all = OutsideAddresses::new(&prefixes, [1, 2]);
            for host in 0..20 {
                let mut order = Order { prefixes: &all.given, host, branches: BinaryHeap::new() };
                order.add(Branch { time: 0, first: 0, length: 0, from: 0, to: all.given.len() });
                let mut steps = 0;
                while let Some(Reverse(branch)) = order.branches.pop().filter(|it| it.0.length < 32) {
                    order.split(&branch);
                    steps += 1;
                }
                assert!(steps <= most, "{steps} steps");
            }
        }
    }

    /// A large prefix of which some addresses are drained is many small ones.
    #[test]
    fn what_a_pool_is_written_as_does_not_matter() {
        let whole = addresses(&["192.0.2.0/25"], [1, 2]);
        let halves = addresses(
            &[
                "192.0.2.0/27",
                "192.0.2.32/31",
                "192.0.2.34/31",
                "192.0.2.36/30",
                "192.0.2.40/29",
                "192.0.2.48/28",
                "192.0.2.64/26",
            ],
            [1, 2],
        );
        for n in 0..200 {
            let host = Ipv4Addr::from_bits(0x0a00_0000 + n);
            assert!(whole.of(host).eq(halves.of(host)), "{host}");
        }
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
