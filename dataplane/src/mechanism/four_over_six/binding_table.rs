//! The bindings of a concentrator (RFC 7040 §6): which IPv6 address has which IPv4 address or prefix.

use crate::nat::{Index, Slab};
use core::fmt;
use core::hash::BuildHasher as _;
use core::net::{Ipv4Addr, Ipv6Addr};
use foldhash::fast::FixedState;
use sixway_wire::Prefix4;

/// An IPv4 address or prefix and the host that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Binding {
    /// The address, 32 bits long, or a prefix.
    pub ipv4: Prefix4,
    /// The host's end of its tunnel.
    pub host: Ipv6Addr,
    /// Index of the concentrator's address that packets to the host come from.
    pub local: u8,
}

/// Why a binding cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingFault {
    /// Another host has this address or prefix.
    Taken(Ipv6Addr),
    /// The table is full.
    Full,
}

impl fmt::Display for BindingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken(host) => write!(f, "{host} has this address"),
            Self::Full => f.write_str("the table of bindings is full"),
        }
    }
}

impl std::error::Error for BindingFault {}

/// A binding as it is stored: 32 octets with alignment.
#[derive(Clone, Copy, Debug)]
struct Entry {
    host: u128,
    ipv4: u32,
    length: u8,
    local: u8,
    /// A released slot keeps its content.
    is_free: bool,
}

/// A lookup in progress: of an address under the longest prefix of the table.
#[derive(Clone, Copy, Debug)]
pub struct BindingProbe {
    tag: u32,
    /// The entry of the index, then its value: the slot plus 1. 0: nothing was found.
    found: u64,
}

impl BindingProbe {
    /// One that finds nothing.
    pub(crate) const NONE: Self = Self { tag: 0, found: 0 };
}

/// The table: at most 64 octets for each binding, both indexes included. When it is full, a new binding is refused; none is evicted, since its
/// host has the address until the lease ends.
#[derive(Debug)]
pub struct BindingTable {
    entries: Slab<Entry>,
    by_ipv4: Index,
    by_host: Index,
    /// One bit for each length of a prefix in the table.
    lengths: u64,
    counts: [u32; 33],
    hasher: FixedState,
}

impl BindingTable {
    /// A table for at most `most` bindings.
    pub fn new(most: u32, seed: u64) -> Self {
        Self {
            entries: Slab::new(most),
            by_ipv4: Index::new(most),
            by_host: Index::new(most),
            lengths: 0,
            counts: [0; 33],
            hasher: FixedState::with_seed(seed),
        }
    }

    /// Makes a binding. One of the same host with the same prefix changes its `local`.
    ///
    /// # Errors
    /// Another host has exactly this prefix, or the table is full.
    pub fn insert(&mut self, binding: Binding) -> Result<(), BindingFault> {
        let (address, length) = (binding.ipv4.address().to_bits(), binding.ipv4.length());
        if let Some(slot) = self.slot(address, length) {
            let entry = &mut self.entries[slot];
            if entry.host != binding.host.to_bits() {
                return Err(BindingFault::Taken(Ipv6Addr::from_bits(entry.host)));
            }
            entry.local = binding.local;
            return Ok(());
        }
        let (host, local) = (binding.host.to_bits(), binding.local);
        let entry = Entry { host, ipv4: address, length, local, is_free: false };
        let slot = self.entries.insert(entry).ok_or(BindingFault::Full)?;
        let (tag4, tag6) = (self.tag4(address, length), self.tag6(host));
        self.by_ipv4.insert(tag4, slot);
        self.by_host.insert(tag6, slot);
        self.counts[usize::from(length)] += 1;
        self.lengths |= 1 << length;
        Ok(())
    }

    /// Ends the binding of exactly this prefix.
    pub fn remove(&mut self, ipv4: Prefix4) -> Option<Binding> {
        let (address, length) = (ipv4.address().to_bits(), ipv4.length());
        let slot = self.slot(address, length)?;
        let Entry { host, local, .. } = self.entries[slot];
        let (tag4, tag6) = (self.tag4(address, length), self.tag6(host));
        self.by_ipv4.remove(tag4, slot);
        self.by_host.remove(tag6, slot);
        self.entries[slot].is_free = true;
        self.entries.release(slot);
        let count = &mut self.counts[usize::from(length)];
        *count -= 1;
        if *count == 0 {
            self.lengths &= !(1 << length);
        }
        Some(Binding { ipv4, host: Ipv6Addr::from_bits(host), local })
    }

