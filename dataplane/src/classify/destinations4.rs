//! IPv4 prefixes that have owners: mechanisms, of the addresses of pools and of the prefixes behind tunnels.

use crate::verdict::MechanismId;
use core::net::Ipv4Addr;
use sixway_wire::Prefix4;

/// Up to this many prefixes are compared one by one; more are searched by bisection.
const FEW: usize = 8;

/// IPv4 prefixes and their owners. The longest prefix that holds an address owns it; of two alike, the first.
#[derive(Clone, Debug)]
pub struct Destinations4<Owner = MechanismId> {
    /// Longest first, where there are few.
    few: Vec<Entry<Owner>>,
    /// Otherwise: the first address of each range and its owner, ascending. The first range starts at 0.
    many: Vec<(u32, Option<Owner>)>,
}

impl<Owner> Default for Destinations4<Owner> {
    fn default() -> Self {
        Self { few: Vec::new(), many: Vec::new() }
    }
}

/// A prefix as it is compared.
#[derive(Clone, Copy, Debug)]
struct Entry<Owner> {
    bits: u32,
    mask: u32,
    owner: Owner,
}

impl<Owner> Entry<Owner> {
    #[inline(always)]
    const fn holds(&self, bits: u32) -> bool {
        bits & self.mask == self.bits
    }
}

impl<Owner: Copy> Destinations4<Owner> {
    /// The prefixes with their owners, in the order of the configuration.
    pub fn new(mut prefixes: Vec<(Prefix4, Owner)>) -> Self {
        prefixes.sort_by_key(|(prefix, _)| core::cmp::Reverse(prefix.length()));
        let many = if prefixes.len() > FEW { ranges(&prefixes) } else { Vec::new() };
        let entry = |(prefix, owner): (Prefix4, Owner)| Entry {
            bits: prefix.address().to_bits(),
            mask: prefix.mask(),
            owner,
        };
        let few = if many.is_empty() { prefixes.into_iter().map(entry).collect() } else { Vec::new() };
        Self { few, many }
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.few.is_empty() && self.many.is_empty()
    }

    /// The owner of an address.
    #[inline(always)]
    pub fn owner(&self, address: Ipv4Addr) -> Option<Owner> {
        let bits = address.to_bits();
        if self.many.is_empty() {
            return self.few.iter().find(|entry| entry.holds(bits)).map(|entry| entry.owner);
        }
        self.owner_among_many(bits)
    }

    #[inline(never)]
    fn owner_among_many(&self, bits: u32) -> Option<Owner> {
        let behind = self.many.partition_point(|(first, _)| *first <= bits);
        self.many.get(behind.checked_sub(1)?)?.1
    }
}

/// The ranges into which prefixes, longest first, cut the addresses, each with its owner.
fn ranges<Owner: Copy>(prefixes: &[(Prefix4, Owner)]) -> Vec<(u32, Option<Owner>)> {
    let first = |prefix: &Prefix4| prefix.address().to_bits();
    let behind = |prefix: &Prefix4| prefix.last().to_bits().checked_add(1);
    let mut starts: Vec<u32> = vec![0];
    starts.extend(prefixes.iter().flat_map(|(prefix, _)| [Some(first(prefix)), behind(prefix)]).flatten());
    starts.sort_unstable();
    starts.dedup();
    // Prefixes nest or are apart: those that hold a range's start are a stack, and the last one is the longest.
    let mut ascending: Vec<&(Prefix4, Owner)> = prefixes.iter().collect();
    ascending.sort_by_key(|(prefix, _)| (prefix.address(), prefix.length()));
    ascending.dedup_by_key(|(prefix, _)| *prefix);
    let mut next = ascending.into_iter().peekable();
    let mut open: Vec<&(Prefix4, Owner)> = Vec::new();
    let owner_from = |start: u32| {
        open.retain(|(prefix, _)| prefix.last().to_bits() >= start);
        while let Some(found) = next.next_if(|(prefix, _)| first(prefix) <= start) {
            open.push(found);
        }
        (start, open.last().map(|(_, owner)| *owner))
    };
    starts.into_iter().map(owner_from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;
    use proptest::prelude::*;

    const fn nat64(index: u16) -> MechanismId {
        MechanismId { kind: Kind::Nat64, index }
    }

    proptest! {
        #[test]
        fn the_owner_is_that_of_the_prefix_that_holds_the_address(
            prefixes in prop::collection::vec((any::<u32>(), 4..=32_u8), 0..20),
            near in prop::collection::vec((0_usize..20, 0..=64_u32), 1..20),
        ) {
            // Few addresses, so that prefixes nest.
            let prefix = |(bits, length): (u32, u8)| Prefix4::holding(Ipv4Addr::from_bits(bits & 0xc000_c003), length);
            let all: Vec<_> = prefixes.into_iter().map(prefix).zip((0..).map(nat64)).collect();
            let destinations = Destinations4::new(all.clone());
            for (index, offset) in near {
                let Some((prefix, _)) = all.get(index % all.len().max(1)) else { return Ok(()) };
                for address in [prefix.address(), prefix.last()] {
                    for bits in [address.to_bits().wrapping_sub(offset), address.to_bits().wrapping_add(offset)] {
                        let address = Ipv4Addr::from_bits(bits);
                        let holding = all.iter().rev().filter(|(prefix, _)| prefix.contains(address));
                        let longest = holding.max_by_key(|(prefix, _)| prefix.length());
                        prop_assert_eq!(destinations.owner(address), longest.map(|(_, owner)| *owner));
                    }
                }
            }
        }
    }

    #[test]
    fn the_longest_prefix_owns_whether_there_are_few_or_many() {
        for more in [0, 20] {
            let mut prefixes: Vec<(Prefix4, MechanismId)> = (0..more)
                .map(|number| (Prefix4::holding(Ipv4Addr::new(10, number, 0, 0), 16), nat64(100)))
                .collect();
            let texts = ["0.0.0.0/0", "192.0.2.0/24", "192.0.2.128/25", "192.0.2.128/25"];
            prefixes.extend(texts.iter().zip(0..).map(|(text, index)| (text.parse().unwrap(), nat64(index))));
            let destinations = Destinations4::new(prefixes);
            let owner = |text: &str| destinations.owner(text.parse().unwrap());
            assert_eq!(owner("192.0.2.1"), Some(nat64(1)));
            assert_eq!(owner("192.0.2.200"), Some(nat64(2)), "of two alike, the first");
            assert_eq!(owner("192.0.3.0"), Some(nat64(0)));
            assert_eq!(owner("255.255.255.255"), Some(nat64(0)));
            assert_eq!(owner("0.0.0.0"), Some(nat64(0)));
        }
    }
}
