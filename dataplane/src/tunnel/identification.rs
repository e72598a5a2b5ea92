//! Identifications of IPv4 packets that may be fragmented on their way: no two of one source, destination and protocol may be
//! alike while both can be under way (RFC 6864 §4.3).
//!
//! Each worker counts in a part of the 16 bits that is its own. Destinations share a few hundred counters by a hash: so a counter comes
//! round the later, the more destinations there are, and what one destination sees tells little of the others (RFC 6864 §7).

use crate::nat::siphash_word;
use crate::verdict::WorkerId;
use core::net::{Ipv4Addr, Ipv6Addr};

/// Counters that the destinations share.
const COUNTERS: usize = 256;

/// The identifications that a worker gives.
#[derive(Clone, Debug)]
pub struct Identifications {
    next: Box<[u16; COUNTERS]>,
    /// The same of IPv6, whose 32 bits begin with the worker's own (RFC 7739 §5.2).
    next6: Box<[u32; COUNTERS]>,
    /// The worker's first identification, and the bits that count: all are a power of two.
    first: u16,
    mask: u16,
    multiplier: u64,
}

impl Identifications {
    /// Those of one of `workers` workers. `seed` decides where they start and who shares a counter.
    pub fn new(worker: WorkerId, workers: u8, seed: u64) -> Self {
        let parts = u32::from(workers.max(1)).next_power_of_two();
        let span = 0x1_0000 / parts;
        // One-way: what a destination sees must not tell the seed, by which those that share a counter could be found.
        let key = [seed, !seed];
        let drawn = |at: usize| siphash_word(key, at as u64);
        let start = |at: usize| (drawn(at) as u32 % span) as u16;
        Self {
            next6: Box::new(core::array::from_fn(|at| (drawn(at) >> 32) as u32)),
            next: Box::new(core::array::from_fn(start)),
            first: (u32::from(worker.0) % parts * span) as u16,
            mask: (span - 1) as u16,
            multiplier: drawn(COUNTERS) | 1,
        }
    }

    /// `count` consecutive identifications for packets to `destination`; this is the first of them.
    #[inline]
    pub const fn reserve(&mut self, destination: Ipv4Addr, count: u32) -> u16 {
        let at = (destination.to_bits() as u64).wrapping_mul(self.multiplier) >> 56;
        let at = at as usize % COUNTERS;
        let (first, next) = self.counted_on(self.next[at], count);
        self.next[at] = next;
        first
    }

    /// `count` consecutive identifications for the Fragment headers of IPv6 packets to `destination` (RFC 8200 §4.5); this is the
    /// first of them. They do not run on into the next worker's.
    pub const fn reserve6(&mut self, destination: Ipv6Addr, count: u32) -> u32 {
        let bits = destination.to_bits();
        let folded = (bits >> 96 ^ bits >> 64 ^ bits >> 32 ^ bits) as u32;
        let at = ((folded as u64).wrapping_mul(self.multiplier) >> 56) as usize % COUNTERS;
        let mask = (self.mask as u32) << 16 | 0xffff;
        let next = self.next6[at] & mask;
        let first = if next > mask - count.saturating_sub(1) { 0 } else { next };
        self.next6[at] = first.wrapping_add(count);
        (self.first as u32) << 16 | first
    }

    /// The first of `count` identifications and the counter behind them. They do not run on into the next worker's.
    #[inline(always)]
    const fn counted_on(&self, next: u16, count: u32) -> (u16, u16) {
        let start = if next as u32 + count > self.mask as u32 + 1 { 0 } else { next };
        (self.first.wrapping_add(start), start.wrapping_add(count as u16) & self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const TO: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

    #[test]
    fn all_65_536_are_given_before_one_comes_again() {
        let mut all = Identifications::new(WorkerId(0), 1, 0x1234_5678_9abc_def0);
        let given: BTreeSet<u16> = (0..65_536).map(|_| all.reserve(TO, 1)).collect();
        assert_eq!(given.len(), 65_536);
    }

    #[test]
    fn workers_never_give_the_same() {
        for workers in [2, 3, 4, 255] {
            let mut given = BTreeSet::new();
            let parts = u32::from(workers).next_power_of_two();
            for worker in 0..workers {
                let mut own = Identifications::new(WorkerId(worker), workers, 0xfeed_beef_0bad_cafe);
                for _ in 0..0x1_0000 / parts {
                    assert!(given.insert(own.reserve(TO, 1)), "worker {worker} of {workers}");
                }
            }
        }
    }

    #[test]
    fn those_of_a_gso_packet_are_consecutive_and_the_workers_own() {
        let mut own = Identifications::new(WorkerId(1), 4, 77);
        for count in [44, 1, 1_000, 3, 16_000, 16_000, 64] {
            let first = u32::from(own.reserve(TO, count));
            assert!((0x4000..=0x8000 - count).contains(&first), "{first:#x} and {count} on");
        }
    }

    #[test]
    fn those_of_ipv6_are_the_workers_own_and_tell_nothing_of_other_destinations() {
        let to = |last: u128| Ipv6Addr::from_bits(0x2001_0db8 << 96 | last);
        for workers in [1, 2, 4] {
            let mut own = Identifications::new(WorkerId(workers - 1), workers, 0x1234_5678_9abc_def0);
            let span = u32::MAX / u32::from(workers);
            own.next6.fill(span - 2);
            let end = u32::MAX - 2;
            assert_eq!(own.reserve6(to(1), 1), end, "{workers}");
            assert_eq!(own.reserve6(to(1), 44), end - (span - 2), "{workers}: all of a GSO packet's fit");
            assert_eq!(own.reserve6(to(1), 1), end - (span - 2) + 44, "{workers}");
            assert_eq!(own.reserve6(to(2), 2), end, "{workers}: another destination's");
        }
        let mut all = Identifications::new(WorkerId(0), 1, 0x1234_5678_9abc_def0);
        assert_ne!(all.reserve6(to(1), 1).abs_diff(all.reserve6(to(2), 1)), 1);
    }

    #[test]
    fn traffic_to_others_hardly_ever_moves_a_destinations_counter() {
        let mut all = Identifications::new(WorkerId(0), 1, 0x1234_5678_9abc_def0);
        let before = all.reserve(TO, 1);
        for other in 0..64 {
            all.reserve(Ipv4Addr::from_bits(0x0a00_0000 + other * 7_919), 1);
        }
        let moved = all.reserve(TO, 1).wrapping_sub(before);
        assert!(moved < 4, "{moved}");
    }
}
