//! ICMPv6 errors become ICMPv4 errors (RFC 7915 §5.2, §5.3).

use super::Envelope;
use super::extensions::{Body, Message, append, attach};
use super::message;
use super::quote;
use crate::drop_reason::DropReason;
use crate::frame::Frame;
use crate::limits::Limits;
use crate::parse::quoted::QuotedPacket;
use crate::parse::{Addresses, ICMP_HEADER, IPV4_HEADER, Packet};
use crate::translate::Policy;
use crate::translate::header::Ipv4Header;
use crate::verdict::Quoted;
use core::net::Ipv4Addr;
use sixway_wire::checksum::pseudo6;
use sixway_wire::{FragmentHeader, IcmpHeader, protocol};

/// RFC 1812 §4.3.2.3: an ICMPv4 error quotes as much as fits into 576 octets.
const LONGEST: usize = 576;
/// IPv4 header and the eight octets before the quote.
const QUOTE_AT: usize = IPV4_HEADER + ICMP_HEADER;
/// RFC 4884 §4.1 to §4.5: the length attribute of ICMPv4 counts units of 4 octets; that of ICMPv6, 8 octets.
const UNIT4: usize = 4;
const UNIT6: usize = 8;
/// RFC 791 §3.2: the least MTU of IPv4.
const LEAST_MTU4: u32 = 68;

/// The tables of RFC 7915 §5.2; the checksum is still to be filled in. `fragment_header`: the quoted packet has one.
fn translate(icmp: &IcmpHeader, fragment_header: bool, limits: &Limits) -> Result<IcmpHeader, DropReason> {
    let (kind, code, rest) = match (icmp.kind, icmp.code) {
        (1, 0 | 2 | 3) => (3, 1, 0),
        (1, 1) => (3, 10, 0),
        (1, 4) => (3, 3, 0),
        (2, _) => (3, 4, fragmentation_needed(icmp.rest, fragment_header, limits).into()),
        (3, code) => (11, code, 0),
        (4, 0) => (12, 0, u32::from(translate_pointer(icmp.rest)?) << 24),
        (4, 1) => (3, 2, 0),
        _ => return Err(DropReason::IcmpUntranslatable),
    };
    Ok(IcmpHeader::new(kind, code, rest))
}

/// The ICMPv6 message's length attribute in octets, if it may have one (RFC 4884 §4.4, §4.5): its first octet behind the checksum.
const fn attribute_of(icmp: &IcmpHeader) -> Option<usize> {
    match icmp.kind {
        1 | 3 => Some((icmp.rest >> 24) as usize * UNIT6),
        _ => None,
    }
}

/// RFC 7915 §5.2, Packet Too Big: 20 octets less, or 28 if the packet had a Fragment header that it loses, bounded by both links.
/// An MTU below IPv4's minimum becomes the minimum.
fn fragmentation_needed(mtu: u32, fragment_header: bool, limits: &Limits) -> u16 {
    let less = if fragment_header { 28 } else { 20 };
    let bounds = [mtu.saturating_sub(less), limits.mtu4.into(), u32::from(limits.mtu6).saturating_sub(less)];
    let least = bounds.into_iter().fold(u32::MAX, u32::min).max(LEAST_MTU4);
    u16::try_from(least).unwrap_or(u16::MAX)
}

/// RFC 7915 figure 6.
const fn translate_pointer(pointer: u32) -> Result<u8, DropReason> {
    match pointer {
        0 => Ok(0),
        1 => Ok(1),
        4 | 5 => Ok(2),
        6 => Ok(9),
        7 => Ok(8),
        8..=23 => Ok(12),
        24..=39 => Ok(16),
        _ => Err(DropReason::IcmpUntranslatable),
    }
}

/// Translates an ICMPv6 error whole: on success the frame holds an ICMPv4 error of at most 576 octets in `envelope`, in which the quoted packet goes between `quoted`'s endpoints; on failure it is untouched.
///
/// DF is clear, as RFC 7915 §5.1 has it for packets of this size. The identification is that of an atomic Fragment header, or else the
/// ICMP checksum: messages that differ have different ones (but for one in 65,536), and parts of equal messages may mix.
///
/// `packet` is what was parsed from the frame. It fails as [`super::error_v4_to_v6`] does, and with
/// [`DropReason::TooLongForIpv4`] if the quoted packet is one that IPv4 cannot hold.
pub fn error_v6_to_v4(
    frame: &mut Frame,
    packet: &Packet,
    envelope: Envelope<Ipv4Addr>,
    quoted: Quoted,
    policy: &Policy,
    limits: &Limits,
) -> Result<(), DropReason> {
    let (
        Quoted::V4 { source: quoted_source, destination: quoted_destination, keep_ports },
        Addresses::V6 { source: source6, destination: destination6 },
    ) = (quoted, packet.addresses)
    else {
        return Err(DropReason::QuoteUnusable);
    };
    let Envelope { source, destination, hops } = envelope;
    if hops == 0 {
        return Err(DropReason::HopLimitExceeded);
    }
    let pseudo = |length| pseudo6(source6, destination6, protocol::ICMPV6, length);
    let (head, body) = message::read(frame, packet, pseudo)?;

    let fragment_header = QuotedPacket::v6(body)?.fragment_header.is_some();
    let mut icmp = translate(&head, fragment_header, limits)?;
    let body = match attribute_of(&head) {
        Some(attribute) => Body::split(body, attribute),
        None => Body { quote: body, extension: &[] },
    };

    let mut message = Message::new();
    append(&mut message, &[0; QUOTE_AT], LONGEST);
    let endpoints = (quoted_source, quoted_destination, keep_ports);
    quote::to_v4(body.quote, endpoints, policy, &mut message, LONGEST)?;
    // Only types 1 and 3 have extensions here, and what they become, types 3 and 11, has them too.
    if !body.extension.is_empty() {
        let length = attach(&mut message, QUOTE_AT, body.extension, UNIT4, LONGEST);
        icmp.rest |= u32::from(length) << 16;
    }

    let icmp = icmp.with_checksum4(&message[QUOTE_AT..]);
    message[IPV4_HEADER..QUOTE_AT].copy_from_slice(&icmp.octets());

    let fragment_header = frame.bytes().get(packet.fragment_header.into()..).map(FragmentHeader::read);
    let identification = match fragment_header {
        Some(Ok(header)) if packet.fragment_header != 0 => header.identification as u16,
        Some(_) | None => icmp.checksum,
    };
    let header = Ipv4Header {
        tos: policy.tos.of(packet.traffic_class),
        length: message.len() as u16,
        identification,
        dont_fragment: false,
        more_fragments: false,
        offset: 0,
        ttl: hops,
        protocol: protocol::ICMPV4,
        source,
        destination,
    };
    message[..IPV4_HEADER].copy_from_slice(&header.octets());

    message::replace(frame, &message, IPV4_HEADER)
}
