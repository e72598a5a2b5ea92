//! Where messages stand: behind an IPv6 header, and for tunnels behind an IPv4 header too.

use super::{HOP_LIMIT, Malformed};
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::{checksum, protocol};

const IPV6_HEADER: usize = 40;
const IPV4_HEADER: usize = 20;

/// A message as it came, with what its IPv6 header said of it. A raw ICMPv6 socket gives these fields one by one
/// (`IPV6_RECVPKTINFO`, `IPV6_RECVHOPLIMIT`); [`Received::from_packet`] and [`Received::from_tunnel`] read them from a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// The IPv6 source address.
    pub source: Ipv6Addr,
    /// The IPv6 destination address.
    pub destination: Ipv6Addr,
    /// The IPv6 hop limit.
    pub hop_limit: u8,
    /// The source of the outer IPv4 header, for a message that came through a tunnel.
    pub outer_source: Option<Ipv4Addr>,
    /// The ICMPv6 message from its type field to its end.
    pub message: &'a [u8],
}

impl<'a> Received<'a> {
    /// Reads an IPv6 packet whose next header is ICMPv6; octets behind the packet's own length are padding.
    pub fn from_packet(packet: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) = packet.split_first_chunk::<IPV6_HEADER>().ok_or(Malformed::Truncated)?;
        if header[0] >> 4 != 6 || header[6] != protocol::ICMPV6 {
            return Err(Malformed::NotIcmpv6);
        }
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        Ok(Self {
            source: address(&header[8..24]),
            destination: address(&header[24..40]),
            hop_limit: header[7],
            outer_source: None,
            message: rest.get(..length).ok_or(Malformed::Truncated)?,
        })
    }

    /// Reads an IPv4 packet of protocol 41 with such an IPv6 packet in it. The IPv4 header's own checksum is not looked at, and a
    /// fragment is refused.
    pub fn from_tunnel(packet: &'a [u8]) -> Result<Self, Malformed> {
        let header = packet.first_chunk::<IPV4_HEADER>().ok_or(Malformed::Truncated)?;
        let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
        if header[0] >> 4 != 4 || header[9] != protocol::IPV6 || fragment != 0 {
            return Err(Malformed::NotIcmpv6);
        }
        let start = usize::from(header[0] & 0x0f) * 4;
        let end = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if start < IPV4_HEADER {
            return Err(Malformed::Truncated);
        }
        let inner = Self::from_packet(packet.get(start..end).ok_or(Malformed::Truncated)?)?;
        let outer_source = Ipv4Addr::new(header[12], header[13], header[14], header[15]);
        Ok(Self { outer_source: Some(outer_source), ..inner })
    }

    /// Whether the ICMPv6 checksum is right (RFC 4443 §2.3).
    pub(super) fn has_right_checksum(&self) -> bool {
        let length = self.message.len() as u32;
        let sum = checksum::pseudo6(self.source, self.destination, protocol::ICMPV6, length);
        sum.bytes(self.message).checksum() == 0
    }
}

fn address(octets: &[u8]) -> Ipv6Addr {
    let octets: [u8; 16] = octets.try_into().unwrap_or_default();
    Ipv6Addr::from(octets)
}

/// A message to be sent, with hop limit 255.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// The IPv6 source address: an address of our own on that link.
    pub source: Ipv6Addr,
    /// The IPv6 destination address, multicast or unicast.
    pub destination: Ipv6Addr,
    /// The destination of the outer IPv4 header, for a message that goes through a tunnel.
    pub outer_destination: Option<Ipv4Addr>,
    /// The ICMPv6 message from its type field to its end, checksum filled in.
    pub message: Vec<u8>,
}

impl Transmission {
    /// The whole IPv6 packet, for links that carry packets: what goes behind an outer IPv4 header of protocol 41.
    pub fn packet(&self) -> Vec<u8> {
        let mut packet = Vec::with_capacity(IPV6_HEADER + self.message.len());
        packet.extend([0x60, 0, 0, 0]);
        packet.extend((self.message.len() as u16).to_be_bytes());
        packet.extend([protocol::ICMPV6, HOP_LIMIT]);
        packet.extend(self.source.octets());
        packet.extend(self.destination.octets());
        packet.extend(&self.message);
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transmission() -> Transmission {
        Transmission {
            source: "fe80::1".parse().unwrap(),
            destination: "ff02::1".parse().unwrap(),
            outer_destination: None,
            message: vec![134, 0, 0, 0, 1, 2, 3, 4],
        }
    }

    /// An outer IPv4 header of protocol 41 in front.
    fn tunnelled(inner: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 41, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        packet[2..4].copy_from_slice(&(20 + inner.len() as u16).to_be_bytes());
        packet.extend(inner);
        packet
    }

    #[test]
    fn a_packet_made_is_the_packet_read() {
        let packet = transmission().packet();
        let received = Received::from_packet(&packet).unwrap();
        assert_eq!(received.source, transmission().source);
        assert_eq!(received.destination, transmission().destination);
        assert_eq!((received.hop_limit, received.message), (255, &transmission().message[..]));
        let outer = tunnelled(&packet);
        let through = Received::from_tunnel(&outer).unwrap();
        assert_eq!(through.outer_source, Some("192.0.2.1".parse().unwrap()));
        assert_eq!(Received { outer_source: None, ..through }, received);
    }

    #[test]
    fn a_packet_cut_anywhere_is_refused() {
        let (packet, outer) = (transmission().packet(), tunnelled(&transmission().packet()));
        for length in 0..packet.len() {
            assert_eq!(Received::from_packet(&packet[..length]), Err(Malformed::Truncated));
        }
        for length in 0..outer.len() {
            assert_eq!(Received::from_tunnel(&outer[..length]), Err(Malformed::Truncated));
        }
    }

    #[test]
    fn what_is_no_icmpv6_message_or_comes_in_fragments_is_refused() {
        let mut packet = transmission().packet();
        packet[6] = protocol::FRAGMENT;
        assert_eq!(Received::from_packet(&packet), Err(Malformed::NotIcmpv6));
        let mut outer = tunnelled(&transmission().packet());
        outer[6] = 0x20;
        assert_eq!(Received::from_tunnel(&outer), Err(Malformed::NotIcmpv6));
        outer[6] = 0x40;
        assert!(Received::from_tunnel(&outer).is_ok(), "Don't Fragment is no fragment");
        outer[0] = 0x44;
        assert_eq!(Received::from_tunnel(&outer), Err(Malformed::Truncated));
    }
}
