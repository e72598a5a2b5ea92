//! The header that ICMP for IPv4 (RFC 792) and ICMPv6 (RFC 4443 §2.1) share; their types are in [`crate::icmpv4`] and
//! [`crate::icmpv6`]:
//!
//! ```text
//!  0               1               2               3
//! |     Type      |     Code      |           Checksum            |
//! |      by type: identifier and sequence number, MTU, …          |
//! ```

use crate::HeaderError;
use crate::checksum::{Sum, pseudo6};
use crate::protocol::ICMPV6;
use core::net::Ipv6Addr;

/// Octets of the header with the four octets that depend on the type.
pub const ICMP_HEADER: usize = 8;

/// An ICMP header of either family, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpHeader {
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// Checksum.
    pub checksum: u16,
    /// The 32 bits behind the checksum. In an echo message: the identifier and, in the lower half, the sequence number. In an
    /// error about a packet's size: the MTU. Else pointer, length of the quote (RFC 4884 §4.1), or zero.
    pub rest: u32,
}

impl IcmpHeader {
    /// A header whose checksum is still to be filled in.
    pub const fn new(kind: u8, code: u8, rest: u32) -> Self {
        Self { kind, code, checksum: 0, rest }
    }

    /// An echo request or reply whose checksum is still to be filled in.
    pub const fn echo(kind: u8, identifier: u16, sequence: u16) -> Self {
        Self::new(kind, 0, (identifier as u32) << 16 | sequence as u32)
    }

    /// The upper half of the last 32 bits: an echo message's identifier.
    #[inline]
    pub const fn identifier(&self) -> u16 {
        (self.rest >> 16) as u16
    }

    /// The lower half of the last 32 bits: an echo message's sequence number.
    #[inline]
    pub const fn sequence(&self) -> u16 {
        self.rest as u16
    }

    /// The same with ICMPv4's checksum, in front of `body`.
    #[must_use]
    pub fn with_checksum4(self, body: &[u8]) -> Self {
        self.with_checksum(Sum::ZERO, body)
    }

    /// The same with ICMPv6's checksum (RFC 4443 §2.3), between these addresses and in front of `body`.
    #[must_use]
    pub fn with_checksum6(self, source: Ipv6Addr, destination: Ipv6Addr, body: &[u8]) -> Self {
        let length = ICMP_HEADER.saturating_add(body.len()) as u32;
        self.with_checksum(pseudo6(source, destination, ICMPV6, length), body)
    }

    fn with_checksum(self, pseudo: Sum, body: &[u8]) -> Self {
        let bare = Self { checksum: 0, ..self };
        Self { checksum: pseudo.bytes(&bare.octets()).bytes(body).checksum(), ..self }
    }

    /// Writes the header.
    #[inline(always)]
    pub fn write(&self, octets: &mut [u8; ICMP_HEADER]) {
        let all = u64::from(self.kind) << 56
            | u64::from(self.code) << 48
            | u64::from(self.checksum) << 32
            | u64::from(self.rest);
        *octets = all.to_be_bytes();
    }

    /// The header's octets.
    #[inline]
    pub fn octets(&self) -> [u8; ICMP_HEADER] {
        let mut octets = [0; ICMP_HEADER];
        self.write(&mut octets);
        octets
    }

