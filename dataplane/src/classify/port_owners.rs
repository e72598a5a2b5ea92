//! IPv4 addresses that several mechanisms own together, each with ports of its own.
//!
//! ```text
//!   203.0.113.1   61000-62999  one mechanism      TCP, UDP: the destination port
//!                 63000-65535  another one        ICMP: the identifier; of an error the source port, or identifier, of what it quotes
//!                 the rest, and what has no port: the one that has protocols without ports, else the first
//! ```

use super::Destinations4;
use crate::nat::PoolConfig;
use crate::verdict::MechanismId;
use core::net::Ipv4Addr;
use core::ops::RangeInclusive;
use sixway_wire::Prefix4;
use std::collections::BTreeMap;

/// Ports of IPv4 addresses, as a mechanism says that they are its.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ports4 {
    /// The addresses.
    pub addresses: Vec<Prefix4>,
    /// The ports of each of them: of TCP and UDP, and ICMP identifiers. If no other mechanism has ports of an address, it has all of them.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Whether it takes protocols without ports.
    pub portless: bool,
}

impl Ports4 {
    /// What is a pool's.
    pub fn of_pool(pool: &PoolConfig, portless: bool) -> Self {
        Self { addresses: pool.addresses.clone(), ports: pool.ports.clone(), portless }
    }
}

/// Ports of a mechanism.
#[derive(Clone, Debug)]
pub struct PortClaim {
    /// The mechanism.
    pub owner: MechanismId,
    /// Its ports.
    pub ports: Ports4,
}

/// The owners of the ports of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortOwners {
    /// The last port of each range, ascending, and its owner. The last range ends at 65,535. Nobody's ports are the first owner's: it has no
    /// binding there, and says so.
    ranges: Vec<(u16, MechanismId)>,
    /// All of them, in the order of the configuration.
    owners: Vec<MechanismId>,
    /// The one that takes protocols without ports; if none does, the one that refuses them.
    portless: MechanismId,
}

impl PortOwners {
    /// Of the claims that hold an address, of which there is at least one. Of a port that several claim, the first.
    fn of(claims: &[&PortClaim]) -> Self {
        let all =
            || claims.iter().flat_map(|claim| claim.ports.ports.iter().map(|range| (claim.owner, range)));
        let ends = all().flat_map(|(_, range)| [range.start().checked_sub(1), Some(*range.end())]);
        let mut ends: Vec<u16> = ends.flatten().chain([u16::MAX]).collect();
        ends.sort_unstable();
        ends.dedup();
        let owner = |end: u16| all().find(|(_, range)| range.contains(&end)).map(|(owner, _)| owner);
        let first = claims[0].owner;
        Self {
            ranges: ends.into_iter().map(|end| (end, owner(end).unwrap_or(first))).collect(),
            owners: claims.iter().map(|claim| claim.owner).collect(),
            portless: claims.iter().find(|claim| claim.ports.portless).map_or(first, |claim| claim.owner),
        }
    }

    /// The owner of a port, or of an ICMP identifier.
    #[inline]
    pub fn of_port(&self, port: u16) -> MechanismId {
        self.ranges[self.ranges.partition_point(|(last, _)| *last < port)].1
    }

    /// The owner of what has no port.
    pub const fn of_portless(&self) -> MechanismId {
        self.portless
    }

    /// All owners.
    pub fn all(&self) -> impl Iterator<Item = MechanismId> {
        self.owners.iter().copied()
    }
}

/// The addresses that several mechanisms own together. They are also the first owner's in [`super::Destinations4`], which is asked before.
#[derive(Clone, Debug, Default)]
pub struct DividedAddresses {
    /// Which of `owners` has a prefix; `None`: one mechanism has all ports.
    prefixes: Destinations4<Option<usize>>,
    owners: Vec<PortOwners>,
}

