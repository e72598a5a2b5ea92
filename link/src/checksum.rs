//! Partial checksums: finished for receivers that do not accept them, and created where the kernel expects one.
//!
//! An unfinished (partial) checksum field holds the folded sum of the pseudo-header. To finish it, sum from the
//! transport header to the end of the packet, the field included, and writes the complement.

use sixway_dataplane::SegmentKind;
use sixway_wire::checksum::{Sum, pseudo4, pseudo6};
use sixway_wire::{IPV6_HEADER, Ipv4Header, Ipv6Header, protocol};

/// Where a packet's transport header starts. An IPv6 packet in IPv4 (protocol 41, RFC 4213) has the inner packet's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// Octets from the start of the packet to the IP header that names the protocol: none, or those of an outer header.
    pub ip: usize,
    /// Octets from the start of the packet.
    pub at: usize,
    /// IPv4's Protocol or the last Next Header of IPv6's chain.
    pub protocol: u8,
}

impl Transport {
    /// Finds it. `None` for a fragment, or where the headers end too early.
    #[inline]
    pub fn of(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => {
                let (header, behind) = Ipv4Header::split_quoted(packet).ok()?;
                let at = packet.len() - behind.len();
                match header.protocol {
                    _ if header.is_fragment() => None,
                    protocol::IPV6 => Self::inside(packet, at),
                    protocol => Some(Self { ip: 0, at, protocol }),
                }
            }
            6 => Self::of_ipv6(packet),
            _ => None,
        }
    }

    #[inline]
    fn of_ipv6(packet: &[u8]) -> Option<Self> {
        match *packet.get(..40)?.get(6)? {
            simple @ (protocol::TCP | protocol::UDP) => Some(Self { ip: 0, at: 40, protocol: simple }),
            first => Self::behind_extensions(packet, first),
        }
    }

    /// That of the IPv6 packet behind an outer header of `outer` octets.
    fn inside(packet: &[u8], outer: usize) -> Option<Self> {
        let inner = packet.get(outer..).filter(|inner| inner.first().is_some_and(|octet| octet >> 4 == 6))?;
        let own = Self::of_ipv6(inner)?;
        Some(Self { ip: outer, at: outer + own.at, ..own })
    }

    #[cold]
    fn behind_extensions(packet: &[u8], first: u8) -> Option<Self> {
        let (mut at, mut next) = (40, first);
        loop {
            let length = match next {
                protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION_OPTIONS => {
                    (usize::from(*packet.get(at + 1)?) + 1) * 8
                }
                protocol::AUTHENTICATION => (usize::from(*packet.get(at + 1)?) + 2) * 4,
                protocol::FRAGMENT => return None,
                protocol => return (at <= packet.len()).then_some(Self { ip: 0, at, protocol }),
            };
            next = *packet.get(at)?;
            at += length;
        }
    }

    /// Offset of the checksum in a TCP or UDP header; `None` for every other protocol.
    #[inline]
    pub const fn checksum_offset(self) -> Option<usize> {
        match self.protocol {
            protocol::TCP => Some(16),
            protocol::UDP => Some(6),
            _ => None,
        }
    }
}

impl Transport {
    /// Whether this is the protocol of that kind of segments.
    #[inline]
    pub const fn is(self, kind: SegmentKind) -> bool {
        kind.is_of(self.protocol)
    }

    /// Octets of the transport header, if it is of that kind and the packet holds it whole.
    #[inline]
    pub fn header_length(self, packet: &[u8], kind: SegmentKind) -> Option<usize> {
        if self.is(kind) { kind.header_length(packet.get(self.at..)?) } else { None }
    }
}

/// Finishes the checksum at `at + offset`: the sum from `at` to the end of the packet. Zero is written as 0xffff, which
/// means the same and does not mean "no checksum" in UDP. Returns whether the field lies inside the packet.
pub fn finish(packet: &mut [u8], at: usize, offset: usize) -> bool {
    let Some(end) = at.checked_add(offset + 2).filter(|end| *end <= packet.len()) else { return false };
    let checksum = Sum::ZERO.bytes(&packet[at..]).checksum_nonzero();
    packet[end - 2..end].copy_from_slice(&checksum.to_be_bytes());
    true
}

