//! The packet inside an ICMP error, translated like any other but for its hop limit, which stays (RFC 7915 §4.3, §5.3). Only
//! what is quoted can be written; the lengths and checksums are those of the whole packet that was sent.

use super::extensions::{Message, append};
use super::query::{query_v4_to_v6, query_v6_to_v4};
use crate::drop_reason::DropReason;
use crate::parse::quoted::{QuotedPacket, has_ports};
use crate::parse::{Addresses, FRAGMENT_HEADER, Fragment};
use crate::translate::Policy;
use crate::translate::header::{Ipv4Header, Ipv6Header, fragment_header, next_header_of, protocol_of};
use sixway_wire::checksum::{Sum, pseudo6, update};
use sixway_wire::{Endpoint4, Endpoint6, protocol};
use sixway_wire::{icmpv4, icmpv6};

/// The ports to be written into a quoted transport header.
#[derive(Clone, Copy)]
struct Ports {
    source: u16,
    destination: u16,
    /// An echo message's identifier: the port on the side of the host that the NAT hides.
    identifier: u16,
}

/// Appends the IPv6 image of a quoted IPv4 packet to a message of at most `limit` octets. The identifier of a quoted echo
/// message becomes `source`'s port: what is quoted was sent from inside.
pub(super) fn to_v6(
    quote: &[u8],
    (source, destination, keep_ports): (Endpoint6, Endpoint6, bool),
    policy: &Policy,
    message: &mut Message,
    limit: usize,
) -> Result<(), DropReason> {
    let packet = QuotedPacket::v4(quote)?;
    let Addresses::V4 { source: old_source, destination: old_destination } = packet.addresses else {
        return Err(DropReason::QuoteUnusable);
    };
    let icmp = packet.is_icmp();
    let next_header = next_header_of(packet.protocol);
    let fragment = packet.fragment_header;
    let front = if fragment.is_some() { FRAGMENT_HEADER } else { 0 };
    let header = Ipv6Header {
        traffic_class: policy.traffic_class.of(packet.traffic_class),
        // An IPv4 packet has at most 65,515 octets behind its header: this fits.
        payload_length: (packet.upper_length() as usize + front) as u16,
        next_header: if fragment.is_some() { protocol::FRAGMENT } else { next_header },
        hop_limit: packet.hops,
        source: source.address,
        destination: destination.address,
    };
    append(message, &header.octets(), limit);
    if let Some(fragment) = fragment {
        append(message, &fragment_header(next_header, fragment), limit);
    }

    let transport_at = message.len();
    append(message, packet.transport(quote), limit);
    let transport = &mut message[transport_at..];
    let ports = Ports { source: source.port, destination: destination.port, identifier: source.port };
    let old = Sum::ZERO.ipv4(old_source).ipv4(old_destination);
    let new = Sum::ZERO.ipv6(source.address).ipv6(destination.address);
    if icmp {
        let pseudo = pseudo6(source.address, destination.address, protocol::ICMPV6, packet.upper_length());
        echo(&packet, transport, query_v4_to_v6, (Sum::ZERO, pseudo), (!keep_ports).then_some(ports))
    } else {
        readdress(&packet, transport, (old, new), (!keep_ports).then_some(ports))
    }
}

/// Appends the IPv4 image of a quoted IPv6 packet to a message of at most `limit` octets. The identifier of a quoted echo
/// message becomes `destination`'s port: what is quoted was sent from outside.
pub(super) fn to_v4(
    quote: &[u8],
    (source, destination, keep_ports): (Endpoint4, Endpoint4, bool),
    policy: &Policy,
    message: &mut Message,
    limit: usize,
) -> Result<(), DropReason> {
    let packet = QuotedPacket::v6(quote)?;
    let Addresses::V6 { source: old_source, destination: old_destination } = packet.addresses else {
        return Err(DropReason::QuoteUnusable);
    };
    let icmp = packet.is_icmp();
    let Ok(length) = u16::try_from(packet.upper_length() + 20) else {
        return Err(DropReason::TooLongForIpv4);
    };
    // RFC 7915 §5.1: DF only above 1,260 octets; with a Fragment header never, and its identification is kept (§5.1.1).
    let place = packet.fragment_header.unwrap_or(Fragment { offset: 0, more: false, identification: 0 });
    let header = Ipv4Header {
        tos: policy.tos.of(packet.traffic_class),
        length,
        identification: place.identification as u16,
        dont_fragment: length > 1_260 && packet.fragment_header.is_none(),
        more_fragments: place.more,
        offset: place.offset,
        ttl: packet.hops,
        protocol: protocol_of(packet.protocol),
        source: source.address,
        destination: destination.address,
    };
    append(message, &header.octets(), limit);

    let transport_at = message.len();
    append(message, packet.transport(quote), limit);
    let transport = &mut message[transport_at..];
    let ports = Ports { source: source.port, destination: destination.port, identifier: destination.port };
    let old = Sum::ZERO.ipv6(old_source).ipv6(old_destination);
    let new = Sum::ZERO.ipv4(source.address).ipv4(destination.address);
    if icmp {
        let pseudo = pseudo6(old_source, old_destination, protocol::ICMPV6, packet.upper_length());
        echo(&packet, transport, query_v6_to_v4, (pseudo, Sum::ZERO), (!keep_ports).then_some(ports))
    } else {
        readdress(&packet, transport, (old, new), (!keep_ports).then_some(ports))
    }
}

