//! A packet of either family gets an outer header of either family: IPv6 (RFC 2473), IPv4 around IPv4 (RFC 2003), or UDP in IPv4 (RFC 4380).
//! IPv6 in IPv4 is in `encap.rs`. The hop limit stays: who routed the packet into the tunnel has counted.
//!
//! ```text
//!                                 +-------------+
//!                                 | IPv6 header |
//!                                 +-------------+
//!                                 | destination |  Tunnel Encapsulation Limit, where there is one
//!                                 |   options   |
//!       +-------------+           +-------------+
//!       |  IP header  |           |  IP header  |
//!       +-------------+  ─────▶   +-------------+
//!       |  payload    |           |  payload    |
//!       +-------------+           +-------------+
//! ```

use super::encap::clamp;
use super::job::segment_payload;
use super::rewriter::HeaderWriter;
use super::segments::{Family, Made, finish, fragment};
use super::work::Executed;
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::fragment::SuperFrame;
use crate::frame::{Frame, MAX_PACKET, Offload, Segments};
use crate::outbox::Outbox;
use crate::parse::{Addresses, IPV4_HEADER, IPV6_HEADER, Packet};
use crate::translate::header::{Ipv4Header, Ipv6Header};
use crate::tunnel::ecn::ECN;
use crate::tunnel::encapsulation_limit::{Borne, borne};
use crate::tunnel::path_mtu::LEAST_UNCUT;
use crate::tunnel::{OuterFragments, TunnelMtu, TunnelPolicy};
use crate::verdict::Outer;
use sixway_wire::IPV6_MIN_MTU;
use sixway_wire::protocol::{DESTINATION_OPTIONS, IPV4, IPV6, UDP};
use sixway_wire::{ENCAPSULATION_LIMIT_HEADER, EncapsulationLimit, UDP_HEADER, UdpHeader};

/// What a tunnel's next packet may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IpInIpRoom {
    /// The largest inner packet that may not be cut.
    pub(super) most: u16,
    /// The largest inner packet whose outer one need not be cut.
    pub(super) mss: u16,
    /// The largest outer packet: larger ones are cut.
    path: u16,
}

/// What stands in front of a packet.
#[derive(Clone, Copy)]
enum Front {
    V4(Ipv4Header),
    V6 { header: Ipv6Header, limit: Option<u8> },
    Udp4 { header: Ipv4Header, ports: (u16, u16) },
}

impl HeaderWriter {
    /// What a tunnel of this policy carries behind an outer header: of a packet that is IPv4 with DF, or of one that is IPv6 (RFC 2473 §7,
    /// RFC 2003 §5.1).
    pub(super) fn room_ip_in_ip(&self, policy: &TunnelPolicy, outer: &Outer, is_v4: bool) -> IpInIpRoom {
        let path4 = |remote| {
            let path = self.paths.path(remote, self.limits.mtu4, self.now);
            path.max(LEAST_UNCUT.min(self.limits.mtu4))
        };
        let (path, headers) = match *outer {
            Outer::V4 { destination, .. } => (path4(destination), IPV4_HEADER),
            Outer::Udp4 { destination, .. } => (path4(destination.address), IPV4_HEADER + UDP_HEADER),
            Outer::V6 { destination, .. } => {
                let path = self.paths6.path(destination, self.limits.mtu6, self.now);
                let options = policy.encapsulation_limit.map_or(0, |_| ENCAPSULATION_LIMIT_HEADER);
                (path.max(IPV6_MIN_MTU as u16), IPV6_HEADER + options)
            }
        };
        let whole = path.saturating_sub(headers as u16);
        let least = if is_v4 { 0 } else { IPV6_MIN_MTU as u16 };
        // An IPv4 packet with DF that goes into an IPv4 tunnel is not cut on its way either (RFC 2003 §3.1).
        let keeps_df = matches!(outer, Outer::V4 { .. }) && is_v4;
        let is_never_cut = policy.outer_fragments == OuterFragments::Never || keeps_df;
        let most = match policy.mtu {
            TunnelMtu::Static(mtu) if is_never_cut => mtu.min(whole),
            TunnelMtu::Static(mtu) => mtu,
            TunnelMtu::Dynamic => whole,
        };
        IpInIpRoom { most: most.max(least), mss: most.min(whole), path }
    }

