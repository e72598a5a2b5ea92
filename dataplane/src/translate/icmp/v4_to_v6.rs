//! ICMPv4 errors become ICMPv6 errors (RFC 7915 §4.2, §4.3).

use super::Envelope;
use super::extensions::{Body, Message, append, attach};
use super::message;
use super::quote;
use crate::drop_reason::DropReason;
use crate::frame::Frame;
use crate::limits::Limits;
use crate::parse::quoted::QuotedPacket;
use crate::parse::{Addresses, ICMP_HEADER, IPV6_HEADER, Packet};
use crate::translate::Policy;
use crate::translate::header::Ipv6Header;
use crate::verdict::Quoted;
use core::net::Ipv6Addr;
use sixway_wire::checksum::Sum;
use sixway_wire::{IcmpHeader, icmpv6, protocol};

/// RFC 4443 §2.4 c: an ICMPv6 error quotes as much as fits into the minimum IPv6 MTU.
const LONGEST: usize = 1_280;
/// IPv6 header and the eight octets before the quote.
const QUOTE_AT: usize = IPV6_HEADER + ICMP_HEADER;
/// RFC 4884 §4.3 to §4.5: the length attribute of ICMPv6 counts units of 8 octets; that of ICMPv4, 4 octets.
const UNIT6: usize = 8;
const UNIT4: usize = 4;

/// RFC 1191 §7, table 7-1: MTUs of links, as a guess where a router does not tell its own.
const PLATEAUS: [u16; 7] = [65_535, 32_000, 17_914, 8_166, 4_352, 2_002, 1_492];

/// The tables of RFC 7915 §4.2; the checksum is still to be filled in. `total_length` is that of the quoted packet.
fn translate(icmp: &IcmpHeader, total_length: u32, limits: &Limits) -> Result<IcmpHeader, DropReason> {
    let (mtu, pointer) = (icmp.rest as u16, (icmp.rest >> 24) as u8);
    let (kind, code, rest) = match (icmp.kind, icmp.code) {
        (3, 0 | 1 | 5 | 6 | 7 | 8 | 11 | 12) => (1, 0, 0),
        // The pointer shows the IPv6 Next Header field.
        (3, 2) => (4, 1, 6),
        (3, 3) => (1, 4, 0),
        (3, 4) => (2, 0, packet_too_big(mtu, total_length, limits)),
        (3, 9 | 10 | 13 | 15) => (1, 1, 0),
        (11, code) => (3, code, 0),
        (12, 0 | 2) => (4, 0, translate_pointer(pointer)?),
        _ => return Err(DropReason::IcmpUntranslatable),
    };
    Ok(IcmpHeader::new(kind, code, rest))
}

/// Whether an ICMPv6 error of this type may have extensions (RFC 4884 §4.6).
const fn is_extensible(kind: u8) -> bool {
    matches!(kind, icmpv6::DESTINATION_UNREACHABLE | icmpv6::TIME_EXCEEDED)
}

/// RFC 7915 §4.2, code 4: 20 octets more, bounded by both links, and never less than 1,280. MTU 0 comes from a router that does not know
/// RFC 1191: the greatest plateau below the packet's length that is at least 1,280 is likely the path's.
fn packet_too_big(mtu: u16, total_length: u32, limits: &Limits) -> u32 {
    let mtu = match mtu {
        0 => PLATEAUS.iter().copied().find(|&plateau| u32::from(plateau) < total_length).unwrap_or(1_260),
        known => known,
    };
    let bounds = [u32::from(mtu) + 20, limits.mtu6.into(), u32::from(limits.mtu4) + 20];
    bounds.into_iter().fold(u32::MAX, u32::min).max(1_280)
}

/// RFC 7915 figure 3.
const fn translate_pointer(pointer: u8) -> Result<u32, DropReason> {
    match pointer {
        0 => Ok(0),
        1 => Ok(1),
        2 | 3 => Ok(4),
        8 => Ok(7),
        9 => Ok(6),
        12..=15 => Ok(8),
        16..=19 => Ok(24),
        _ => Err(DropReason::IcmpUntranslatable),
    }
}

/// Translates an ICMPv4 error whole: on success the frame holds an ICMPv6 error of at most 1,280 octets in `envelope`, in which the quoted packet goes between `quoted`'s endpoints; on failure it is untouched.
///
/// `packet` is what was parsed from the frame. Fails with [`DropReason::IcmpUntranslatable`] for types, codes and pointers without counterpart,
/// [`DropReason::BadIcmpChecksum`], [`DropReason::IcmpFragment`], [`DropReason::QuoteUnusable`], [`DropReason::QuoteIsIcmpError`],
/// [`DropReason::HopLimitExceeded`], [`DropReason::TransportTruncated`], and [`DropReason::NoHeadroom`] when the frame is too small.
pub fn error_v4_to_v6(
    frame: &mut Frame,
    packet: &Packet,
    envelope: Envelope<Ipv6Addr>,
    quoted: Quoted,
    policy: &Policy,
    limits: &Limits,
) -> Result<(), DropReason> {
    let (
        Quoted::V6 { source: quoted_source, destination: quoted_destination, keep_ports },
        Addresses::V4 { .. },
    ) = (quoted, packet.addresses)
    else {
        return Err(DropReason::QuoteUnusable);
    };
    let Envelope { source, destination, hops } = envelope;
    if hops == 0 {
        return Err(DropReason::HopLimitExceeded);
    }
    let (head, body) = message::read(frame, packet, |_| Sum::ZERO)?;

    let total_length = QuotedPacket::v4(body)?.length;
    let mut icmp = translate(&head, total_length, limits)?;
    let [_, length, ..] = head.rest.to_be_bytes();
    let body = Body::split(body, usize::from(length) * UNIT4);

    let mut message = Message::new();
    append(&mut message, &[0; QUOTE_AT], LONGEST);
    let endpoints = (quoted_source, quoted_destination, keep_ports);
    quote::to_v6(body.quote, endpoints, policy, &mut message, LONGEST)?;
    if is_extensible(icmp.kind) {
        let length = attach(&mut message, QUOTE_AT, body.extension, UNIT6, LONGEST);
        icmp.rest |= u32::from(length) << 24;
    }

    let length = (message.len() - IPV6_HEADER) as u16;
    let header = Ipv6Header {
        traffic_class: policy.traffic_class.of(packet.traffic_class),
        payload_length: length,
        next_header: protocol::ICMPV6,
        hop_limit: hops,
        source,
        destination,
    };
    message[..IPV6_HEADER].copy_from_slice(&header.octets());
    let icmp = icmp.with_checksum6(source, destination, &message[QUOTE_AT..]);
    message[IPV6_HEADER..QUOTE_AT].copy_from_slice(&icmp.octets());

    message::replace(frame, &message, IPV6_HEADER)
}
