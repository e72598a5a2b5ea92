//! Slow and obvious judgement of what leaves.

use super::LIMITS;
use crate::support::hex;
use sixway_dataplane::parse::{Addresses, Packet, parse};
use sixway_dataplane::{Checksum, Frame, Offload, SegmentKind};

pub fn sum(octets: &[u8]) -> u64 {
    octets.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0))).sum()
}

pub fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The sum of the pseudo-header that goes with all behind the IP headers.
pub fn pseudo_header(octets: &[u8], packet: &Packet) -> u64 {
    let addresses = match packet.addresses {
        Addresses::V4 { .. } => &octets[12..20],
        Addresses::V6 { .. } => &octets[8..40],
    };
    let length = u64::from(packet.length) - u64::from(packet.transport_at);
    sum(addresses) + u64::from(packet.protocol) + length
}

/// Whether a packet's transport checksum is right, as far as there is one that can be judged.
pub fn is_right(octets: &[u8], packet: &Packet, checksum: Checksum) -> bool {
    let body = &octets[usize::from(packet.transport_at)..packet.length as usize];
    let is_v4 = matches!(packet.addresses, Addresses::V4 { .. });
    let pseudo = pseudo_header(octets, packet);
    match (packet.protocol, checksum) {
        _ if packet.fragment.is_some() => true,
        // The field holds the sum of the pseudo-header; 0 and 0xffff are one number.
        (6, Checksum::Partial) => sum(&body[16..18]) % 0xffff == pseudo % 0xffff,
        (17, Checksum::Partial) => sum(&body[6..8]) % 0xffff == pseudo % 0xffff,
        (17, Checksum::Complete) if body[6..8] == [0, 0] => is_v4,
        // A datagram may be shorter than its packet; the checksum is then over the datagram alone.
        (17, Checksum::Complete) => {
            let length = usize::from(u16::from_be_bytes([body[4], body[5]]));
            length != body.len() || folded(pseudo + sum(body)) == 0xffff
        }
        (6, Checksum::Complete) => folded(pseudo + sum(body)) == 0xffff,
        (58, _) if !is_v4 => folded(pseudo + sum(body)) == 0xffff,
        (1, _) if is_v4 => folded(sum(body)) == 0xffff,
        _ => true,
    }
}

/// The largest packet that a frame is on the wire.
pub fn on_the_wire(octets: &[u8], packet: &Packet, offload: Offload) -> usize {
    let Some(segments) = offload.segments else { return octets.len() };
    let transport = match segments.kind {
        SegmentKind::Udp => 8,
        SegmentKind::Tcp | SegmentKind::TcpEcn => {
            usize::from(octets[usize::from(packet.transport_at) + 12] >> 4) * 4
        }
    };
    octets.len().min(usize::from(packet.transport_at) + transport + usize::from(segments.size))
}

/// How many packets a frame is on the wire.
pub fn segments_of(frame: &Frame) -> u32 {
    let Some(segments) = frame.offload.segments else { return 1 };
    let octets = frame.bytes();
    let transport_at = usize::from(parse(octets).unwrap().transport_at);
    let header = match segments.kind {
        SegmentKind::Udp => 8,
        SegmentKind::Tcp | SegmentKind::TcpEcn => usize::from(octets[transport_at + 12] >> 4) * 4,
    };
    (octets.len() - transport_at - header).div_ceil(usize::from(segments.size)).max(1) as u32
}

/// What leaves is a packet, right if what came was right, and fits its link.
pub fn judge(octets: &[u8], offload: Offload, came_right: bool) {
    let packet = parse(octets).unwrap_or_else(|reason| panic!("{reason:?}: {}", hex(octets)));
    assert_eq!(packet.length as usize, octets.len(), "{}", hex(octets));
    let mtu = match packet.addresses {
        Addresses::V4 { .. } => LIMITS.mtu4,
        Addresses::V6 { .. } => LIMITS.mtu6,
    };
    assert!(on_the_wire(octets, &packet, offload) <= usize::from(mtu), "{}", hex(octets));
    assert!(!came_right || is_right(octets, &packet, offload.checksum), "{offload:?}: {}", hex(octets));
}
