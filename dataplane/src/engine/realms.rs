//! Realms (RFC 6888 REQ-2): inside hosts behind a device of their own, whose addresses other realms may use as well. From the device of a
//! realm a packet reaches the NAT44 of that realm only. From outside the destination says which one it is for, since no two pools have an
//! address in common; and inside addresses mean nothing there.

use super::Engine;
use super::config::EngineConfig;
use super::inside4::Inside4;
use super::owner::check_forwarding;
use super::path::Batch;
use super::slot::Slot;
use crate::classify::Owner;
use crate::drop_reason::DropReason;
use crate::fragment::{FragmentLimits, Reassembly};
use crate::frame::{Frame, Ingress, Realm};
use crate::kind::Kind;
use crate::mechanism::contract::{InsideClaim, Quotes};
use crate::parse::{self, Addresses, Packet, QuotedTuple, Transport};
use crate::source_check;
use crate::verdict::{MechanismId, Verdict};
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

    fn has_host(&self, host: Ipv4Addr) -> bool {
        self.inside.iter().any(|prefix| prefix.contains(host))
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

impl Engine {
    /// Frames from the devices of realms, one by one.
    #[cold]
    #[inline(never)]
    pub(super) fn go_in_realms(&mut self, frames: &mut [Frame], mut batch: Batch<'_>) {
        self.path.rewriter.set_time(batch.now);
        for frame in frames {
            if frame.realm() == Realm(0) {
                self.one(frame, &mut batch);
                continue;
            }
            self.path.effects.begin();
            let mut slot = Slot::EMPTY;
            let classified = match parse::parse_into(frame.bytes(), &mut slot.packet) {
                Ok(()) => self.classify_from(frame.realm(), frame, &mut slot),
                Err(reason) => {
                    self.path.refuse(reason, frame, None, &mut batch);
                    continue;
                }
            };
            match classified {
                Ok(Some(owner)) => match self.elsewhere(frame, &slot.packet, owner) {
                    Some(worker) => self.path.conclude(Verdict::HandOver(worker), frame),
                    None => {
                        slot.owner = owner;
                        self.walk_alone(&slot, frame, &mut batch);
                    }
                },
                Ok(None) => self.path.conclude(Verdict::Punted, frame),
                Err(reason) => self.path.refuse(reason, frame, Some(&slot.packet), &mut batch),
            }
        }
        self.path.send_generated(&mut batch);
    }

    /// The owner of a packet from the device of this realm; see [`Engine::classify`].
    pub(super) fn classify_from(
        &self,
        realm: Realm,
        frame: &Frame,
        slot: &mut Slot,
    ) -> Result<Option<Owner>, DropReason> {
        if realm == Realm(0) {
            return self.classify(frame, slot);
        }
        let packet = &slot.packet;
        if let Err(reason) = source_check::check(packet) {
            return if source_check::is_host_control(packet) { Ok(None) } else { Err(reason) };
        }
        let Addresses::V4 { source, destination } = packet.addresses else {
            return Err(DropReason::NoMechanism);
        };
        if self.steering.is_own4(destination) {
            return Ok(Some(Owner::Gateway));
        }
        let realm = self.realms.all.iter().find(|one| one.number == realm).ok_or(DropReason::NoMechanism)?;
        // Routers inside may have any address. What they send is about a packet to a host inside.
        let id = match quoted(frame, packet) {
            Some((_, to)) if realm.has_host(to) => realm.id,
            Some(_) => return Err(DropReason::NoSessionForError),
            None if !realm.has_host(source) => return Err(DropReason::SourceNotInside),
            None => realm
                .claims
                .owner(Ingress::Device(realm.number), source, destination)
                .ok_or(DropReason::NoMechanism)?,
        };
        check_forwarding(packet, frame.passes)?;
        Ok(Some(Owner::Mechanism(id)))
    }

    /// From outside, or from hosts of others, a packet to the pool of a realm has no source that is inside there, and an error is not about a
    /// packet to a host there.
    #[cold]
    #[inline(never)]
    pub(super) fn check_outside_of_realm(
        &self,
        frame: &Frame,
        packet: &Packet,
        id: MechanismId,
    ) -> Result<(), DropReason> {
        let (Some(realm), Addresses::V4 { source, .. }) = (self.realms.of(id), packet.addresses) else {
            return Ok(());
        };
        match quoted(frame, packet) {
            Some((_, to)) if realm.has_host(to) => Err(DropReason::NoSessionForError),
            None if realm.has_host(source) => Err(DropReason::MartianSource),
            Some(_) | None => Ok(()),
        }
    }
}

/// Source and destination of the packet that an ICMP error is about; one that cannot be read is its mechanism's to refuse.
fn quoted(frame: &Frame, packet: &Packet) -> Option<(Ipv4Addr, Ipv4Addr)> {
    if !matches!(packet.transport, Transport::IcmpError { .. }) {
        return None;
    }
    match Quotes::Ports.read(frame, packet) {
        Ok(Some(QuotedTuple::V4 { source, destination, .. })) => Some((source.address, destination.address)),
        Ok(Some(QuotedTuple::V6 { .. }) | None) | Err(_) => None,
    }
}
