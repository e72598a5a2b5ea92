//! Addresses of a pool that are being drained: they get no further hosts, and what they have goes on to its end.

use core::net::Ipv4Addr;
use sixway_wire::Prefix4;

/// The addresses that are being drained, as prefixes in order and without overlaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draining {
    prefixes: Vec<Prefix4>,
}

/// What is left at addresses that are being drained.
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

impl Draining {
    /// Prefixes of a pool that can be drained at a time; whoever drains refuses further ones.
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
        if self.prefixes.iter().any(|known| covers(*known, prefix)) {
            return;
        }
        self.prefixes.retain(|known| !covers(prefix, *known));
        let at = self.prefixes.partition_point(|known| known.address() < prefix.address());
        self.prefixes.insert(at, prefix);
    }

    /// These addresses are not drained any more.
    pub fn remove(&mut self, prefix: Prefix4) {
        self.prefixes = self.prefixes.iter().flat_map(|known| without(*known, prefix)).collect();
    }

    /// The parts of these prefixes that are not drained, in order.
    pub fn rest_of(&self, prefixes: &[Prefix4]) -> Vec<Prefix4> {
        let mut rest = prefixes.to_vec();
        for drained in &self.prefixes {
            rest = rest.iter().flat_map(|prefix| without(*prefix, *drained)).collect();
        }
        rest
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
