//! Addresses of a pool that are being drained: they are not given to more hosts, and existing bindings continue until they end.

use core::net::Ipv4Addr;
use sixway_wire::Prefix4;

/// The addresses that are being drained, as prefixes in order and without overlaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draining {
    prefixes: Vec<Prefix4>,
}

/// The remaining use of addresses that are being drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainingRow {
    /// The addresses.
    pub prefix: Prefix4,
    /// Bindings there, static ones included.
    pub bindings: u64,
    /// Inside hosts that have them, and subscribers that have only port blocks there.
    pub hosts: u64,
    /// Sessions of protocols without ports.
    pub portless: u64,
}

impl DrainingRow {
    /// Whether nothing is left.
    pub const fn is_empty(&self) -> bool {
        self.bindings == 0 && self.hosts == 0 && self.portless == 0
    }
}

impl Draining {
    /// Maximum number of prefixes of a pool that are drained at a time; the caller refuses more.
    pub const MOST: usize = 1_024;

    /// Of these prefixes, which may overlap.
    pub fn of(prefixes: &[Prefix4]) -> Self {
        let mut draining = Self::default();
        prefixes.iter().for_each(|prefix| draining.add(*prefix));
        draining
    }

    /// The prefixes.
    pub fn prefixes(&self) -> &[Prefix4] {
        &self.prefixes
    }

    /// Whether no address is being drained.
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// The number of the prefix that contains an address.
    pub fn find(&self, address: Ipv4Addr) -> Option<usize> {
        let behind = self.prefixes.partition_point(|prefix| prefix.address() <= address);
        behind.checked_sub(1).filter(|at| self.prefixes[*at].contains(address))
    }

    /// Whether the address is being drained.
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        self.find(address).is_some()
    }

    /// Drains these addresses too.
    pub fn add(&mut self, prefix: Prefix4) {
        if self.find(prefix.address()).is_some_and(|at| covers(self.prefixes[at], prefix)) {
            return;
        }
        let from = self.prefixes.partition_point(|known| known.address() < prefix.address());
        let to = self.prefixes.partition_point(|known| known.address() <= prefix.last());
        self.prefixes.splice(from..to, [prefix]);
    }

    /// These addresses are not drained any more.
    pub fn remove(&mut self, prefix: Prefix4) {
        self.prefixes = self.prefixes.iter().flat_map(|known| without(*known, prefix)).collect();
    }

    /// The parts of these prefixes that are not drained, in their order.
    pub fn rest_of(&self, prefixes: &[Prefix4]) -> Vec<Prefix4> {
        let mut rest = Vec::new();
        for prefix in prefixes {
            let from = self.prefixes.partition_point(|drained| drained.last() < prefix.address());
            let to = self.prefixes.partition_point(|drained| drained.address() <= prefix.last());
            add_rest(*prefix, &self.prefixes[from..to.max(from)], &mut rest);
        }
        rest
    }
}

/// Adds the parts of a prefix that are in none of these, each of which has addresses in it. Each is examined a bounded number of times.
fn add_rest(prefix: Prefix4, drained: &[Prefix4], rest: &mut Vec<Prefix4>) {
    match drained {
        [] => rest.push(prefix),
        [first, ..] if covers(*first, prefix) => {}
        _ => {
            let length = prefix.length() + 1;
            let upper = Ipv4Addr::from_bits(prefix.address().to_bits() | 1 << (32 - u32::from(length)));
            let (below, above) = drained.split_at(drained.partition_point(|it| it.address() < upper));
            add_rest(Prefix4::holding(prefix.address(), length), below, rest);
            add_rest(Prefix4::holding(upper, length), above, rest);
        }
    }
}

/// Whether a prefix contains all addresses of another one.
fn covers(prefix: Prefix4, other: Prefix4) -> bool {
    prefix.length() <= other.length() && prefix.overlaps(other)
}

