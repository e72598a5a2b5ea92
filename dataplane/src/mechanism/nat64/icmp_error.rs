//! ICMP errors (RFC 6146 §3.4, §3.6.1): which packets they are about, and the translation of their quotes.

use super::Nat64;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::mechanism::contract::Arrival;
use crate::nat::{Inside, NatProtocol, Outside};
use crate::parse::{Addresses, QuotedTuple};
use crate::source_check::is_martian4;
use crate::verdict::{Decision, Edit, Next, Quoted};
use core::net::Ipv4Addr;
use sixway_wire::protocol::{ICMPV4, ICMPV6};
use sixway_wire::{Endpoint4, Endpoint6};

impl Nat64 {
    pub(super) fn icmp_error(
        &self,
        arrival: &Arrival<'_>,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        let (decision, quoted) = match (arrival.packet.addresses, arrival.quoted) {
            (Addresses::V6 { .. }, Some(QuotedTuple::V6 { source, destination, protocol })) => {
                self.error_from_inside(source, Inside(destination), protocol)
            }
            (
                Addresses::V4 { source: sender, .. },
                Some(QuotedTuple::V4 { source, destination, protocol }),
            ) => self.error_from_outside(sender, Outside(source), destination, protocol),
            (Addresses::V6 { .. } | Addresses::V4 { .. }, Some(_) | None) => Err(DropReason::QuoteUnusable),
        }?;
        Ok(Decision { quoted: Some(effects.quoted(quoted)), ..decision })
    }

    /// About a packet that went to `inside` as if from `remote`. Whichever inside node sends the error, it leaves with the outside
    /// address of the binding, which is all that is known outside.
    fn error_from_inside(
        &self,
        remote: Endpoint6,
        inside: Inside<Endpoint6>,
        protocol: u8,
    ) -> Result<(Decision, Quoted), DropReason> {
        let protocol =
            NatProtocol::of(protocol).filter(|_| protocol != ICMPV4).ok_or(DropReason::NoSessionForError)?;
        let prefix = &self.rules.prefix;
        if !prefix.contains(remote.address) {
            return Err(DropReason::NoSessionForError);
        }
        let address = prefix.extract(remote.address)?;
        if is_martian4(address) {
            return Err(DropReason::MartianDestination);
        }
        // A session of echoes has no remote port.
        let remote_port = if protocol == NatProtocol::Icmp { 0 } else { remote.port };
        let outside = self.nat.error_from_inside(protocol, inside, Endpoint4::new(address, remote_port))?;
        let port = if protocol == NatProtocol::Icmp { outside.0.port } else { remote.port };
        let remote = Endpoint4::new(address, port);
        let edit = Edit::Translate6To4 { source: outside.0, destination: remote, keep_ports: true };
        let quoted = Quoted::V4 { source: remote, destination: outside.0, keep_ports: false };
        Ok((Decision::edit(edit, self.rules.policy, self.next(address)), quoted))
    }

    /// About a packet that went from `outside` to `remote`.
    fn error_from_outside(
        &self,
        sender: Ipv4Addr,
        outside: Outside<Endpoint4>,
        remote: Endpoint4,
        protocol: u8,
    ) -> Result<(Decision, Quoted), DropReason> {
        let protocol =
            NatProtocol::of(protocol).filter(|_| protocol != ICMPV6).ok_or(DropReason::NoSessionForError)?;
        // A session of echoes has no remote port.
        let is_echo = protocol == NatProtocol::Icmp;
        let of_session = Endpoint4::new(remote.address, if is_echo { 0 } else { remote.port });
        let inside = self.nat.error_from_outside(protocol, outside, of_session)?;
        let prefix = &self.rules.prefix;
        let port = if is_echo { inside.0.port } else { remote.port };
        let image = Endpoint6::new(prefix.embed(remote.address)?, port);
        // The sender is shown as itself, so that a route can be traced; RFC 7915 §4.1 translates even a source that is
        // illegal, but RFC 6052 §3.1 keeps the well-known prefix from it.
        // Also of a router with a link-local address, which says where a path ends (RFC 7915 §4.1).
        prefix.permit(sender)?;
        let source = Endpoint6::new(prefix.embed_any(sender), 0);
        let edit = Edit::Translate4To6 { source, destination: inside.0, keep_ports: true };
        let quoted = Quoted::V6 { source: inside.0, destination: image, keep_ports: false };
        Ok((Decision::edit(edit, self.rules.policy, Next::Leave), quoted))
    }
}
