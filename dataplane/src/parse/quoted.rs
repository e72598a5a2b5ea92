//! The packet that an ICMP error quotes (RFC 792; RFC 4443 §2.4 c): a packet of the other direction, cut anywhere behind its
//! IP header, whose own length fields still tell of the whole.
//!
//! Nothing here is trusted: the sender of the error may quote what was never sent. The quoted header checksum is not looked
//! at, as routers on the way may have changed the header (RFC 1812 §4.3.2.3).

use super::{Addresses, Fragment, IPV6_HEADER, ipv6};
use crate::drop_reason::DropReason;
use sixway_wire::{Endpoint4, Endpoint6, Ipv4Header, Ipv6Header, icmpv4, icmpv6, protocol};

/// The five-tuple of a packet quoted inside an ICMP error, as it is there (not swapped).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotedTuple {
    /// An IPv4 packet. The ports are 0 where it has none; an echo message has its identifier in both.
    V4 {
        /// Source as quoted.
        source: Endpoint4,
        /// Destination as quoted.
        destination: Endpoint4,
        /// Protocol.
        protocol: u8,
    },
    /// An IPv6 packet.
    V6 {
        /// Source as quoted.
        source: Endpoint6,
        /// Destination as quoted.
        destination: Endpoint6,
        /// Last Next Header of its chain.
        protocol: u8,
    },
}

/// A quoted packet: what its IP headers say and where its transport header is in the quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotedPacket {
    /// Source and destination.
    pub addresses: Addresses,
    /// IPv4's Protocol, or the first Next Header that translation does not skip (RFC 7915 §5.1).
    pub protocol: u8,
    /// TTL or Hop Limit.
    pub hops: u8,
    /// TOS or Traffic Class.
    pub traffic_class: u8,
    /// Octets of the whole packet, by its own header: more than what is quoted, usually.
    pub length: u32,
    /// Octets from the start of the quote to the transport header.
    pub transport_at: usize,
    /// Where the quoted transport octets end: at the packet's own end, or where the quote was cut.
    pub transport_end: usize,
    /// The fragment fields: of an IPv4 fragment, or of IPv6's Fragment header, atomic ones included.
    pub fragment_header: Option<Fragment>,
}

impl QuotedPacket {
    /// Reads a quoted IPv4 packet. Fails with [`DropReason::QuoteUnusable`] when its header is cut short or contradicts itself.
    pub fn v4(quote: &[u8]) -> Result<Self, DropReason> {
        let (header, behind) = Ipv4Header::split_quoted(quote).map_err(|_| DropReason::QuoteUnusable)?;
        let transport_at = quote.len() - behind.len();
        if usize::from(header.length) < transport_at {
            return Err(DropReason::QuoteUnusable);
        }
        let fragment = Fragment {
            offset: header.offset,
            more: header.more_fragments,
            identification: header.identification.into(),
        };
        Ok(Self {
            addresses: Addresses::V4 { source: header.source, destination: header.destination },
            protocol: header.protocol,
            hops: header.ttl,
            traffic_class: header.tos,
            length: header.length.into(),
            transport_at,
            transport_end: quote.len().min(header.length.into()),
            fragment_header: (fragment.offset != 0 || fragment.more).then_some(fragment),
        })
    }

    /// Reads a quoted IPv6 packet and skips the extension headers that translation skips (RFC 7915 §5.1). Fails with
    /// [`DropReason::QuoteUnusable`] when the chain is cut short, or when the packet is one that is never translated: a routing
    /// header with segments left (§5.1), or an extension header behind the Fragment header (§5.1.1).
    pub fn v6(quote: &[u8]) -> Result<Self, DropReason> {
        let (packet, chain) = Self::v6_with_chain(quote)?;
        if chain.segments_left_at != 0 || chain.extension_after_fragment {
            return Err(DropReason::QuoteUnusable);
        }
        Ok(packet)
    }

    /// As [`QuotedPacket::v6`], for packets that are not translated: routing headers and the rest may be as they like.
    pub fn v6_any(quote: &[u8]) -> Result<Self, DropReason> {
        Self::v6_with_chain(quote).map(|(packet, _)| packet)
    }

    fn v6_with_chain(quote: &[u8]) -> Result<(Self, ipv6::Chain), DropReason> {
        let header = Ipv6Header::read(quote).map_err(|_| DropReason::QuoteUnusable)?;
        let length = IPV6_HEADER + usize::from(header.payload_length);
        let end = quote.len().min(length);
        let chain = ipv6::walk(&quote[..end]).map_err(|_| DropReason::QuoteUnusable)?;
        let packet = Self {
            addresses: Addresses::V6 { source: header.source, destination: header.destination },
            protocol: chain.protocol,
            hops: header.hop_limit,
            traffic_class: header.traffic_class,
            length: length as u32,
            transport_at: chain.at,
            transport_end: end,
            fragment_header: chain.fragment,
        };
        Ok((packet, chain))
    }

