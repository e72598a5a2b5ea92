//! The translated protocols without ports, and the fields that their packets have instead of ports.

use crate::drop_reason::DropReason;
use core::fmt;
use sixway_wire::protocol;

/// GRE: checksum present, routing present (RFC 1701), key present; the version (RFC 2784 §2, RFC 2890 §2).
const CHECKSUM: u16 = 0x8000;
const ROUTING: u16 = 0x4000;
const KEY: u16 = 0x2000;
const VERSION: u16 = 0x0007;

/// A protocol without ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortlessProtocol {
    /// IPv4 in IPv4 (RFC 2003).
    Ipip,
    /// IPv6 in IPv4 (RFC 4213).
    Ipv6,
    /// GRE (RFC 2784), and that of PPTP (RFC 2637).
    Gre,
    /// ESP (RFC 4303).
    Esp,
}

impl PortlessProtocol {
    /// Every protocol.
    pub const ALL: [Self; 4] = [Self::Ipip, Self::Ipv6, Self::Gre, Self::Esp];

    /// The protocol of a number in an IPv4 header.
    pub const fn of(number: u8) -> Option<Self> {
        match number {
            protocol::IPV4 => Some(Self::Ipip),
            protocol::IPV6 => Some(Self::Ipv6),
            protocol::GRE => Some(Self::Gre),
            protocol::ESP => Some(Self::Esp),
            _ => None,
        }
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        match self {
            Self::Ipip => protocol::IPV4,
            Self::Ipv6 => protocol::IPV6,
            Self::Gre => protocol::GRE,
            Self::Esp => protocol::ESP,
        }
    }

    /// Its name in configuration and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ipip => "ipip",
            Self::Ipv6 => "ipv6",
            Self::Gre => "gre",
            Self::Esp => "esp",
        }
    }

    /// Whether the packets of the two directions have ids that do not follow from each other.
    pub(super) const fn learns(self) -> bool {
        match self {
            Self::Esp => true,
            Self::Ipip | Self::Ipv6 | Self::Gre => false,
        }
    }

    /// The id of a packet; `octets` are those behind the IP header.
    ///
    /// # Errors
    /// They are too few, or of a version that is not known.
    pub(super) fn id(self, octets: &[u8]) -> Result<Id, DropReason> {
        let word = |at: usize| {
            let four = octets.get(at..at + 4).and_then(|four| four.first_chunk::<4>());
            four.map(|four| u32::from_be_bytes(*four)).ok_or(DropReason::TransportTruncated)
        };
        match self {
            Self::Ipip | Self::Ipv6 => Ok(Id::NONE),
            Self::Esp => word(0).map(Id::of),
            Self::Gre => {
                let flags = (word(0)? >> 16) as u16;
                match flags & VERSION {
                    0 if flags & KEY != 0 => {
                        word(if flags & (CHECKSUM | ROUTING) == 0 { 4 } else { 8 }).map(Id::of)
                    }
                    // PPTP's call id is that of the receiver: the other direction's is not known from it (RFC 2637 §4.1).
                    0 | 1 => Ok(Id::NONE),
                    _ => Err(DropReason::ProtocolUnsupported),
                }
            }
        }
    }
}

impl PortlessProtocol {
    /// The field of a packet that a log shows instead of ports: its id, or the call ID of PPTP (RFC 2637 §4.1), which identifies no session.
    pub(super) fn shown_id(self, octets: &[u8]) -> Option<u32> {
        match (self, octets) {
            (Self::Gre, [_, flags, _, _, _, _, high, low, ..]) if u16::from(*flags) & VERSION == 1 => {
                Some(u16::from_be_bytes([*high, *low]).into())
            }
            (Self::Ipip | Self::Ipv6 | Self::Gre | Self::Esp, _) => self.id(octets).ok()?.0,
        }
    }
}

impl fmt::Display for PortlessProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The field of a packet instead of ports: a key or an SPI, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(Option<u32>);

impl Id {
    /// The packet has none.
    pub(super) const NONE: Self = Self(None);

    pub(super) const fn of(number: u32) -> Self {
        Self(Some(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_protocol_and_back() {
        for protocol in PortlessProtocol::ALL {
            assert_eq!(PortlessProtocol::of(protocol.number()), Some(protocol));
        }
        for number in [1, 6, 17, 51, 58, 132] {
            assert_eq!(PortlessProtocol::of(number), None);
        }
    }

    #[test]
    fn the_key_of_gre_is_behind_its_checksum() {
        let gre = |octets: &[u8]| PortlessProtocol::Gre.id(octets);
        assert_eq!(gre(&[0x20, 0, 8, 0, 0, 0, 0, 7]), Ok(Id::of(7)));
        assert_eq!(gre(&[0xa0, 0, 8, 0, 1, 2, 3, 4, 0, 0, 0, 9]), Ok(Id::of(9)));
        assert_eq!(gre(&[0x60, 0, 8, 0, 1, 2, 3, 4, 0, 0, 0, 9]), Ok(Id::of(9)));
        assert_eq!(gre(&[0xa0, 0, 8, 0, 1, 2, 3, 4]), Err(DropReason::TransportTruncated));
        assert_eq!(gre(&[0, 0, 8, 0]), Ok(Id::NONE));
        assert_eq!(gre(&[0, 0, 8]), Err(DropReason::TransportTruncated));
        assert_eq!(gre(&[0x30, 1, 0x88, 0x0b, 0, 4, 0, 99]), Ok(Id::NONE), "a call id of PPTP");
        assert_eq!(gre(&[0x20, 2, 8, 0, 0, 0, 0, 7]), Err(DropReason::ProtocolUnsupported));
    }

    #[test]
    fn a_log_shows_the_call_id_of_pptp_the_key_and_the_spi() {
        let pptp = [0x30, 1, 0x88, 0x0b, 0, 4, 1, 99, 0, 0, 0, 1];
        assert_eq!(PortlessProtocol::Gre.shown_id(&pptp), Some(0x163));
        assert_eq!(PortlessProtocol::Gre.shown_id(&pptp[..7]), None);
        assert_eq!(PortlessProtocol::Gre.shown_id(&[0x20, 0, 8, 0, 0, 0, 0, 7]), Some(7));
        assert_eq!(PortlessProtocol::Gre.shown_id(&[0, 0, 8, 0, 0, 0, 0, 7]), None);
        assert_eq!(PortlessProtocol::Esp.shown_id(&[0, 0, 1, 2, 0, 0, 0, 1]), Some(258));
        assert_eq!(PortlessProtocol::Ipv6.shown_id(&[0x60; 40]), None);
    }

    #[test]
    fn the_spi_of_esp_comes_first() {
        assert_eq!(PortlessProtocol::Esp.id(&[0, 0, 1, 2, 0, 0, 0, 1]), Ok(Id::of(258)));
        assert_eq!(PortlessProtocol::Esp.id(&[0, 0, 1]), Err(DropReason::TransportTruncated));
        assert_eq!(PortlessProtocol::Ipv6.id(&[]), Ok(Id::NONE));
    }
}
