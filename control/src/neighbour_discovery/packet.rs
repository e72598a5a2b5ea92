//! The headers in front of messages: IPv6, and for tunnels also IPv4.

use super::malformed::Malformed;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::{Ipv4Header, Ipv6Header, checksum, protocol};

/// RFC 4861 §3.1: the hop limit that no router between could have left.
pub const HOP_LIMIT: u8 = 255;

/// A received message with the fields of its IPv6 header. A raw ICMPv6 socket gives these fields one by one
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
        let (header, message) = Ipv6Header::split(packet)?;
        if header.next_header != protocol::ICMPV6 {
            return Err(Malformed::NotIcmpv6);
        }
        let Ipv6Header { source, destination, hop_limit, .. } = header;
        Ok(Self { source, destination, hop_limit, outer_source: None, message })
    }

    /// Reads an IPv4 packet of protocol 41 with such an IPv6 packet in it. The IPv4 header's own checksum is not examined, and a
    /// fragment is refused.
    pub fn from_tunnel(packet: &'a [u8]) -> Result<Self, Malformed> {
        let (outer, inner) = Ipv4Header::split(packet)?;
        if outer.protocol != protocol::IPV6 || outer.is_fragment() {
            return Err(Malformed::NotIcmpv6);
        }
        Ok(Self { outer_source: Some(outer.source), ..Self::from_packet(inner)? })
    }

    /// Whether the ICMPv6 checksum is right (RFC 4443 §2.3).
    pub(super) fn has_right_checksum(&self) -> bool {
        let length = self.message.len() as u32;
        let sum = checksum::pseudo6(self.source, self.destination, protocol::ICMPV6, length);
        sum.bytes(self.message).checksum() == 0
    }
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
        let Self { source, destination, message, .. } = self;
        let header = Ipv6Header::new(*source, *destination, protocol::ICMPV6, message.len());
        [&Ipv6Header { hop_limit: HOP_LIMIT, ..header }.octets()[..], message].concat()
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
        let [from, to] = [1, 2].map(|host| Ipv4Addr::new(192, 0, 2, host));
        [&Ipv4Header::new(from, to, protocol::IPV6, inner.len()).octets()[..], inner].concat()
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
    fn what_is_not_an_icmpv6_message_or_comes_in_fragments_is_refused() {
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
