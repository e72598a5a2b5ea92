//! The IPv6 packet in a datagram, as far as a server reads it.

use super::refusal::Refusal;
use sixway_wire::protocol::{ICMPV6, NO_NEXT_HEADER};
use sixway_wire::{IPV6_HEADER, Ipv6Header, icmpv6};

/// The kinds of packets that a server distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A bubble: only its addresses are used.
    Bubble,
    /// An ICMPv6 echo request or reply.
    Echo,
    /// A router solicitation.
    Solicitation,
}

/// Reads the header, and returns the packet without what is behind it (trailers go with a bubble, RFC 6081 §4.1).
pub(super) fn read(octets: &[u8]) -> Result<(Ipv6Header, &[u8]), Refusal> {
    let header = Ipv6Header::read(octets).map_err(|_| Refusal::Malformed)?;
    let length = IPV6_HEADER + usize::from(header.payload_length);
    let packet = octets.get(..length).ok_or(Refusal::Malformed)?;
    Ok((header, packet))
}

/// The kind of a packet.
pub(super) fn content(header: &Ipv6Header, packet: &[u8]) -> Result<Content, Refusal> {
    match (header.next_header, packet.get(IPV6_HEADER)) {
        (NO_NEXT_HEADER, None) => Ok(Content::Bubble),
        (ICMPV6, Some(&(icmpv6::ECHO_REQUEST | icmpv6::ECHO_REPLY))) => Ok(Content::Echo),
        (ICMPV6, Some(&icmpv6::ROUTER_SOLICITATION)) => Ok(Content::Solicitation),
        _ => Err(Refusal::NotForwarded),
    }
}
