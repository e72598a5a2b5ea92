//! Small UDP packets of both families, and a slow computation of their checksums to check the engine's work by.

use sixway_wire::Endpoint4;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Octets of payload: the IPv6 packet has 64 octets, the IPv4 packet 44.
pub const PAYLOAD: usize = 16;
/// Octets of the IPv6 packet.
pub const SIZE: usize = 40 + 8 + PAYLOAD;

/// Octets of the IPv6 packet in an IPv4 packet.
pub const IN_IPV4: usize = 20 + SIZE;

/// Octets of the IPv6 packet in a UDP datagram.
pub const IN_UDP: usize = 28 + SIZE;

/// Octets of the IPv4 packet in an IPv6 packet.
pub const IN_IPV6: usize = 40 + 20 + 8 + PAYLOAD;

/// Where a packet comes from and goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow<A> {
    /// Source address.
    pub source: A,
    /// Source port.
    pub source_port: u16,
    /// Destination address.
    pub destination: A,
    /// Destination port.
    pub destination_port: u16,
}

impl<A: Copy> Flow<A> {
    /// The flow of the answers.
    pub const fn answers(&self) -> Self {
        Self {
            source: self.destination,
            source_port: self.destination_port,
            destination: self.source,
            destination_port: self.source_port,
        }
    }
}

/// Writes the flow's IPv6 packet; its length.
pub fn write6(flow: &Flow<Ipv6Addr>, octets: &mut [u8; SIZE]) -> usize {
    octets.fill(0);
    octets[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, 8 + PAYLOAD as u8, 17, 64]);
    octets[8..24].copy_from_slice(&flow.source.octets());
    octets[24..40].copy_from_slice(&flow.destination.octets());
    write_udp(flow.source_port, flow.destination_port, &mut octets[40..]);
    let checksum = udp_checksum(&octets[8..40], &octets[40..]);
    octets[46..48].copy_from_slice(&checksum.to_be_bytes());
    SIZE
}

/// Writes the flow's IPv6 packet in an IPv4 packet of protocol 41; its length.
pub fn write6_in4(
    flow: &Flow<Ipv6Addr>,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    octets: &mut [u8; IN_IPV4],
) -> usize {
    let mut inner = [0; SIZE];
    write6(flow, &mut inner);
    octets[..12].copy_from_slice(&[0x45, 0, 0, IN_IPV4 as u8, 0, 0, 0, 0, 64, 41, 0, 0]);
    octets[12..16].copy_from_slice(&source.octets());
    octets[16..20].copy_from_slice(&destination.octets());
    let checksum = !fold(sum(&octets[..20]));
    octets[10..12].copy_from_slice(&checksum.to_be_bytes());
    octets[20..].copy_from_slice(&inner);
    IN_IPV4
}

/// Reads the flow of an IPv6 packet in an IPv4 packet between these addresses, if all of its checksums and lengths are right.
pub fn read6_in4(octets: &[u8], source: Ipv4Addr, destination: Ipv4Addr) -> Option<Flow<Ipv6Addr>> {
    let lengths = octets.len() == IN_IPV4 && octets[0] == 0x45 && number(octets, 2) == IN_IPV4 as u16;
    let addresses = [source.octets(), destination.octets()].concat();
    let right =
        lengths && fold(sum(&octets[..20])) == 0xffff && octets[9] == 41 && octets[12..20] == addresses;
    right.then(|| read6(&octets[20..])).flatten()
}

/// Writes the flow's IPv6 packet in a UDP datagram without a checksum; its length.
pub fn write6_in_udp(
    flow: &Flow<Ipv6Addr>,
    source: Endpoint4,
    destination: Endpoint4,
    octets: &mut [u8; IN_UDP],
) -> usize {
    let mut inner = [0; SIZE];
    write6(flow, &mut inner);
    octets[..12].copy_from_slice(&[0x45, 0, 0, IN_UDP as u8, 0, 0, 0, 0, 64, 17, 0, 0]);
    octets[12..16].copy_from_slice(&source.address.octets());
    octets[16..20].copy_from_slice(&destination.address.octets());
    let checksum = !fold(sum(&octets[..20]));
    octets[10..12].copy_from_slice(&checksum.to_be_bytes());
    octets[20..22].copy_from_slice(&source.port.to_be_bytes());
    octets[22..24].copy_from_slice(&destination.port.to_be_bytes());
    octets[24..28].copy_from_slice(&[0, IN_UDP as u8 - 20, 0, 0]);
    octets[28..].copy_from_slice(&inner);
    IN_UDP
}

/// Reads the flow of an IPv6 packet in a UDP datagram between these endpoints, if its lengths and checksums are right.
pub fn read6_in_udp(octets: &[u8], source: Endpoint4, destination: Endpoint4) -> Option<Flow<Ipv6Addr>> {
    let lengths = octets.len() == IN_UDP && octets[0] == 0x45 && number(octets, 2) == IN_UDP as u16;
    let addresses = [source.address.octets(), destination.address.octets()].concat();
    // The socket that sends it makes the checksum, which has begun with the pseudo-header.
    let begun = fold(sum(&addresses) + 17 + (IN_UDP as u32 - 20));
    let is_right = lengths
        && fold(sum(&octets[..20])) == 0xffff
        && octets[9] == 17
        && octets[12..20] == addresses
        && (number(octets, 20), number(octets, 22)) == (source.port, destination.port)
        && usize::from(number(octets, 24)) == IN_UDP - 20
        && (number(octets, 26) == 0
            || number(octets, 26) == begun
            || udp_is_right(&octets[12..20], &octets[20..]));
    is_right.then(|| read6(&octets[28..])).flatten()
}

