//! From inside to outside (RFC 6146 §3.5.1 to §3.5.3, first halves).

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
enum Found {
    /// Its session.
    Session(u32),
    /// The binding alone.
    Binding(Outside<Endpoint4>),
}

impl<I: InsideKey> Engine<I> {
    /// Decides on a packet from inside. `probe` is the result of its lookup.
    ///
    /// # Errors
    /// Why it is dropped.
    #[inline(always)]
    pub fn outbound<M: Mechanism<I>>(
        &mut self,
        arrival: &impl Arriving,
        (inside, probe, now): (Inside<I>, &Probe<I>, Instant),
        mechanism: &M,
        counters: &mut Counters,
    ) -> Result<M::Outcome, DropReason> {
        self.clock.set(now);
        let slot = if self.tables.sessions.is_inside(probe.slot, inside, probe.remote, probe.protocol)
            && !self.tables.sessions.is_overdue(probe.slot, self.clock)
        {
            probe.slot
        } else {
            match self.outbound_unprobed(inside, probe, mechanism, counters)? {
                Found::Session(slot) => slot,
                Found::Binding(outside) => return Ok(self.outward(outside, probe, mechanism)),
            }
        };
        let (segments, octets) = (arrival.segments(), arrival.packet().length);
        let is_notable = self.tables.sessions.count(slot, Direction::Out, segments, octets, self.clock);
        let segment = Segment::of(probe.flags);
        let awaits = self.tables.sessions.get(slot).state == SessionState::InsideInit;
        if is_notable | awaits | (segment != Segment::Data) {
            self.offload_or_reclaim(slot, Direction::Out, arrival, probe, counters);
        }
        let before = self.tables.sessions.get(slot).state;
        self.tables.sessions.advance(slot, Direction::Out, segment, self.clock);
        let session = self.tables.sessions.get(slot);
        let (outside, state) = (session.outside, session.state);
        if state != before {
            self.tables.changed_from_inside(slot, before, counters);
        }
        Ok(self.outward(outside, probe, mechanism))
    }

    /// The packet's session was not found by its probe: it is looked for again, or made.
    #[cold]
    fn outbound_unprobed(
        &mut self,
        inside: Inside<I>,
        probe: &Probe<I>,
        mechanism: &impl Mechanism<I>,
        counters: &mut Counters,
    ) -> Result<Found, DropReason> {
        let (protocol, remote) = (probe.protocol, probe.remote);
        if !self.is_absent(probe)
            && let Some(slot) = self.tables.sessions.find_inside(inside, remote, protocol)
            && self.tables.settle(slot, self.clock, counters)
        {
            return Ok(Found::Session(slot));
        }
        mechanism.may_go_out(inside, remote.address)?;
        let state = match protocol {
            NatProtocol::Udp => SessionState::Udp,
            NatProtocol::Icmp => SessionState::Icmp,
            NatProtocol::Tcp if Segment::of(probe.flags) == Segment::Syn => SessionState::InsideInit,
            NatProtocol::Tcp => {
                // §3.5.2.2, CLOSED, any other packet: forwarded if there is a binding, and nothing is remembered.
                let binding =
                    self.tables.bindings.find_inside(protocol, inside).ok_or(DropReason::NoSession)?;
                return Ok(Found::Binding(self.tables.bindings.get(binding).outside));
            }
        };
        self.tables
            .open_from_inside(protocol, inside, (remote, state), self.clock, counters)
            .map(Found::Session)
    }

    #[inline(always)]
    fn outward<M: Mechanism<I>>(
        &self,
        outside: Outside<Endpoint4>,
        probe: &Probe<I>,
        mechanism: &M,
    ) -> M::Outcome {
        let port = match probe.protocol {
            NatProtocol::Icmp => outside.0.port,
            NatProtocol::Tcp | NatProtocol::Udp => probe.remote.port,
        };
        let is_hairpin = self.owns_outside(probe.remote.address);
        mechanism.outward(outside, Endpoint4::new(probe.remote.address, port), is_hairpin)
    }
}
