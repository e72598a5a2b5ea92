//! Which worker owns a packet on its way to a NAT44: the one that holds its host's or its port's state.

use super::address_rules::AddressRules;
use super::portless::PortlessProtocol;
use crate::nat::{NatProtocol, Ownership};
use crate::parse::{Addresses, Packet, QuotedTuple, Transport};
use crate::verdict::WorkerId;
use core::net::Ipv4Addr;
use sixway_wire::Endpoint4;

/// The owner of a whole packet. An ICMP error is owned by the packet that it quotes: from inside, one that went to an inside host; from
/// outside, one that came from the pool.
pub(super) fn worker_of(
    (rules, ownership): (&AddressRules, &Ownership<Ipv4Addr>),
    packet: &Packet,
    quoted: Option<&QuotedTuple>,
) -> Option<WorkerId> {
    let Addresses::V4 { source, destination } = packet.addresses else { return None };
    if let Some(remote) = portless_remote(rules, packet, quoted) {
        // By the same hash as inside hosts, which have other addresses.
        return Some(ownership.worker_of_inside(remote));
    }
    let of_outside = |protocol, endpoint| {
        let protocol = NatProtocol::of(protocol).unwrap_or(NatProtocol::Udp);
        ownership.worker_of_outside(protocol, endpoint)
    };
    Some(match quoted {
        Some(QuotedTuple::V4 { destination, .. }) if rules.is_error_from_inside(destination.address) => {
            ownership.worker_of_inside(destination.address)
        }
        Some(QuotedTuple::V4 { source, protocol, .. }) => of_outside(*protocol, *source),
        Some(QuotedTuple::V6 { .. }) | None if rules.is_inside(source) => ownership.worker_of_inside(source),
        Some(QuotedTuple::V6 { .. }) | None => {
            let port = match packet.transport {
                Transport::Ports { destination, .. } => destination,
                Transport::IcmpQuery { identifier, .. } => identifier,
                Transport::IcmpError { .. } | Transport::Opaque => 0,
            };
            of_outside(packet.protocol, Endpoint4::new(destination, port))
        }
    })
}

/// The remote host of a packet of a protocol without ports, or of an ICMP error about one: both directions have it, and nothing else says
/// which of two directions belong together.
#[inline]
fn portless_remote(rules: &AddressRules, packet: &Packet, quoted: Option<&QuotedTuple>) -> Option<Ipv4Addr> {
    if !matches!(packet.transport, Transport::Opaque | Transport::IcmpError { .. }) {
        return None;
    }
    let (protocol, source, destination, is_error) = match (quoted, packet.addresses) {
        (Some(QuotedTuple::V4 { source, destination, protocol }), _) => {
            (*protocol, source.address, destination.address, true)
        }
        (None, Addresses::V4 { source, destination }) => (packet.protocol, source, destination, false),
        (Some(QuotedTuple::V6 { .. }) | None, _) => return None,
    };
    PortlessProtocol::of(protocol)?;
    // What an error from inside quotes came from outside.
    let is_outbound =
        if is_error { !rules.is_error_from_inside(destination) } else { rules.is_inside(source) };
    Some(if is_outbound { destination } else { source })
}