    /// Begins a lookup: one load, which a batch can have in flight many times over.
    #[inline]
    pub fn begin(&self, address: Ipv4Addr) -> BindingProbe {
        let Some(length) = self.longest() else { return BindingProbe::NONE };
        let tag = self.tag4(address.to_bits() & mask(length), length as u8);
        BindingProbe { tag, found: self.by_ipv4.touch(tag) }
    }

    /// The second step: another load.
    #[inline]
    pub fn advance(&self, probe: &mut BindingProbe) {
        let slot = self.by_ipv4.candidate(probe.tag, probe.found);
        probe.found = slot.map_or(0, |slot| u64::from(slot) + 1);
        if let Some(slot) = slot {
            core::hint::black_box(self.entries[slot].ipv4);
        }
    }

    /// The result, as of [`BindingTable::lookup`], after both steps.
    #[inline]
    pub fn finish(&self, probe: &BindingProbe, address: Ipv4Addr) -> Option<(Ipv6Addr, u8)> {
        let (slot, length) = (probe.found.checked_sub(1), self.longest());
        if let (Some(slot), Some(length)) = (slot, length) {
            let entry = &self.entries[slot as u32];
            if u32::from(entry.length) == length && entry.ipv4 == address.to_bits() & mask(length) {
                return Some((Ipv6Addr::from_bits(entry.host), entry.local));
            }
        }
        self.lookup(address)
    }

    /// The longest length of a prefix in the table.
    #[inline]
    const fn longest(&self) -> Option<u32> {
        63_u32.checked_sub(self.lengths.leading_zeros())
    }

    /// The host that has an address, and the index of the concentrator's address for it: by the longest prefix.
    #[inline]
    pub fn lookup(&self, address: Ipv4Addr) -> Option<(Ipv6Addr, u8)> {
        let mut lengths = self.lengths;
        while lengths != 0 {
            let length = 63 - lengths.leading_zeros();
            lengths &= !(1 << length);
            let masked = address.to_bits() & mask(length);
            if let Some(slot) = self.slot(masked, length as u8) {
                let entry = &self.entries[slot];
                return Some((Ipv6Addr::from_bits(entry.host), entry.local));
            }
        }
        None
    }

    /// Whether a host has any binding.
    #[inline]
    pub fn has_host(&self, host: Ipv6Addr) -> bool {
        let host = host.to_bits();
        self.by_host.find(self.tag6(host), |slot| self.entries[slot].host == host).is_some()
    }

    /// All bindings.
    pub fn iter(&self) -> impl Iterator<Item = Binding> {
        let entries = (0..self.entries.slots()).map(|slot| self.entries[slot]);
        entries.filter(|entry| !entry.is_free).map(|entry| Binding {
            ipv4: Prefix4::holding(entry.ipv4.into(), entry.length),
            host: Ipv6Addr::from_bits(entry.host),
            local: entry.local,
        })
    }

