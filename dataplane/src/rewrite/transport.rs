//! Edits after the IP headers: ports or identifier, and the checksum that covers them and the pseudo-header
//! (RFC 7915 §4.5, §5.5; RFC 1624).

use crate::drop_reason::DropReason;
use crate::frame::Checksum;
use crate::parse::{Packet, Transport};
use crate::translate::{UdpZeroChecksum, icmp};
use sixway_wire::checksum::{self, Sum};
use sixway_wire::protocol::{self, SCTP, TCP, UDP, UDP_LITE, checksum_offset};

/// How the headers in front of the transport header change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// The sum of the old addresses.
    pub old: Sum,
    /// The sum of the new addresses.
    pub new: Sum,
    /// New source and destination port (or identifier, in both), `None`: they stay.
    pub ports: Option<(u16, u16)>,
    /// The state of the checksum.
    pub checksum: Checksum,
}

/// Rewrites ports and checksum of TCP, UDP, UDP-Lite and DCCP. `data` starts at the transport header. Protocols whose
/// checksum has no pseudo-header are left as they are. Whether it is a UDP datagram without checksum, which stays so.
#[inline(always)]
pub(super) fn ports(data: &mut [u8], protocol: u8, change: Change) -> Result<bool, DropReason> {
    // As `protocol::checksum_offset` has it, for protocols with ports.
    let at = match protocol {
        TCP => 16,
        SCTP => return Ok(false),
        _ => 6,
    };
    let (mut old, mut new) = (change.old, change.new);
    let partial = change.checksum == Checksum::Partial;
    let field = data.get(at..at + 2).ok_or(DropReason::TransportTruncated)?;
    let before = u16::from_be_bytes([field[0], field[1]]);
    if let Some((source, destination)) = change.ports {
        let head = data.first_chunk_mut::<4>().ok_or(DropReason::TransportTruncated)?;
        if !partial {
            old = old.long(u32::from_be_bytes(*head));
            new = new.word(source).word(destination);
        }
        head[0..2].copy_from_slice(&source.to_be_bytes());
        head[2..4].copy_from_slice(&destination.to_be_bytes());
    }
    let after = if partial {
        checksum::update_partial(before, old, new)
    } else if protocol == UDP && before == 0 {
        return Ok(true);
    } else {
        let after = checksum::update(before, old, new);
        if after == 0 && matches!(protocol, UDP | UDP_LITE) { 0xffff } else { after }
    };
    data[at..at + 2].copy_from_slice(&after.to_be_bytes());
    Ok(false)
}

/// A UDP datagram from IPv6 without checksum: `addresses` is the sum of the new addresses. The sum of a fragment is not known; IPv4 needs none.
#[cold]
pub(super) fn without_checksum(
    data: &mut [u8],
    addresses: Sum,
    policy: UdpZeroChecksum,
    is_fragment: bool,
) -> Result<(), DropReason> {
    match policy {
        UdpZeroChecksum::Drop => return Err(DropReason::UdpChecksumZero),
        UdpZeroChecksum::Compute if !is_fragment => compute_udp(data, addresses),
        UdpZeroChecksum::Compute => {}
    }
    Ok(())
}

/// Whether the checksum of a UDP datagram that has none may be computed for IPv6, where it needs one (RFC 7915 §4.5).
pub(super) fn may_compute(data: &[u8], policy: UdpZeroChecksum, is_fragment: bool) -> Result<(), DropReason> {
    if is_fragment {
        return Err(DropReason::UdpChecksumZeroFragment);
    }
    if policy == UdpZeroChecksum::Drop {
        return Err(DropReason::UdpChecksumZero);
    }
    match udp_length(data) {
        Some(_) => Ok(()),
        None => Err(DropReason::BadUdpLength),
    }
}

