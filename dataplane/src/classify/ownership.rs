//! The worker at which the fragments of a packet meet.

use crate::parse::{Addresses, Packet};
use crate::verdict::WorkerId;
use core::net::{Ipv4Addr, Ipv6Addr};

/// The worker at which the fragments of a packet meet, by (source, destination, identification); `None` for a whole packet, which is classified
/// again.
pub fn of_fragments(packet: &Packet, workers: u8) -> Option<WorkerId> {
    packet.fragment.map(|fragment| of_fragment(packet.addresses, fragment.identification, workers))
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
