//! The owner of a packet to an IPv4 address that several mechanisms own together.

use super::Engine;
use super::owner::check_forwarding;
use super::slot::Slot;
use crate::classify::Owner;
use crate::drop_reason::DropReason;
use crate::frame::Frame;
use crate::kind::Kind;
use crate::mechanism::contract::Quotes;
use crate::mechanism::table::with_row_ref;
use crate::parse::{Addresses, Packet, QuotedTuple, Transport};
use crate::verdict::MechanismId;
use sixway_wire::protocol::{ICMPV4, TCP, UDP};

impl Engine {
    /// The rest of [`Engine::classify`] where addresses are divided, for the packet of a mechanism that may have one of them: `id`, unless the
    /// port says that it is another one's.
    #[inline(never)]
    pub(super) fn classify_by_port(
        &self,
        frame: &Frame,
        slot: &mut Slot,
        id: MechanismId,
    ) -> Result<Owner, DropReason> {
        let packet = &slot.packet;
        let mut id = id;
        if let Addresses::V4 { source, destination } = packet.addresses {
            let claimed = self.inside4.owner(frame.ingress, source, destination);
            if claimed.is_none_or(|inside| !self.comes_from_inside(frame, packet, inside)) {
                id = self.owner_by_port(frame, packet, id);
            }
            let owns_source = match self.divided4.owners(source) {
                Some(owners) => owners.all().any(|owner| owner == id),
                None => self.steering.owner4(source) == Some(id),
            };
            let is_error = matches!(packet.transport, Transport::IcmpError { .. });
            if frame.passes == 0 && owns_source && !is_error {
                return Err(DropReason::SourceInPool);
            }
            if self.realms.may_have(id) && id.kind == Kind::Nat44 {
                self.check_outside_of_realm(frame, packet, id)?;
                slot.alone = true;
            }
        }
        check_forwarding(&slot.packet, frame.passes)?;
        Ok(Owner::Mechanism(id))
    }

    /// The mechanism that has the port of a packet, or the ICMP identifier; of an ICMP error, that of the packet which it quotes. `id`: the first
    /// owner of the destination.
    #[inline(never)]
    pub(super) fn owner_by_port(&self, frame: &Frame, packet: &Packet, id: MechanismId) -> MechanismId {
        let Addresses::V4 { destination, .. } = packet.addresses else { return id };
        let Some(owners) = self.divided4.owners(destination).filter(|owners| owners.all().any(|it| it == id))
        else {
            return id;
        };
        if packet.fragment.is_some() {
            // The port is known when the packet is whole: then it is classified again. Until then, the worker that may have its session
            // holds it.
            let may_hold = |id: &MechanismId| with_row_ref!(self.mechanisms, id.kind, row => row.may_hold(id.index, packet).is_ok());
            return owners.all().find(may_hold).unwrap_or_else(|| match packet.protocol {
                TCP | UDP | ICMPV4 => owners.of_port(0),
                _ => owners.of_portless(),
            });
        }
        match packet.transport {
            Transport::Ports { destination, .. } => owners.of_port(destination),
            Transport::IcmpQuery { identifier, .. } => owners.of_port(identifier),
            Transport::IcmpError { .. } => match Quotes::Ports.read(frame, packet) {
                Ok(Some(QuotedTuple::V4 { source, protocol: TCP | UDP | ICMPV4, .. })) => {
                    owners.of_port(source.port)
                }
                // What cannot be read, any of them refuses.
                Ok(Some(QuotedTuple::V4 { .. } | QuotedTuple::V6 { .. }) | None) | Err(_) => {
                    owners.of_portless()
                }
            },
            Transport::Opaque => owners.of_portless(),
        }
    }

    /// Whether a packet with a source that a mechanism claims comes from inside there: an ICMP error does if it is about a packet to a host there.
    /// A router outside may have an address that inside hosts have, too.
    #[inline(never)]
    pub(super) fn comes_from_inside(&self, frame: &Frame, packet: &Packet, id: MechanismId) -> bool {
        if !matches!(packet.transport, Transport::IcmpError { .. }) {
            return true;
        }
        match Quotes::Ports.read(frame, packet) {
            Ok(Some(QuotedTuple::V4 { source, destination, .. })) => {
                self.inside4.owner(frame.ingress, destination.address, source.address) == Some(id)
            }
            Ok(Some(QuotedTuple::V6 { .. }) | None) | Err(_) => true,
        }
    }
}
