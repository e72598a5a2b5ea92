//! The gateway's own answer to an echo request (RFC 792, RFC 4443 §4.2; RFC 1122 §3.2.2.6).

use super::work::Executed;
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::fragment::{fragment4, fragment6};
use crate::frame::Frame;
use crate::limits::Limits;
use crate::outbox::Outbox;
use crate::parse::{Addresses, Packet, Transport};
use crate::translate::header::{Ipv4Header, Ipv6Header};
use sixway_wire::checksum::{self, Sum};
use sixway_wire::protocol::{ICMPV4, ICMPV6, NO_NEXT_HEADER, TCP, UDP};
use sixway_wire::{ICMP_HEADER, IPV4_HEADER, IPV6_HEADER, IcmpHeader, icmpv4, icmpv6};

/// The hop limit of the gateway's own packets (RFC 1700).
const HOPS: u8 = 64;

/// Why a packet to the gateway's own address is refused other than an ICMP query.
const fn refusal(packet: &Packet) -> DropReason {
    match (packet.transport, packet.protocol) {
        (_, TCP | UDP | ICMPV4 | ICMPV6 | NO_NEXT_HEADER)
        | (Transport::IcmpError { .. } | Transport::IcmpQuery { .. }, _) => DropReason::ToGateway,
        (Transport::Opaque | Transport::Ports { .. }, _) => DropReason::ProtocolUnknown,
    }
}

/// Turns an echo request, whole and without extension headers or options, into its reply. A reply that is larger than its link's
/// MTU leaves as fragments.
/// Other ICMP queries are silently refused (RFC 1122 §3.2.2, RFC 4443 §2.4 b), with [`DropReason::IcmpUntranslatable`]; other protocols than TCP, UDP
/// and ICMP with [`DropReason::ProtocolUnknown`], everything else with [`DropReason::ToGateway`].
pub fn reply(
    frame: &mut Frame,
    packet: &Packet,
    limits: &Limits,
    out: &mut Outbox,
    counters: &mut Counters,
) -> Result<Executed, DropReason> {
    let Transport::IcmpQuery { kind, .. } = packet.transport else { return Err(refusal(packet)) };
    if frame.offload.segments.is_some() {
        return Err(DropReason::BadGso);
    }
    if packet.fragment.is_some() {
        return Err(DropReason::ToGateway);
    }
    frame.truncate(packet.length as usize);
    let transport_at = usize::from(packet.transport_at);
    let payload = packet.length as usize - transport_at;
    let reply = match (packet.addresses, kind) {
        (Addresses::V4 { source, destination }, icmpv4::ECHO_REQUEST) => {
            let header = Ipv4Header {
                tos: packet.traffic_class,
                identification: Ipv4Header::read(frame.bytes())
                    .map_err(|_| DropReason::Truncated)?
                    .identification,
                dont_fragment: packet.dont_fragment && IPV4_HEADER + payload <= usize::from(limits.mtu4),
                ttl: HOPS,
                ..Ipv4Header::new(destination, source, ICMPV4, payload)
            };
            frame.resize_front(transport_at, IPV4_HEADER)?;
            frame.bytes_mut()[..IPV4_HEADER].copy_from_slice(&header.octets());
            (icmpv4::ECHO_REPLY, IPV4_HEADER)
        }
        (Addresses::V6 { source, destination }, icmpv6::ECHO_REQUEST) => {
            let header = Ipv6Header {
                traffic_class: packet.traffic_class,
                hop_limit: HOPS,
                ..Ipv6Header::new(destination, source, ICMPV6, payload)
            };
            frame.resize_front(transport_at, IPV6_HEADER)?;
            frame.bytes_mut()[..IPV6_HEADER].copy_from_slice(&header.octets());
            (icmpv6::ECHO_REPLY, IPV6_HEADER)
        }
        _ => return Err(DropReason::IcmpUntranslatable),
    };
    let (new_kind, at) = reply;
    let icmp = &mut frame.bytes_mut()[at..];
    let (head, body) = IcmpHeader::split(icmp).map_err(|_| DropReason::TransportTruncated)?;
    let word = |kind| Sum::ZERO.bytes(&[kind, head.code]);
    let mut head = IcmpHeader {
        kind: new_kind,
        checksum: checksum::update(head.checksum, word(head.kind), word(new_kind)),
        ..head
    };
    // The update cannot tell its two zeros apart: of a message of zeros alone the checksum is 0xffff.
    if head == IcmpHeader::new(0, 0, 0) && body.iter().all(|octet| *octet == 0) {
        head.checksum = 0xffff;
    }
    icmp[..ICMP_HEADER].copy_from_slice(&head.octets());
    let replied = head.rest;
    let before = out.len();
    let made = match at {
        IPV4_HEADER if frame.len() > usize::from(limits.mtu4) => fragment4(frame, limits.mtu4, out)?,
        IPV6_HEADER if frame.len() > usize::from(limits.mtu6) => {
            // Identifier and sequence number tell replies apart.
            fragment6(frame, replied, limits.mtu6, out)?
        }
        _ => return Ok(Executed::InPlace),
    };
    counters.fragments_made += u64::from(made);
    frame.pieces = out.since(before);
    Ok(Executed::InPieces)
}
