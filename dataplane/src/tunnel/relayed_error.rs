//! ICMPv4 errors that come from inside a tunnel, and the ICMPv6 errors that the senders of the packets get for them (RFC 4213
//! §3.4; RFC 2473 §8.1 lists which of them are relayed).
//!
//! ```text
//!   IPv4 header | ICMPv4 header | IPv4 header  | IPv6 header  transport header  data …
//!    dst = us   |               |  src = us    |
//!                                               └── quoted again by the ICMPv6 error, to its source
//! ```

use crate::drop_reason::DropReason;
use crate::parse::quoted::QuotedPacket;
use crate::parse::{Addresses, IPV6_HEADER};
use crate::source_check::is_martian6;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::IPV6_MIN_MTU;
use sixway_wire::checksum::Sum;
use sixway_wire::protocol::{ICMPV6, IPV6};
use sixway_wire::{IcmpHeader, Ipv6Header, icmpv6};

/// What must be quoted of the inner packet behind its headers, so that its sender knows which of his packets it was (RFC 792).
pub(super) const LEAST_TRANSPORT: usize = 8;

/// The content of an error from inside a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// The packet is too big for a link (RFC 792 3/4); the link's MTU, or 0 from an old router (RFC 1191 §4).
    TooBig(u16),
    /// The remote end is unreachable: destination unreachable, or the TTL expired on the way.
    Unreachable,
    /// Something that concerns the tunnel alone.
    Else,
}

/// An ICMPv4 error about a tunnel packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelError<'a> {
    /// What it says.
    pub says: Says,
    /// Who sent the tunnel packet, as quoted.
    pub outer_source: Ipv4Addr,
    /// Where it was sent to.
    pub outer_destination: Ipv4Addr,
    /// Octets of the whole tunnel packet, or of the fragment that the error is about.
    pub outer_length: u16,
    /// The packet inside, if its IPv6 header is quoted.
    pub inner: Option<Inner<'a>>,
}

/// The start of the packet inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inner<'a> {
    /// Its source, who may be informed.
    pub source: Ipv6Addr,
    /// Its destination.
    pub destination: Ipv6Addr,
    /// Its length by its own header, in octets.
    pub length: u32,
    /// As much of it as is quoted.
    pub quote: &'a [u8],
}

/// An ICMPv6 error's type, code, and the 32 bits behind the checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relayed {
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// MTU of a Packet Too Big, else 0.
    pub rest: u32,
}

impl<'a> TunnelError<'a> {
    /// Reads an ICMPv4 error, `message`, from its type on.
    ///
    /// Fails with [`DropReason::BadIcmpChecksum`], and with [`DropReason::QuoteUnusable`] when no tunnel packet is quoted.
    pub fn read(message: &'a [u8]) -> Result<Self, DropReason> {
        let (head, body) = IcmpHeader::split(message).map_err(|_| DropReason::TransportTruncated)?;
        if Sum::ZERO.bytes(message).fold() != 0xffff {
            return Err(DropReason::BadIcmpChecksum);
        }
        let [_, words, high, low] = head.rest.to_be_bytes();
        // RFC 4884 §4: extensions may follow the quote, whose length is given in words.
        let told = usize::from(words) * 4;
        let quote = if told >= 128 { body.get(..told).unwrap_or(body) } else { body };
        let outer = QuotedPacket::v4(quote)?;
        let Addresses::V4 { source, destination } = outer.addresses else {
            return Err(DropReason::QuoteUnusable);
        };
        if outer.protocol != IPV6 {
            return Err(DropReason::QuoteUnusable);
        }
        let says = match (head.kind, head.code) {
            (3, 4) => Says::TooBig(u16::from_be_bytes([high, low])),
            (3, _) | (11, 0) => Says::Unreachable,
            (_, _) => Says::Else,
        };
        let inner = if outer.has_transport_header() { Inner::read(outer.transport(quote)) } else { None };
        Ok(Self {
            says,
            outer_source: source,
            outer_destination: destination,
            outer_length: outer.length as u16,
            inner,
        })
    }
}

impl<'a> Inner<'a> {
    pub(super) fn read(quote: &'a [u8]) -> Option<Self> {
        let header = Ipv6Header::read(quote).ok()?;
        let length = IPV6_HEADER + usize::from(header.payload_length);
        Some(Self {
            source: header.source,
            destination: header.destination,
            length: length as u32,
            quote: &quote[..quote.len().min(length)],
        })
    }

