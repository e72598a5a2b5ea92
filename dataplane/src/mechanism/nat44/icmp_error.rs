//! ICMP errors (RFC 5508 §4, RFC 3022 §4.3): which packets they are about, and the addresses of what they quote.

use super::Nat44;
use super::portless::PortlessProtocol;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::instant::Instant;
use crate::mechanism::contract::Arrival;
use crate::nat::{Inside, NatProtocol, Outside};
use crate::parse::{Addresses, QuotedTuple, Transport};
use crate::verdict::{Decision, Edit, Next, Quoted};
use core::net::Ipv4Addr;
use sixway_wire::checksum::Sum;
use sixway_wire::protocol::ICMPV6;
use sixway_wire::{Endpoint4, icmpv4};

impl Nat44 {
    pub(super) fn icmp_error(
        &self,
        arrival: &Arrival<'_>,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        // Redirects are of one link, Source Quench is deprecated (RFC 5508 REQ-10, RFC 6633 §5).
        if let Transport::IcmpError { kind: icmpv4::REDIRECT | icmpv4::SOURCE_QUENCH, .. } =
            arrival.packet.transport
        {
            return Err(DropReason::IcmpUntranslatable);
        }
        if !has_good_checksum(arrival) {
            return Err(DropReason::BadIcmpChecksum);
        }
        let (
            Addresses::V4 { source: sender, .. },
            Some(QuotedTuple::V4 { source, destination, protocol: number }),
        ) = (arrival.packet.addresses, arrival.quoted)
        else {
            return Err(DropReason::QuoteUnusable);
        };
        if let Some(protocol) = PortlessProtocol::of(number) {
            let about = (source.address, destination.address);
            let (decision, quoted) = self.portless_error(arrival, about, protocol, now)?;
            return Ok(Decision { quoted: Some(effects.quoted(quoted)), ..decision });
        }
        let protocol =
            NatProtocol::of(number).filter(|_| number != ICMPV6).ok_or(DropReason::NoSessionForError)?;
        let (decision, quoted) = if self.rules.is_error_from_inside(destination.address) {
            self.error_from_inside(source, Inside(destination), protocol)
        } else {
            self.error_from_outside(sender, Outside(source), destination, protocol)
        }?;
        Ok(Decision { quoted: Some(effects.quoted(quoted)), ..decision })
    }

    /// About a packet that went to `inside` from `remote`. Whichever inside node sends the error, it leaves with the outside
    /// address of the binding, which is all that is known outside (RFC 5508 REQ-5).
    fn error_from_inside(
        &self,
        remote: Endpoint4,
        inside: Inside<Endpoint4>,
        protocol: NatProtocol,
    ) -> Result<(Decision, Quoted), DropReason> {
        // A session of queries has no remote port.
        let is_query = protocol == NatProtocol::Icmp;
        let of_session = Endpoint4::new(remote.address, if is_query { 0 } else { remote.port });
        let outside = self.nat.error_from_inside(protocol, inside, of_session)?;
        let port = if is_query { outside.0.port } else { remote.port };
        let remote = Endpoint4::new(remote.address, port);
        let edit = Edit::Renumber4 { source: outside.0, destination: remote, keep_ports: true };
        let quoted = Quoted::V4 { source: remote, destination: outside.0, keep_ports: false };
        Ok((Decision::edit(edit, self.rules.policy, self.next(remote.address)), quoted))
    }

    /// About a packet that went from `outside` to `remote`. The sender, any router on the way, is shown as itself, so that a route can be
    /// traced (RFC 5508 REQ-4).
    fn error_from_outside(
        &self,
        sender: Ipv4Addr,
        outside: Outside<Endpoint4>,
        remote: Endpoint4,
        protocol: NatProtocol,
    ) -> Result<(Decision, Quoted), DropReason> {
        let is_query = protocol == NatProtocol::Icmp;
        let of_session = Endpoint4::new(remote.address, if is_query { 0 } else { remote.port });
        let inside = self.nat.error_from_outside(protocol, outside, of_session)?;
        let port = if is_query { inside.0.port } else { remote.port };
        let source = Endpoint4::new(sender, 0);
        let edit = Edit::Renumber4 { source, destination: inside.0, keep_ports: true };
        let image = Endpoint4::new(remote.address, port);
        let quoted = Quoted::V4 { source: inside.0, destination: image, keep_ports: false };
        Ok((Decision::edit(edit, self.rules.policy, Next::Leave), quoted))
    }
}

/// Whether the checksum of an ICMP message is right (RFC 792).
fn has_good_checksum(arrival: &Arrival<'_>) -> bool {
    let message = usize::from(arrival.packet.transport_at)..arrival.packet.length as usize;
    let message = arrival.octets().get(message).unwrap_or_default();
    Sum::ZERO.bytes(message).checksum() == 0
}
