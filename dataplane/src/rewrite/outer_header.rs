//! The outer headers of tunnels, and the tunnel packets that a GSO packet becomes.

use super::rewriter::{HeaderWriter, Rewriter};
use super::segments::{Family, Made, finish, fragment};
use crate::drop_reason::DropReason;
use crate::fragment::GsoPacket;
use crate::frame::{Checksum, Frame, MAX_PACKET, Offload, Segments};
use crate::outbox::Outbox;
use crate::parse::{Addresses, IPV4_HEADER, IPV6_HEADER, Packet};
use crate::translate::header::{Ipv4Header, Ipv6Header};
use crate::tunnel::TunnelPolicy;
use crate::verdict::Outer;
use core::net::Ipv6Addr;
use sixway_wire::checksum::pseudo4;
use sixway_wire::protocol::{DESTINATION_OPTIONS, IPV4, IPV6, UDP};
use sixway_wire::{ENCAPSULATION_LIMIT_HEADER, EncapsulationLimit, Endpoint4, UDP_HEADER, UdpHeader};

/// TTL of datagrams of the gateway's own.
const OWN_TTL: u8 = 64;

/// An outer header of a tunnel, as it is written in front of a packet.
#[derive(Clone, Copy)]
pub(super) enum OuterHeader {
    V4(Ipv4Header),
    V6 { header: Ipv6Header, limit: Option<u8> },
    Udp4 { header: Ipv4Header, ports: (u16, u16) },
}

impl Rewriter {
    /// Writes a datagram of the gateway's own to the outbox. Without effect if there is no room.
    pub fn datagram(&mut self, source: Endpoint4, destination: Endpoint4, payload: &[u8], out: &mut Outbox) {
        let header = Ipv4Header {
            tos: 0,
            length: 0,
            identification: self.writer.identifications.reserve(destination.address, 1),
            dont_fragment: false,
            more_fragments: false,
            offset: 0,
            ttl: OWN_TTL,
            protocol: UDP,
            source: source.address,
            destination: destination.address,
        };
        let front = OuterHeader::Udp4 { header, ports: (source.port, destination.port) };
        if let Ok(frame) = out.push(front.length() + payload.len()) {
            frame.bytes_mut()[front.length()..].copy_from_slice(payload);
            front.put(frame, 0);
        }
    }
}

impl HeaderWriter {
    pub(super) fn outer_header_4(
        &mut self,
        outer: &Outer,
        policy: &TunnelPolicy,
        (packet, hops): (&Packet, u8),
        segments: u32,
    ) -> Option<OuterHeader> {
        let (source, destination, ports) = match *outer {
            Outer::V4 { source, destination } => (source, destination, None),
            Outer::Udp4 { source, destination } => {
                (source.address, destination.address, Some((source.port, destination.port)))
            }
            Outer::V6 { .. } => return None,
        };
        let header = Ipv4Header {
            tos: policy.outer_traffic_class(packet.traffic_class),
            length: 0,
            identification: self.identifications.reserve(destination, segments),
            // RFC 4380 §5.1.2: not with UDP, where the remote end may be behind a NAT that ICMP errors do not pass.
            dont_fragment: packet.dont_fragment && ports.is_none(),
            more_fragments: false,
            offset: 0,
            ttl: policy.ttl.of(hops),
            protocol: if ports.is_some() { UDP } else { protocol_of(packet) },
            source,
            destination,
        };
        Some(match ports {
            None => OuterHeader::V4(header),
            Some(ports) => OuterHeader::Udp4 { header, ports },
        })
    }

    /// Cuts a GSO packet into tunnel packets, in order, and those into fragments that are too large for the path.
    #[cold]
    pub(super) fn encap_segments(
        &mut self,
        front: OuterHeader,
        (family, mtu): (Family, u16),
        (frame, packet, segments): (&Frame, &Packet, Segments),
        out: &mut Outbox,
    ) -> Result<Made, DropReason> {
        let gso = GsoPacket::of(frame.bytes(), packet, segments)?;
        let count = gso.count();
        if count > out.room() {
            return Err(DropReason::OutboxFull);
        }
        let mut fragments = 0;
        for number in 0..count {
            let length = front.length() + gso.length(number);
            if length <= usize::from(mtu) {
                let piece = out.push(length)?;
                gso.write(number, &mut piece.bytes_mut()[front.length()..])?;
                front.put(piece, number);
                continue;
            }
            let whole = self.segment.get_or_insert_with(|| Frame::with_capacity(MAX_PACKET));
            whole.received(length, Offload::default());
            gso.write(number, &mut whole.bytes_mut()[front.length()..])?;
            front.put(whole, number);
            finish(whole);
            let family = match family {
                Family::V4 => Family::V4,
                Family::V6 { identification } => {
                    Family::V6 { identification: identification.wrapping_add(number as u32) }
                }
            };
            fragments += fragment(whole, family, mtu, out)?;
        }
        Ok(Made { segments: count as u64, fragments })
    }
}