/// Gives a quoted IPv4 packet other addresses and ports, in place, and its checksums follow (RFC 5508 §4.2). Of a quoted query both ports are
/// the identifier. A checksum that is not quoted whole stays away.
///
/// Fails with [`DropReason::QuoteUnusable`].
pub fn renumber4(
    quote: &mut [u8],
    (source, destination, keep_ports): (Endpoint4, Endpoint4, bool),
) -> Result<(), DropReason> {
    let packet = QuotedPacket::v4(quote)?;
    let Addresses::V4 { source: old_source, destination: old_destination } = packet.addresses else {
        return Err(DropReason::QuoteUnusable);
    };
    let old = Sum::ZERO.ipv4(old_source).ipv4(old_destination);
    let new = Sum::ZERO.ipv4(source.address).ipv4(destination.address);
    let end = packet.transport_end.min(quote.len());
    let Some((header, behind)) = quote.split_at_mut_checked(packet.transport_at) else {
        return Err(DropReason::QuoteUnusable);
    };
    let header = header.first_chunk_mut::<20>().ok_or(DropReason::QuoteUnusable)?;
    let transport = behind.get_mut(..end - packet.transport_at).unwrap_or_default();
    let ports = Ports { source: source.port, destination: destination.port, identifier: source.port };
    let ports = (!keep_ports).then_some(ports);
    // First what may be refused, so that nothing is half changed.
    if packet.is_icmp() {
        echo(&packet, transport, |kind, code| Ok((kind, code)), (Sum::ZERO, Sum::ZERO), ports)?;
    } else {
        readdress(&packet, transport, (old, new), ports)?;
    }
    let checksum = update(u16::from_be_bytes([header[10], header[11]]), old, new);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header[12..16].copy_from_slice(&source.address.octets());
    header[16..20].copy_from_slice(&destination.address.octets());
    Ok(())
}

/// A quoted transport header with a pseudo-header checksum, or without: new ports, and the checksum follows if it is quoted.
fn readdress(
    packet: &QuotedPacket,
    transport: &mut [u8],
    (mut old, mut new): (Sum, Sum),
    ports: Option<Ports>,
) -> Result<(), DropReason> {
    if !packet.has_transport_header() {
        // Stateless translation needs no ports; a NAT has nothing to find the session by.
        return if ports.is_none() { Ok(()) } else { Err(DropReason::QuoteUnusable) };
    }
    if let Some(ports) = ports
        && has_ports(packet.protocol)
    {
        let Some(field) = transport.first_chunk_mut::<4>() else {
            return Err(DropReason::QuoteUnusable);
        };
        old = old.bytes(field);
        field[..2].copy_from_slice(&ports.source.to_be_bytes());
        field[2..].copy_from_slice(&ports.destination.to_be_bytes());
        new = new.bytes(field);
    }
    let Some(at) = protocol::checksum_offset(packet.protocol) else {
        return Ok(());
    };
    let Some(field) = transport.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<2>()) else {
        return Ok(());
    };
    let checksum = u16::from_be_bytes(*field);
    let zero_is_none = matches!(packet.protocol, protocol::UDP | protocol::UDP_LITE);
    if checksum == 0 && packet.protocol == protocol::UDP {
        return Ok(());
    }
    let checksum = match update(checksum, old, new) {
        0 if zero_is_none => 0xffff,
        other => other,
    };
    *field = checksum.to_be_bytes();
    Ok(())
}

/// A quoted ICMP message: an echo's type and identifier, and its checksum, which covers a pseudo-header in IPv6 only: `old` and `new`.
fn echo(
    packet: &QuotedPacket,
    transport: &mut [u8],
    translate: fn(u8, u8) -> Result<(u8, u8), DropReason>,
    (mut old, mut new): (Sum, Sum),
    ports: Option<Ports>,
) -> Result<(), DropReason> {
    if !packet.has_transport_header() {
        return if ports.is_none() { Ok(()) } else { Err(DropReason::QuoteUnusable) };
    }
    if let [kind, rest @ ..] = transport {
        let was_v4 = matches!(packet.addresses, Addresses::V4 { .. });
        let is_error = if was_v4 { icmpv4::is_error(*kind) } else { icmpv6::is_error(*kind) };
        if is_error {
            return Err(DropReason::QuoteIsIcmpError);
        }
        let code = rest.first().copied().unwrap_or_default();
        let (translated, _) = translate(*kind, code).map_err(|_| DropReason::QuoteUnusable)?;
        old = old.bytes(&[*kind, code]);
        new = new.bytes(&[translated, code]);
        *kind = translated;
    }
    if let Some(ports) = ports {
        let Some(identifier) = transport.get_mut(4..6) else {
            return Err(DropReason::QuoteUnusable);
        };
        old = old.bytes(identifier);
        identifier.copy_from_slice(&ports.identifier.to_be_bytes());
        new = new.bytes(identifier);
    }
    if let Some(field) = transport.get_mut(2..).and_then(|rest| rest.first_chunk_mut::<2>()) {
        *field = update(u16::from_be_bytes(*field), old, new).to_be_bytes();
    }
    Ok(())
}