/// The sum of the packet's pseudo-header (RFC 9293 §3.1, RFC 8200 §8.1) with everything from the transport header to the end
/// that the IP header names as its length.
pub fn pseudo_header(packet: &[u8], transport: Transport) -> Option<Sum> {
    let packet = packet.get(transport.ip..)?;
    let before = transport.at.checked_sub(transport.ip)?;
    match packet.first()? >> 4 {
        4 => {
            let Ipv4Header { source, destination, length, .. } = Ipv4Header::read(packet).ok()?;
            let length = usize::from(length).checked_sub(before)? as u32;
            Some(pseudo4(source, destination, transport.protocol, length))
        }
        6 => {
            let Ipv6Header { source, destination, payload_length, .. } = Ipv6Header::read(packet).ok()?;
            let length = (IPV6_HEADER + usize::from(payload_length)).checked_sub(before)? as u32;
            Some(pseudo6(source, destination, transport.protocol, length))
        }
        _ => None,
    }
}

/// Makes a TCP or UDP checksum unfinished: writes the sum of the pseudo-header into its field. Returns whether it could.
pub fn unfinish(packet: &mut [u8], transport: Transport) -> bool {
    let Some(offset) = transport.checksum_offset() else { return false };
    let Some(sum) = pseudo_header(packet, transport) else { return false };
    match packet.get_mut(transport.at + offset..transport.at + offset + 2) {
        Some(field) => {
            field.copy_from_slice(&sum.fold().to_be_bytes());
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sixway_wire::UdpHeader;

    fn udp4(payload: &[u8]) -> Vec<u8> {
        let (source, destination) = ([192, 0, 2, 1].into(), [198, 51, 100, 2].into());
        let header = Ipv4Header::new(source, destination, protocol::UDP, 8 + payload.len());
        let udp = UdpHeader::new(53, 258, payload.len());
        [&header.octets()[..], &udp.octets(), payload].concat()
    }

    #[test]
    fn a_checksum_unfinished_and_finished_again_is_true() {
        let mut packet = udp4(b"seven octets, odd");
        let transport = Transport::of(&packet).unwrap();
        assert_eq!(transport, Transport { ip: 0, at: 20, protocol: 17 });
        assert!(unfinish(&mut packet, transport));
        assert!(finish(&mut packet, 20, 6));
        let all = pseudo_header(&packet, transport).unwrap().bytes(&packet[20..]);
        assert_eq!(all.fold(), 0xffff);
    }

    #[test]
    fn the_transport_header_is_found_behind_extension_headers_and_not_in_fragments() {
        let mut packet = vec![0x60, 0, 0, 0, 0, 24, 0, 64];
        packet.extend([0; 32]);
        packet.extend([60, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0, 0, 53, 0, 54, 0, 8, 0, 0]);
        assert_eq!(Transport::of(&packet), Some(Transport { ip: 0, at: 56, protocol: 17 }));
        for length in 0..packet.len() {
            let _ = Transport::of(&packet[..length]);
        }
        packet[40] = 44;
        assert_eq!(Transport::of(&packet), None);
        let mut fragment = udp4(b"");
        fragment[6] = 0x20;
        assert_eq!(Transport::of(&fragment), None);
    }

    #[test]
    fn an_ipv6_packet_in_ipv4_has_the_inner_packets_transport_header() {
        let mut packet = udp4(b"")[..20].to_vec();
        packet[9] = 41;
        packet.extend([0x60, 0, 0, 0, 0, 11, 17, 64]);
        packet.extend([0x20; 32]);
        packet.extend([0, 53, 0, 54, 0, 11, 0, 0, 1, 2, 3]);
        let transport = Transport::of(&packet).unwrap();
        assert_eq!(transport, Transport { ip: 20, at: 60, protocol: 17 });
        assert!(unfinish(&mut packet, transport) && finish(&mut packet, 60, 6));
        let inner = &packet[20..];
        let alone = Transport::of(inner).unwrap();
        assert_eq!(pseudo_header(inner, alone).unwrap().bytes(&inner[40..]).fold(), 0xffff);
        for length in 0..packet.len() {
            let _ = Transport::of(&packet[..length]);
        }
        packet[20] = 0x40;
        assert_eq!(Transport::of(&packet), None, "protocol 41 carries IPv6 alone");
    }

    #[test]
    fn a_checksum_beyond_the_end_is_left_alone() {
        let mut packet = udp4(b"");
        assert!(!finish(&mut packet, 20, 7));
        assert!(!finish(&mut packet, usize::MAX, 6));
        assert!(!unfinish(&mut packet[..25], Transport { ip: 0, at: 20, protocol: 17 }));
    }
}
