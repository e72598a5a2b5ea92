//! A packet of either family gets an outer header of either family: IPv6 (RFC 2473), IPv4 around IPv4 (RFC 2003), or UDP in IPv4 (RFC 4380).
//! IPv6 in IPv4 is in `encap.rs`. The hop limit does not change: the kernel decremented it.
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
use super::outer_header::{OuterHeader, outer_header_6};
use super::rewriter::HeaderWriter;
use super::segments::{Family, finish};
use super::work::Executed;
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::frame::Frame;
use crate::outbox::Outbox;
use crate::parse::{Addresses, IPV4_HEADER, IPV6_HEADER, Packet};
use crate::translate::header::{Ipv4Header, Ipv6Header};
use crate::tunnel::encapsulation_limit::{Borne, borne};
use crate::tunnel::path_mtu::LEAST_UNCUT;
use crate::tunnel::{OuterFragments, TunnelMtu, TunnelPolicy};
use crate::verdict::Outer;
use core::net::Ipv6Addr;
use sixway_wire::protocol::{IPV4, TCP, UDP};
use sixway_wire::{ENCAPSULATION_LIMIT_HEADER, Endpoint4, IPV6_MIN_MTU, UDP_HEADER};

/// The maximum size of a tunnel's next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IpInIpRoom {
    /// The largest inner packet that may not be fragmented.
    pub(super) most: u16,
    /// The largest inner packet whose outer packet is not fragmented.
    pub(super) uncut: u16,
    /// The largest inner packet that the path carries whole, whatever the configured MTU.
    pub(super) whole: u16,
    /// The largest outer packet: larger ones are fragmented.
    path: u16,
}

impl IpInIpRoom {
    /// Whether an IPv4 packet becomes one packet with an IPv6 header alone in front, and no size has to be asked about.
    #[inline(always)]
    pub(super) fn takes_plain(&self, (packet, frame): (&Packet, &Frame), limit: Option<u8>) -> bool {
        let length = packet.length as usize;
        frame.offload.segments.is_none()
            && limit.is_none()
            && IPV6_HEADER + length <= usize::from(self.path)
            && (!packet.dont_fragment || length <= usize::from(self.most))
    }
}

/// Puts an IPv6 header in front of an IPv4 packet that the room takes so.
#[inline(always)]
pub(super) fn encap_plain(
    (source, destination): (Ipv6Addr, Ipv6Addr),
    (policy, room): (&TunnelPolicy, IpInIpRoom),
    frame: &mut Frame,
    (packet, hops): (&Packet, u8),
) -> Result<Executed, DropReason> {
    let transport_at = usize::from(packet.transport_at);
    if policy.clamp_mss {
        clamp(frame, packet, transport_at, room.uncut.saturating_sub(40));
    }
    finish(frame);
    frame.resize_front(0, IPV6_HEADER)?;
    frame.offload.transport = (IPV6_HEADER + transport_at) as u16;
    let header = Ipv6Header {
        traffic_class: policy.outer_traffic_class(packet.traffic_class),
        payload_length: packet.length as u16,
        next_header: IPV4,
        hop_limit: policy.ttl.of(hops),
        source,
        destination,
    };
    header.write(frame.bytes_mut().first_chunk_mut().ok_or(DropReason::NoHeadroom)?);
    Ok(Executed::InPlace)
}

impl HeaderWriter {
    /// What a tunnel of this policy carries behind an outer header: of a packet that is IPv4 with DF, or of one that is IPv6 (RFC 2473 §7,
    /// RFC 2003 §5.1).
    #[inline]
    pub(super) fn room_ip_in_ip(&self, policy: &TunnelPolicy, outer: &Outer, is_v4: bool) -> IpInIpRoom {
        self.room_with_limit(policy, outer, policy.encapsulation_limit, is_v4)
    }

