//! Offload state of tunnel packets that the kernel joined (GRO), recovered from the packet alone.
//!
//! A raw socket hands over GSO packets without offload information: up to 64 KiB of TCP with one set of headers, no segment size, and
//! the transport checksum unfinished. That checksum is the sign: it equals the sum of the pseudo-header.
//!
//! The sign cannot mislead. A finished checksum that happens to equal the pseudo-header's sum is finished once more to the very
//! same value, since it is true already; and a damaged packet passes for an unfinished one as seldom as it passes for a
//! sound one, once in 65,536.

use crate::checksum::{Transport, pseudo_header};
use sixway_dataplane::{Checksum, Offload, SegmentKind, Segments};
use sixway_wire::protocol;
use sixway_wire::tcp::{CWR, RST, SYN, URG};

/// RFC 8200 §5: the minimum MTU of every IPv6 link.
const IPV6_MINIMUM_MTU: usize = 1_280;

/// The largest IPv4 packet of an Ethernet: a longer one with an unfinished checksum was put together from several.
const WIRE_PACKET: usize = 1_500;

/// TCP flags (RFC 9293 §3.1) that a GSO packet never has: the kernel does not join such segments.
const NEVER_JOINED: u8 = SYN | RST | URG;

/// The offload state of a packet from a raw socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The packet can be used with this offload state.
    Packet(Offload),
    /// Several UDP datagrams joined in one packet, with unknown boundaries.
    BoundariesLost,
}

/// Reads the signs of a tunnel packet.
///
/// A TCP GSO packet may be segmented at any size: TCP is a stream of octets, a receiver takes its segments in any
/// division (RFC 9293 §3.4), and cutting moves PSH, FIN and CWR to where they belong. The size chosen is the one that
/// every IPv6 link carries; that the sender's own segments were larger costs some headers, that they were smaller nothing.
pub fn reading(packet: &[u8]) -> Reading {
    let Some(transport) = Transport::of(packet).filter(|transport| unfinished(packet, *transport)) else {
        return Reading::Packet(Offload::default());
    };
    let partial = Offload { checksum: Checksum::Partial, segments: None, transport: transport.at as u16 };
    let inner = packet.len() - transport.ip;
    if transport.protocol == protocol::UDP && packet.len() > WIRE_PACKET {
        return Reading::BoundariesLost;
    }
    if transport.protocol != protocol::TCP || inner <= IPV6_MINIMUM_MTU {
        return Reading::Packet(partial);
    }
    Reading::Packet(Offload { segments: segments(packet, transport), ..partial })
}

/// How a TCP GSO packet is to be cut; `None` for a packet that cannot be one.
fn segments(packet: &[u8], transport: Transport) -> Option<Segments> {
    let header = transport.header_length(packet, SegmentKind::Tcp)?;
    let flags = *packet.get(transport.at + 13)?;
    let size = IPV6_MINIMUM_MTU.checked_sub(transport.at - transport.ip + header)?;
    // RFC 3168 §6.1.2: CWR is on the first segment only.
    let kind = if flags & CWR == 0 { SegmentKind::Tcp } else { SegmentKind::TcpEcn };
    (size > 0 && flags & NEVER_JOINED == 0).then_some(Segments { size: size as u16, kind })
}

/// Whether the checksum is still the pseudo-header's sum. Both zeroes of the one's complement are the same number.
fn unfinished(packet: &[u8], transport: Transport) -> bool {
    let Some(field) = transport
        .checksum_offset()
        .and_then(|offset| packet.get(transport.at + offset..))
        .and_then(|field| field.first_chunk::<2>())
    else {
        return false;
    };
    let zero = |sum: u16| if sum == 0xffff { 0 } else { sum };
    let field = u16::from_be_bytes(*field);
    // Zero in UDP means "no checksum" (RFC 768; RFC 6935 for tunnels over IPv6).
    (field != 0 || transport.protocol != protocol::UDP)
        && pseudo_header(packet, transport).is_some_and(|sum| zero(sum.fold()) == zero(field))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::finish;
    use crate::segmentation::tests::{tcp, udp};
    use sixway_wire::Ipv4Header;

    fn in_ipv4(inner: &[u8]) -> Vec<u8> {
        let (source, destination) = ([192, 0, 2, 1].into(), [198, 51, 100, 2].into());
        let header = Ipv4Header::new(source, destination, protocol::IPV6, inner.len());
        [&header.octets()[..], inner].concat()
    }

    fn partial(segments: Option<Segments>) -> Reading {
        Reading::Packet(Offload { checksum: Checksum::Partial, segments, transport: 60 })
    }

    #[test]
    fn a_tcp_gso_packet_is_cut_to_what_every_ipv6_link_carries() {
        // The sample has CWR set.
        let segments = Some(Segments { size: 1_220, kind: SegmentKind::TcpEcn });
        assert_eq!(reading(&in_ipv4(&tcp(6, 60_000))), partial(segments));
        assert_eq!(reading(&in_ipv4(&tcp(6, 1_221))), partial(segments));
        assert_eq!(reading(&in_ipv4(&tcp(6, 1_220))), partial(None), "it fits as it is");
    }

    #[test]
    fn tcp_options_take_their_room_from_the_segments() {
        let mut inner = tcp(6, 5_000);
        inner[40 + 12] = 0x80; // Data Offset: 12 octets of what was payload are options
        inner[40 + 13] = 0x10;
        let segments = Some(Segments { size: 1_208, kind: SegmentKind::Tcp });
        assert_eq!(reading(&in_ipv4(&inner)), partial(segments));
    }

    #[test]
    fn a_segment_of_a_kind_that_the_kernel_never_joins_is_not_cut() {
        for flag in [SYN, RST, URG] {
            let mut inner = tcp(6, 5_000);
            inner[40 + 13] |= flag;
            assert_eq!(reading(&in_ipv4(&inner)), partial(None));
        }
    }

    #[test]
    fn udp_gso_packets_are_given_up_and_single_datagrams_finished_later() {
        assert_eq!(reading(&in_ipv4(&udp(6, 1_400))), partial(None));
        assert_eq!(reading(&in_ipv4(&udp(6, 3_000))), Reading::BoundariesLost);
    }

    #[test]
    fn finished_checksums_of_any_length_and_other_protocols_are_packets() {
        for mut packet in [in_ipv4(&tcp(6, 40_000)), in_ipv4(&udp(6, 40_000))] {
            let transport = Transport::of(&packet).unwrap();
            assert!(finish(&mut packet, transport.at, transport.checksum_offset().unwrap()));
            assert_eq!(reading(&packet), Reading::Packet(Offload::default()));
            packet[26] = protocol::ICMPV6;
            assert_eq!(reading(&packet), Reading::Packet(Offload::default()));
        }
        let mut none = in_ipv4(&udp(6, 3_000));
        none[66..68].fill(0);
        assert_eq!(reading(&none), Reading::Packet(Offload::default()));
    }

    #[test]
    fn no_cut_makes_it_panic() {
        for packet in [in_ipv4(&tcp(6, 100)), in_ipv4(&udp(6, 100))] {
            for length in 0..packet.len() {
                let _ = reading(&packet[..length]);
            }
        }
    }
}
