//! Inside endpoints behind softwires, as DS-Lite has them (RFC 6333 §6.6). Many sites use the same addresses, so the softwire is part of the key.

use super::inside_key::{HostKey, Inside6, InsideKey, MAPPED_BITS, Named, address_word};
use super::keyed::TupleHash;
use super::protocol::NatProtocol;
use super::sides::Inside;
use super::softwires::{NUMBER_BITS, SoftwireId, Softwires};
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::{Endpoint4, Endpoint6, Prefix4, Prefix6};

/// An inside endpoint behind a softwire. Other softwires may have hosts with the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Softwire {
    /// Which softwire.
    pub id: SoftwireId,
    /// The endpoint.
    pub endpoint: Endpoint4,
}

/// A host behind a softwire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SoftwireHost {
    /// Which softwire.
    pub id: SoftwireId,
    /// The host's address.
    pub address: Ipv4Addr,
}

/// Hosts behind softwires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoftwireNetwork {
    /// Of the softwires whose remote end is in this prefix.
    Remote(Prefix6),
    /// With an inner address in this prefix, behind any softwire.
    Inner(Prefix4),
}

impl HostKey for SoftwireHost {
    #[inline]
    fn tag(self, hash: &TupleHash) -> u32 {
        hash.pair(self.word(), 0)
    }
}

impl SoftwireHost {
    /// For hashing only.
    #[inline]
    const fn word(self) -> u64 {
        (self.id.0 as u64) << 32 | address_word(self.address)
    }
}

impl InsideKey for Softwire {
    type Host = SoftwireHost;
    type Site = Ipv6Addr;
    type Names = Softwires;
    type Network = SoftwireNetwork;
    type Alignment = super::inside_key::CacheLine;

    const UNSPECIFIED: Self =
        Self { id: SoftwireId(u32::MAX), endpoint: <Endpoint4 as InsideKey>::UNSPECIFIED };

    #[inline]
    fn host(self) -> SoftwireHost {
        SoftwireHost { id: self.id, address: self.endpoint.address }
    }

    #[inline]
    fn port(self) -> u16 {
        self.endpoint.port
    }

    /// The softwire's remote end; of one that ended, an address that no host has.
    fn site(host: SoftwireHost, names: &Softwires) -> Ipv6Addr {
        names.remote(host.id).unwrap_or(Ipv6Addr::UNSPECIFIED)
    }

    fn site_of(address: Ipv6Addr) -> Option<Ipv6Addr> {
        address.to_ipv4_mapped().is_none().then_some(address)
    }

    fn is_in(self, network: SoftwireNetwork, names: &Softwires) -> bool {
        match network {
            SoftwireNetwork::Remote(prefix) => {
                names.remote(self.id).is_some_and(|remote| prefix.contains(remote))
            }
            SoftwireNetwork::Inner(prefix) => prefix.contains(self.endpoint.address),
        }
    }

    /// The fast path has no softwires.
    fn mapped(self) -> Option<Inside6> {
        None
    }

    fn of_mapped(_: Inside6) -> Option<Self> {
        None
    }

    fn named(self, names: &Softwires) -> Option<Named> {
        let Endpoint4 { address, port } = self.endpoint;
        let inside = Inside(Endpoint6::new(address.to_ipv6_mapped(), port));
        Some(Named { softwire: Some(names.remote(self.id)?), inside })
    }

    fn find_named(named: Named, names: &Softwires) -> Option<Self> {
        Some(Self { id: names.find(named.softwire?)?, endpoint: endpoint_of(named)? })
    }

    fn of_named(named: Named, names: &mut Softwires) -> Option<Self> {
        let endpoint = endpoint_of(named)?;
        Some(Self { id: names.intern(named.softwire?)?, endpoint })
    }

    fn of_elsewhere(named: Named) -> Option<Self> {
        named.softwire?;
        Some(Self { endpoint: endpoint_of(named)?, ..Self::UNSPECIFIED })
    }

    fn forget_unused(self, names: &mut Softwires) {
        names.forget_unused(self.id);
    }

    fn is_first_of_softwire(host: SoftwireHost, names: &Softwires) -> bool {
        !names.has_hosts(host.id)
    }

    fn joined(host: SoftwireHost, names: &mut Softwires) -> bool {
        names.joined(host.id)
    }

