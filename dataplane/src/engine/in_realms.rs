//! Packets from the devices of realms, and packets into realms.

use super::Engine;
use super::owner::check_forwarding;
use super::path::Batch;
use super::slot::Slot;
use crate::classify::Owner;
use crate::drop_reason::DropReason;
use crate::frame::{Frame, Realm};
use crate::mechanism::contract::Quotes;
use crate::parse::{self, Addresses, Packet, QuotedTuple, Transport};
use crate::source_check;
use crate::verdict::{MechanismId, Verdict};
use core::net::Ipv4Addr;

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
        let realm = self.realms.numbered(realm).ok_or(DropReason::NoMechanism)?;
        // Routers inside may have any address. What they send is about a packet to a host inside.
        let id = match quoted(frame, packet) {
            Some((_, to)) if realm.has_host(to) => realm.id(),
            Some(_) => return Err(DropReason::NoSessionForError),
            None if !realm.has_host(source) => return Err(DropReason::SourceNotInside),
            None => realm.owner(source, destination).ok_or(DropReason::NoMechanism)?,
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
