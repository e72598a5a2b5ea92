//! From outside to inside (RFC 6146 §3.5.1 to §3.5.3, second halves).
//!
//! Filtering does not apply to static bindings: the administrator configured them to be reachable. Explicit ones have filters of their own or none.

use super::{Arriving, Engine, Mechanism, Probe};
use crate::counters::Counters;
use crate::direction::Direction;
use crate::drop_reason::DropReason;
use crate::instant::Instant;
use crate::nat::inside_key::InsideKey;
use crate::nat::protocol::NatProtocol;
use crate::nat::session_state::{Segment, SessionState};
use crate::nat::sides::{Inside, Outside};
use sixway_wire::Endpoint4;

/// The translation of a packet.
enum Found<I> {
    /// Its session.
    Session(u32),
    /// The binding alone.
    Binding(Inside<I>),
    /// By nothing: it was stored.
    Stored,
}

impl<I: InsideKey> Engine<I> {
    /// Decides on a packet from outside. `probe` is the result of its lookup.
    ///
    /// # Errors
    /// Why it is dropped.
    #[inline(always)]
    pub fn inbound<M: Mechanism<I>>(
        &mut self,
        arrival: &impl Arriving,
        (outside, probe, now): (Outside<Endpoint4>, &Probe<I>, Instant),
        mechanism: &M,
        counters: &mut Counters,
    ) -> Result<M::Outcome, DropReason> {
        self.clock.set(now);
        let slot = if self.tables.sessions.is_outside(probe.slot, outside, probe.remote, probe.protocol)
            && !self.tables.sessions.is_overdue(probe.slot, self.clock)
        {
            probe.slot
        } else {
            match self.inbound_unprobed(arrival, (outside, probe), mechanism, counters)? {
                Found::Session(slot) => slot,
                Found::Binding(inside) => return Ok(Self::inward(inside, probe, mechanism)),
                Found::Stored => return Ok(mechanism.held()),
            }
        };
        let state = self.tables.sessions.get(slot).state;
        if state == SessionState::OutsideInitStored {
            return Err(DropReason::SynAwaitsInside);
        }
        let (segments, octets) = (arrival.segments(), arrival.packet().length);
        let is_notable = self.tables.sessions.count(slot, Direction::In, segments, octets, self.clock);
        let segment = Segment::of(probe.flags);
        if is_notable | (state == SessionState::InsideInit) | (segment != Segment::Data) {
            self.offload_or_reclaim(slot, Direction::In, arrival, probe, counters);
        }
        self.tables.sessions.advance(slot, Direction::In, segment, self.clock);
        Ok(Self::inward(self.tables.sessions.get(slot).inside, probe, mechanism))
    }

    /// The packet's session was not found by its probe: it is looked for again, or made if the filtering allows it.
    #[cold]
    fn inbound_unprobed(
        &mut self,
        arrival: &impl Arriving,
        (outside, probe): (Outside<Endpoint4>, &Probe<I>),
        mechanism: &impl Mechanism<I>,
        counters: &mut Counters,
    ) -> Result<Found<I>, DropReason> {
        let (protocol, remote) = (probe.protocol, probe.remote);
        if !self.is_absent(probe)
            && let Some(slot) = self.tables.sessions.find_outside(outside, remote, protocol)
            && self.tables.settle(slot, self.clock, counters)
        {
            return Ok(Found::Session(slot));
        }
        // A remote that has no address inside must not create a session.
        mechanism.may_come_in(remote.address)?;
        let is_syn = Segment::of(probe.flags) == Segment::Syn;
        self.tables.make_room_for_outside(self.clock, counters);
        let Some(binding) = self.binding_of(outside, probe) else {
            return match protocol {
                NatProtocol::Tcp if is_syn => self.store(None, arrival, (outside, probe), counters),
                NatProtocol::Tcp => Err(DropReason::NoSession),
                NatProtocol::Udp | NatProtocol::Icmp => Err(DropReason::NoBinding),
            };
        };
        let bound = self.tables.bindings.get(binding);
        let inside = bound.inside;
        let is_admitted = match self.tables.admits_explicitly(binding, remote) {
            Some(true) => true,
            Some(false) => return Err(DropReason::Filtered),
            None => self.tables.permits.admits(protocol, outside, remote.address),
        };
        let state = match protocol {
            NatProtocol::Tcp if is_syn && !is_admitted => {
                return self.store(Some(binding), arrival, (outside, probe), counters);
            }
            NatProtocol::Tcp | NatProtocol::Udp | NatProtocol::Icmp if !is_admitted => {
                return Err(DropReason::Filtered);
            }
            NatProtocol::Tcp if is_syn => SessionState::OutsideInit,
            // §3.5.2.2, CLOSED, any other packet: forwarded if there is a binding, and nothing is remembered.
            NatProtocol::Tcp => return Ok(Found::Binding(inside)),
            NatProtocol::Udp => SessionState::UdpUnanswered,
            NatProtocol::Icmp => SessionState::IcmpUnanswered,
        };
        self.tables.open_from_outside(binding, remote, state, self.clock, counters).map(Found::Session)
    }

    fn store(
        &mut self,
        binding: Option<u32>,
        arrival: &impl Arriving,
        (outside, probe): (Outside<Endpoint4>, &Probe<I>),
        counters: &mut Counters,
    ) -> Result<Found<I>, DropReason> {
        self.tables.store(binding, (outside, probe.remote), arrival.octets(), self.clock, counters)?;
        Ok(Found::Stored)
    }

    #[inline(always)]
    fn inward<M: Mechanism<I>>(inside: Inside<I>, probe: &Probe<I>, mechanism: &M) -> M::Outcome {
        let port = match probe.protocol {
            NatProtocol::Icmp => inside.0.port(),
            NatProtocol::Tcp | NatProtocol::Udp => probe.remote.port,
        };
        mechanism.inward(inside, Endpoint4::new(probe.remote.address, port))
    }
}