    /// The same, of a packet whose outer header has this encapsulation limit.
    #[inline(always)]
    pub(super) fn room_with_limit(
        &self,
        policy: &TunnelPolicy,
        outer: &Outer,
        limit: Option<u8>,
        is_v4: bool,
    ) -> IpInIpRoom {
        let path4 = |remote| {
            let path = self.paths.path(remote, self.limits.mtu4, self.now);
            path.max(LEAST_UNCUT.min(self.limits.mtu4))
        };
        let (path, headers) = match *outer {
            Outer::V4 { destination, .. } => (path4(destination), IPV4_HEADER),
            Outer::Udp4 { destination, .. } => (path4(destination.address), IPV4_HEADER + UDP_HEADER),
            Outer::V6 { destination, .. } => {
                let path = self.paths6.path(destination, self.limits.mtu6, self.now);
                let options = limit.map_or(0, |_| ENCAPSULATION_LIMIT_HEADER);
                (path.max(IPV6_MIN_MTU as u16), IPV6_HEADER + options)
            }
        };
        let whole = path.saturating_sub(headers as u16);
        let least = if is_v4 { 0 } else { IPV6_MIN_MTU as u16 };
        // An IPv4 packet with DF that goes into an IPv4 tunnel is not fragmented on its way either (RFC 2003 §3.1).
        let keeps_df = matches!(outer, Outer::V4 { .. }) && is_v4;
        let is_never_cut = policy.outer_fragments == OuterFragments::Never || keeps_df;
        let most = match policy.mtu {
            TunnelMtu::Static(mtu) if is_never_cut => mtu.min(whole),
            TunnelMtu::Static(mtu) => mtu,
            TunnelMtu::Dynamic => whole,
        };
        IpInIpRoom { most: most.max(least), uncut: most.min(whole), whole, path }
    }

    /// Puts a packet into a tunnel packet.
    ///
    /// Fails with [`DropReason::PacketTooBig`], [`DropReason::OuterTooBig`] and [`DropReason::EncapsulationLimit`] before an octet is
    /// changed.
    #[inline(never)]
    pub(super) fn encap_ip_in_ip(
        &mut self,
        outer: &Outer,
        policy: &TunnelPolicy,
        frame: &mut Frame,
        packet: &Packet,
        (out, counters): (&mut Outbox, &mut Counters),
    ) -> Result<Executed, DropReason> {
        let is_v4 = matches!(packet.addresses, Addresses::V4 { .. });
        let limit = self.limit_of(outer, policy, frame, is_v4)?;
        let room = self.room_with_limit(policy, outer, limit, is_v4);
        self.encap_in_room(outer, (policy, limit, room), frame, (packet, packet.hops), (out, counters))
    }

    /// The same of IPv4 in IPv6, the most frequent case: a whole packet that fits gets a header of 40 octets, and nothing else is asked.
    #[inline(always)]
    pub(super) fn encap_4_in_6(
        &mut self,
        ends: (Ipv6Addr, Ipv6Addr),
        (policy, packet): (&TunnelPolicy, &Packet),
        frame: &mut Frame,
        out: &mut Outbox,
        counters: &mut Counters,
    ) -> Result<Executed, DropReason> {
        let (source, destination) = ends;
        let (outer, limit) = (Outer::V6 { source, destination }, policy.encapsulation_limit);
        let room = self.room_with_limit(policy, &outer, limit, true);
        if room.takes_plain((packet, frame), limit) {
            return encap_plain(ends, (policy, room), frame, (packet, packet.hops));
        }
        self.encap_4_in_6_any(&outer, (policy, packet), frame, (out, counters))
    }

    /// The same of any packet.
    #[cold]
    #[inline(never)]
    fn encap_4_in_6_any(
        &mut self,
        outer: &Outer,
        (policy, packet): (&TunnelPolicy, &Packet),
        frame: &mut Frame,
        news: (&mut Outbox, &mut Counters),
    ) -> Result<Executed, DropReason> {
        let limit = policy.encapsulation_limit;
        let room = self.room_with_limit(policy, outer, limit, true);
        self.encap_in_room(outer, (policy, limit, room), frame, (packet, packet.hops), news)
    }

    /// Whether an IPv6 packet becomes one datagram, and neither the path nor a segment has to be asked about.
    #[inline(always)]
    pub(super) fn takes_plain_udp(&self, policy: &TunnelPolicy, (packet, frame): (&Packet, &Frame)) -> bool {
        let length = packet.length as usize;
        let fits = match policy.mtu {
            TunnelMtu::Static(mtu) => length <= usize::from(mtu).max(IPV6_MIN_MTU),
            TunnelMtu::Dynamic => false,
        };
        fits && policy.outer_fragments == OuterFragments::Allowed
            && IPV4_HEADER + UDP_HEADER + length <= usize::from(self.limits.mtu4)
            && frame.offload.segments.is_none()
            && !(policy.clamp_mss && packet.protocol == TCP)
    }

