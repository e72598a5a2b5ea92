//! Packets of protocols without ports, and ICMP errors about them: their new addresses.

use super::Nat44;
use super::portless::{Passing, PortlessProtocol};
use super::translator::refusal;
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::instant::Instant;
use crate::mechanism::contract::Arrival;
use crate::nat::{Inside, Mechanism as _};
use crate::parse::quoted::QuotedPacket;
use crate::parse::{Addresses, ICMP_HEADER, Packet};
use crate::stateful::WithoutPorts as _;
use crate::tunnel::outer_nat::OuterPacket;
use crate::verdict::{Decision, Edit, Next, Quoted, WorkerId};
use core::net::Ipv4Addr;
use sixway_wire::Endpoint4;

impl Nat44 {
    /// The new source and destination of a packet without five-tuple, and where it goes.
    #[cold]
    #[inline(never)]
    pub(super) fn without_five_tuple(
        &mut self,
        arrival: &Arrival<'_>,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<(Ipv4Addr, Ipv4Addr, Next), DropReason> {
        let packet = arrival.packet;
        let Addresses::V4 { source, destination } = packet.addresses else {
            return Err(DropReason::NoMechanism);
        };
        let protocol = PortlessProtocol::of(packet.protocol).ok_or_else(|| refusal(packet))?;
        let octets = usize::from(packet.transport_at)..packet.length as usize;
        let octets = arrival.octets().get(octets).unwrap_or_default();
        let counts = (arrival.segments(), packet.length);
        if !self.rules.is_inside(source) {
            let passing = Passing { protocol, octets, remote: source, counts, now };
            let may_come_in = || self.rules.may_come_in(source);
            let inside = self.without_ports.inbound(destination, passing, may_come_in)?;
            return Ok((source, inside, self.rules.own_tunnels.next(inside, protocol)));
        }
        let passing = Passing { protocol, octets, remote: destination, counts, now };
        Ok((self.send_portless(source, passing, counters)?, destination, Next::Leave))
    }

    /// The outside address of a packet from inside.
    pub(super) fn send_portless(
        &mut self,
        source: Ipv4Addr,
        passing: Passing<'_>,
        counters: &mut Counters,
    ) -> Result<Ipv4Addr, DropReason> {
        let Passing { remote, now, .. } = passing;
        // Between two inside hosts nothing would say which of them a packet is for.
        if self.nat.owns_outside(remote) {
            return Err(DropReason::ProtocolUnsupported);
        }
        let paired = self.paired(source);
        let may_go_out = || self.rules.may_go_out(Inside(Endpoint4::new(source, 0)), remote);
        let outside = self.without_ports.outbound(source, passing, paired, may_go_out, counters);
        if self.without_ports.has_events() {
            self.record_portless(now);
        }
        outside
    }

    /// The outside address of a tunnel packet of this gateway.
    #[cold]
    #[inline(never)]
    pub(super) fn of_own_tunnel(
        &mut self,
        outer: OuterPacket,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Ipv4Addr, DropReason> {
        let OuterPacket { source, destination, protocol, counts } = outer;
        let protocol = PortlessProtocol::of(protocol).ok_or(DropReason::ProtocolUnsupported)?;
        let passing = Passing { protocol, octets: &[], remote: destination, counts, now };
        self.send_portless(source, passing, &mut effects.counters)
    }

    /// The worker of the sessions without ports with a remote host.
    pub(super) fn worker_with(&self, remote: Ipv4Addr) -> WorkerId {
        self.ownership().worker_of_inside(remote)
    }

    /// Records what has begun and ended of these protocols.
    #[cold]
    pub(super) fn record_portless(&mut self, now: Instant) {
        self.without_ports.take_events().into_iter().for_each(|event| self.nat.record(now, event));
    }

    /// The outside address that a host has for other protocols (RFC 4787 REQ-2). Of several workers, that of the remote host need not
    /// know it, and then no worker uses it, so that it does not depend on the remote host.
    fn paired(&self, host: Ipv4Addr) -> Option<Ipv4Addr> {
        if self.ownership().workers() == 1 { self.nat.paired_address(host) } else { None }
    }

    /// Whether a fragment may be held. With several workers, the one with the session is known when the packet is complete.
    #[cold]
    pub(super) fn may_hold_portless(
        &self,
        packet: &Packet,
        protocol: PortlessProtocol,
    ) -> Result<(), DropReason> {
        let Addresses::V4 { source, destination } = packet.addresses else {
            return Err(DropReason::NoMechanism);
        };
        if !self.without_ports.has_any() {
            return Err(DropReason::ProtocolUnsupported);
        }
        let may_be_elsewhere = self.ownership().workers() > 1;
        if self.rules.is_inside(source)
            || may_be_elsewhere
            || self.without_ports.may_come(destination, source, protocol)
        {
            Ok(())
        } else {
            Err(DropReason::Filtered)
        }
    }

    /// An ICMP error about a packet from `source` to `destination`.
    pub(super) fn portless_error(
        &self,
        arrival: &Arrival<'_>,
        (source, destination): (Ipv4Addr, Ipv4Addr),
        protocol: PortlessProtocol,
        now: Instant,
    ) -> Result<(Decision, Quoted), DropReason> {
        let Addresses::V4 { source: sender, .. } = arrival.packet.addresses else {
            return Err(DropReason::QuoteUnusable);
        };
        let none = DropReason::NoSessionForError;
        let is_from_inside = self.rules.is_error_from_inside(destination);
        let (new, quoted, next) = if is_from_inside {
            let about = (source, protocol);
            let outside = self.without_ports.error_from_inside(destination, about, now).ok_or(none)?;
            ((outside, source), (source, outside), self.next(source))
        } else {
            let about = (destination, protocol);
            let octets = quoted_octets(arrival)?;
            let inside = self.without_ports.error_from_outside(source, about, octets, now).ok_or(none)?;
            ((sender, inside), (inside, destination), self.rules.own_tunnels.next(inside, protocol))
        };
        let endpoint = |address| Endpoint4::new(address, 0);
        let edit =
            Edit::Renumber4 { source: endpoint(new.0), destination: endpoint(new.1), keep_ports: true };
        let quoted =
            Quoted::V4 { source: endpoint(quoted.0), destination: endpoint(quoted.1), keep_ports: true };
        Ok((Decision::edit(edit, self.rules.policy, next), quoted))
    }
}

/// The quote of an ICMP error after the IP header.
fn quoted_octets<'a>(arrival: &Arrival<'a>) -> Result<&'a [u8], DropReason> {
    let from = usize::from(arrival.packet.transport_at) + ICMP_HEADER;
    let quote = arrival.octets().get(from..arrival.packet.length as usize).unwrap_or_default();
    let packet = QuotedPacket::v4(quote)?;
    Ok(if packet.has_transport_header() { packet.transport(quote) } else { &[] })
}
