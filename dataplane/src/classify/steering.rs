//! The destination's owner, by longest prefix.

use super::Destinations4;
use crate::verdict::MechanismId;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::Prefix6;

/// The owner of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The gateway itself.
    Gateway,
    /// A mechanism.
    Mechanism(MechanismId),
    /// A tunnel address of this host, for fragments and for ICMP errors about what went through its tunnels.
    TunnelAddress(TunnelAddress),
}

/// An address of this host at which tunnels end: the number of an IPv4 address, or [`Self::V6`]. The packet's family says which.
// Not an enum: that makes `Owner` larger, and every packet pays for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelAddress(pub u8);

impl TunnelAddress {
    /// Any IPv6 address. Its tunnels are found by both ends, without a number.
    pub const V6: Self = Self(0);
}

/// IPv6 prefixes and their owners, longest first, IPv4 prefixes and theirs, and the gateway's own addresses. There are a handful of IPv6
/// prefixes, one for each configured mechanism, so a linear search beats any tree; large tables belong to the mechanisms.
#[derive(Clone, Debug, Default)]
pub struct Steering {
    own4: Option<Ipv4Addr>,
    own6: Option<Ipv6Addr>,
    prefixes: Vec<Entry>,
    destinations4: Destinations4,
    /// IPv6 addresses at which tunnels end.
    ends6: Vec<Ipv6Addr>,
}

/// A prefix as it is compared.
#[derive(Clone, Copy, Debug)]
struct Entry {
    bits: u128,
    mask: u128,
    owner: MechanismId,
}

impl Entry {
    const fn of((prefix, owner): (Prefix6, MechanismId)) -> Self {
        Self { bits: prefix.address().to_bits(), mask: prefix.mask(), owner }
    }
}

impl Steering {
    /// Steers to the gateway's own addresses and to the owners of `prefixes`.
    pub fn new(
        own4: Option<Ipv4Addr>,
        own6: Option<Ipv6Addr>,
        mut prefixes: Vec<(Prefix6, MechanismId)>,
        destinations4: Destinations4,
    ) -> Self {
        prefixes.sort_by_key(|(prefix, _)| core::cmp::Reverse(prefix.length()));
        Self {
            own4,
            own6,
            prefixes: prefixes.into_iter().map(Entry::of).collect(),
            destinations4,
            ends6: Vec::new(),
        }
    }

    /// Steers to IPv6 addresses at which tunnels end.
    pub fn set_ends6(&mut self, addresses: &[Ipv6Addr]) {
        self.ends6 = addresses.to_vec();
    }

    /// Whether tunnels end at an IPv6 address.
    #[inline(always)]
    pub fn is_end6(&self, address: Ipv6Addr) -> bool {
        !self.ends6.is_empty() && self.ends6.contains(&address)
    }

    /// Sets the gateway's own IPv6 address.
    pub const fn set_own6(&mut self, own6: Option<Ipv6Addr>) {
        self.own6 = own6;
    }

    /// Whether the address is the gateway's own.
    #[inline]
    pub fn is_own4(&self, address: Ipv4Addr) -> bool {
        self.own4 == Some(address)
    }

    /// The owner of an IPv4 destination by prefix.
    #[inline(always)]
    pub fn owner4(&self, destination: Ipv4Addr) -> Option<MechanismId> {
        self.destinations4.owner(destination)
    }

    /// The length of the prefix by which an IPv6 destination is steered; 0 if by none.
    pub fn length6(&self, destination: Ipv6Addr) -> u8 {
        let bits = destination.to_bits();
        let entry = self.prefixes.iter().find(|entry| bits & entry.mask == entry.bits);
        entry.map_or(0, |entry| entry.mask.count_ones() as u8)
    }

    /// The owner of an IPv6 destination by prefix.
    #[inline(always)]
    pub fn owner6(&self, destination: Ipv6Addr) -> Option<Owner> {
        let bits = destination.to_bits();
        let entry = self.prefixes.iter().find(|entry| bits & entry.mask == entry.bits);
        let by_prefix = entry.map(|entry| Owner::Mechanism(entry.owner));
        if self.own6 == Some(destination) { Some(Owner::Gateway) } else { by_prefix }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;

    #[test]
    fn the_longest_prefix_owns_and_own_addresses_come_first() {
        let [siit, nat64] = [Kind::Siit, Kind::Nat64].map(|kind| MechanismId { kind, index: 0 });
        let steering = Steering::new(
            None,
            Some("2001:db8:64::fe".parse().unwrap()),
            vec![("2001:db8::/32".parse().unwrap(), siit), ("2001:db8:64::/96".parse().unwrap(), nat64)],
            Destinations4::default(),
        );
        let owner = |text: &str| steering.owner6(text.parse().unwrap());
        assert_eq!(owner("2001:db8:64::1"), Some(Owner::Mechanism(nat64)));
        assert_eq!(owner("2001:db8:65::1"), Some(Owner::Mechanism(siit)));
        assert_eq!(owner("2001:db8:64::fe"), Some(Owner::Gateway));
        assert_eq!(owner("2001:db9::1"), None);
    }
}
