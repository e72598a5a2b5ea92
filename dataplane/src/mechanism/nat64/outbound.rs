//! From inside to outside: IPv6 becomes IPv4 (RFC 6146 §3.5.1 to §3.5.3, first halves, and §3.6).

use super::{Nat64, Outcome, Probe};
use crate::classify::source_check::is_martian4;
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::mechanism::contract::Arrival;
use crate::nat::{Direction, Inside, NatProtocol, Outside, Segment, SessionState};
use crate::parse::{Addresses, Packet};
use crate::verdict::{Decision, Edit};
use sixway_wire::{Endpoint4, Endpoint6};

impl Nat64 {
    #[inline(always)]
    pub(super) fn outbound(
        &mut self,
        arrival: &Arrival<'_>,
        inside: Inside<Endpoint6>,
        probe: &Probe,
        counters: &mut Counters,
    ) -> Result<Outcome, DropReason> {
        let slot = if self.tables.sessions.is_inside(probe.slot, inside, probe.remote, probe.protocol)
            && !self.tables.sessions.is_overdue(probe.slot, self.clock)
        {
            probe.slot
        } else {
            match self.outbound_unprobed(arrival, inside, probe, counters)? {
                Way::Session(slot) => slot,
                Way::Binding(outside) => {
                    return Ok(self.to_outside(outside, probe));
                }
            }
        };
        let (segments, octets) = (arrival.segments(), arrival.packet.length);
        let is_heeded = self.tables.sessions.count(slot, Direction::Out, segments, octets, self.clock);
        let segment = Segment::of(probe.flags);
        if is_heeded | (segment != Segment::Data) {
            self.heed(slot, Direction::Out, arrival, probe, counters);
        }
        let waited = self.tables.sessions.get(slot).state == SessionState::V4InitStored;
        self.tables.sessions.advance(slot, Direction::Out, segment, self.clock);
        let session = self.tables.sessions.get(slot);
        let (outside, state) = (session.outside, session.state);
        if waited && state == SessionState::Established {
            self.tables.answered_from_inside(slot, counters);
        }
        Ok(self.to_outside(outside, probe))
    }

    /// The packet's session was not found by its probe: it is looked for again, or made.
    #[cold]
    fn outbound_unprobed(
        &mut self,
        arrival: &Arrival<'_>,
        inside: Inside<Endpoint6>,
        probe: &Probe,
        counters: &mut Counters,
    ) -> Result<Way, DropReason> {
        let (protocol, remote) = (probe.protocol, probe.remote);
        if let Some(slot) = self.tables.sessions.find_inside(inside, remote, protocol)
            && self.tables.settle(slot, self.clock, counters)
        {
            return Ok(Way::Session(slot));
        }
        self.refuse_own_source(arrival.packet)?;
        self.prefix.permit(remote.address)?;
        if is_martian4(remote.address) {
            return Err(DropReason::MartianDestination);
        }
        let state = match protocol {
            NatProtocol::Udp => SessionState::Udp,
            NatProtocol::Icmp => SessionState::Icmp,
            NatProtocol::Tcp if Segment::of(probe.flags) == Segment::Syn => SessionState::V6Init,
            NatProtocol::Tcp => {
                // §3.5.2.2, CLOSED, any other packet: forwarded if there is a binding, and nothing is remembered.
                let binding =
                    self.tables.bindings.find_inside(protocol, inside).ok_or(DropReason::NoSession)?;
                return Ok(Way::Binding(self.tables.bindings.get(binding).outside));
            }
        };
        self.tables.open_from_inside(protocol, inside, remote, state, self.clock, counters).map(Way::Session)
    }

    /// RFC 6146 §3.5: a source under the prefix, or another NAT64's, would make hairpins loop.
    pub(super) fn refuse_own_source(&self, packet: &Packet) -> Result<(), DropReason> {
        match packet.addresses {
            Addresses::V6 { source, .. }
                if self.prefix.contains(source)
                    || self.other_prefixes.iter().any(|prefix| prefix.contains(source)) =>
            {
                Err(DropReason::SourceInTranslationPrefix)
            }
            Addresses::V6 { .. } | Addresses::V4 { .. } => Ok(()),
        }
    }

    #[inline(always)]
    fn to_outside(&self, outside: Outside<Endpoint4>, probe: &Probe) -> Outcome {
        let port = match probe.protocol {
            NatProtocol::Icmp => outside.0.port,
            NatProtocol::Tcp | NatProtocol::Udp => probe.remote.port,
        };
        let edit = Edit::Translate6To4 {
            source: outside.0,
            destination: Endpoint4::new(probe.remote.address, port),
            keep_ports: false,
        };
        Outcome::Translate(Decision::edit(edit, self.policy, self.next(probe.remote.address)))
    }
}

/// By what a packet is translated.
enum Way {
    /// Its session.
    Session(u32),
    /// The binding alone.
    Binding(Outside<Endpoint4>),
}