    /// The error that the packet's source gets, if it may be informed; `mtu` is what the tunnel carries, in octets.
    ///
    /// Fails with [`DropReason::QuoteIsIcmpError`] about an ICMPv6 error or redirect, and with [`DropReason::ErrorNotRelayable`] when
    /// too little is quoted, when the source or destination is not a unicast address (RFC 4443 §2.4 e), or when nothing that the source
    /// could do would help: it cannot send less than 1,280 octets.
    pub fn relayed(&self, says: Says, mtu: u16) -> Result<Relayed, DropReason> {
        let relayed = match says {
            Says::TooBig(_) if self.length > u32::from(mtu) => {
                Relayed { kind: 2, code: 0, rest: u32::from(mtu).max(IPV6_MIN_MTU as u32) }
            }
            Says::Unreachable => Relayed { kind: 1, code: 3, rest: 0 },
            Says::TooBig(_) | Says::Else => return Err(DropReason::ErrorNotRelayable),
        };
        if is_martian6(self.source) || self.destination.is_multicast() {
            return Err(DropReason::ErrorNotRelayable);
        }
        let packet = QuotedPacket::v6_any(self.quote).map_err(|_| DropReason::ErrorNotRelayable)?;
        let transport = packet.transport(self.quote);
        if transport.len() < LEAST_TRANSPORT.min(packet.upper_length() as usize) {
            return Err(DropReason::ErrorNotRelayable);
        }
        let is_error = |kind: &u8| icmpv6::is_error(*kind) || *kind == icmpv6::REDIRECT;
        if packet.protocol == ICMPV6
            && packet.has_transport_header()
            && transport.first().is_none_or(is_error)
        {
            return Err(DropReason::QuoteIsIcmpError);
        }
        Ok(relayed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{icmp, tcp, udp, v4, v6};
    use sixway_wire::protocol;

    const US: &str = "192.0.2.9";
    const FAR: &str = "198.51.100.7";

    /// An ICMPv4 error with its checksum, about a tunnel packet that carries `inner`, quoted up to `quoted` octets.
    fn about(kind: u8, code: u8, mtu: u16, inner: &[u8], quoted: usize) -> Vec<u8> {
        let [high, low] = mtu.to_be_bytes();
        let outer = v4(US, FAR, protocol::IPV6, inner);
        with_checksum(icmp(kind, code, [0, 0, high, low], &outer[..outer.len().min(quoted)]))
    }

    fn with_checksum(mut message: Vec<u8>) -> Vec<u8> {
        message[2..4].fill(0);
        let checksum = Sum::ZERO.bytes(&message).checksum();
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        message
    }

    fn inner() -> Vec<u8> {
        v6("2001:db8:1::1", "2001:db8:7::1", protocol::TCP, &tcp(80, 4_000, 1_400))
    }

    fn relayed(message: &[u8], mtu: u16) -> Result<Relayed, DropReason> {
        let error = TunnelError::read(message)?;
        error.inner.ok_or(DropReason::ErrorNotRelayable)?.relayed(error.says, mtu)
    }

    #[test]
    fn the_outer_and_the_inner_packet_are_read_as_far_as_they_are_quoted() {
        let inner = inner();
        let message = about(3, 4, 1_400, &inner, 548);
        let error = TunnelError::read(&message).unwrap();
        assert_eq!(error.says, Says::TooBig(1_400));
        assert_eq!(
            (error.outer_source.to_string(), error.outer_destination.to_string()),
            (US.into(), FAR.into())
        );
        assert_eq!(usize::from(error.outer_length), 20 + inner.len());
        let read = error.inner.unwrap();
        assert_eq!(
            (read.source.to_string(), read.destination.to_string()),
            ("2001:db8:1::1".into(), "2001:db8:7::1".into())
        );
        assert_eq!((read.length as usize, read.quote), (inner.len(), &inner[..528]));
        for quoted in 0..80 {
            let message = about(3, 4, 1_400, &inner, quoted);
            match TunnelError::read(&message) {
                Ok(error) => assert_eq!(error.inner.is_some(), quoted >= 60, "{quoted}"),
                Err(reason) => {
                    assert!(reason == DropReason::QuoteUnusable && quoted < 20, "{quoted}: {reason:?}")
                }
            }
        }
    }

    #[test]
    fn every_type_becomes_what_rfc_2473_section_8_says() {
        let unreachable = Ok(Relayed { kind: 1, code: 3, rest: 0 });
        let alone = Err(DropReason::ErrorNotRelayable);
        for code in (0..=15).filter(|code| *code != 4) {
            assert_eq!(relayed(&about(3, code, 0, &inner(), 548), 1_280), unreachable, "3/{code}");
        }
        for (kind, code, expected) in [
            (11, 0, unreachable),
            (11, 1, alone),
            (12, 0, alone),
            (4, 0, alone),
            (5, 1, alone),
            (3, 4, Ok(Relayed { kind: 2, code: 0, rest: 1_380 })),
        ] {
            assert_eq!(relayed(&about(kind, code, 1_400, &inner(), 548), 1_380), expected, "{kind}/{code}");
        }
    }

    #[test]
    fn too_big_is_told_to_who_can_send_less_and_never_less_than_1_280() {
        let message = about(3, 4, 576, &inner(), 548);
        assert_eq!(relayed(&message, 1_280), Ok(Relayed { kind: 2, code: 0, rest: 1_280 }));
        let small = v6("2001:db8:1::1", "2001:db8:7::1", protocol::UDP, &udp(1, 2, 1_232));
        assert_eq!(relayed(&about(3, 4, 576, &small, 548), 1_280), Err(DropReason::ErrorNotRelayable));
    }

    #[test]
    fn nobody_is_told_of_an_icmpv6_error_or_of_what_was_for_many_or_from_nobody() {
        let carried = |source: &str, destination: &str, message: &[u8]| {
            relayed(&about(3, 1, 0, &v6(source, destination, protocol::ICMPV6, message), 548), 1_280)
        };
        let (here, there) = ("2001:db8:1::1", "2001:db8:7::1");
        let echo = icmp(128, 0, [0; 4], b"data");
        assert!(carried(here, there, &echo).is_ok());
        for kind in [1, 2, 3, 4, 127, 137] {
            let error = icmp(kind, 0, [0; 4], b"data");
            assert_eq!(carried(here, there, &error), Err(DropReason::QuoteIsIcmpError), "{kind}");
        }
        for (source, destination) in
            [("::", there), ("::1", there), ("ff02::1", there), ("fe80::1", there), (here, "ff0e::1")]
        {
            assert_eq!(carried(source, destination, &echo), Err(DropReason::ErrorNotRelayable), "{source}");
        }
    }

    #[test]
    fn who_cannot_tell_which_packet_it_was_is_not_told() {
        let inner = inner();
        assert_eq!(relayed(&about(3, 1, 0, &inner, 67), 1_280), Err(DropReason::ErrorNotRelayable));
        assert!(relayed(&about(3, 1, 0, &inner, 68), 1_280).is_ok());
        // Extension headers that the quote does not show to their end may hide an ICMPv6 error.
        let hidden = v6(
            "2001:db8:1::1",
            "2001:db8:7::1",
            60,
            &[&[58, 1][..], &[1; 14], &icmp(1, 0, [0; 4], b"")].concat(),
        );
        assert_eq!(relayed(&about(3, 1, 0, &hidden, 68), 1_280), Err(DropReason::ErrorNotRelayable));
        assert_eq!(relayed(&about(3, 1, 0, &hidden, 200), 1_280), Err(DropReason::QuoteIsIcmpError));
    }

    #[test]
    fn a_wrong_checksum_and_a_quote_of_something_else_are_refused() {
        let mut message = about(3, 1, 0, &inner(), 548);
        message[20] ^= 1;
        assert_eq!(TunnelError::read(&message), Err(DropReason::BadIcmpChecksum));
        let other = with_checksum(icmp(3, 1, [0; 4], &v4(US, FAR, protocol::UDP, &udp(1, 2, 20))));
        assert_eq!(TunnelError::read(&other), Err(DropReason::QuoteUnusable));
        assert_eq!(TunnelError::read(&message[..7]), Err(DropReason::TransportTruncated));
    }

    #[test]
    fn extensions_behind_the_quote_are_not_part_of_the_packet() {
        let outer = v4(US, FAR, protocol::IPV6, &inner());
        let body = [&outer[..128], &[0x20, 0, 0, 0, 0, 8, 1, 1, 0, 0, 0, 0]].concat();
        let message = with_checksum(icmp(11, 0, [0, 32, 0, 0], &body));
        let error = TunnelError::read(&message).unwrap();
        assert_eq!(error.inner.unwrap().quote.len(), 108);
    }
}