/// A prefix without the addresses of another one.
fn without(prefix: Prefix4, other: Prefix4) -> Vec<Prefix4> {
    if !prefix.overlaps(other) {
        return vec![prefix];
    }
    let (mut parts, mut behind) = (Vec::new(), Vec::new());
    // Halves that do not contain the other prefix remain; the other half is cut further.
    for length in prefix.length() + 1..=other.length() {
        let inside = Prefix4::holding(other.address(), length);
        let outside = Ipv4Addr::from_bits(inside.address().to_bits() ^ (1 << (32 - length)));
        let part = Prefix4::holding(outside, length);
        if outside < inside.address() { parts.push(part) } else { behind.push(part) }
    }
    parts.extend(behind.into_iter().rev());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes(texts: &[&str]) -> Vec<Prefix4> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn texts(prefixes: &[Prefix4]) -> Vec<String> {
        prefixes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_added_is_drained_once_and_what_is_removed_is_not() {
        let mut draining = Draining::of(&prefixes(&["192.0.2.4/30", "192.0.2.5/32", "192.0.2.0/32"]));
        assert_eq!(texts(draining.prefixes()), ["192.0.2.0/32", "192.0.2.4/30"]);
        draining.add("192.0.2.0/32".parse().unwrap());
        assert_eq!(draining.prefixes().len(), 2, "it was there before");
        let contains = |draining: &Draining| -> Vec<u8> {
            (0..=255).filter(|last| draining.contains(Ipv4Addr::new(192, 0, 2, *last))).collect()
        };
        assert_eq!(contains(&draining), [0, 4, 5, 6, 7]);
        draining.remove("192.0.2.6/32".parse().unwrap());
        assert_eq!(contains(&draining), [0, 4, 5, 7]);
        assert_eq!(texts(draining.prefixes()), ["192.0.2.0/32", "192.0.2.4/31", "192.0.2.7/32"]);
        draining.add("192.0.2.0/29".parse().unwrap());
        assert_eq!(texts(draining.prefixes()), ["192.0.2.0/29"]);
        draining.remove("192.0.0.0/16".parse().unwrap());
        assert!(draining.is_empty());
    }

    /// What is drained is the sum of all prefixes, whatever their order; a thousand of them cost no more than each its bits.
    #[test]
    fn prefixes_may_come_in_any_order_and_contain_each_other() {
        let mut random = 1_u32;
        for _ in 0..200 {
            let mut draining = Draining::default();
            let mut all: Vec<Prefix4> = Vec::new();
            for _ in 0..12 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let address = Ipv4Addr::from_bits(0xc000_0200 | random >> 24);
                let prefix = Prefix4::holding(address, 25 + (random >> 8 & 7) as u8);
                if random & 0x1_0000 == 0 {
                    draining.add(prefix);
                    all.push(prefix);
                } else {
                    draining.remove(prefix);
                    all = all.iter().flat_map(|known| without(*known, prefix)).collect();
                }
                for bits in 0xc000_0200..=0xc000_02ff {
                    let address = Ipv4Addr::from_bits(bits);
                    assert_eq!(
                        draining.contains(address),
                        all.iter().any(|it| it.contains(address)),
                        "{address}"
                    );
                }
                let rest = draining.rest_of(&[prefix, Prefix4::holding(Ipv4Addr::new(192, 0, 2, 0), 24)]);
                let addresses: u64 = rest.iter().map(|it| 1_u64 << (32 - it.length())).sum();
                let missing = |prefix: Prefix4| {
                    let all = prefix.address().to_bits()..=prefix.last().to_bits();
                    all.filter(|bits| !draining.contains(Ipv4Addr::from_bits(*bits))).count() as u64
                };
                let pool = Prefix4::holding(Ipv4Addr::new(192, 0, 2, 0), 24);
                assert_eq!(addresses, missing(prefix) + missing(pool));
            }
        }
    }

    #[test]
    fn the_rest_of_a_pool_has_every_address_that_is_not_drained_once() {
        let pool = prefixes(&["192.0.2.0/28", "198.51.100.7/32"]);
        for drained in [&["192.0.2.5/32", "192.0.2.8/30"][..], &["192.0.2.0/24"], &["198.51.100.0/24"], &[]] {
            let draining = Draining::of(&prefixes(drained));
            let rest = draining.rest_of(&pool);
            for (place, bits) in pool
                .iter()
                .flat_map(|prefix| (prefix.address().to_bits()..=prefix.last().to_bits()).enumerate())
            {
                let address = Ipv4Addr::from_bits(bits);
                let times = rest.iter().filter(|prefix| prefix.contains(address)).count();
                assert_eq!(times, usize::from(!draining.contains(address)), "{address}, {place}");
            }
        }
    }
}
