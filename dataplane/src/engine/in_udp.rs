//! Packets in UDP, by the endpoints at which their tunnels end.

use super::Engine;
use super::slot::Slot;
use super::tunnel_addresses::TunnelAt;
use super::udp_ends::UdpEnds;
use crate::classify::Owner;
use crate::drop_reason::DropReason;
use crate::frame::{Checksum, Frame};
use crate::kind::Kind;
use crate::rewrite::decap;
use crate::verdict::MechanismId;
use sixway_wire::teredo::Prologue;
use sixway_wire::{UDP_HEADER, UdpHeader};

impl Engine {
    /// A datagram that came through a tunnel in UDP: the packet inside is parsed into the slot, and the outer one ends there and begins its transport
    /// with it, whatever stood in front of it and stands behind it.
    #[inline(never)]
    pub(super) fn came_in_udp(
        &self,
        tunnel: TunnelAt,
        frame: &Frame,
        slot: &mut Slot,
    ) -> Result<Owner, DropReason> {
        let Slot { packet, inner, .. } = slot;
        if frame.offload.segments.is_some() || frame.offload.checksum != Checksum::Complete {
            return Err(DropReason::BadGso);
        }
        let at = usize::from(packet.transport_at);
        let octets = frame.bytes().get(at..packet.length as usize).ok_or(DropReason::Truncated)?;
        let header = UdpHeader::read(octets).map_err(|_| DropReason::TransportTruncated)?;
        let length = usize::from(header.length);
        let datagram = octets.get(UDP_HEADER..length).ok_or(DropReason::BadUdpLength)?;
        let (_, rest) = Prologue::split(datagram).map_err(|_| DropReason::Truncated)?;
        packet.transport_at = (at + length - rest.len()) as u16;
        packet.length = (at + length) as u32;
        let inner = inner.place();
        decap::inner(frame, packet, inner)?;
        self.check_inner_source(inner.addresses)?;
        Ok(Owner::Mechanism(tunnel.id))
    }

    /// Looks up again where tunnels in UDP end.
    pub(super) fn set_udp_ends(&mut self) {
        let ends = self.mechanisms.teredo.all.iter().zip(0..).filter_map(|(teredo, index)| {
            let id = MechanismId { kind: Kind::Teredo, index };
            Some((teredo.local()?, TunnelAt { id, policy: teredo.policy() }))
        });
        let spares = self.mechanisms.teredo.all.iter().zip(0..).flat_map(|(teredo, index)| {
            let at = TunnelAt { id: MechanismId { kind: Kind::Teredo, index }, policy: teredo.policy() };
            teredo.spares().map(move |end| (end, at))
        });
        self.udp_ends = UdpEnds::new(ends.chain(spares));
        self.join = self.config.join && (self.join || !self.udp_ends.is_empty());
    }
}
