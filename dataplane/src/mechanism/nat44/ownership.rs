//! Which worker owns a packet on its way to a NAT44: the one that holds its host's or its port's state.

use super::address_rules::AddressRules;
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
