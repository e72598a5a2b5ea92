//! Which worker owns a packet on its way to a NAT64: the one that holds its host's or its port's state.

use crate::nat::{NatProtocol, Ownership};
use crate::parse::{Addresses, Packet, QuotedTuple, Transport};
use crate::verdict::WorkerId;
use sixway_wire::Endpoint4;
use sixway_wire::protocol::{ICMPV4, TCP};

/// The owner of a whole packet. ICMP errors are owned by the packet that they quote.
pub fn worker_of(ownership: &Ownership, packet: &Packet, quoted: Option<&QuotedTuple>) -> WorkerId {
    match (packet.addresses, quoted) {
        (_, Some(QuotedTuple::V4 { source, protocol, .. })) => {
            ownership.worker_of_outside(nat_protocol(*protocol), *source)
        }
        (_, Some(QuotedTuple::V6 { destination, .. })) => ownership.worker_of_inside(destination.address),
        (Addresses::V6 { source, .. }, None) => ownership.worker_of_inside(source),
        (Addresses::V4 { destination, .. }, None) => {
            let port = match packet.transport {
                Transport::Ports { destination, .. } => destination,
                Transport::IcmpQuery { identifier, .. } => identifier,
                Transport::IcmpError { .. } | Transport::Opaque => 0,
            };
            ownership.worker_of_outside(nat_protocol(packet.protocol), Endpoint4::new(destination, port))
        }
    }
}

const fn nat_protocol(protocol: u8) -> NatProtocol {
    match protocol {
        TCP => NatProtocol::Tcp,
        ICMPV4 => NatProtocol::Icmp,
        _ => NatProtocol::Udp,
    }
}