    /// Number of bindings.
    pub fn len(&self) -> u32 {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most bindings.
    pub const fn most(&self) -> u32 {
        self.entries.most()
    }

    /// Memory in octets when all of it has been touched.
    pub fn memory(&self) -> usize {
        self.entries.memory() + self.by_ipv4.memory() + self.by_host.memory()
    }

    fn slot(&self, address: u32, length: u8) -> Option<u32> {
        let is = |slot: u32| {
            let entry = &self.entries[slot];
            entry.ipv4 == address && entry.length == length
        };
        self.by_ipv4.find(self.tag4(address, length), is)
    }

    #[inline]
    fn tag4(&self, address: u32, length: u8) -> u32 {
        (self.hasher.hash_one(u64::from(address) << 8 | u64::from(length)) >> 32) as u32
    }

    #[inline]
    fn tag6(&self, host: u128) -> u32 {
        (self.hasher.hash_one(host) >> 32) as u32
    }
}

#[inline]
const fn mask(length: u32) -> u32 {
    match u32::MAX.checked_shl(32 - length) {
        Some(mask) => mask,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn binding(ipv4: &str, host: u128) -> Binding {
        Binding { ipv4: ipv4.parse().unwrap(), host: Ipv6Addr::from_bits(host), local: 0 }
    }

    #[test]
    fn a_binding_takes_at_most_64_octets_with_both_indexes() {
        for most in [256, 4_096, 100_000] {
            let table = BindingTable::new(most, 7);
            assert!(table.memory() <= 64 * most as usize + 256, "{} for {most}", table.memory());
        }
    }

    #[test]
    fn the_longest_prefix_decides_and_a_full_table_refuses() {
        let mut table = BindingTable::new(2, 7);
        table.insert(binding("192.0.2.0/28", 1)).unwrap();
        table.insert(binding("192.0.2.5/32", 2)).unwrap();
        assert_eq!(table.insert(binding("192.0.2.6/32", 3)), Err(BindingFault::Full));
        assert_eq!(
            table.insert(binding("192.0.2.5/32", 3)),
            Err(BindingFault::Taken(Ipv6Addr::from_bits(2)))
        );
        let host = |table: &BindingTable, address: [u8; 4]| {
            table.lookup(address.into()).map(|(host, _)| host.to_bits())
        };
        assert_eq!(host(&table, [192, 0, 2, 5]), Some(2));
        assert_eq!(host(&table, [192, 0, 2, 6]), Some(1));
        assert_eq!(host(&table, [192, 0, 2, 16]), None);
        table.remove("192.0.2.5/32".parse().unwrap()).unwrap();
        assert_eq!(host(&table, [192, 0, 2, 5]), Some(1));
        table.insert(binding("192.0.2.5/32", 2)).unwrap();
        // A lookup that is finished for another address, and one that finds a shorter prefix.
        for (begun, address, found) in
            [([192, 0, 2, 5], [192, 0, 2, 6], 1), ([192, 0, 2, 7], [192, 0, 2, 7], 1)]
        {
            let mut probe = table.begin(begun.into());
            table.advance(&mut probe);
            assert_eq!(table.finish(&probe, address.into()).map(|it| it.0.to_bits()), Some(found));
        }
        table.remove("192.0.2.5/32".parse().unwrap()).unwrap();
        assert!(!table.has_host(Ipv6Addr::from_bits(2)) && table.has_host(Ipv6Addr::from_bits(1)));
    }

    proptest! {
        #[test]
        fn a_table_holds_what_a_map_holds(steps in prop::collection::vec((0..3_u8, 0..24_u32, 0..6_u128), 1..300)) {
            let mut table = BindingTable::new(16, 3);
            let mut model = BTreeMap::new();
            for (kind, address, host) in steps {
                let ipv4 = Prefix4::holding(address.into(), 32);
                if kind == 0 {
                    prop_assert_eq!(table.remove(ipv4).map(|it| it.host.to_bits()), model.remove(&address));
                } else {
                    let done = table.insert(Binding { ipv4, host: Ipv6Addr::from_bits(host), local: 1 });
                    match model.get(&address) {
                        Some(other) => prop_assert_eq!(done.is_ok(), *other == host),
                        None if model.len() == 16 => prop_assert_eq!(done, Err(BindingFault::Full)),
                        None => {
                            prop_assert_eq!(done, Ok(()));
                            model.insert(address, host);
                        }
                    }
                }
                prop_assert_eq!(table.len() as usize, model.len());
                for address in 0..24_u32 {
                    let found = table.lookup(address.into()).map(|(host, _)| host.to_bits());
                    prop_assert_eq!(found, model.get(&address).copied());
                    let mut probe = table.begin(address.into());
                    table.advance(&mut probe);
                    prop_assert_eq!(table.finish(&probe, address.into()), table.lookup(address.into()));
                }
                for host in 0..6_u128 {
                    prop_assert_eq!(table.has_host(Ipv6Addr::from_bits(host)), model.values().any(|one| *one == host));
                }
                prop_assert_eq!(table.iter().count(), model.len());
            }
        }
    }
}