/// Computes the checksum of a UDP datagram whose field is zero; `addresses` is the sum of the new addresses.
pub(super) fn compute_udp(data: &mut [u8], addresses: Sum) {
    let Some(length) = udp_length(data) else { return };
    let pseudo = addresses.word(u16::from(UDP)).word(length);
    let checksum = pseudo.bytes(&data[..usize::from(length)]).checksum_nonzero();
    data[6..8].copy_from_slice(&checksum.to_be_bytes());
}

/// The datagram's own length, if the packet holds that much (RFC 768).
fn udp_length(data: &[u8]) -> Option<u16> {
    let length = u16::from_be_bytes([*data.get(4)?, *data.get(5)?]);
    (8..=data.len()).contains(&usize::from(length)).then_some(length)
}

/// An ICMPv4 query becomes an ICMPv6 one: type, identifier, and a checksum that takes in the pseudo-header (RFC 7915 §4.2).
pub(super) fn query_v4_to_v6(data: &mut [u8], packet: &Packet, change: Change) -> Result<(), DropReason> {
    let length = data.len() as u32;
    let Transport::IcmpQuery { kind, code, .. } = packet.transport else { return Ok(()) };
    let kind = icmp::query_v4_to_v6(kind, code)?;
    let new = change.new.word(u16::from(protocol::ICMPV6)).long(length);
    query(data, kind, Sum::ZERO, new, change.ports)
}

/// An ICMPv6 query becomes an ICMPv4 one, whose checksum covers the message alone (RFC 7915 §5.2).
pub(super) fn query_v6_to_v4(data: &mut [u8], packet: &Packet, change: Change) -> Result<(), DropReason> {
    let length = data.len() as u32;
    let Transport::IcmpQuery { kind, code, .. } = packet.transport else { return Ok(()) };
    let kind = icmp::query_v6_to_v4(kind, code)?;
    let old = change.old.word(u16::from(protocol::ICMPV6)).long(length);
    query(data, kind, old, Sum::ZERO, change.ports)
}

/// An ICMPv4 query keeps its type and gets another identifier, `None`: it stays (RFC 5508 §3).
pub(super) fn identifier(
    data: &mut [u8],
    kind_and_code: (u8, u8),
    identifiers: Option<(u16, u16)>,
) -> Result<(), DropReason> {
    query(data, kind_and_code, Sum::ZERO, Sum::ZERO, identifiers)
}

fn query(
    data: &mut [u8],
    (kind, code): (u8, u8),
    old: Sum,
    new: Sum,
    identifiers: Option<(u16, u16)>,
) -> Result<(), DropReason> {
    let head = data.first_chunk_mut::<8>().ok_or(DropReason::TransportTruncated)?;
    let old = old.bytes(&head[0..2]).bytes(&head[4..6]);
    head[0] = kind;
    head[1] = code;
    if let Some((identifier, _)) = identifiers {
        head[4..6].copy_from_slice(&identifier.to_be_bytes());
    }
    let new = new.bytes(&head[0..2]).bytes(&head[4..6]);
    let after = checksum::update(u16::from_be_bytes([head[2], head[3]]), old, new);
    head[2..4].copy_from_slice(&after.to_be_bytes());
    if after == 0 && data[0] == 0 && data.iter().all(|octet| *octet == 0) {
        // An echo reply of zeros alone: the update cannot tell its two zeros apart, and the sum over nothing but zeros
        // must be 0xffff.
        data[2..4].copy_from_slice(&[0xff, 0xff]);
    }
    Ok(())
}

/// Finishes a partial checksum, so that the packet can be cut; `data` starts at the transport header, whose checksum
/// field holds the folded sum of the pseudo-header.
pub(super) fn finish(data: &mut [u8], protocol: u8) {
    let Some(at) = checksum_offset(protocol).filter(|at| at + 2 <= data.len()) else { return };
    let sum = match Sum::ZERO.bytes(data).checksum() {
        0 if protocol == UDP => 0xffff,
        other => other,
    };
    data[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}
