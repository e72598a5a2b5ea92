//! Deterministic NAT (RFC 7422): the configuration determines the block of ports of a subscriber.
//!
//! ```text
//!     subscribers, by address      0       1       2       3       4      …
//!     192.0.2.1                  1024…   1536…   2048…                        three blocks at each address, for example
//!     192.0.2.2                                          1024…   1536…    …
//! ```
//!
//! Subscriber `n` has block `n mod b` of address `n / b`, where `b` is the number of whole blocks of an address: the sequential algorithm of
//! RFC 7422 §2. Prefixes of subscribers and of the pool count in ascending order, each address once.

use super::block_policy::{LARGEST_BLOCK, SMALLEST_BLOCK, whole_blocks};
use core::net::{Ipv4Addr, Ipv6Addr};
use core::ops::RangeInclusive;
use sixway_wire::{Endpoint4, Prefix4, Prefix6};

/// The mapping. Inside addresses of IPv4 go by their IPv4-mapped addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deterministic {
    /// Prefixes of subscribers, ascending, with the number of subscribers before each.
    inside: Vec<(u64, Prefix6)>,
    /// Length of a subscriber's prefix, as that of an IPv6 address.
    bits: u8,
    subscribers: u64,
    /// The same of the pool and its addresses.
    pool: Vec<(u64, Prefix6)>,
    /// The first ports of an address's blocks.
    firsts: Vec<u16>,
    size: u16,
}

/// Why the mapping cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeterministicFault {
    /// No prefix of subscribers is given, or one is longer than that of a subscriber.
    Inside,
    /// There are more subscribers than blocks.
    TooManySubscribers {
        /// Subscribers.
        subscribers: u64,
        /// Blocks of the pool.
        blocks: u64,
    },
}

impl Deterministic {
    /// The mapping of these prefixes, whose subscribers have prefixes of `bits` bits, to blocks of `size` ports; 0: the largest that suffice.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn new(
        inside: &[Prefix6],
        bits: u8,
        (pool, ports): (&[Prefix4], &[RangeInclusive<u16>]),
        size: u16,
    ) -> Result<Self, DeterministicFault> {
        let (inside, subscribers) = counted(inside, bits).ok_or(DeterministicFault::Inside)?;
        let mapped =
            |prefix: &Prefix4| Prefix6::holding(prefix.address().to_ipv6_mapped(), 96 + prefix.length());
        let pool: Vec<Prefix6> = pool.iter().map(mapped).collect();
        let (pool, addresses) =
            counted(&pool, 128).ok_or(DeterministicFault::TooManySubscribers { subscribers, blocks: 0 })?;
        let mut fault = DeterministicFault::Inside;
        let smallest = if size == 0 { SMALLEST_BLOCK } else { size };
        let mut size = if size == 0 { LARGEST_BLOCK } else { size };
        while size >= smallest {
            let firsts: Vec<u16> = whole_blocks(ports, size).map(|block| *block.start()).collect();
            let blocks = addresses * firsts.len() as u64;
            if subscribers <= blocks {
                return Ok(Self { inside, bits, subscribers, pool, firsts, size });
            }
            fault = DeterministicFault::TooManySubscribers { subscribers, blocks };
            size /= 2;
        }
        Err(fault)
    }

    /// Ports of a block.
    pub const fn size(&self) -> u16 {
        self.size
    }

    /// Number of subscribers.
    pub const fn subscribers(&self) -> u64 {
        self.subscribers
    }

    /// Blocks of an address that subscribers can have.
    pub fn blocks_per_address(&self) -> usize {
        self.firsts.len()
    }

    /// The block of an inside address: its outside address and first port. `None`: it is not a subscriber's.
    pub fn block_of(&self, inside: Ipv6Addr) -> Option<(Ipv4Addr, u16)> {
        let number = number_of(&self.inside, self.bits, inside)?;
        let count = self.firsts.len() as u64;
        let address = numbered(&self.pool, 128, number / count)?.to_ipv4_mapped()?;
        Some((address, self.firsts[(number % count) as usize]))
    }

    /// The subscriber that an outside port belongs to: the first address of its prefix, and the length of that.
    pub fn subscriber_of(&self, outside: Endpoint4) -> Option<(Ipv6Addr, u8)> {
        let block = self.firsts.binary_search(&(outside.port & !(self.size - 1))).ok()? as u64;
        let address = number_of(&self.pool, 128, outside.address.to_ipv6_mapped())?;
        let number = address * self.firsts.len() as u64 + block;
        if number >= self.subscribers {
            return None;
        }
        Some((numbered(&self.inside, self.bits, number)?, self.bits))
    }
}

/// The number of the unit of `bits` bits that an address is in.
fn number_of(prefixes: &[(u64, Prefix6)], bits: u8, address: Ipv6Addr) -> Option<u64> {
    let behind = prefixes.partition_point(|(_, prefix)| prefix.address() <= address);
    let (before, prefix) = prefixes[..behind].last().filter(|(_, prefix)| prefix.contains(address))?;
    Some(before + units(address.to_bits() - prefix.address().to_bits(), bits) as u64)
}

/// The first address of a unit.
fn numbered(prefixes: &[(u64, Prefix6)], bits: u8, number: u64) -> Option<Ipv6Addr> {
    let behind = prefixes.partition_point(|(before, _)| *before <= number);
    let (before, prefix) = prefixes[..behind].last()?;
    let place = u128::from(number - before).checked_shl(128 - u32::from(bits)).unwrap_or(0);
    Some(Ipv6Addr::from_bits(prefix.address().to_bits() + place))
}

/// How many units of `bits` bits an offset is.
fn units(offset: u128, bits: u8) -> u128 {
    offset.checked_shr(128 - u32::from(bits)).unwrap_or(0)
}

