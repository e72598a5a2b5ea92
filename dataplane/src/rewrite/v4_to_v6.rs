//! An IPv4 packet becomes an IPv6 packet (RFC 7915 §4).

use super::job::{Job, segment_payload};
use super::mss;
use super::rewriter::HeaderWriter;
use super::segments::Family;
use super::transport::{self, Change};
use super::work::Executed;
use crate::drop_reason::DropReason;
use crate::frame::Checksum;
use crate::parse::{Addresses, FRAGMENT_HEADER, IPV6_HEADER, SYN, Transport};
use crate::translate::header::{Ipv6Header, fragment_header, next_header_of};
use crate::translate::{HeaderByte, Policy, icmp};
use core::net::Ipv6Addr;
use sixway_wire::checksum::Sum;
use sixway_wire::protocol::{FRAGMENT, ICMPV4, UDP};

impl HeaderWriter {
    #[inline(always)]
    pub(super) fn translate_4_to_6(
        &mut self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        ports: Option<(u16, u16)>,
        policy: &Policy,
        job: Job<'_>,
    ) -> Result<Executed, DropReason> {
        let Job { frame, packet, quoted, limits, hops, last, reassembled, out, counters } = job;
        let Addresses::V4 { source: old_source, destination: old_destination } = packet.addresses else {
            return Err(DropReason::ProtocolUntranslatable);
        };
        if packet.protocol == ICMPV4 && packet.fragment.is_some() {
            return Err(DropReason::IcmpFragment);
        }
        if let Transport::IcmpError { .. } = packet.transport {
            let quoted = quoted.ok_or(DropReason::QuoteUnusable)?;
            let envelope = icmp::Envelope { source, destination, hops };
            icmp::error_v4_to_v6(frame, packet, envelope, quoted, policy, &limits)?;
            return Ok(Executed::InPlace);
        }
        let transport_at = usize::from(packet.transport_at);
        let payload = packet.length as usize - transport_at;
        // Whatever is refused is refused before an octet is changed, so that it can be quoted.
        let checksum = frame.offload.checksum;
        let mut no_checksum = false;
        match packet.transport {
            Transport::IcmpQuery { kind, code, .. } => {
                icmp::query_v4_to_v6(kind, code)?;
            }
            Transport::Ports { .. } if packet.protocol == UDP && checksum == Checksum::Complete => {
                let data = &frame.bytes()[transport_at..];
                no_checksum = data[6..8] == [0, 0];
                if no_checksum {
                    transport::may_compute(data, policy.udp_zero_checksum, packet.fragment.is_some())?;
                }
            }
            Transport::Ports { .. } | Transport::IcmpError { .. } | Transport::Opaque => {}
        }
        let front = IPV6_HEADER + if packet.fragment.is_some() { FRAGMENT_HEADER } else { 0 };
        let segment = front + segment_payload(frame, packet, payload)?;
        let mtu6 = limits.mtu6;
        let lowest = policy.lowest_ipv6_mtu.min(mtu6);
        let too_big = if packet.dont_fragment && !reassembled {
            if last && segment > usize::from(mtu6) {
                return Err(DropReason::PacketTooBig);
            }
            false
        } else {
            last && segment > usize::from(lowest)
        };

        // The identification of a packet that is cut here is its own from IPv4 (RFC 7915 §4.1).
        let identification = match packet.fragment {
            Some(fragment) => fragment.identification,
            None if too_big => u32::from(u16::from_be_bytes([frame.bytes()[4], frame.bytes()[5]])),
            None => 0,
        };
        frame.resize_front(transport_at, front)?;
        frame.offload.transport = front as u16;
        let Some((headers, data)) = frame.bytes_mut().split_at_mut_checked(front) else {
            return Err(DropReason::Truncated);
        };
        let change = Change {
            old: Sum::ZERO.ipv4(old_source).ipv4(old_destination),
            new: Sum::ZERO.ipv6(source).ipv6(destination),
            ports,
            checksum,
        };
        match packet.transport {
            Transport::Ports { tcp_flags, .. } => {
                transport::ports(data, packet.protocol, change)?;
                if no_checksum {
                    transport::compute_udp(data, change.new);
                }
                if tcp_flags & SYN != 0 && policy.clamp_mss {
                    mss::clamp(data, limits.translated_mss(), checksum == Checksum::Partial);
                }
            }
            Transport::IcmpQuery { .. } => transport::query_v4_to_v6(data, packet, change)?,
            Transport::IcmpError { .. } | Transport::Opaque => {}
        }

        let next_header = next_header_of(packet.protocol);
        let header = Ipv6Header {
            traffic_class: match policy.traffic_class {
                HeaderByte::Copy => packet.traffic_class,
                HeaderByte::Set(value) => value,
            },
            payload_length: (front - IPV6_HEADER + payload) as u16,
            next_header: if packet.fragment.is_some() { FRAGMENT } else { next_header },
            hop_limit: hops,
            source,
            destination,
        };
        header.write(headers.first_chunk_mut().ok_or(DropReason::Truncated)?);
        if let Some(fragment) = packet.fragment {
            headers[IPV6_HEADER..].copy_from_slice(&fragment_header(next_header, fragment));
        }
        if !too_big {
            return Ok(Executed::InPlace);
        }
        self.cut(frame, Family::V6 { identification }, lowest, out, counters)
    }
}