    /// Puts a packet into a tunnel packet.
    ///
    /// Fails with [`DropReason::PacketTooBig`], [`DropReason::OuterTooBig`] and [`DropReason::EncapsulationLimit`] before an octet is
    /// changed.
    #[inline(never)]
    pub(super) fn encap_ip_in_ip(
        &mut self,
        outer: Outer,
        policy: &TunnelPolicy,
        frame: &mut Frame,
        packet: &Packet,
        (out, counters): (&mut Outbox, &mut Counters),
    ) -> Result<Executed, DropReason> {
        let is_v4 = matches!(packet.addresses, Addresses::V4 { .. });
        let limit = self.limit_of(outer, policy, frame, is_v4)?;
        let transport_at = usize::from(packet.transport_at);
        let payload = packet.length as usize - transport_at;
        let segment = transport_at + segment_payload(frame, packet, payload)?;
        let policy = &TunnelPolicy { encapsulation_limit: limit, ..*policy };
        let room = self.room_ip_in_ip(policy, &outer, is_v4);
        let may_be_cut = is_v4 && !packet.dont_fragment;
        if !may_be_cut && segment > usize::from(room.most) {
            self.too_big_for = Some(room.most);
            return Err(DropReason::PacketTooBig);
        }
        let segments = match frame.offload.segments {
            None => 1,
            Some(_) => frame.segment_count(transport_at, payload),
        };
        let (front, mtu) = match outer {
            // RFC 2003 §3.1: an inner DF is kept; without it routers on the way may cut.
            Outer::V4 { .. } | Outer::Udp4 { .. } => {
                (self.front_4(outer, policy, packet, segments), self.limits.mtu4)
            }
            Outer::V6 { .. } => (front_6(outer, policy, packet, limit), room.path),
        };
        let front = front.ok_or(DropReason::NoMechanism)?;
        let length = front.length() + segment;
        if length > usize::from(mtu) && policy.outer_fragments == OuterFragments::Never {
            return Err(DropReason::OuterTooBig);
        }
        if length - front.own_header() > usize::from(u16::MAX) {
            return Err(DropReason::TooLongForIpv4);
        }
        if policy.clamp_mss {
            clamp(frame, packet, transport_at, room.mss.saturating_sub(if is_v4 { 40 } else { 60 }));
        }
        let family = match outer {
            Outer::V4 { .. } | Outer::Udp4 { .. } => Family::V4,
            Outer::V6 { destination, .. } if length > usize::from(mtu) => {
                Family::V6 { identification: self.identifications.reserve6(destination, segments) }
            }
            // Nothing is cut: the first segment is the largest.
            Outer::V6 { .. } => Family::V6 { identification: 0 },
        };
        if let Some(segments) = frame.offload.segments {
            let before = out.len();
            let made = self.segments_ip_in_ip(front, (family, mtu), (frame, packet, segments), out);
            let made = made.inspect_err(|_| out.shorten(before))?;
            return Ok(made.into_pieces(frame, before, out, counters));
        }
        finish(frame);
        frame.resize_front(0, front.length())?;
        frame.offload.transport = (front.length() + transport_at) as u16;
        front.write(frame.bytes_mut(), 0);
        if length <= usize::from(mtu) {
            return Ok(Executed::InPlace);
        }
        self.cut(frame, family, mtu, out, counters)
    }

    /// The encapsulation limit of the outer header (RFC 2473 §4.1.1).
    fn limit_of(
        &mut self,
        outer: Outer,
        policy: &TunnelPolicy,
        frame: &Frame,
        is_v4: bool,
    ) -> Result<Option<u8>, DropReason> {
        let borne = match outer {
            Outer::V4 { .. } | Outer::Udp4 { .. } => return Ok(None),
            Outer::V6 { .. } if is_v4 => None,
            Outer::V6 { .. } => borne(frame.bytes()),
        };
        match borne {
            Some(Borne { limit: 0, at }) => {
                self.limit_at = Some(at as u32);
                Err(DropReason::EncapsulationLimit)
            }
            Some(Borne { limit, .. }) => Ok(Some(limit - 1)),
            None => Ok(policy.encapsulation_limit),
        }
    }

