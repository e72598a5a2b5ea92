//! An IPv6 packet gets an outer IPv4 header (RFC 4213 §3.5). Its hop limit stays: who routed it into the tunnel has counted.
//!
//!
//! ```text
//!                                       +-------------+
//!                                       | IPv4 header |  protocol 41
//!       +-------------+                 +-------------+
//!       | IPv6 header |                 | IPv6 header |
//!       +-------------+  ───────────▶   +-------------+
//!       |  payload    |                 |  payload    |
//!       +-------------+                 +-------------+
//! ```

use super::segments::{Family, finish};
use super::{Bench, Executed, Job, mss, segment_payload};
use crate::drop_reason::DropReason;
use crate::fragment::SuperFrame;
use crate::frame::{Frame, Segments};
use crate::parse::{IPV4_HEADER, Packet, SYN, Transport};
use crate::translate::header::Ipv4Header;
use crate::tunnel::{Ecn, OuterFragments, TunnelMtu, TunnelPolicy};
use crate::verdict::Outbox;
use core::net::Ipv4Addr;
use sixway_wire::protocol::IPV6;

impl Bench {
    #[inline(always)]
    pub(super) fn encap_4(
        &mut self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        policy: &TunnelPolicy,
        job: Job<'_>,
    ) -> Result<Executed, DropReason> {
        let Job { frame, packet, out, counters, .. } = job;
        let transport_at = usize::from(packet.transport_at);
        let payload = packet.length as usize - transport_at;
        let segment = transport_at + segment_payload(frame, packet, payload)?;
        let fragments = policy.outer_fragments == OuterFragments::Allowed;
        let link = usize::from(self.limits.mtu4) - IPV4_HEADER;
        let mtu = match policy.mtu {
            TunnelMtu::Static(mtu) if fragments => usize::from(mtu),
            TunnelMtu::Static(mtu) => usize::from(mtu).min(link),
            TunnelMtu::Dynamic => link,
        };
        if segment > mtu {
            self.too_big_for = Some(mtu as u16);
            return Err(DropReason::PacketTooBig);
        }
        let length = u16::try_from(IPV4_HEADER + segment).map_err(|_| DropReason::TooLongForIpv4)?;
        if let Transport::Ports { tcp_flags, .. } = packet.transport
            && tcp_flags & SYN != 0
            && policy.clamp_mss
            && packet.protocol == sixway_wire::protocol::TCP
        {
            let partial = frame.offload.checksum == crate::frame::Checksum::Partial;
            mss::clamp(&mut frame.bytes_mut()[transport_at..], (mtu as u16).saturating_sub(60), partial);
        }
        let segments = frame.segment_count(transport_at, payload);
        let mut header = Ipv4Header {
            tos: outer_tos(policy, packet.traffic_class),
            length,
            identification: self.reserve_identifications(segments),
            dont_fragment: false,
            more_fragments: false,
            offset: 0,
            ttl: policy.ttl.of(packet.hops),
            protocol: IPV6,
            source,
            destination,
        };
        if let Some(segments) = frame.offload.segments {
            let before = out.len();
            let made = encap_segments(&mut header, frame, packet, segments, out)?;
            counters.segments_made += made.segments;
            counters.packets += made.segments;
            counters.octets += made.octets;
            frame.pieces = out.since(before);
            return Ok(Executed::InPieces);
        }
        finish(frame);
        frame.resize_front(0, IPV4_HEADER)?;
        frame.offload.transport = (IPV4_HEADER + transport_at) as u16;
        let front = frame.bytes_mut().first_chunk_mut().ok_or(DropReason::NoHeadroom)?;
        header.write(front);
        if usize::from(length) <= usize::from(self.limits.mtu4) {
            return Ok(Executed::InPlace);
        }
        self.cut(frame, Family::V4, self.limits.mtu4, out, counters)
    }
}

/// What was made of a super-frame.
struct Made {
    segments: u64,
    octets: u64,
}

/// Cuts a super-frame into tunnel packets, in order.
fn encap_segments(
    header: &mut Ipv4Header,
    frame: &Frame,
    packet: &Packet,
    segments: Segments,
    out: &mut Outbox,
) -> Result<Made, DropReason> {
    let super_frame = SuperFrame::of(frame.bytes(), packet, segments)?;
    let count = super_frame.count();
    if count > out.room() {
        return Err(DropReason::OutboxFull);
    }
    let first = header.identification;
    let mut octets = 0;
    for number in 0..count {
        let length = IPV4_HEADER + super_frame.length(number);
        let piece = out.push(length)?;
        let (front, inner) =
            piece.bytes_mut().split_first_chunk_mut::<IPV4_HEADER>().ok_or(DropReason::NoHeadroom)?;
        super_frame.write(number, inner)?;
        header.length = length as u16;
        header.identification = first.wrapping_add(number as u16);
        header.write(front);
        octets += length as u64;
    }
    Ok(Made { segments: count as u64, octets })
}

/// The outer TOS octet: DSCP by policy (RFC 2983 §4.1), ECN by RFC 6040 §4.1.
#[inline]
const fn outer_tos(policy: &TunnelPolicy, inner: u8) -> u8 {
    let dscp = policy.traffic_class.of(inner) & 0xfc;
    match policy.ecn {
        Ecn::Normal => dscp | inner & 3,
        Ecn::Compatibility => dscp,
    }
}
