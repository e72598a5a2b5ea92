//! The gateway's own answer to an echo request (RFC 792, RFC 4443 §4.2; RFC 1122 §3.2.2.6).

use super::Executed;
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::fragment::{fragment4, fragment6};
use crate::frame::Frame;
use crate::limits::Limits;
use crate::parse::{Addresses, Packet, Transport};
use crate::translate::header::{Ipv4Header, Ipv6Header};
use crate::verdict::Outbox;
use sixway_wire::checksum::{self, Sum};
use sixway_wire::protocol::{ICMPV4, ICMPV6};

/// The hop limit of what the gateway sends itself (RFC 1700).
const HOPS: u8 = 64;
const ECHO_REQUEST_4: u8 = 8;
const ECHO_REPLY_4: u8 = 0;
const ECHO_REQUEST_6: u8 = 128;
const ECHO_REPLY_6: u8 = 129;

/// Turns an echo request, whole and without extension headers or options, into its reply. A reply that is larger than its link's
/// MTU leaves as fragments.
/// Other ICMP queries are refused in silence (RFC 1122 §3.2.2, RFC 4443 §2.4 b), with [`DropReason::IcmpUntranslatable`]; everything else with
/// [`DropReason::ToGateway`].
pub fn reply(
    frame: &mut Frame,
    packet: &Packet,
    limits: &Limits,
    out: &mut Outbox,
    counters: &mut Counters,
) -> Result<Executed, DropReason> {
    let Transport::IcmpQuery { kind, .. } = packet.transport else { return Err(DropReason::ToGateway) };
    if frame.offload.segments.is_some() {
        return Err(DropReason::BadSuperFrame);
    }
    if packet.fragment.is_some() {
        return Err(DropReason::ToGateway);
    }
    frame.truncate(packet.length as usize);
    let transport_at = usize::from(packet.transport_at);
    let payload = packet.length as usize - transport_at;
    let reply = match (packet.addresses, kind) {
        (Addresses::V4 { source, destination }, ECHO_REQUEST_4) => {
            let header = Ipv4Header {
                tos: packet.traffic_class,
                length: (20 + payload) as u16,
                identification: u16::from_be_bytes([frame.bytes()[4], frame.bytes()[5]]),
                dont_fragment: packet.dont_fragment && 20 + payload <= usize::from(limits.mtu4),
                more_fragments: false,
                offset: 0,
                ttl: HOPS,
                protocol: ICMPV4,
                source: destination,
                destination: source,
            };
            frame.resize_front(transport_at, 20)?;
            frame.bytes_mut()[..20].copy_from_slice(&header.octets());
            (ECHO_REPLY_4, 20)
        }
        (Addresses::V6 { source, destination }, ECHO_REQUEST_6) => {
            let header = Ipv6Header {
                traffic_class: packet.traffic_class,
                payload_length: payload as u16,
                next_header: ICMPV6,
                hop_limit: HOPS,
                source: destination,
                destination: source,
            };
            frame.resize_front(transport_at, 40)?;
            frame.bytes_mut()[..40].copy_from_slice(&header.octets());
            (ECHO_REPLY_6, 40)
        }
        _ => return Err(DropReason::IcmpUntranslatable),
    };
    let (new_kind, at) = reply;
    let icmp = &mut frame.bytes_mut()[at..];
    let change = (Sum::ZERO.bytes(&[icmp[0], icmp[1]]), Sum::ZERO.bytes(&[new_kind, icmp[1]]));
    let sum = checksum::update(u16::from_be_bytes([icmp[2], icmp[3]]), change.0, change.1);
    icmp[0] = new_kind;
    // The update cannot tell its two zeros apart: of a message of zeros alone the checksum is 0xffff.
    let is_zero = sum == 0 && icmp.iter().enumerate().all(|(at, octet)| *octet == 0 || matches!(at, 2 | 3));
    icmp[2..4].copy_from_slice(&(if is_zero { 0xffff } else { sum }).to_be_bytes());
    let before = out.len();
    let made = match at {
        20 if frame.len() > usize::from(limits.mtu4) => fragment4(frame, limits.mtu4, out)?,
        40 if frame.len() > usize::from(limits.mtu6) => {
            // Identifier and sequence number tell replies apart.
            let identification =
                frame.bytes()[44..48].iter().fold(0, |all, octet| all << 8 | u32::from(*octet));
            fragment6(frame, identification, limits.mtu6, out)?
        }
        _ => return Ok(Executed::InPlace),
    };
    counters.fragments_made += u64::from(made);
    frame.pieces = out.since(before);
    Ok(Executed::InPieces)
}