    /// Reads the header at the start of `octets`. The checksum is not verified.
    ///
    /// Fails when octets are missing.
    #[inline]
    pub fn read(octets: &[u8]) -> Result<Self, HeaderError> {
        let [kind, code, a, b, c, d, e, f] =
            *octets.first_chunk::<ICMP_HEADER>().ok_or(HeaderError::Truncated)?;
        let (checksum, rest) = (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]));
        Ok(Self { kind, code, checksum, rest })
    }

    /// Reads the header of a message: the header, and its body.
    ///
    /// Fails as [`IcmpHeader::read`] does.
    #[inline]
    pub fn split(message: &[u8]) -> Result<(Self, &[u8]), HeaderError> {
        Ok((Self::read(message)?, message.get(ICMP_HEADER..).ok_or(HeaderError::Truncated)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{icmpv4, icmpv6};
    use proptest::prelude::*;
    use std::vec::Vec;

    /// From 2001:db8::1 to itself.
    const HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    /// Echo replies of both families, as Linux sent them.
    const REPLY4: [u8; 12] = [0x00, 0x00, 0x15, 0x02, 0x12, 0x34, 0x00, 0x07, 0x64, 0x61, 0x74, 0x61];
    const REPLY6: [u8; 12] = [0x81, 0x00, 0x38, 0x47, 0x12, 0x34, 0x00, 0x07, 0x64, 0x61, 0x74, 0x61];
    /// Port unreachable in both families, as Linux sent it, about six octets to port 9.
    const UNREACHABLE4: [u8; 42] = [
        0x03, 0x03, 0x33, 0xcb, 0x00, 0x00, 0x00, 0x00, 0x45, 0x00, 0x00, 0x22, 0x98, 0x0b, 0x40, 0x00, 0x40,
        0x11, 0x1e, 0xbd, 0xc0, 0x00, 0x02, 0x01, 0xc0, 0x00, 0x02, 0x01, 0x0f, 0xa0, 0x00, 0x09, 0x00, 0x0e,
        0x84, 0x22, 0x6e, 0x6f, 0x62, 0x6f, 0x64, 0x79,
    ];
    const UNREACHABLE6: [u8; 62] = [
        0x01, 0x04, 0x35, 0xaa, 0x00, 0x00, 0x00, 0x00, 0x60, 0x00, 0x00, 0x00, 0x00, 0x0e, 0x11, 0x40, 0x20,
        0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x20, 0x01,
        0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x0f, 0xa0, 0x00,
        0x09, 0x00, 0x0e, 0x5b, 0x93, 0x6e, 0x6f, 0x62, 0x6f, 0x64, 0x79,
    ];

    #[test]
    fn echo_replies_that_linux_sent_are_read_and_written_alike() {
        let four = IcmpHeader::echo(icmpv4::ECHO_REPLY, 0x1234, 7).with_checksum4(b"data");
        assert_eq!(IcmpHeader::split(&REPLY4), Ok((four, &b"data"[..])));
        assert_eq!(four.octets(), REPLY4[..8]);
        let six = IcmpHeader::echo(icmpv6::ECHO_REPLY, 0x1234, 7).with_checksum6(HOST, HOST, b"data");
        assert_eq!(IcmpHeader::split(&REPLY6), Ok((six, &b"data"[..])));
        assert_eq!(six.octets(), REPLY6[..8]);
        assert_eq!((six.identifier(), six.sequence()), (0x1234, 7));
    }

    #[test]
    fn errors_that_linux_sent_are_read_and_written_alike() {
        let (four, quote) = IcmpHeader::split(&UNREACHABLE4).unwrap();
        assert_eq!(four, IcmpHeader::new(icmpv4::DESTINATION_UNREACHABLE, 3, 0).with_checksum4(quote));
        assert_eq!(four.octets(), UNREACHABLE4[..8]);
        let (six, quote) = IcmpHeader::split(&UNREACHABLE6).unwrap();
        let made = IcmpHeader::new(icmpv6::DESTINATION_UNREACHABLE, 4, 0);
        assert_eq!(six, made.with_checksum6(HOST, HOST, quote));
        assert_eq!(six.octets(), UNREACHABLE6[..8]);
    }

    #[test]
    fn the_mtu_is_in_the_last_octets() {
        let octets = IcmpHeader::new(icmpv6::PACKET_TOO_BIG, 0, 1_280).octets();
        assert_eq!(octets, [2, 0, 0, 0, 0, 0, 5, 0]);
    }

    #[test]
    fn a_header_cut_anywhere_is_truncated() {
        for length in 0..ICMP_HEADER {
            assert_eq!(IcmpHeader::split(&REPLY4[..length]), Err(HeaderError::Truncated), "{length}");
        }
    }

    proptest! {
        #[test]
        fn a_value_written_is_the_value_read(
            (kind, code, checksum, rest) in any::<(u8, u8, u16, u32)>(),
        ) {
            let header = IcmpHeader { kind, code, checksum, rest };
            prop_assert_eq!(IcmpHeader::read(&header.octets()), Ok(header));
        }

        #[test]
        fn octets_of_any_kind_are_read_or_refused(octets in any::<Vec<u8>>()) {
            prop_assert_eq!(IcmpHeader::split(&octets).is_ok(), octets.len() >= ICMP_HEADER);
        }
    }
}
