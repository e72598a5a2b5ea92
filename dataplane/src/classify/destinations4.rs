//! IPv4 prefixes that mechanisms own as destinations, such as the addresses of pools.

use crate::verdict::MechanismId;
use core::net::Ipv4Addr;
use sixway_wire::Prefix4;

/// So many prefixes are compared one by one; more are searched by halves.
const FEW: usize = 8;

/// IPv4 prefixes and their owners. No two overlap: where the configuration has two that do, the one with the lower address, or the shorter
/// one, stays.
#[derive(Clone, Debug, Default)]
pub struct Destinations4 {
    /// In ascending order.
    entries: Vec<Entry>,
}

/// A prefix as it is compared.
#[derive(Clone, Copy, Debug)]
struct Entry {
    bits: u32,
    mask: u32,
    owner: MechanismId,
}

impl Entry {
    #[inline(always)]
    const fn holds(&self, bits: u32) -> bool {
        bits & self.mask == self.bits
    }
}

impl Destinations4 {
    /// The prefixes with their owners, in any order.
    pub fn new(mut prefixes: Vec<(Prefix4, MechanismId)>) -> Self {
        prefixes.sort_by_key(|(prefix, _)| (prefix.address(), prefix.length()));
        prefixes.dedup_by(|(later, _), (earlier, _)| earlier.overlaps(*later));
        let entry = |(prefix, owner): (Prefix4, MechanismId)| Entry {
            bits: prefix.address().to_bits(),
            mask: prefix.mask(),
            owner,
        };
        Self { entries: prefixes.into_iter().map(entry).collect() }
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The owner of an address.
    #[inline(always)]
    pub fn owner(&self, address: Ipv4Addr) -> Option<MechanismId> {
        let bits = address.to_bits();
        if self.entries.len() <= FEW {
            return self.entries.iter().find(|entry| entry.holds(bits)).map(|entry| entry.owner);
        }
        self.owner_among_many(bits)
    }

    #[inline(never)]
    fn owner_among_many(&self, bits: u32) -> Option<MechanismId> {
        let behind = self.entries.partition_point(|entry| entry.bits <= bits);
        self.entries[..behind].last().filter(|entry| entry.holds(bits)).map(|entry| entry.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::table::Kind;
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
            let mut apart: Vec<(Prefix4, MechanismId)> = Vec::new();
            for (index, (bits, length)) in prefixes.into_iter().enumerate() {
                let prefix = Prefix4::holding(Ipv4Addr::from_bits(bits), length);
                if !apart.iter().any(|(other, _)| other.overlaps(prefix)) {
                    apart.push((prefix, nat64(index as u16)));
                }
            }
            let destinations = Destinations4::new(apart.clone());
            for (index, offset) in near {
                let Some((prefix, _)) = apart.get(index % apart.len().max(1)) else { return Ok(()) };
                for address in [prefix.address(), prefix.last()] {
                    for bits in [address.to_bits().wrapping_sub(offset), address.to_bits().wrapping_add(offset)] {
                        let address = Ipv4Addr::from_bits(bits);
                        let holder = apart.iter().find(|(prefix, _)| prefix.contains(address));
                        prop_assert_eq!(destinations.owner(address), holder.map(|(_, owner)| *owner));
                    }
                }
            }
        }
    }

    #[test]
    fn of_two_prefixes_that_overlap_the_shorter_one_stays() {
        let prefixes = ["192.0.2.128/25", "192.0.2.0/24", "192.0.2.1", "192.0.3.1"];
        let with_owners = prefixes.iter().zip(0..).map(|(text, index)| (text.parse().unwrap(), nat64(index)));
        let destinations = Destinations4::new(with_owners.collect());
        let owner = |text: &str| destinations.owner(text.parse().unwrap());
        assert_eq!(owner("192.0.2.1"), Some(nat64(1)));
        assert_eq!(owner("192.0.2.200"), Some(nat64(1)));
        assert_eq!(owner("192.0.3.1"), Some(nat64(3)));
        assert_eq!(owner("192.0.3.2"), None);
    }
}
