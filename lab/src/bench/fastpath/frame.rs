//! The small frames, whole, as the senders' patterns want them: what differs from flow to flow is zero.

use crate::packet;
use sixway_wire::checksum::Sum;
use sixway_wire::protocol;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Source of IPv6 frames: the last 16 bits count.
pub const CLIENTS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xc, 0, 0, 0, 1, 0);
/// Where UDP goes.
pub const PORT: u16 = 4_000;
/// Octets of a frame, the frame check sequence not counted.
const SMALLEST: usize = 64;

/// An Ethernet frame to a device.
pub fn ethernet(to: [u8; 6], packet: &[u8]) -> Vec<u8> {
    let kind: [u8; 2] = if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] };
    [&to[..], &[2, 0, 0, 0, 0, 1], &kind, packet].concat()
}

/// UDP over IPv6, 64 octets with its Ethernet header.
pub fn udp6(source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
    packet::udp((source, 0), (destination, PORT), &[0; SMALLEST - 62])
}

/// UDP over IPv4, 64 octets with its Ethernet header. `port`: the source's.
pub fn udp4(source: Ipv4Addr, port: u16, destination: Ipv4Addr, destination_port: u16) -> Vec<u8> {
    const OCTETS: usize = SMALLEST - 34;
    let mut datagram = [0_u8; OCTETS];
    datagram[..2].copy_from_slice(&port.to_be_bytes());
    datagram[2..4].copy_from_slice(&destination_port.to_be_bytes());
    datagram[4..6].copy_from_slice(&(OCTETS as u16).to_be_bytes());
    let sum =
        sixway_wire::checksum::pseudo4(source, destination, protocol::UDP, OCTETS as u32).bytes(&datagram);
    datagram[6..8].copy_from_slice(&sum.checksum_nonzero().to_be_bytes());
    ipv4(source, destination, protocol::UDP, &datagram)
}

/// An IPv6 packet in IPv4.
pub fn in_ipv4(source: Ipv4Addr, destination: Ipv4Addr, packet: &[u8]) -> Vec<u8> {
    ipv4(source, destination, 41, packet)
}

fn ipv4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut header = [0_u8; 20];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
    header[6] = 0x40;
    header[8] = 64;
    header[9] = protocol;
    header[12..16].copy_from_slice(&source.octets());
    header[16..].copy_from_slice(&destination.octets());
    let check = Sum::default().bytes(&header).checksum();
    header[10..12].copy_from_slice(&check.to_be_bytes());
    [&header[..], payload].concat()
}
