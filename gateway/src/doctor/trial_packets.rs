//! The packets of the experiment. Each bears a mark, in the Identification of IPv4 or the flow label of IPv6.

use sixway_dataplane::parse::ACK;
use sixway_link::neighbour_discovery::{ALL_NODES, ALL_ROUTERS, HOP_LIMIT};
use sixway_wire::{IcmpHeader, Ipv4Header, Ipv6Header, TcpHeader, UdpHeader, icmpv4, icmpv6, protocol};
use std::net::{Ipv4Addr, Ipv6Addr};

pub(super) type Endpoint4 = (Ipv4Addr, u16);
pub(super) type Endpoint6 = (Ipv6Addr, u16);

/// The link-local address of a neighbour.
const NEIGHBOUR: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x5157);

const DATA: &[u8] = b"sixway doctor";
/// The MTU that errors tell.
const TOLD_MTU: u32 = 1_280;

/// An IPv4 packet.
pub(super) fn ipv4(
    mark: u16,
    (source, destination): (Ipv4Addr, Ipv4Addr),
    protocol: u8,
    body: &[u8],
) -> Vec<u8> {
    let ip = Ipv4Header::new(source, destination, protocol, body.len());
    [&Ipv4Header { ttl: 64, identification: mark, ..ip }.octets()[..], body].concat()
}

/// An IPv6 packet.
pub(super) fn ipv6(
    mark: u16,
    (source, destination): (Ipv6Addr, Ipv6Addr),
    protocol: u8,
    body: &[u8],
) -> Vec<u8> {
    let ip = Ipv6Header::new(source, destination, protocol, body.len());
    let mut octets = Ipv6Header { hop_limit: 64, ..ip }.octets();
    // RFC 8200 §3: the lower 16 bits of the flow label.
    octets[2..4].copy_from_slice(&mark.to_be_bytes());
    [&octets[..], body].concat()
}

fn tcp(source: u16, destination: u16, flags: u8) -> TcpHeader {
    let header = TcpHeader { window: 64_000, ..TcpHeader::new(source, destination, flags) };
    TcpHeader { acknowledgment: u32::from(flags & ACK != 0), ..header }
}

pub(super) fn tcp4(mark: u16, source: Endpoint4, destination: Endpoint4, flags: u8) -> Vec<u8> {
    let header = tcp(source.1, destination.1, flags).with_checksum4(source.0, destination.0, &[]);
    ipv4(mark, (source.0, destination.0), protocol::TCP, &header.octets())
}

pub(super) fn tcp6(mark: u16, source: Endpoint6, destination: Endpoint6, flags: u8) -> Vec<u8> {
    let header = tcp(source.1, destination.1, flags).with_checksum6(source.0, destination.0, &[]);
    ipv6(mark, (source.0, destination.0), protocol::TCP, &header.octets())
}

pub(super) fn udp4(mark: u16, source: Endpoint4, destination: Endpoint4) -> Vec<u8> {
    let header = UdpHeader::new(source.1, destination.1, DATA.len());
    let octets = header.with_checksum4(source.0, destination.0, DATA).octets();
    ipv4(mark, (source.0, destination.0), protocol::UDP, &[&octets, DATA].concat())
}

pub(super) fn udp6(mark: u16, source: Endpoint6, destination: Endpoint6) -> Vec<u8> {
    let header = UdpHeader::new(source.1, destination.1, DATA.len());
    let octets = header.with_checksum6(source.0, destination.0, DATA).octets();
    ipv6(mark, (source.0, destination.0), protocol::UDP, &[&octets, DATA].concat())
}

/// A router solicitation of a host (RFC 4861 §4.1).
pub(super) fn router_solicitation(mark: u16) -> Vec<u8> {
    discovery(mark, ALL_ROUTERS, icmpv6::ROUTER_SOLICITATION, &[])
}

/// A router advertisement, of a router that is not a default one (RFC 4861 §4.2).
pub(super) fn router_advertisement(mark: u16) -> Vec<u8> {
    discovery(mark, ALL_NODES, icmpv6::ROUTER_ADVERTISEMENT, &[0; 8])
}

fn discovery(mark: u16, to: Ipv6Addr, kind: u8, body: &[u8]) -> Vec<u8> {
    let header = IcmpHeader::new(kind, 0, 0).with_checksum6(NEIGHBOUR, to, body);
    let message = [&header.octets()[..], body].concat();
    let mut octets = ipv6(mark, (NEIGHBOUR, to), protocol::ICMPV6, &message);
    octets[7] = HOP_LIMIT;
    octets
}

/// Fragmentation Needed, from a router, about this packet.
pub(super) fn fragmentation_needed(mark: u16, path: (Ipv4Addr, Ipv4Addr), about: &[u8]) -> Vec<u8> {
    let header = IcmpHeader::new(icmpv4::DESTINATION_UNREACHABLE, icmpv4::FRAGMENTATION_NEEDED, TOLD_MTU)
        .with_checksum4(about);
    ipv4(mark, path, protocol::ICMPV4, &[&header.octets()[..], about].concat())
}

/// Packet Too Big, from a router, about this packet.
pub(super) fn packet_too_big(mark: u16, path: (Ipv6Addr, Ipv6Addr), about: &[u8]) -> Vec<u8> {
    let header = IcmpHeader::new(icmpv6::PACKET_TOO_BIG, 0, TOLD_MTU).with_checksum6(path.0, path.1, about);
    ipv6(mark, path, protocol::ICMPV6, &[&header.octets()[..], about].concat())
}
