//! Packets for unit tests, and a checksum that is slow and obvious.

use crate::parse::{Addresses, Packet, parse};
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::protocol;

/// RFC 1071 §1, word by word.
pub fn slow_sum(octets: &[u8]) -> u32 {
    let mut sum = 0;
    for pair in octets.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

fn pseudo_header(packet: &Packet, length: usize) -> u32 {
    let mut octets = Vec::new();
    match packet.addresses {
        Addresses::V4 { .. } if packet.protocol == protocol::ICMPV4 => return 0,
        Addresses::V4 { source, destination } => {
            octets.extend(source.octets());
            octets.extend(destination.octets());
        }
        Addresses::V6 { source, destination } => {
            octets.extend(source.octets());
            octets.extend(destination.octets());
        }
    }
    octets.extend((length as u32).to_be_bytes());
    octets.extend([0, 0, 0, packet.protocol]);
    slow_sum(&octets)
}

fn checksum_at(packet: &Packet) -> Option<usize> {
    match packet.protocol {
        protocol::ICMPV4 | protocol::ICMPV6 => Some(2),
        other => protocol::checksum_offset(other),
    }
}

/// Writes the transport checksum of a whole packet.
pub fn seal(mut octets: Vec<u8>) -> Vec<u8> {
    let packet = parse(&octets).unwrap();
    let at = usize::from(packet.transport_at);
    let field = at + checksum_at(&packet).unwrap();
    octets[field..field + 2].fill(0);
    let sum = slow_sum(&octets[at..]) + pseudo_header(&packet, octets.len() - at);
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    octets[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
    octets
}

/// Whether a whole packet's lengths, IPv4 header checksum and transport checksum are right.
pub fn is_sound(octets: &[u8]) -> bool {
    let Ok(packet) = parse(octets) else { return false };
    if packet.length as usize != octets.len() {
        return false;
    }
    let transport = &octets[usize::from(packet.transport_at)..];
    let Some(field) = checksum_at(&packet).filter(|_| packet.fragment.is_none()) else {
        return true;
    };
    if packet.protocol == protocol::UDP && transport[field..field + 2] == [0, 0] {
        return false;
    }
    let sum = slow_sum(transport) + pseudo_header(&packet, transport.len());
    (sum & 0xffff) + (sum >> 16) == 0xffff
}

/// A whole IPv4 packet: TOS 0, TTL 64, identification 0x1234, DF clear.
pub fn v4(source: &str, destination: &str, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut octets = vec![0x45, 0, 0, 0, 0x12, 0x34, 0, 0, 64, protocol, 0, 0];
    octets.extend(source.parse::<Ipv4Addr>().unwrap().octets());
    octets.extend(destination.parse::<Ipv4Addr>().unwrap().octets());
    octets.extend(payload);
    let length = octets.len() as u16;
    octets[2..4].copy_from_slice(&length.to_be_bytes());
    header_sealed(octets)
}

/// Writes the checksum of an IPv4 header.
pub fn header_sealed(mut octets: Vec<u8>) -> Vec<u8> {
    octets[10..12].fill(0);
    let header = usize::from(octets[0] & 15) * 4;
    let checksum = !slow_sum(&octets[..header]) as u16;
    octets[10..12].copy_from_slice(&checksum.to_be_bytes());
    octets
}

/// A whole IPv6 packet: Traffic Class 0, Hop Limit 64.
pub fn v6(source: &str, destination: &str, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut octets = vec![0x60, 0, 0, 0];
    octets.extend((payload.len() as u16).to_be_bytes());
    octets.extend([next_header, 64]);
    octets.extend(source.parse::<Ipv6Addr>().unwrap().octets());
    octets.extend(destination.parse::<Ipv6Addr>().unwrap().octets());
    octets.extend(payload);
    octets
}

/// A UDP datagram without checksum, its data counting up.
pub fn udp(source: u16, destination: u16, data: usize) -> Vec<u8> {
    let mut octets = Vec::new();
    octets.extend(source.to_be_bytes());
    octets.extend(destination.to_be_bytes());
    octets.extend((8 + data as u16).to_be_bytes());
    octets.extend([0, 0]);
    octets.extend((0..data).map(|i| i as u8));
    octets
}

/// A TCP segment without checksum: SYN, sequence number 1.
pub fn tcp(source: u16, destination: u16, data: usize) -> Vec<u8> {
    let mut octets = Vec::new();
    octets.extend(source.to_be_bytes());
    octets.extend(destination.to_be_bytes());
    octets.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0x20, 0, 0, 0, 0, 0]);
    octets.extend((0..data).map(|i| i as u8));
    octets
}

/// An ICMP message without checksum.
pub fn icmp(kind: u8, code: u8, rest: [u8; 4], body: &[u8]) -> Vec<u8> {
    let mut octets = vec![kind, code, 0, 0];
    octets.extend(rest);
    octets.extend(body);
    octets
}
