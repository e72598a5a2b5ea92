//! Which worker owns a packet on its way to a stateful translator: the one that holds its host's or its port's state.

use crate::nat::{NatProtocol, Ownership};
use crate::parse::{Addresses, Packet, QuotedTuple, Transport};
use crate::verdict::WorkerId;
use core::net::{Ipv4Addr, Ipv6Addr};
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

/// The worker at which the fragments of a packet meet, by (source, destination, identification); `None` for a whole packet, for which is asked
/// again.
pub fn of_fragments(packet: &Packet, workers: u8) -> Option<WorkerId> {
    packet.fragment.map(|fragment| of_fragment(packet.addresses, fragment.identification, workers))
}

const fn nat_protocol(protocol: u8) -> NatProtocol {
    match protocol {
        TCP => NatProtocol::Tcp,
        ICMPV4 => NatProtocol::Icmp,
        _ => NatProtocol::Udp,
    }
}

fn of_fragment(addresses: Addresses, identification: u32, workers: u8) -> WorkerId {
    let bits = match addresses {
        Addresses::V4 { source, destination } => words4(source, destination),
        Addresses::V6 { source, destination } => words6(source) ^ words6(destination).rotate_left(17),
    };
    let mixed = (bits ^ u64::from(identification)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    WorkerId(((mixed * u64::from(workers)) >> 32) as u8)
}

fn words4(source: Ipv4Addr, destination: Ipv4Addr) -> u64 {
    u64::from(source.to_bits()) << 32 | u64::from(destination.to_bits())
}

fn words6(address: Ipv6Addr) -> u64 {
    let bits = address.to_bits();
    bits as u64 ^ (bits >> 64) as u64
}
