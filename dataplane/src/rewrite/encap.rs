//! An IPv6 packet gets an outer IPv4 header (RFC 4213 §3.5). Its hop limit does not change: the kernel decremented it.
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

use super::job::segment_payload;
use super::mss;
use super::outer_header::OuterHeader;
use super::rewriter::HeaderWriter;
use super::segments::{Family, finish};
use super::work::Executed;
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::frame::{Checksum, Frame};
use crate::outbox::Outbox;
use crate::parse::{IPV4_HEADER, Packet, SYN, Transport};
use crate::translate::header::Ipv4Header;
use crate::tunnel::TunnelPolicy;
use core::net::Ipv4Addr;
use sixway_wire::protocol::{IPV6, TCP};

impl HeaderWriter {
    /// Puts a packet into an IPv4 packet from `source` to `destination`.
    #[inline(always)]
    pub(super) fn encap_4(
        &mut self,
        (source, destination): (Ipv4Addr, Ipv4Addr),
        (policy, packet): (&TunnelPolicy, &Packet),
        frame: &mut Frame,
        out: &mut Outbox,
        counters: &mut Counters,
    ) -> Result<Executed, DropReason> {
        let transport_at = usize::from(packet.transport_at);
        let payload = packet.length as usize - transport_at;
        let segment = transport_at + segment_payload(frame, packet, payload)?;
        let room = self.tunnel_room(policy, destination);
        let link = usize::from(self.limits.mtu4);
        let length = IPV4_HEADER + segment;
        if segment > usize::from(room.mtu) {
            self.too_big_for = Some(room.mtu);
            return Err(DropReason::PacketTooBig);
        }
        if room.dont_fragment && length > link {
            return Err(DropReason::OuterTooBig);
        }
        if policy.clamp_mss {
            clamp(frame, packet, transport_at, room.mtu.saturating_sub(60));
        }
        let segments = match frame.offload.segments {
            None => 1,
            Some(_) => frame.segment_count(transport_at, payload),
        };
        let header = Ipv4Header {
            tos: policy.outer_traffic_class(packet.traffic_class),
            length: u16::try_from(length).map_err(|_| DropReason::TooLongForIpv4)?,
            identification: self.identifications.reserve(destination, segments),
            dont_fragment: room.dont_fragment,
            more_fragments: false,
            offset: 0,
            ttl: policy.ttl.of(packet.hops),
            protocol: IPV6,
            source,
            destination,
        };
        if let Some(segments) = frame.offload.segments {
            let before = out.len();
            let made = self.encap_segments(
                OuterHeader::V4(header),
                (Family::V4, self.limits.mtu4),
                (frame, packet, segments),
                out,
            );
            let made = made.inspect_err(|_| out.shorten(before))?;
            return Ok(made.into_pieces(frame, before, out, counters));
        }
        finish(frame);
        frame.resize_front(0, IPV4_HEADER)?;
        frame.offload.transport = (IPV4_HEADER + transport_at) as u16;
        let front = frame.bytes_mut().first_chunk_mut().ok_or(DropReason::NoHeadroom)?;
        header.write(front);
        if length <= link {
            return Ok(Executed::InPlace);
        }
        self.cut(frame, Family::V4, self.limits.mtu4, out, counters)
    }
}

/// Lowers the MSS option of a SYN to `mss` octets.
#[inline(always)]
pub(super) fn clamp(frame: &mut Frame, packet: &Packet, transport_at: usize, mss: u16) {
    let Transport::Ports { tcp_flags, .. } = packet.transport else { return };
    if tcp_flags & SYN != 0 && packet.protocol == TCP {
        clamp_syn(frame, transport_at, mss);
    }
}

#[cold]
fn clamp_syn(frame: &mut Frame, transport_at: usize, mss: u16) {
    let partial = frame.offload.checksum == Checksum::Partial;
    mss::clamp(&mut frame.bytes_mut()[transport_at..], mss, partial);
}
