//! Sets of addresses, of many prefixes, in which an address is found by bisection.

use sixway_wire::{Prefix4, Prefix6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses of both families.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses {
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
}

impl Addresses {
    /// All addresses within the prefixes.
    pub(super) fn new(v4: &[Prefix4], v6: &[Prefix6]) -> Self {
        Self {
            v4: merged(v4.iter().map(|p| (p.address().to_bits(), p.last().to_bits())).collect()),
            v6: merged(v6.iter().map(|p| (p.address().to_bits(), p.last().to_bits())).collect()),
        }
    }

    /// Whether it is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// Whether the address is one of them; an IPv4-mapped one counts as IPv4.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => self.contains4(address),
            IpAddr::V6(address) => self.contains6(address),
        }
    }

    /// Whether the IPv4 address is one of them.
    pub(super) fn contains4(&self, address: Ipv4Addr) -> bool {
        holds(&self.v4, address.to_bits())
    }

    /// Whether the IPv6 address is one of them, an IPv4-mapped one as it is written.
    pub(super) fn contains6(&self, address: Ipv6Addr) -> bool {
        holds(&self.v6, address.to_bits())
    }
}

/// Ascending, without overlaps. Prefixes overlap only if one holds the other, so the wider one comes first and swallows those within it.
fn merged<T: Ord + Copy>(mut ranges: Vec<(T, T)>) -> Vec<(T, T)> {
    ranges.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    ranges.dedup_by(|later, earlier| later.1 <= earlier.1);
    ranges
}

fn holds<T: Ord + Copy>(ranges: &[(T, T)], address: T) -> bool {
    let after = ranges.partition_point(|range| range.0 <= address);
    after > 0 && address <= ranges[after - 1].1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_set_holds_nothing() {
        let none = Addresses::default();
        assert!(none.is_empty() && !none.contains(Ipv4Addr::LOCALHOST.into()));
    }

    #[test]
    fn an_ipv4_mapped_client_is_an_ipv4_client() {
        let set = Addresses::new(&["192.0.2.0/24".parse().unwrap()], &["::ffff:0:0/96".parse().unwrap()]);
        assert!(set.contains("::ffff:192.0.2.1".parse().unwrap()));
        assert!(!set.contains("::ffff:198.51.100.1".parse().unwrap()));
        assert!(set.contains6("::ffff:198.51.100.1".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn bisection_finds_what_a_look_at_each_prefix_finds(
            prefixes in prop::collection::vec((0u32..=255, 24u8..=32), 0..12), address in 0u32..=255
        ) {
            let v4: Vec<_> = prefixes.iter().map(|(bits, length)| Prefix4::holding(Ipv4Addr::from_bits(*bits), *length)).collect();
            let v6: Vec<_> = prefixes.iter().map(|(bits, length)| Prefix6::holding(Ipv6Addr::from_bits(u128::from(*bits)), length + 96)).collect();
            let set = Addresses::new(&v4, &v6);
            let (four, six) = (Ipv4Addr::from_bits(address), Ipv6Addr::from_bits(u128::from(address)));
            prop_assert_eq!(set.contains4(four), v4.iter().any(|prefix| prefix.contains(four)));
            prop_assert_eq!(set.contains6(six), v6.iter().any(|prefix| prefix.contains(six)));
        }
    }
}
