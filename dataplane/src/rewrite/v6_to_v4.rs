//! An IPv6 packet becomes an IPv4 packet (RFC 7915 §5).

use super::job::{Job, segment_payload};
use super::mss;
use super::rewriter::HeaderWriter;
use super::segments::Family;
use super::transport::{self, Change};
use super::work::Executed;
use crate::drop_reason::DropReason;
use crate::frame::{Checksum, Frame};
use crate::parse::{Addresses, IPV4_HEADER, Packet, SYN, Transport};
use crate::translate::header::{Ipv4Header, protocol_of};
use crate::translate::{HeaderByte, Policy, icmp};
use core::net::Ipv4Addr;
use sixway_wire::IPV6_MIN_MTU;
use sixway_wire::checksum::Sum;
use sixway_wire::protocol::ICMPV6;

/// IPv4 packets up to this size are sent with DF clear (RFC 7915 §5.1): what an IPv6 packet of 1,280 octets becomes.
const DONT_FRAGMENT_ABOVE: usize = 1_260;

impl HeaderWriter {
    #[inline(always)]
    pub(super) fn translate_6_to_4(
        &mut self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        ports: Option<(u16, u16)>,
        policy: &Policy,
        job: Job<'_>,
    ) -> Result<Executed, DropReason> {
        let Job { frame, packet, quoted, limits, hops, last, reassembled, out, counters } = job;
        let Addresses::V6 { source: old_source, destination: old_destination } = packet.addresses else {
            return Err(DropReason::ProtocolUntranslatable);
        };
        if packet.protocol == ICMPV6 && packet.fragment.is_some() {
            return Err(DropReason::IcmpFragment);
        }
        if let Transport::IcmpError { .. } = packet.transport {
            let quoted = quoted.ok_or(DropReason::QuoteUnusable)?;
            let envelope = icmp::Envelope { source, destination, hops };
            icmp::error_v6_to_v4(frame, packet, envelope, quoted, policy, &limits)?;
            if !last || frame.len() <= usize::from(limits.mtu4) {
                return Ok(Executed::InPlace);
            }
            return self.cut(frame, Family::V4, limits.mtu4, out, counters);
        }
        let transport_at = usize::from(packet.transport_at);
        let payload = packet.length as usize - transport_at;
        if let Transport::IcmpQuery { kind, code, .. } = packet.transport {
            // Refused before an octet is changed, and before its size is judged.
            icmp::query_v6_to_v4(kind, code)?;
        }
        let length = u16::try_from(IPV4_HEADER + payload).map_err(|_| DropReason::TooLongForIpv4)?;
        let segment = IPV4_HEADER + segment_payload(frame, packet, payload)?;
        let too_big = last && segment > usize::from(limits.mtu4);
        // A packet that another worker put together and handed over keeps a Fragment header as the sign of it.
        let reassembled = reassembled || (too_big && ports.is_some() && packet.fragment_header != 0);
        // An IPv6 sender need not send less than 1,280 octets, so only smaller packets are fragmented (RFC 7915 §1.4).
        if too_big && !reassembled && segment + transport_at - IPV4_HEADER > IPV6_MIN_MTU {
            return Err(DropReason::PacketTooBig);
        }

        let checksum = frame.offload.checksum;
        let kept = if packet.fragment_header == 0 { None } else { kept_identification(frame, packet) };
        let segments = match frame.offload.segments {
            None => 1,
            Some(_) => frame.segment_count(transport_at, payload),
        };
        frame.resize_front(transport_at, IPV4_HEADER)?;
        frame.offload.transport = IPV4_HEADER as u16;
        let Some((front, data)) = frame.bytes_mut().split_first_chunk_mut::<IPV4_HEADER>() else {
            return Err(DropReason::Truncated);
        };
        let change = Change {
            old: Sum::ZERO.ipv6(old_source).ipv6(old_destination),
            new: Sum::ZERO.ipv4(source).ipv4(destination),
            ports,
            checksum,
        };
        match packet.transport {
            Transport::Ports { tcp_flags, .. } => {
                if transport::ports(data, packet.protocol, change)? {
                    let is_fragment = packet.fragment.is_some();
                    transport::without_checksum(data, change.new, policy.udp_zero_checksum, is_fragment)?;
                }
                if tcp_flags & SYN != 0 && policy.clamp_mss {
                    mss::clamp(data, limits.translated_mss(), checksum == Checksum::Partial);
                }
            }
            Transport::IcmpQuery { .. } => transport::query_v6_to_v4(data, packet, change)?,
            Transport::IcmpError { .. } | Transport::Opaque => {}
        }

        let (identification, dont_fragment, offset, more) = match packet.fragment {
            Some(fragment) => (fragment.identification as u16, false, fragment.offset, fragment.more),
            None if let Some(identification) = kept => (identification, false, 0, false),
            None if segment > DONT_FRAGMENT_ABOVE && !reassembled => (0, true, 0, false),
            None => (self.identifications.reserve(destination, segments), false, 0, false),
        };
        let header = Ipv4Header {
            tos: match policy.tos {
                HeaderByte::Copy => packet.traffic_class,
                HeaderByte::Set(value) => value,
            },
            length,
            identification,
            dont_fragment,
            more_fragments: more,
            offset,
            ttl: hops,
            protocol: protocol_of(packet.protocol),
            source,
            destination,
        };
        header.write(front);
        if !too_big {
            return Ok(Executed::InPlace);
        }
        self.cut(frame, Family::V4, limits.mtu4, out, counters)
    }
}

/// Of an atomic fragment the identification is kept, its lower half (RFC 7915 §5.1.1).
#[cold]
fn kept_identification(frame: &Frame, packet: &Packet) -> Option<u16> {
    let header = frame.bytes().get(usize::from(packet.fragment_header)..)?.first_chunk::<8>()?;
    Some(u16::from_be_bytes([header[6], header[7]]))
}
