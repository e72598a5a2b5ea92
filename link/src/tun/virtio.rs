//! The virtio_net header in front of each packet, and its translation into the engine's offload state.
//!
//! ```text
//!   0        1        2         4          6            8             10
//!   +--------+--------+---------+----------+------------+-------------+
//!   | flags  |gso_type| hdr_len | gso_size | csum_start | csum_offset |
//!   +--------+--------+---------+----------+------------+-------------+
//! ```
//! (Virtio 1.2 §5.1.6.) On a TUN device the numbers are in the machine's byte order.

use crate::checksum::{Transport, finish, unfinish};
use crate::counters::LinkCounters;
use sixway_dataplane::{Checksum, Frame, Offload, SegmentKind, Segments};

/// Octets of the header.
pub const LENGTH: usize = 10;

/// VIRTIO_NET_HDR_F_NEEDS_CSUM: the checksum is unfinished.
const NEEDS_CSUM: u8 = 1;
/// VIRTIO_NET_HDR_GSO_NONE: no GSO packet.
const GSO_NONE: u8 = 0;
/// VIRTIO_NET_HDR_GSO_TCPV4.
const GSO_TCPV4: u8 = 1;
/// VIRTIO_NET_HDR_GSO_TCPV6.
const GSO_TCPV6: u8 = 4;
/// VIRTIO_NET_HDR_GSO_UDP_L4, for IPv4 and IPv6.
const GSO_UDP_L4: u8 = 5;
/// VIRTIO_NET_HDR_GSO_ECN: CWR is set, for the first segment only.
const GSO_ECN: u8 = 0x80;

/// The header's fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Whether the checksum is unfinished, and other bits that do not matter here.
    pub flags: u8,
    /// What kind of GSO packet.
    pub gso_type: u8,
    /// Octets of all headers, a hint.
    pub hdr_len: u16,
    /// Payload octets in a segment.
    pub gso_size: u16,
    /// Where the checksum's sum starts.
    pub csum_start: u16,
    /// The offset of the checksum from there.
    pub csum_offset: u16,
}

impl Header {
    /// Reads a header.
    #[inline]
    pub const fn from_octets(octets: &[u8; LENGTH]) -> Self {
        let [flags, gso_type, a, b, c, d, e, f, g, h] = *octets;
        Self {
            flags,
            gso_type,
            hdr_len: u16::from_ne_bytes([a, b]),
            gso_size: u16::from_ne_bytes([c, d]),
            csum_start: u16::from_ne_bytes([e, f]),
            csum_offset: u16::from_ne_bytes([g, h]),
        }
    }

    /// Writes the header.
    #[inline]
    pub const fn octets(self) -> [u8; LENGTH] {
        let ([a, b], [c, d]) = (self.hdr_len.to_ne_bytes(), self.gso_size.to_ne_bytes());
        let ([e, f], [g, h]) = (self.csum_start.to_ne_bytes(), self.csum_offset.to_ne_bytes());
        [self.flags, self.gso_type, a, b, c, d, e, f, g, h]
    }