    /// Octets behind the IP headers by the packet's own header, quoted or not.
    pub const fn upper_length(&self) -> u32 {
        self.length - self.transport_at as u32
    }

    /// Whether the packet was a fragment; an atomic fragment is not one (RFC 6946 §4).
    pub fn is_fragment(&self) -> bool {
        self.fragment_header.is_some_and(|place| place.offset != 0 || place.more)
    }

    /// Whether the quote starts with the transport header: no later fragment.
    pub fn has_transport_header(&self) -> bool {
        self.fragment_header.is_none_or(Fragment::is_first)
    }

    /// The octets of transport header and data that are there; `quote` is what the packet was read from.
    pub fn transport<'a>(&self, quote: &'a [u8]) -> &'a [u8] {
        quote.get(self.transport_at..self.transport_end).unwrap_or_default()
    }

    /// Whether the packet is ICMP of its own family.
    pub const fn is_icmp(&self) -> bool {
        match self.addresses {
            Addresses::V4 { .. } => self.protocol == protocol::ICMPV4,
            Addresses::V6 { .. } => self.protocol == protocol::ICMPV6,
        }
    }

    /// Source and destination port, or an echo message's identifier in both; `None` where the packet has none, or where the
    /// quote ends before them. Fails for ICMP messages other than echo: [`DropReason::QuoteIsIcmpError`] or
    /// [`DropReason::QuoteUnusable`].
    fn ports(&self, quote: &[u8]) -> Result<Option<(u16, u16)>, DropReason> {
        if !self.has_transport_header() {
            return Ok(None);
        }
        let transport = self.transport(quote);
        if self.is_icmp() {
            let v4 = matches!(self.addresses, Addresses::V4 { .. });
            let Some(&kind) = transport.first() else {
                return Ok(None);
            };
            match (v4, kind) {
                (true, kind) if icmpv4::has_identifier(kind) => {}
                (false, kind) if icmpv6::is_echo(kind) => {}
                (true, kind) if icmpv4::is_error(kind) => return Err(DropReason::QuoteIsIcmpError),
                (false, kind) if icmpv6::is_error(kind) => return Err(DropReason::QuoteIsIcmpError),
                (true | false, _) => return Err(DropReason::QuoteUnusable),
            }
            return Ok((transport.len() >= 6).then(|| (word(transport, 4), word(transport, 4))));
        }
        if has_ports(self.protocol) && transport.len() >= 4 {
            return Ok(Some((word(transport, 0), word(transport, 2))));
        }
        Ok(None)
    }

    fn tuple(&self, (from, to): (u16, u16)) -> QuotedTuple {
        match self.addresses {
            Addresses::V4 { source, destination } => QuotedTuple::V4 {
                source: Endpoint4::new(source, from),
                destination: Endpoint4::new(destination, to),
                protocol: self.protocol,
            },
            Addresses::V6 { source, destination } => QuotedTuple::V6 {
                source: Endpoint6::new(source, from),
                destination: Endpoint6::new(destination, to),
                protocol: self.protocol,
            },
        }
    }
}

/// The five-tuple of the packet that an ICMP error quotes, for a NAT (RFC 6146 §3.4). `quote` starts behind the error's eight
/// octets; `v4` tells its family.
///
/// Fails with [`DropReason::QuoteUnusable`] when there are no ports to go by: a later fragment, a quote that is cut too short;
/// and with [`DropReason::QuoteIsIcmpError`]. A protocol that has no ports yields zeros.
pub fn quoted(quote: &[u8], v4: bool) -> Result<QuotedTuple, DropReason> {
    let packet = read(quote, v4)?;
    match packet.ports(quote)? {
        Some(ports) => Ok(packet.tuple(ports)),
        None if has_ports(packet.protocol) || packet.is_icmp() => Err(DropReason::QuoteUnusable),
        None => Ok(packet.tuple((0, 0))),
    }
}

/// As [`quoted`], for stateless translation, which goes by addresses alone: ports that the quote does not show are 0.
pub fn quoted_stateless(quote: &[u8], v4: bool) -> Result<QuotedTuple, DropReason> {
    let packet = read(quote, v4)?;
    Ok(packet.tuple(packet.ports(quote)?.unwrap_or_default()))
}

fn read(quote: &[u8], v4: bool) -> Result<QuotedPacket, DropReason> {
    if v4 { QuotedPacket::v4(quote) } else { QuotedPacket::v6(quote) }
}

/// Whether a transport header starts with two ports.
pub(crate) const fn has_ports(protocol: u8) -> bool {
    matches!(protocol, protocol::TCP | protocol::UDP | protocol::UDP_LITE | protocol::DCCP | protocol::SCTP)
}

/// The 16-bit number at `at`; 0 beyond the end.
fn word(octets: &[u8], at: usize) -> u16 {
    match octets.get(at..at + 2) {
        Some(&[high, low]) => u16::from_be_bytes([high, low]),
        Some(_) | None => 0,
    }
}

#[cfg(test)]
mod tests;