    fn left(host: SoftwireHost, names: &mut Softwires) -> bool {
        names.left(host.id)
    }

    fn names_site(address: Ipv6Addr, names: &Softwires) -> bool {
        names.find(address).is_some()
    }

    fn names_memory(names: &Softwires) -> usize {
        names.memory()
    }

    fn mapped_prefix(place: u128, bits: u8) -> Option<Ipv6Addr> {
        Endpoint6::mapped_prefix(place, bits)
    }

    fn network_of_mapped(network: Prefix6) -> Option<SoftwireNetwork> {
        // Of ::/0 all.
        if network.length() < MAPPED_BITS {
            return Some(SoftwireNetwork::Remote(network));
        }
        Some(match Endpoint4::network_of_mapped(network) {
            Some(inner) => SoftwireNetwork::Inner(inner),
            None => SoftwireNetwork::Remote(network),
        })
    }

    #[inline]
    fn session_tag(self, hash: &TupleHash, remote: Endpoint4, protocol: NatProtocol) -> u32 {
        let ports = u64::from(self.endpoint.port) << 16 | u64::from(remote.port);
        // The upper bits of a softwire's number are zero.
        hash.pair(
            self.host().word() | (protocol as u64) << (32 + NUMBER_BITS),
            address_word(remote.address) << 32 | ports,
        )
    }

    #[inline]
    fn binding_tag(self, hash: &TupleHash, protocol: NatProtocol) -> u32 {
        hash.pair(self.host().word(), u64::from(self.endpoint.port) << 8 | protocol as u64)
    }
}

fn endpoint_of(Named { inside: Inside(inside), .. }: Named) -> Option<Endpoint4> {
    Some(Endpoint4::new(inside.address.to_ipv4_mapped()?, inside.port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(remote: &str, inner: &str, port: u16) -> Named {
        let inner: Ipv4Addr = inner.parse().unwrap();
        let inside = Inside(Endpoint6::new(inner.to_ipv6_mapped(), port));
        Named { softwire: Some(remote.parse().unwrap()), inside }
    }

    #[test]
    fn hosts_behind_two_softwires_and_two_hosts_behind_one_have_tags_of_their_own() {
        let host = |id, last| SoftwireHost { id: SoftwireId(id), address: Ipv4Addr::new(10, 0, 0, last) };
        let words = [host(1, 1), host(2, 1), host(1, 2), host(2, 2)].map(SoftwireHost::word);
        for (at, word) in words.iter().enumerate() {
            assert!(!words[..at].contains(word), "{words:?}");
        }
    }

    #[test]
    fn an_endpoint_is_named_by_its_softwires_remote_end_and_is_found_by_that_name() {
        let mut names = Softwires::new(4, [1, 2]);
        let [one, other] = [named("2001:db8:1::1", "10.0.0.1", 80), named("2001:db8:2::1", "10.0.0.1", 80)];
        assert_eq!(Softwire::find_named(one, &names), None);
        let [a, b] = [one, other].map(|name| Softwire::of_named(name, &mut names).unwrap());
        assert_ne!(a, b, "one inner address behind two softwires");
        assert_eq!((a.named(&names), b.named(&names)), (Some(one), Some(other)));
        assert_eq!(Softwire::find_named(one, &names), Some(a));
        let bare = Named { softwire: None, ..one };
        assert_eq!(Softwire::find_named(bare, &names), None, "no softwire, no endpoint of this kind");
        assert_eq!(Endpoint4::find_named(one, &()), None, "nor is a softwire's one of a NAT44");
    }

    #[test]
    fn hosts_are_selected_by_their_remote_end_or_by_their_inner_address() {
        let mut names = Softwires::new(4, [1, 2]);
        let host = Softwire::of_named(named("2001:db8:1::1", "10.0.0.1", 80), &mut names).unwrap();
        let is_in = |text: &str| {
            let network = Softwire::network_of_mapped(text.parse().unwrap()).unwrap();
            host.is_in(network, &names)
        };
        assert!(is_in("2001:db8:1::/48") && is_in("::ffff:10.0.0.0/104") && is_in("::/0"));
        assert!(!is_in("2001:db8:2::/48") && !is_in("::ffff:10.0.0.2/128"));
    }
}
