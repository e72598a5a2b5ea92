//! ICMP errors inside softwires and from outside (RFC 5508 §4): which packets they are about, and the addresses of what they quote.

use super::DsLite;
use super::translator::refusal;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::mechanism::contract::Arrival;
use crate::nat::{Inside, NatProtocol, Outside, Softwire};
use crate::parse::{self, Addresses, ICMP_HEADER, Packet, QuotedTuple, Transport};
use crate::verdict::{Action, Decision, Edit, Next, Quoted};
use core::net::Ipv6Addr;
use sixway_wire::checksum::Sum;
use sixway_wire::protocol::ICMPV6;
use sixway_wire::{Endpoint4, icmpv4};

/// The subject of an error.
struct About {
    source: Endpoint4,
    destination: Endpoint4,
    protocol: NatProtocol,
}

impl DsLite {
    /// An error from behind a softwire, about a packet that went there. It leaves with the outside address of the binding, which is all that is
    /// known outside (RFC 5508 REQ-5).
    pub(super) fn error_from_softwire(
        &self,
        (arrival, inner): (&Arrival<'_>, &Packet),
        b4: Ipv6Addr,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        let octets = arrival.octets().get(usize::from(arrival.packet.transport_at)..).unwrap_or_default();
        let About { source: remote, destination, protocol } = about(inner, octets)?;
        let outside = self.outside_of(b4, destination, remote, protocol)?;
        let port = if protocol == NatProtocol::Icmp { outside.0.port } else { remote.port };
        let remote = Endpoint4::new(remote.address, port);
        let edit = Edit::Renumber4 { source: outside.0, destination: remote, keep_ports: true };
        let quoted = Quoted::V4 { source: remote, destination: outside.0, keep_ports: false };
        let policy = self.rules.policy;
        let action = Action { decap: Some(policy), edit: Some(edit), policy, encap: None };
        Ok(Decision { action, quoted: Some(effects.quoted(quoted)), next: self.next(remote.address) })
    }

    /// The outside endpoint of the host that an error is about: a packet from `remote` to this endpoint behind a softwire.
    ///
    /// # Errors
    /// There is no such session.
    pub(crate) fn outside_of(
        &self,
        b4: Ipv6Addr,
        endpoint: Endpoint4,
        remote: Endpoint4,
        protocol: NatProtocol,
    ) -> Result<Outside<Endpoint4>, DropReason> {
        let id = self.softwires().find(b4).ok_or(DropReason::NoSessionForError)?;
        let is_query = protocol == NatProtocol::Icmp;
        let of_session = Endpoint4::new(remote.address, if is_query { 0 } else { remote.port });
        self.nat.error_from_inside(protocol, Inside(Softwire { id, endpoint }), of_session)
    }

    /// What comes from outside and has no session of its own: an error about a packet that went there. The sender, any router on the way, is shown
    /// as itself, so that a route can be traced (RFC 5508 REQ-4).
    #[cold]
    #[inline(never)]
    pub(super) fn error_from_outside(
        &self,
        arrival: &Arrival<'_>,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        let Addresses::V4 { source: sender, .. } = arrival.packet.addresses else {
            return Err(DropReason::NoTunnel);
        };
        let About { source, destination: remote, protocol } = about(arrival.packet, arrival.octets())?;
        let is_query = protocol == NatProtocol::Icmp;
        let of_session = Endpoint4::new(remote.address, if is_query { 0 } else { remote.port });
        let Inside(inside) = self.nat.error_from_outside(protocol, Outside(source), of_session)?;
        let port = if is_query { inside.endpoint.port } else { remote.port };
        let image = Endpoint4::new(remote.address, port);
        let edit = Edit::Renumber4 {
            source: Endpoint4::new(sender, 0),
            destination: inside.endpoint,
            keep_ports: true,
        };
        let quoted = Quoted::V4 { source: inside.endpoint, destination: image, keep_ports: false };
        let encap = Some(self.encap_for(inside.id, effects)?);
        let action = Action { decap: None, edit: Some(edit), policy: self.rules.policy, encap };
        Ok(Decision { action, quoted: Some(effects.quoted(quoted)), next: Next::Leave })
    }
}

/// What an ICMP error, whose octets these are, is about.
fn about(packet: &Packet, octets: &[u8]) -> Result<About, DropReason> {
    let Transport::IcmpError { kind, .. } = packet.transport else { return Err(refusal(packet)) };
    // Redirects are of one link, Source Quench is deprecated (RFC 5508 REQ-10, RFC 6633 §5).
    if matches!(kind, icmpv4::REDIRECT | icmpv4::SOURCE_QUENCH) {
        return Err(DropReason::IcmpUntranslatable);
    }
    let message = octets.get(usize::from(packet.transport_at)..packet.length as usize);
    let message = message.ok_or(DropReason::TransportTruncated)?;
    if Sum::ZERO.bytes(message).checksum() != 0 {
        return Err(DropReason::BadIcmpChecksum);
    }
    let quote = message.get(ICMP_HEADER..).ok_or(DropReason::QuoteUnusable)?;
    let QuotedTuple::V4 { source, destination, protocol: number } = parse::quoted(quote, true)? else {
        return Err(DropReason::QuoteUnusable);
    };
    let protocol =
        NatProtocol::of(number).filter(|_| number != ICMPV6).ok_or(DropReason::NoSessionForError)?;
    Ok(About { source, destination, protocol })
}