/// Writes the flow's IPv4 packet; its length.
pub fn write4(flow: &Flow<Ipv4Addr>, octets: &mut [u8; SIZE]) -> usize {
    let length = 20 + 8 + PAYLOAD;
    octets.fill(0);
    octets[..12].copy_from_slice(&[0x45, 0, 0, length as u8, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    octets[12..16].copy_from_slice(&flow.source.octets());
    octets[16..20].copy_from_slice(&flow.destination.octets());
    let checksum = !fold(sum(&octets[..20]));
    octets[10..12].copy_from_slice(&checksum.to_be_bytes());
    write_udp(flow.source_port, flow.destination_port, &mut octets[20..length]);
    let checksum = udp_checksum(&octets[12..20], &octets[20..length]);
    octets[26..28].copy_from_slice(&checksum.to_be_bytes());
    length
}

/// Writes the flow's IPv4 packet in an IPv6 packet of next header 4; its length.
pub fn write4_in6(
    flow: &Flow<Ipv4Addr>,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    octets: &mut [u8; IN_IPV6],
) -> usize {
    let mut inner = [0; SIZE];
    let length = write4(flow, &mut inner);
    octets[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, length as u8, 4, 64]);
    octets[8..24].copy_from_slice(&source.octets());
    octets[24..40].copy_from_slice(&destination.octets());
    octets[40..].copy_from_slice(&inner[..length]);
    IN_IPV6
}

/// Reads the flow of an IPv4 packet in an IPv6 packet between these addresses, if all of its checksums and lengths are right.
pub fn read4_in6(octets: &[u8], source: Ipv6Addr, destination: Ipv6Addr) -> Option<Flow<Ipv4Addr>> {
    let lengths = octets.len() == IN_IPV6 && octets[0] >> 4 == 6 && number(octets, 4) == IN_IPV6 as u16 - 40;
    let addresses = [source.octets(), destination.octets()].concat();
    let right = lengths && octets[6] == 4 && octets[8..40] == addresses;
    right.then(|| read4(&octets[40..])).flatten()
}

fn write_udp(source: u16, destination: u16, udp: &mut [u8]) {
    udp[..2].copy_from_slice(&source.to_be_bytes());
    udp[2..4].copy_from_slice(&destination.to_be_bytes());
    udp[4..6].copy_from_slice(&(8 + PAYLOAD as u16).to_be_bytes());
    for (at, octet) in udp[8..].iter_mut().enumerate() {
        *octet = at as u8 ^ 0x5a;
    }
}

/// Reads the flow of an IPv4 packet, if all of its checksums and lengths are right.
pub fn read4(octets: &[u8]) -> Option<Flow<Ipv4Addr>> {
    let length = 20 + 8 + PAYLOAD;
    let lengths = octets.len() == length && octets[0] == 0x45 && number(octets, 2) == length as u16;
    let right = lengths && fold(sum(&octets[..20])) == 0xffff && udp_is_right(&octets[12..20], &octets[20..]);
    let address = |at: usize| Ipv4Addr::new(octets[at], octets[at + 1], octets[at + 2], octets[at + 3]);
    right.then(|| Flow {
        source: address(12),
        source_port: number(octets, 20),
        destination: address(16),
        destination_port: number(octets, 22),
    })
}

/// Reads the flow of an IPv6 packet, if its checksum and lengths are right.
pub fn read6(octets: &[u8]) -> Option<Flow<Ipv6Addr>> {
    let lengths = octets.len() == SIZE && octets[0] >> 4 == 6 && number(octets, 4) == 8 + PAYLOAD as u16;
    let right = lengths && udp_is_right(&octets[8..40], &octets[40..]);
    let address = |at: usize| {
        octets[at..at + 16].try_into().map_or(Ipv6Addr::UNSPECIFIED, |octets: [u8; 16]| octets.into())
    };
    right.then(|| Flow {
        source: address(8),
        source_port: number(octets, 40),
        destination: address(24),
        destination_port: number(octets, 42),
    })
}

fn number(octets: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}

/// The checksum over the pseudo-header (RFC 768, RFC 8200 §8.1) and the datagram, whose checksum field is zero.
fn udp_checksum(addresses: &[u8], udp: &[u8]) -> u16 {
    match !fold(sum(addresses) + 17 + udp.len() as u32 + sum(udp)) {
        0 => 0xffff,
        checksum => checksum,
    }
}

fn udp_is_right(addresses: &[u8], udp: &[u8]) -> bool {
    number(udp, 6) != 0 && fold(sum(addresses) + 17 + udp.len() as u32 + sum(udp)) == 0xffff
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_a_flipped_bit_is_seen() {
        let mut octets = [0; SIZE];
        let flow = Flow {
            source: "2001:db8::1".parse().unwrap(),
            source_port: 4_000,
            destination: "64:ff9b::1".parse().unwrap(),
            destination_port: 53,
        };
        write6(&flow, &mut octets);
        assert_eq!(read6(&octets), Some(flow));
        octets[50] ^= 1;
        assert_eq!(read6(&octets), None);
        let flow = Flow {
            source: Ipv4Addr::new(192, 0, 2, 1),
            source_port: 1,
            destination: Ipv4Addr::new(203, 0, 113, 2),
            destination_port: 2,
        };
        let length = write4(&flow, &mut octets);
        assert_eq!(read4(&octets[..length]), Some(flow));
        octets[8] ^= 1;
        assert_eq!(read4(&octets[..length]), None);
    }
}
