//! The small frames, complete, in the form of the senders' patterns: fields that differ from flow to flow are zero.

use crate::packet;
use sixway_wire::{Ipv4Header, UdpHeader, protocol};
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
    let data = [0; SMALLEST - 42];
    let header = UdpHeader::new(port, destination_port, data.len());
    let header = header.with_checksum4(source, destination, &data);
    ipv4(source, destination, protocol::UDP, &[&header.octets()[..], &data].concat())
}

/// An IPv6 packet in IPv4.
pub fn in_ipv4(source: Ipv4Addr, destination: Ipv4Addr, packet: &[u8]) -> Vec<u8> {
    ipv4(source, destination, protocol::IPV6, packet)
}

fn ipv4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    [&Ipv4Header::new(source, destination, protocol, payload.len()).octets()[..], payload].concat()
}