impl OuterHeader {
    /// Its octets.
    pub(super) const fn length(&self) -> usize {
        match self {
            Self::V4(_) => IPV4_HEADER,
            Self::Udp4 { .. } => IPV4_HEADER + UDP_HEADER,
            Self::V6 { limit: None, .. } => IPV6_HEADER,
            Self::V6 { limit: Some(_), .. } => IPV6_HEADER + ENCAPSULATION_LIMIT_HEADER,
        }
    }

    /// The octets that are not counted in the length field of its header.
    pub(super) const fn uncounted(&self) -> usize {
        match self {
            Self::V4(_) | Self::Udp4 { .. } => 0,
            Self::V6 { .. } => IPV6_HEADER,
        }
    }

    /// Writes it to the start of a frame whose inner checksum is complete, the `number`th of those that a GSO packet became.
    ///
    /// The checksum of a datagram stays partial: the socket makes its own, and a link finishes it where there is no socket.
    #[inline(always)]
    pub(super) fn put(&self, frame: &mut Frame, number: usize) {
        self.write(frame.bytes_mut(), number);
        if let Self::Udp4 { .. } = self {
            frame.by_socket = true;
            (frame.offload.checksum, frame.offload.transport) = (Checksum::Partial, IPV4_HEADER as u16);
        }
    }

    #[inline(always)]
    fn write(&self, octets: &mut [u8], number: usize) {
        let length = (octets.len() - self.uncounted()) as u16;
        match self {
            Self::V4(header) => {
                let identification = header.identification.wrapping_add(number as u16);
                if let Some(front) = octets.first_chunk_mut() {
                    Ipv4Header { length, identification, ..*header }.write(front);
                }
            }
            Self::Udp4 { header, ports: (source, destination) } => {
                let identification = header.identification.wrapping_add(number as u16);
                let Some((front, behind)) = octets.split_first_chunk_mut() else { return };
                Ipv4Header { length, identification, ..*header }.write(front);
                let udp = UdpHeader::new(*source, *destination, behind.len().saturating_sub(UDP_HEADER));
                let pseudo = pseudo4(header.source, header.destination, UDP, udp.length.into());
                if let Some(front) = behind.first_chunk_mut() {
                    UdpHeader { checksum: pseudo.fold(), ..udp }.write(front);
                }
            }
            Self::V6 { header, limit } => {
                let next_header = if limit.is_some() { DESTINATION_OPTIONS } else { header.next_header };
                let Some((front, behind)) = octets.split_first_chunk_mut() else { return };
                Ipv6Header { payload_length: length, next_header, ..*header }.write(front);
                if let (Some(limit), Some(options)) = (limit, behind.first_chunk_mut()) {
                    EncapsulationLimit { next_header: header.next_header, limit: *limit }.write(options);
                }
            }
        }
    }
}

#[inline(always)]
pub(super) fn outer_header_6(
    (source, destination): (Ipv6Addr, Ipv6Addr),
    policy: &TunnelPolicy,
    (packet, hops): (&Packet, u8),
    limit: Option<u8>,
) -> OuterHeader {
    let header = Ipv6Header {
        traffic_class: policy.outer_traffic_class(packet.traffic_class),
        payload_length: 0,
        next_header: protocol_of(packet),
        hop_limit: policy.ttl.of(hops),
        source,
        destination,
    };
    OuterHeader::V6 { header, limit }
}

const fn protocol_of(packet: &Packet) -> u8 {
    match packet.addresses {
        Addresses::V4 { .. } => IPV4,
        Addresses::V6 { .. } => IPV6,
    }
}