    fn front_4(
        &mut self,
        outer: Outer,
        policy: &TunnelPolicy,
        packet: &Packet,
        segments: u32,
    ) -> Option<Front> {
        let (source, destination, ports) = match outer {
            Outer::V4 { source, destination } => (source, destination, None),
            Outer::Udp4 { source, destination } => {
                (source.address, destination.address, Some((source.port, destination.port)))
            }
            Outer::V6 { .. } => return None,
        };
        let header = Ipv4Header {
            tos: traffic_class(policy, packet),
            length: 0,
            identification: self.identifications.reserve(destination, segments),
            // RFC 4380 §5.1.2: not with UDP, where the other end may be behind a NAT that no error passes.
            dont_fragment: packet.dont_fragment && ports.is_none(),
            more_fragments: false,
            offset: 0,
            ttl: policy.ttl.of(packet.hops),
            protocol: if ports.is_some() { UDP } else { protocol_of(packet) },
            source,
            destination,
        };
        Some(match ports {
            None => Front::V4(header),
            Some(ports) => Front::Udp4 { header, ports },
        })
    }

    /// Cuts a super-frame into tunnel packets, in order, and those into fragments that are too large for the path.
    fn segments_ip_in_ip(
        &mut self,
        front: Front,
        (family, mtu): (Family, u16),
        (frame, packet, segments): (&Frame, &Packet, Segments),
        out: &mut Outbox,
    ) -> Result<Made, DropReason> {
        let super_frame = SuperFrame::of(frame.bytes(), packet, segments)?;
        let count = super_frame.count();
        if count > out.room() {
            return Err(DropReason::OutboxFull);
        }
        let mut fragments = 0;
        for number in 0..count {
            let length = front.length() + super_frame.length(number);
            if length <= usize::from(mtu) {
                let piece = out.push(length)?;
                super_frame.write(number, &mut piece.bytes_mut()[front.length()..])?;
                front.write(piece.bytes_mut(), number);
                continue;
            }
            let whole = self.segment.get_or_insert_with(|| Frame::with_capacity(MAX_PACKET));
            whole.received(length, Offload::default());
            super_frame.write(number, &mut whole.bytes_mut()[front.length()..])?;
            front.write(whole.bytes_mut(), number);
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

impl Front {
    /// Its octets.
    const fn length(&self) -> usize {
        match self {
            Self::V4(_) => IPV4_HEADER,
            Self::Udp4 { .. } => IPV4_HEADER + UDP_HEADER,
            Self::V6 { limit: None, .. } => IPV6_HEADER,
            Self::V6 { limit: Some(_), .. } => IPV6_HEADER + ENCAPSULATION_LIMIT_HEADER,
        }
    }

    /// The octets that the length field of its header does not count.
    const fn own_header(&self) -> usize {
        match self {
            Self::V4(_) | Self::Udp4 { .. } => 0,
            Self::V6 { .. } => IPV6_HEADER,
        }
    }

    /// Writes it to the start of a packet, the `number`th of those that a super-frame became.
    fn write(&self, octets: &mut [u8], number: usize) {
        let length = (octets.len() - self.own_header()) as u16;
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
                let Some((front, data)) = behind.split_first_chunk_mut() else { return };
                let udp = UdpHeader::new(*source, *destination, data.len());
                udp.with_checksum4(header.source, header.destination, data).write(front);
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

fn front_6(outer: Outer, policy: &TunnelPolicy, packet: &Packet, limit: Option<u8>) -> Option<Front> {
    let Outer::V6 { source, destination } = outer else { return None };
    let header = Ipv6Header {
        traffic_class: traffic_class(policy, packet),
        payload_length: 0,
        next_header: protocol_of(packet),
        hop_limit: policy.ttl.of(packet.hops),
        source,
        destination,
    };
    Some(Front::V6 { header, limit })
}

const fn traffic_class(policy: &TunnelPolicy, packet: &Packet) -> u8 {
    policy.traffic_class.of(packet.traffic_class) & !ECN | policy.ecn.outer(packet.traffic_class)
}

const fn protocol_of(packet: &Packet) -> u8 {
    match packet.addresses {
        Addresses::V4 { .. } => IPV4,
        Addresses::V6 { .. } => IPV6,
    }
}

#[cfg(test)]
mod tests;
