//! Realms (RFC 6888 REQ-2): inside hosts behind a separate device; other realms may use the same addresses. From the device of a realm
//! a packet reaches the NAT44 of that realm only. From outside, the destination determines the realm, since no two pools have an
//! address in common; and inside addresses mean nothing there.

use super::config::EngineConfig;
use super::inside4::Inside4;
use crate::fragment::{FragmentLimits, Reassembly};
use crate::frame::{Ingress, Realm};
use crate::kind::Kind;
use crate::mechanism::contract::InsideClaim;
use crate::verdict::MechanismId;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use sixway_wire::Prefix4;

/// One realm.
pub(super) struct InRealm {
    number: Realm,
    id: MechanismId,
    inside: Vec<Prefix4>,
    claims: Inside4,
    /// Fragments from its hosts: addresses and identifications are unique within a realm only.
    fragments: Reassembly,
}

/// The realms of an engine.
pub(super) struct Realms {
    all: Vec<InRealm>,
    /// The least index of a NAT44 of a realm.
    first: u16,
    limits: FragmentLimits,
    seed: u64,
}

impl InRealm {
    /// Where a packet is after the realm's NAT44: outside if it was inside, and inside if it was not.
    pub(super) fn beyond(&self, before: Realm) -> Ingress {
        Ingress::Device(if before == self.number { Realm(0) } else { self.number })
    }

    /// Whether a host inside may have the address.
    pub(super) fn has_host(&self, host: Ipv4Addr) -> bool {
        self.inside.iter().any(|prefix| prefix.contains(host))
    }
}

impl InRealm {
    /// The NAT44 of a packet from the realm's device to a destination.
    pub(super) fn owner(&self, source: Ipv4Addr, destination: Ipv4Addr) -> Option<MechanismId> {
        self.claims.owner(Ingress::Device(self.number), source, destination)
    }

    /// Its NAT44.
    pub(super) const fn id(&self) -> MechanismId {
        self.id
    }
}

impl Realms {
    /// None yet. Each will have an equal part of the bounds on fragments.
    pub(super) fn new(config: &EngineConfig) -> Self {
        let count = config.nat44.iter().filter(|nat44| nat44.realm != Realm(0)).count().max(1);
        let FragmentLimits { memory, packets, .. } = config.fragments;
        let limits =
            FragmentLimits { memory: memory / count, packets: (packets / count).max(1), ..config.fragments };
        Self {
            all: Vec::new(),
            first: u16::MAX,
            limits,
            seed: config.seed[0].rotate_left(8) ^ config.seed[1],
        }
    }

    /// Adds what a mechanism claims, if that is in a realm. Whether it is.
    pub(super) fn add(&mut self, claims: &[InsideClaim<Prefix4>], id: MechanismId) -> bool {
        let Some(number) = claims.iter().find_map(|claim| match claim.ingress {
            Some(Ingress::Device(realm)) if realm != Realm(0) => Some(realm),
            Some(Ingress::Device(_) | Ingress::Socket) | None => None,
        }) else {
            return false;
        };
        self.first = self.first.min(id.index);
        let mut inside = Inside4::default();
        inside.add(claims, id);
        self.all.push(InRealm {
            number,
            id,
            inside: claims.iter().map(|claim| claim.sources).collect(),
            claims: inside,
            fragments: Reassembly::new(self.limits, self.seed ^ u64::from(number.0).rotate_left(32)),
        });
        true
    }

    /// Whether the mechanism may be one of a realm; not if there are no realms.
    #[inline(always)]
    pub(super) const fn may_have(&self, id: MechanismId) -> bool {
        id.index >= self.first
    }

    /// The realm of a mechanism.
    pub(super) fn of(&self, id: MechanismId) -> Option<&InRealm> {
        if !self.may_have(id) || id.kind != Kind::Nat44 {
            return None;
        }
        self.all.iter().find(|realm| realm.id == id)
    }

    /// The realm of this number.
    pub(super) fn numbered(&self, number: Realm) -> Option<&InRealm> {
        self.all.iter().find(|realm| realm.number == number)
    }

    /// The fragments that came from the hosts of a realm.
    pub(super) fn fragments_from(&mut self, number: Realm) -> Option<&mut Reassembly> {
        self.all.iter_mut().find(|realm| realm.number == number).map(|realm| &mut realm.fragments)
    }

    /// The tables of fragments.
    pub(super) fn fragment_tables(&mut self) -> impl Iterator<Item = (Realm, &mut Reassembly)> {
        self.all.iter_mut().map(|realm| (realm.number, &mut realm.fragments))
    }

    /// Whether a fragment waits in any of them.
    #[inline]
    pub(super) fn hold_fragments(&self) -> bool {
        self.all.iter().any(|realm| !realm.fragments.is_empty())
    }
}
