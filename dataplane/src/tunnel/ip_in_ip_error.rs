//! ICMP errors about the packets of tunnels of IP in IP (RFC 2473 §8, RFC 2003 §4), except IPv6 in IPv4.

use super::ends::Pair;
use super::relayed_error::{Inner, LEAST_TRANSPORT, Relayed, Says};
use crate::drop_reason::DropReason;
use crate::parse::quoted::QuotedPacket;
use crate::parse::{Addresses, ICMP_HEADER, IPV6_HEADER};
use crate::source_check::is_martian4;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::checksum::{Sum, pseudo6};
use sixway_wire::icmpv4;
use sixway_wire::protocol::{ICMPV4, ICMPV6, IPV4, IPV6};

/// Where the limit is in a tunnel packet (RFC 2473 §5.1).
const LIMIT_AT: usize = IPV6_HEADER + 4;

/// An ICMP error about a tunnel packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpInIpError<'a> {
    /// What it says.
    pub says: Says,
    /// The tunnel packet's addresses, as quoted.
    pub outer: Pair,
    /// Octets of the whole tunnel packet.
    pub outer_length: u16,
    /// Octets of the tunnel packet in front of the packet inside.
    pub headers: u16,
    /// Whether the packet inside is IPv4.
    pub is_v4: bool,
    /// As much of the packet inside as is quoted.
    pub quote: &'a [u8],
}

/// The error that the sender of the packet inside gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayedEither {
    /// To an IPv6 sender.
    V6(Relayed, Ipv6Addr),
    /// To an IPv4 sender.
    V4(Relayed, Ipv4Addr),
}

impl<'a> IpInIpError<'a> {
    /// Reads an ICMP error of `addresses`' family, `message`, from its type on.
    ///
    /// Fails with [`DropReason::BadIcmpChecksum`], and with [`DropReason::QuoteUnusable`] when no tunnel packet is quoted.
    pub fn read(message: &'a [u8], addresses: Addresses) -> Result<Self, DropReason> {
        let (head, body) =
            message.split_first_chunk::<ICMP_HEADER>().ok_or(DropReason::TransportTruncated)?;
        let pseudo = match addresses {
            Addresses::V4 { .. } => Sum::ZERO,
            Addresses::V6 { source, destination } => {
                pseudo6(source, destination, ICMPV6, message.len() as u32)
            }
        };
        if pseudo.bytes(message).fold() != 0xffff {
            return Err(DropReason::BadIcmpChecksum);
        }
        // RFC 4884 §4: extensions may follow the quote, whose length is given in words of the family.
        let (told, outer) = match addresses {
            Addresses::V4 { .. } => (usize::from(head[5]) * 4, QuotedPacket::v4(body)?),
            Addresses::V6 { .. } => (usize::from(head[4]) * 8, QuotedPacket::v6_any(body)?),
        };
        let is_told = told >= 128 && matches!((addresses, head[0]), (Addresses::V4 { .. }, _) | (_, 1 | 3));
        let body = if is_told { body.get(..told).unwrap_or(body) } else { body };
        let is_v4 = match outer.protocol {
            IPV4 => true,
            IPV6 => false,
            _ => return Err(DropReason::QuoteUnusable),
        };
        let quote = match body.get(outer.transport_at..outer.transport_end.min(body.len())) {
            Some(quote) if outer.has_transport_header() => quote,
            Some(_) | None => &[],
        };
        Ok(Self {
            says: says(head, addresses, outer.transport_at),
            outer: Pair::of(outer.addresses),
            outer_length: outer.length.min(0xffff) as u16,
            headers: outer.transport_at as u16,
            is_v4,
            quote,
        })
    }

    /// The packet inside, if its header is quoted: its addresses.
    pub fn inner(&self) -> Option<Pair> {
        let packet = if self.is_v4 { QuotedPacket::v4(self.quote) } else { QuotedPacket::v6_any(self.quote) };
        match (packet, Inner::read(self.quote)) {
            (Ok(packet), _) => Some(Pair::of(packet.addresses)),
            (Err(_), Some(inner)) if !self.is_v4 => {
                Some(Pair { source: inner.source.into(), destination: inner.destination.into() })
            }
            (Err(_), _) => None,
        }
    }

    /// The error that the packet's source gets, if it may be informed; `mtu` is what the tunnel carries, in octets. Fails as
    /// [`Inner::relayed`] does.
    pub fn relayed(&self, mtu: u16) -> Result<RelayedEither, DropReason> {
        if !self.is_v4 {
            let inner = Inner::read(self.quote).ok_or(DropReason::ErrorNotRelayable)?;
            return Ok(RelayedEither::V6(inner.relayed(self.says, mtu)?, inner.source));
        }
        let packet = QuotedPacket::v4(self.quote).map_err(|_| DropReason::ErrorNotRelayable)?;
        let Addresses::V4 { source, destination } = packet.addresses else {
            return Err(DropReason::ErrorNotRelayable);
        };
        let may_not_be_cut = self.quote.get(6).is_some_and(|flags| flags & 0x40 != 0);
        let relayed = match self.says {
            Says::TooBig(_) if may_not_be_cut && packet.length > u32::from(mtu) => {
                Relayed { kind: 3, code: 4, rest: mtu.into() }
            }
            Says::Unreachable => Relayed { kind: 3, code: 1, rest: 0 },
            Says::TooBig(_) | Says::Else => return Err(DropReason::ErrorNotRelayable),
        };
        // RFC 1812 §4.3.2.7.
        let transport = packet.transport(self.quote);
        let too_little = transport.len() < LEAST_TRANSPORT.min(packet.upper_length() as usize);
        if is_martian4(source) || is_martian4(destination) || !packet.has_transport_header() || too_little {
            return Err(DropReason::ErrorNotRelayable);
        }
        if packet.protocol == ICMPV4 && transport.first().is_none_or(|kind| icmpv4::is_error(*kind)) {
            return Err(DropReason::QuoteIsIcmpError);
        }
        Ok(RelayedEither::V4(relayed, source))
    }
}

/// What an error says by its first octets (RFC 2473 §8.1, §8.2); the packet inside starts `headers` octets into the quote.
fn says(head: &[u8; ICMP_HEADER], addresses: Addresses, headers: usize) -> Says {
    let [kind, code, _, _, a, b, c, d] = *head;
    let rest = u32::from_be_bytes([a, b, c, d]);
    match (addresses, kind, code) {
        (Addresses::V4 { .. }, 3, 4) => Says::TooBig(u16::from_be_bytes([c, d])),
        (Addresses::V4 { .. }, 3, _) | (Addresses::V4 { .. }, 11, 0) => Says::Unreachable,
        (Addresses::V4 { .. }, _, _) => Says::Else,
        (Addresses::V6 { .. }, 2, _) => Says::TooBig(rest.min(0xffff) as u16),
        (Addresses::V6 { .. }, 1, _) | (Addresses::V6 { .. }, 3, 0) => Says::Unreachable,
        // The encapsulation limit in this tunnel's header.
        (Addresses::V6 { .. }, 4, 0) if headers > IPV6_HEADER && rest as usize == LIMIT_AT => {
            Says::Unreachable
        }
        (Addresses::V6 { .. }, _, _) => Says::Else,
    }
}
