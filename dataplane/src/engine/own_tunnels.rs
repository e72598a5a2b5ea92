//! Tunnels of this gateway behind its own NAT44 (RFC 3022): an outer header is written with the outside address, and packets to that
//! address are renumbered and then decapsulated. Both take one pass.

use super::Engine;
use super::path::Batch;
use super::slot::Slot;
use crate::classify::Owner;
use crate::direction::Direction;
use crate::drop_reason::DropReason;
use crate::frame::Frame;
use crate::instant::Instant;
use crate::mechanism::contract::{Arrival, Mechanism as _};
use crate::mechanism::table::with_row;
use crate::parse::{Addresses, IPV4_HEADER, Packet};
use crate::rewrite::{Pass, Work};
use crate::tunnel::outer_nat::OuterPacket;
use crate::verdict::{Decision, Next, Outer, Verdict};
use sixway_wire::protocol::{IPV4, IPV6};

impl Engine {
    /// Gives the outer header of a decision the source that the NAT says, if the decision leads to one.
    pub(super) fn translate_outer(
        &mut self,
        packet: &Packet,
        decision: Decision,
        frame: &Frame,
        now: Instant,
    ) -> Result<Decision, DropReason> {
        let (Next::To(nat), Some(encap)) = (decision.next, decision.action.encap) else {
            return Ok(decision);
        };
        let Some(Outer::V4 { source, destination }) = self.path.effects.outer_at(encap.outer).copied() else {
            return Err(DropReason::NoMechanism);
        };
        // No session for what is refused in any case.
        if self.path.host.has4(destination) || self.path.host.encapsulated(packet) {
            return Err(DropReason::TunnelLoop);
        }
        let protocol = match packet.addresses {
            Addresses::V4 { .. } => IPV4,
            Addresses::V6 { .. } => IPV6,
        };
        let counts = (Arrival::new(frame, packet, None).segments(), packet.length + IPV4_HEADER as u32);
        let outer = OuterPacket { source, destination, protocol, counts };
        let effects = &mut self.path.effects;
        let source = with_row!(self.mechanisms, nat.kind, row => {
            row.all[usize::from(nat.index)].outer_source(outer, now, effects)
        })?;
        effects.counters.pass(nat.kind, Direction::Out);
        if let Some(outer) = effects.outer_at_mut(encap.outer) {
            *outer = Outer::V4 { source, destination };
        }
        Ok(Decision { next: Next::Leave, ..decision })
    }

    /// A packet whose destination has become the local end of a tunnel, or an ICMP error about one that the tunnel sent.
    pub(super) fn through_tunnel(
        &mut self,
        packet: &Packet,
        pass: Pass,
        frame: &mut Frame,
        batch: &mut Batch<'_>,
    ) -> Result<Verdict, DropReason> {
        let Addresses::V4 { destination, .. } = packet.addresses else { return Err(DropReason::NoTunnel) };
        let address = self.tunnel_address(packet, destination).ok_or(DropReason::NoTunnel)?;
        let mut slot = Slot { packet: *packet, ..Slot::EMPTY };
        match self.came_through(address, frame, &mut slot)? {
            Owner::TunnelAddress(address) => self.error_from_inside(frame, packet, address, batch),
            Owner::Gateway => Err(DropReason::ToGateway),
            Owner::Mechanism(id) => {
                let inner = slot.inner.as_ref();
                let decision = self.ask(id, (packet, inner), frame, (true, None), batch)?;
                match decision.next {
                    Next::Leave => {
                        self.execute(id, &Work { decision: &decision, packet, inner, pass }, frame, batch)
                    }
                    Next::Control => Ok(Verdict::Control),
                    Next::Held => Ok(Verdict::Held),
                    Next::Again
                    | Next::To(_)
                    | Next::IntoTunnel
                    | Next::Reply
                    | Next::Whole
                    | Next::Rewritten
                    | Next::Absorb => Err(DropReason::NestingLimit),
                }
            }
        }
    }
}
