//! Small UDP packets of both families, with right checksums.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Octets of a UDP datagram: a header, and 16 octets of payload.
const DATAGRAM: usize = 24;

/// An IPv6 packet of 64 octets.
pub fn udp6(source: (Ipv6Addr, u16), destination: (Ipv6Addr, u16)) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, DATAGRAM as u8, 17, 64];
    packet.extend(source.0.octets());
    packet.extend(destination.0.octets());
    append_udp(&mut packet, 8, source.1, destination.1);
    packet
}

/// An IPv4 packet of 44 octets.
pub fn udp4(source: (Ipv4Addr, u16), destination: (Ipv4Addr, u16)) -> Vec<u8> {
    let mut packet = header4(DATAGRAM, 17, source.0, destination.0);
    append_udp(&mut packet, 12, source.1, destination.1);
    packet
}

/// The packet behind an IPv4 header of protocol 41.
pub fn in_ipv4(inner: &[u8], source: Ipv4Addr, destination: Ipv4Addr) -> Vec<u8> {
    let mut packet = header4(inner.len(), 41, source, destination);
    packet.extend(inner);
    packet
}

/// The packet as the data of a UDP datagram, without a checksum, as a socket hands it in.
pub fn in_udp4(inner: &[u8], source: (Ipv4Addr, u16), destination: (Ipv4Addr, u16)) -> Vec<u8> {
    let mut packet = header4(8 + inner.len(), 17, source.0, destination.0);
    packet.extend(source.1.to_be_bytes());
    packet.extend(destination.1.to_be_bytes());
    packet.extend((8 + inner.len() as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(inner);
    packet
}

/// The packet behind an IPv6 header of protocol 4.
pub fn in_ipv6(inner: &[u8], source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, inner.len() as u8, 4, 64];
    packet.extend(source.octets());
    packet.extend(destination.octets());
    packet.extend(inner);
    packet
}

fn header4(payload: usize, protocol: u8, source: Ipv4Addr, destination: Ipv4Addr) -> Vec<u8> {
    let mut header = vec![0x45, 0, 0, 20 + payload as u8, 0, 0, 0x40, 0, 64, protocol, 0, 0];
    if protocol == 41 {
        header[6] = 0;
    }
    header.extend(source.octets());
    header.extend(destination.octets());
    let checksum = !fold(sum(&header));
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

/// Appends the datagram; the addresses that its checksum covers begin at `addresses_at`.
fn append_udp(packet: &mut Vec<u8>, addresses_at: usize, source: u16, destination: u16) {
    let at = packet.len();
    packet.extend(source.to_be_bytes());
    packet.extend(destination.to_be_bytes());
    packet.extend([0, DATAGRAM as u8, 0, 0]);
    packet.extend((0..16).map(|at| at ^ 0x5a));
    let checksum = !fold(sum(&packet[addresses_at..]) + 17 + DATAGRAM as u32);
    packet[at + 6..at + 8].copy_from_slice(&checksum.to_be_bytes());
}

fn sum(octets: &[u8]) -> u32 {
    octets.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low))).sum()
}

fn fold(sum: u32) -> u16 {
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