/// The prefixes in ascending order, those inside others left out, with the number of subscribers before each; and all subscribers.
fn counted(inside: &[Prefix6], bits: u8) -> Option<(Vec<(u64, Prefix6)>, u64)> {
    let mut sorted = inside.to_vec();
    sorted.sort_by_key(|prefix| (prefix.address(), prefix.length()));
    let (mut prefixes, mut subscribers) = (Vec::<(u64, Prefix6)>::new(), 0u64);
    for prefix in sorted {
        if prefixes.last().is_some_and(|(_, last)| last.contains(prefix.address())) {
            continue;
        }
        prefixes.push((subscribers, prefix));
        let more = 1u64.checked_shl(bits.checked_sub(prefix.length())?.into()).unwrap_or(u64::MAX);
        subscribers = subscribers.saturating_add(more);
    }
    (!prefixes.is_empty()).then_some((prefixes, subscribers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mapping(
        inside: &[Prefix6],
        bits: u8,
        pool: &[&str],
        size: u16,
    ) -> Result<Deterministic, DeterministicFault> {
        let pool: Vec<Prefix4> = pool.iter().map(|it| it.parse().unwrap()).collect();
        Deterministic::new(inside, bits, (&pool, &[1_024..=65_535]), size)
    }

    fn prefixes(texts: &[&str]) -> Vec<Prefix6> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn subscribers_have_the_blocks_of_each_address_in_turn() {
        let inside = prefixes(&["::ffff:10.0.0.0/120"]);
        let mapping = mapping(&inside, 128, &["192.0.2.4/31", "192.0.2.0/31"], 512).unwrap();
        assert_eq!((mapping.subscribers(), mapping.blocks_per_address()), (256, 126));
        let block =
            |text: &str| mapping.block_of(text.parse().unwrap()).map(|(a, port)| (a.to_string(), port));
        assert_eq!(block("::ffff:10.0.0.0"), Some(("192.0.2.0".into(), 1_024)));
        assert_eq!(block("::ffff:10.0.0.1"), Some(("192.0.2.0".into(), 1_536)));
        assert_eq!(block("::ffff:10.0.0.125"), Some(("192.0.2.0".into(), 65_024)));
        assert_eq!(block("::ffff:10.0.0.126"), Some(("192.0.2.1".into(), 1_024)));
        assert_eq!(block("::ffff:10.0.0.252"), Some(("192.0.2.4".into(), 1_024)));
        assert_eq!(block("::ffff:10.0.1.0"), None);
        let who = |text: &str, port| {
            let found = mapping.subscriber_of(Endpoint4::new(text.parse().unwrap(), port));
            found.map(|(address, bits)| format!("{address}/{bits}"))
        };
        assert_eq!(who("192.0.2.1", 1_535), Some("::ffff:10.0.0.126/128".into()));
        assert_eq!(who("192.0.2.4", 65_535), None, "of no subscriber");
        assert_eq!((who("192.0.2.1", 80), who("192.0.2.3", 2_000)), (None, None));
        // The last subscriber's last port, and the next one.
        assert_eq!(who("192.0.2.4", 3_071), Some("::ffff:10.0.0.255/128".into()));
        assert_eq!(who("192.0.2.4", 3_072), None);
    }

    #[test]
    fn the_largest_blocks_that_suffice_are_taken_unless_a_size_is_given() {
        let inside = prefixes(&["2001:db8::/56"]);
        let new = |inside: &[Prefix6], bits, size| mapping(inside, bits, &["192.0.2.0/28"], size);
        assert_eq!(new(&inside, 64, 0).unwrap().size(), 2_048);
        assert_eq!(
            new(&inside, 64, 4_096),
            Err(DeterministicFault::TooManySubscribers { subscribers: 256, blocks: 240 })
        );
        assert_eq!(
            new(&prefixes(&["2001:db8::/32"]), 64, 0).unwrap_err(),
            DeterministicFault::TooManySubscribers { subscribers: 1 << 32, blocks: 16 * 1_008 }
        );
        assert_eq!(new(&[], 64, 0), Err(DeterministicFault::Inside));
        let longer = prefixes(&["2001:db8::/65"]);
        assert_eq!(new(&longer, 64, 0), Err(DeterministicFault::Inside));
        assert!(new(&prefixes(&["::/0"]), 128, 0).is_err());
        assert!(new(&prefixes(&["::/1", "8000::/1"]), 64, 0).is_err(), "2^64 are too many, and not none");
    }

    proptest! {
        #[test]
        fn a_block_is_one_subscribers_and_leads_back_to_it(
            networks in prop::collection::vec((0u32..4, 20u8..=30), 1..4),
            port in 0u16..512,
        ) {
            let inside: Vec<Prefix6> = networks
                .iter()
                .map(|(n, length)| {
                    let address = Ipv4Addr::from_bits(0x0a00_0000 | n << 12).to_ipv6_mapped();
                    Prefix6::holding(address, 96 + length)
                })
                .collect();
            let mapping = mapping(&inside, 128, &["192.0.2.0/24", "198.51.100.0/24"], 64).unwrap();
            let mut seen = std::collections::BTreeSet::new();
            for bits in 0x0a00_0000..0x0a00_4000u32 {
                let host = Ipv4Addr::from_bits(bits).to_ipv6_mapped();
                let block = mapping.block_of(host);
                prop_assert_eq!(block.is_some(), inside.iter().any(|prefix| prefix.contains(host)));
                if let Some((address, first)) = block {
                    prop_assert!(seen.insert((address, first)));
                    let at = Endpoint4::new(address, first + port % 64);
                    prop_assert_eq!(mapping.subscriber_of(at), Some((host, 128)));
                }
            }
            prop_assert_eq!(seen.len() as u64, mapping.subscribers());
        }
    }
}