impl DividedAddresses {
    /// Of these claims. Within a longer prefix, those of the shorter ones that hold it are owners, too.
    pub fn new(claims: &[PortClaim]) -> Self {
        let of_claim = |(number, claim): (usize, &PortClaim)| {
            claim.ports.addresses.iter().map(|prefix| (*prefix, number)).collect::<Vec<_>>()
        };
        let mut all: Vec<(Prefix4, usize)> = claims.iter().enumerate().flat_map(of_claim).collect();
        all.sort_unstable();
        all.dedup();
        let (mut prefixes, mut owners) = (Vec::new(), Vec::new());
        let mut known: BTreeMap<Vec<usize>, Option<usize>> = BTreeMap::new();
        // Prefixes are nested or disjoint: those that contain the current one form a stack.
        let mut open: Vec<(Prefix4, usize)> = Vec::new();
        for alike in all.chunk_by(|(one, _), (other, _)| one == other) {
            let prefix = alike[0].0;
            open.retain(|(wider, _)| wider.overlaps(prefix));
            open.extend(alike);
            let mut holding: Vec<usize> = open.iter().map(|(_, number)| *number).collect();
            holding.sort_unstable();
            holding.dedup();
            let together: Vec<&PortClaim> = holding.iter().map(|number| &claims[*number]).collect();
            let place = *known.entry(holding).or_insert_with(|| {
                (together.len() > 1).then(|| {
                    owners.push(PortOwners::of(&together));
                    owners.len() - 1
                })
            });
            prefixes.push((prefix, place));
        }
        if owners.is_empty() {
            prefixes.clear();
        }
        Self { prefixes: Destinations4::new(prefixes), owners }
    }

    /// Whether there are none.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// The owners of the ports of an address; `None`: it has one owner at most.
    pub fn owners(&self, address: Ipv4Addr) -> Option<&PortOwners> {
        self.prefixes.owner(address).flatten().map(|place| &self.owners[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;
    use proptest::prelude::*;

    const fn nat44(index: u16) -> MechanismId {
        MechanismId { kind: Kind::Nat44, index }
    }

    fn claim(index: u16, addresses: &[&str], ports: &[RangeInclusive<u16>], portless: bool) -> PortClaim {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        PortClaim { owner: nat44(index), ports: Ports4 { addresses, ports: ports.to_vec(), portless } }
    }

    #[test]
    fn an_address_of_two_mechanisms_is_divided_by_port_and_others_are_not() {
        let claims = [
            claim(0, &["192.0.2.0/24"], &[1_024..=32_767], false),
            claim(1, &["192.0.2.1/32", "198.51.100.0/24"], &[32_768..=65_535], true),
        ];
        let divided = DividedAddresses::new(&claims);
        let of = |address: &str| divided.owners(address.parse().unwrap());
        assert!(of("192.0.2.2").is_none() && of("198.51.100.1").is_none() && of("203.0.113.1").is_none());
        assert!(DividedAddresses::new(&claims[..1]).is_empty());
        let both = of("192.0.2.1").unwrap();
        assert_eq!([1_024, 32_767].map(|port| both.of_port(port)), [nat44(0); 2]);
        assert_eq!([32_768, 65_535].map(|port| both.of_port(port)), [nat44(1); 2]);
        assert_eq!([0, 80, 1_023].map(|port| both.of_port(port)), [nat44(0); 3], "nobody's");
        assert_eq!(both.of_portless(), nat44(1));
    }

    proptest! {
        #[test]
        fn a_port_is_of_the_first_claim_that_has_it(
            ranges in prop::collection::vec((0_u16..3, any::<u16>(), any::<u16>()), 1..12),
            near in prop::collection::vec((0_usize..12, -2_i32..=2), 1..20),
        ) {
            let claims: Vec<PortClaim> = (0..3)
                .map(|index| {
                    let its = ranges.iter().filter(|(owner, _, _)| *owner == index);
                    let its: Vec<_> = its.map(|(_, one, other)| *one.min(other)..=*one.max(other)).collect();
                    claim(index, &["192.0.2.1/32"], &its, false)
                })
                .collect();
            let divided = DividedAddresses::new(&claims);
            let owners = divided.owners("192.0.2.1".parse().unwrap()).unwrap();
            for (index, offset) in near {
                let (_, one, other) = ranges[index % ranges.len()];
                for end in [one, other] {
                    let Ok(port) = u16::try_from(i32::from(end) + offset) else { continue };
                    let first = claims.iter().find(|it| it.ports.ports.iter().any(|range| range.contains(&port)));
                    prop_assert_eq!(owners.of_port(port), first.map_or(nat44(0), |claim| claim.owner));
                }
            }
        }
    }
}
