//! Packets that mechanisms claim by their IPv4 source, in a form that is quick to compare.

use crate::frame::Ingress;
use crate::mechanism::contract::InsideClaim;
use crate::verdict::MechanismId;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use sixway_wire::Prefix4;

/// A prefix as it is compared.
#[derive(Clone, Copy, Debug)]
struct Masked {
    bits: u32,
    mask: u32,
}

impl Masked {
    const fn of(prefix: Prefix4) -> Self {
        Self { bits: prefix.address().to_bits(), mask: prefix.mask() }
    }

    #[inline(always)]
    const fn holds(self, address: u32) -> bool {
        address & self.mask == self.bits
    }
}

#[derive(Debug)]
struct Claim {
    sources: Masked,
    ingress: Option<Ingress>,
    except: Box<[Masked]>,
    owner: MechanismId,
}

/// The claims, the longest prefix of sources first.
#[derive(Debug, Default)]
pub(super) struct Inside4 {
    claims: Vec<Claim>,
}

impl Inside4 {
    /// Adds what a mechanism claims.
    pub(super) fn add(&mut self, claims: &[InsideClaim<Prefix4>], owner: MechanismId) {
        self.claims.extend(claims.iter().map(|claim| Claim {
            sources: Masked::of(claim.sources),
            ingress: claim.ingress,
            except: claim.except.iter().copied().map(Masked::of).collect(),
            owner,
        }));
        self.claims.sort_by_key(|claim| core::cmp::Reverse(claim.sources.mask));
    }

    /// Whether it is empty.
    #[inline(always)]
    pub(super) const fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// The mechanism that claims a packet.
    #[inline(always)]
    pub(super) fn owner(
        &self,
        ingress: Ingress,
        source: Ipv4Addr,
        destination: Ipv4Addr,
    ) -> Option<MechanismId> {
        let (source, destination) = (source.to_bits(), destination.to_bits());
        for claim in &self.claims {
            if claim.sources.holds(source)
                && claim.ingress.is_none_or(|only| only == ingress)
                && !claim.except.iter().any(|own| own.holds(destination))
            {
                return Some(claim.owner);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Realm;
    use crate::kind::Kind;

    const fn nat44(index: u16) -> MechanismId {
        MechanismId { kind: Kind::Nat44, index }
    }

    fn claim(sources: &str, except: &[&str], ingress: Option<Ingress>) -> InsideClaim<Prefix4> {
        let prefix = |text: &str| text.parse().unwrap();
        InsideClaim {
            sources: prefix(sources),
            ingress,
            except: except.iter().map(|text| prefix(text)).collect(),
        }
    }

    #[test]
    fn the_longest_prefix_claims_a_packet_unless_its_destination_or_ingress_is_another() {
        let elsewhere = Ingress::Device(Realm(7));
        let mut inside = Inside4::default();
        inside.add(&[claim("10.0.0.0/8", &["10.0.0.0/8", "192.0.2.0/25"], None)], nat44(0));
        inside.add(&[claim("10.1.0.0/16", &[], Some(elsewhere))], nat44(1));
        let owner = |ingress, source: &str, destination: &str| {
            inside.owner(ingress, source.parse().unwrap(), destination.parse().unwrap())
        };
        assert_eq!(owner(elsewhere, "10.1.2.3", "192.0.2.1"), Some(nat44(1)));
        assert_eq!(owner(Ingress::default(), "10.1.2.3", "192.0.2.1"), None);
        assert_eq!(owner(Ingress::default(), "10.1.2.3", "192.0.2.128"), Some(nat44(0)));
        assert_eq!(owner(Ingress::default(), "10.1.2.3", "10.255.0.1"), None);
        assert_eq!(owner(Ingress::default(), "11.0.0.0", "192.0.2.128"), None);
    }
}