    /// What the header says of a received packet; of an IPv6 packet in IPv4 (protocol 41), it speaks of the inner one. A
    /// checksum that is unfinished, but not TCP's or UDP's behind the packet's own IP headers, is finished in place. What
    /// contradicts the packet is counted and left out.
    #[inline]
    pub fn offload(self, packet: &mut [u8], counters: &mut LinkCounters) -> Offload {
        if self.flags & NEEDS_CSUM == 0 && self.gso_type == GSO_NONE {
            return Offload::default();
        }
        let transport = Transport::of(packet);
        let segments = self.segments(transport, packet, counters);
        let unfinished = self.flags & NEEDS_CSUM != 0;
        let (start, offset) = (usize::from(self.csum_start), usize::from(self.csum_offset));
        let own = transport.filter(|own| {
            own.at == start && own.checksum_offset() == Some(offset) && start + offset + 2 <= packet.len()
        });
        let mut offload = Offload { checksum: Checksum::Complete, segments, transport: 0 };
        match (unfinished, own) {
            (true, Some(own)) => {
                offload.checksum = Checksum::Partial;
                offload.transport = own.at as u16;
            }
            (false, _) if segments.is_some() => {
                // Segmentation creates the checksums of a GSO packet later: mark it as partial like all others.
                if let Some(transport) = transport.filter(|transport| unfinish(packet, *transport)) {
                    offload.checksum = Checksum::Partial;
                    offload.transport = transport.at as u16;
                }
            }
            (true, None) if segments.is_none() && finish(packet, start, offset) => {
                counters.checksums_finished += 1
            }
            (true, None) => {
                // This checksum cannot be finished: its offset is wrong.
                offload.segments = None;
                counters.inconsistent_header += 1;
            }
            (false, _) => {}
        }
        offload
    }

    /// The GSO packet's segments, if the packet can be one.
    fn segments(
        self,
        transport: Option<Transport>,
        packet: &[u8],
        counters: &mut LinkCounters,
    ) -> Option<Segments> {
        if self.gso_type == GSO_NONE {
            return None;
        }
        // Behind an outer IPv4 header (protocol 41), the inner packet is what is segmented.
        let version = packet.get(transport.map_or(0, |own| own.ip)).map_or(0, |octet| octet >> 4);
        let kind = match (self.gso_type & !GSO_ECN, version) {
            (GSO_TCPV4, 4) | (GSO_TCPV6, 6) if self.gso_type & GSO_ECN != 0 => Some(SegmentKind::TcpEcn),
            (GSO_TCPV4, 4) | (GSO_TCPV6, 6) => Some(SegmentKind::Tcp),
            (GSO_UDP_L4, 4 | 6) => Some(SegmentKind::Udp),
            _ => None,
        };
        let agreed =
            kind.filter(|kind| self.gso_size != 0 && transport.is_some_and(|transport| transport.is(*kind)));
        counters.inconsistent_header += u64::from(agreed.is_none());
        agreed.map(|kind| Segments { size: self.gso_size, kind })
    }

    /// The header for a frame to be sent. The frame's checksum may be made unfinished for it, which a GSO packet's must
    /// be. `None` when the frame cannot be sent as what it says it is.
    #[inline]
    pub fn describing(frame: &mut Frame) -> Option<Self> {
        let offload = frame.offload;
        if offload.segments.is_none() && offload.checksum == Checksum::Complete {
            return Some(Self::default());
        }
        let transport = Transport::of(frame.bytes())?;
        let csum_offset = transport.checksum_offset()?;
        let mut header = Self {
            flags: NEEDS_CSUM,
            csum_start: u16::try_from(transport.at).ok()?,
            csum_offset: csum_offset as u16,
            ..Self::default()
        };
        let Some(segments) = offload.segments else { return Some(header) };
        if transport.ip != 0 {
            return None; // virtio has no word for a GSO packet in a tunnel
        }
        if offload.checksum == Checksum::Complete && !unfinish(frame.bytes_mut(), transport) {
            return None;
        }
        let packet = frame.bytes();
        let headers = transport.at + transport.header_length(packet, segments.kind)?;
        if packet.len() - headers > usize::from(segments.size) {
            header.gso_type = gso_type(segments.kind, packet[0] >> 4);
            header.gso_size = segments.size;
            header.hdr_len = u16::try_from(headers).ok()?;
        }
        Some(header)
    }
}

const fn gso_type(kind: SegmentKind, version: u8) -> u8 {
    let tcp = if version == 4 { GSO_TCPV4 } else { GSO_TCPV6 };
    match kind {
        SegmentKind::Tcp => tcp,
        SegmentKind::TcpEcn => tcp | GSO_ECN,
        SegmentKind::Udp => GSO_UDP_L4,
    }
}

#[cfg(test)]
mod tests;
