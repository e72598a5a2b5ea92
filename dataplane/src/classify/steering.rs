//! The destination's owner, by longest prefix.

use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::Prefix6;

/// Who owns a destination. The number is the mechanism's place in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The gateway itself.
    Gateway,
    /// A stateful NAT64.
    Nat64(u8),
    /// A stateless translator.
    Siit(u8),
    /// A tunnel: IPv6 packets that are routed into it.
    Tunnel(u16),
    /// An IPv4 address of this host at which tunnels end: what comes through them.
    Endpoint(u8),
}

impl Owner {
    /// Whether it is a tunnel, seen from either side.
    #[inline]
    pub const fn is_tunnel(self) -> bool {
        match self {
            Self::Tunnel(_) | Self::Endpoint(_) => true,
            Self::Gateway | Self::Nat64(_) | Self::Siit(_) => false,
        }
    }
}

/// IPv6 prefixes and their owners, longest first, and the gateway's own addresses. There are a handful of prefixes, one
/// for each configured mechanism, so a walk along them beats any tree; large tables belong to the mechanisms.
#[derive(Clone, Debug, Default)]
pub struct Steering {
    own4: Option<Ipv4Addr>,
    own6: Option<Ipv6Addr>,
    prefixes: Vec<Entry>,
}

/// A prefix as it is compared.
#[derive(Clone, Copy, Debug)]
struct Entry {
    bits: u128,
    mask: u128,
    owner: Owner,
}

impl Entry {
    const fn of((prefix, owner): (Prefix6, Owner)) -> Self {
        Self { bits: prefix.address().to_bits(), mask: prefix.mask(), owner }
    }
}

impl Steering {
    /// Steers to the gateway's own addresses and to the owners of `prefixes`.
    pub fn new(own4: Option<Ipv4Addr>, own6: Option<Ipv6Addr>, mut prefixes: Vec<(Prefix6, Owner)>) -> Self {
        prefixes.sort_by_key(|(prefix, _)| core::cmp::Reverse(prefix.length()));
        Self { own4, own6, prefixes: prefixes.into_iter().map(Entry::of).collect() }
    }

    /// Another IPv6 address of the gateway's own from now on.
    pub const fn set_own6(&mut self, own6: Option<Ipv6Addr>) {
        self.own6 = own6;
    }

    /// Other prefixes of tunnels from now on.
    pub fn set_tunnels(&mut self, tunnels: impl Iterator<Item = (Prefix6, Owner)>) {
        self.prefixes.retain(|entry| !matches!(entry.owner, Owner::Tunnel(_)));
        self.prefixes.extend(tunnels.map(Entry::of));
        self.prefixes.sort_by_key(|entry| core::cmp::Reverse(entry.mask.count_ones()));
    }

    /// Whether the address is the gateway's own.
    #[inline]
    pub fn is_own4(&self, address: Ipv4Addr) -> bool {
        self.own4 == Some(address)
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
        let by_prefix = entry.map(|entry| entry.owner);
        if self.own6 == Some(destination) { Some(Owner::Gateway) } else { by_prefix }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_owns_and_own_addresses_come_first() {
        let steering = Steering::new(
            None,
            Some("2001:db8:64::fe".parse().unwrap()),
            vec![
                ("2001:db8::/32".parse().unwrap(), Owner::Siit(0)),
                ("2001:db8:64::/96".parse().unwrap(), Owner::Nat64(0)),
            ],
        );
        let owner = |text: &str| steering.owner6(text.parse().unwrap());
        assert_eq!(owner("2001:db8:64::1"), Some(Owner::Nat64(0)));
        assert_eq!(owner("2001:db8:65::1"), Some(Owner::Siit(0)));
        assert_eq!(owner("2001:db8:64::fe"), Some(Owner::Gateway));
        assert_eq!(owner("2001:db9::1"), None);
    }
}