    /// Puts an IPv6 packet that is taken so into a datagram (RFC 4380 §5.1.2: DF is clear).
    #[inline(always)]
    pub(super) fn encap_plain_udp(
        &mut self,
        (source, destination): (Endpoint4, Endpoint4),
        (policy, packet): (&TunnelPolicy, &Packet),
        frame: &mut Frame,
    ) -> Result<Executed, DropReason> {
        let header = Ipv4Header {
            tos: policy.outer_traffic_class(packet.traffic_class),
            length: 0,
            identification: self.identifications.reserve(destination.address, 1),
            dont_fragment: false,
            more_fragments: false,
            offset: 0,
            ttl: policy.ttl.of(packet.hops),
            protocol: UDP,
            source: source.address,
            destination: destination.address,
        };
        let front = OuterHeader::Udp4 { header, ports: (source.port, destination.port) };
        finish(frame);
        frame.resize_front(0, front.length())?;
        front.put(frame, 0);
        Ok(Executed::InPlace)
    }

    /// The same, where it is known what the tunnel carries and which encapsulation limit the packet gets. Its hop limit is `hops`: the packet
    /// may have been renumbered.
    #[inline(always)]
    pub(super) fn encap_in_room(
        &mut self,
        outer: &Outer,
        (policy, limit, room): (&TunnelPolicy, Option<u8>, IpInIpRoom),
        frame: &mut Frame,
        (packet, hops): (&Packet, u8),
        (out, counters): (&mut Outbox, &mut Counters),
    ) -> Result<Executed, DropReason> {
        let is_v4 = matches!(packet.addresses, Addresses::V4 { .. });
        let transport_at = usize::from(packet.transport_at);
        let payload = packet.length as usize - transport_at;
        let segment = transport_at + segment_payload(frame, packet, payload)?;
        let may_be_cut = is_v4 && !packet.dont_fragment;
        if !may_be_cut && segment > usize::from(room.most) {
            self.too_big_for = Some(room.most);
            return Err(DropReason::PacketTooBig);
        }
        let segments = match frame.offload.segments {
            None => 1,
            Some(_) => frame.segment_count(transport_at, payload),
        };
        let (front, mtu) = match *outer {
            // RFC 2003 §3.1: an inner DF is kept; without it routers on the way may fragment.
            Outer::V4 { .. } | Outer::Udp4 { .. } => {
                let front = self.outer_header_4(outer, policy, (packet, hops), segments);
                (front.ok_or(DropReason::NoMechanism)?, self.limits.mtu4)
            }
            Outer::V6 { source, destination } => {
                (outer_header_6((source, destination), policy, (packet, hops), limit), room.path)
            }
        };
        let length = front.length() + segment;
        if length > usize::from(mtu) && policy.outer_fragments == OuterFragments::Never {
            return Err(DropReason::OuterTooBig);
        }
        if length - front.uncounted() > usize::from(u16::MAX) {
            return Err(DropReason::TooLongForIpv4);
        }
        if policy.clamp_mss {
            clamp(frame, packet, transport_at, room.uncut.saturating_sub(if is_v4 { 40 } else { 60 }));
        }
        let family = match *outer {
            Outer::V4 { .. } | Outer::Udp4 { .. } => Family::V4,
            Outer::V6 { destination, .. } if length > usize::from(mtu) => {
                Family::V6 { identification: self.identifications.reserve6(destination, segments) }
            }
            // Nothing is cut: the first segment is the largest.
            Outer::V6 { .. } => Family::V6 { identification: 0 },
        };
        if let Some(segments) = frame.offload.segments {
            let before = out.len();
            let made = self.encap_segments(front, (family, mtu), (frame, packet, segments), out);
            let made = made.inspect_err(|_| out.shorten(before))?;
            return Ok(made.into_pieces(frame, before, out, counters));
        }
        finish(frame);
        frame.resize_front(0, front.length())?;
        frame.offload.transport = (front.length() + transport_at) as u16;
        front.put(frame, 0);
        if length <= usize::from(mtu) {
            return Ok(Executed::InPlace);
        }
        self.cut(frame, family, mtu, out, counters)
    }

    /// The encapsulation limit of the outer header (RFC 2473 §4.1.1).
    #[inline(always)]
    fn limit_of(
        &mut self,
        outer: &Outer,
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
}

#[cfg(test)]
mod tests;
