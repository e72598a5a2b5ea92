//! From outside to inside: IPv4 becomes IPv6 (RFC 6146 §3.5.1 to §3.5.3, second halves, and §3.6).
//!
//! Static bindings are let in whatever the filtering: the administrator made them for just that.

use super::{Nat64, Outcome, Probe};
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::mechanism::contract::Arrival;
use crate::nat::{BindingKind, Direction, Inside, NatProtocol, Outside, Segment, SessionState};
use crate::verdict::{Decision, Edit, Next};
use sixway_wire::{Endpoint4, Endpoint6};

/// By what a packet is translated.
enum Way {
    /// Its session.
    Session(u32),
    /// The binding alone.
    Binding(Inside<Endpoint6>),
    /// By nothing: it was stored.
    Stored,
}

impl Nat64 {
    #[inline(always)]
    pub(super) fn inbound(
        &mut self,
        arrival: &Arrival<'_>,
        outside: Outside<Endpoint4>,
        probe: &Probe,
        counters: &mut Counters,
    ) -> Result<Outcome, DropReason> {
        let slot = if self.tables.sessions.is_outside(probe.slot, outside, probe.remote, probe.protocol)
            && !self.tables.sessions.is_overdue(probe.slot, self.clock)
        {
            probe.slot
        } else {
            match self.inbound_unprobed(arrival, outside, probe, counters)? {
                Way::Session(slot) => slot,
                Way::Binding(inside) => return Ok(self.to_inside(inside, probe)),
                Way::Stored => return Ok(Outcome::Stored),
            }
        };
        if self.tables.sessions.get(slot).state == SessionState::V4InitStored {
            return Err(DropReason::SynAwaitsInside);
        }
        let (segments, octets) = (arrival.segments(), arrival.packet.length);
        let is_heeded = self.tables.sessions.count(slot, Direction::In, segments, octets, self.clock);
        let segment = Segment::of(probe.flags);
        if is_heeded | (segment != Segment::Data) {
            self.heed(slot, Direction::In, arrival, probe, counters);
        }
        self.tables.sessions.advance(slot, Direction::In, segment, self.clock);
        let session = self.tables.sessions.get(slot);
        Ok(self.to_inside(session.inside, probe))
    }

    /// The packet's session was not found by its probe: it is looked for again, or made if the filtering allows it.
    #[cold]
    fn inbound_unprobed(
        &mut self,
        arrival: &Arrival<'_>,
        outside: Outside<Endpoint4>,
        probe: &Probe,
        counters: &mut Counters,
    ) -> Result<Way, DropReason> {
        let (protocol, remote) = (probe.protocol, probe.remote);
        if let Some(slot) = self.tables.sessions.find_outside(outside, remote, protocol)
            && self.tables.settle(slot, self.clock, counters)
        {
            return Ok(Way::Session(slot));
        }
        // Whoever cannot be represented inside must not make a session there.
        self.prefix.permit(remote.address)?;
        let is_syn = Segment::of(probe.flags) == Segment::Syn;
        self.tables.make_room_for_outside(self.clock, counters);
        let Some(binding) = self.tables.bindings.find_outside(protocol, outside) else {
            return match protocol {
                NatProtocol::Tcp if is_syn => self.store(None, arrival, outside, probe, counters),
                NatProtocol::Tcp => Err(DropReason::NoSession),
                NatProtocol::Udp | NatProtocol::Icmp => Err(DropReason::NoBinding),
            };
        };
        let bound = self.tables.bindings.get(binding);
        let inside = bound.inside;
        let is_admitted = bound.kind == BindingKind::Static
            || self.tables.permits.admits(protocol, outside, remote.address);
        let state = match protocol {
            NatProtocol::Tcp if is_syn && !is_admitted => {
                return self.store(Some(binding), arrival, outside, probe, counters);
            }
            NatProtocol::Tcp | NatProtocol::Udp | NatProtocol::Icmp if !is_admitted => {
                return Err(DropReason::Filtered);
            }
            NatProtocol::Tcp if is_syn => SessionState::V4Init,
            // §3.5.2.2, CLOSED, any other packet: forwarded if there is a binding, and nothing is remembered.
            NatProtocol::Tcp => return Ok(Way::Binding(inside)),
            NatProtocol::Udp => SessionState::Udp,
            NatProtocol::Icmp => SessionState::Icmp,
        };
        self.tables.open_from_outside(binding, remote, state, self.clock, counters).map(Way::Session)
    }

    fn store(
        &mut self,
        binding: Option<u32>,
        arrival: &Arrival<'_>,
        outside: Outside<Endpoint4>,
        probe: &Probe,
        counters: &mut Counters,
    ) -> Result<Way, DropReason> {
        self.tables.store(binding, outside, probe.remote, arrival.octets(), self.clock, counters)?;
        Ok(Way::Stored)
    }

    #[inline(always)]
    fn to_inside(&self, inside: Inside<Endpoint6>, probe: &Probe) -> Outcome {
        let port = match probe.protocol {
            NatProtocol::Icmp => inside.0.port,
            NatProtocol::Tcp | NatProtocol::Udp => probe.remote.port,
        };
        let edit = Edit::Translate4To6 {
            source: Endpoint6::new(self.prefix.embed_any(probe.remote.address), port),
            destination: inside.0,
            keep_ports: false,
        };
        Outcome::Translate(Decision::edit(edit, self.policy, Next::Leave))
    }
}
