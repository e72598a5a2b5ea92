//! IPv6 (RFC 8200 §3):
//!
//! ```text
//!  0               1               2               3
//! |Version| Traffic Class |           Flow Label                  |
//! |         Payload Length        |  Next Header  |   Hop Limit   |
//! |                  Source Address (16 octets)                   |
//! |                Destination Address (16 octets)                |
//! ```
//!
//! and its Fragment header (§4.5):
//!
//! ```text
//! |  Next Header  |   Reserved    |     Fragment Offset     |Res|M|
//! |                        Identification                         |
//! ```

use crate::HeaderError;
use core::net::Ipv6Addr;

/// Octets of the fixed header.
pub const IPV6_HEADER: usize = 40;
/// The least MTU of an IPv6 link (RFC 8200 §5).
pub const IPV6_MIN_MTU: usize = 1_280;
/// Octets of a Fragment header.
pub const FRAGMENT_HEADER: usize = 8;
/// RFC 1700's default TTL; RFC 4861 §6.3.2 leaves IPv6's to the host.
const DEFAULT_HOP_LIMIT: u8 = 64;

/// An IPv6 header as a value. The Flow Label is written as zero (RFC 7915 §4.1) and not read: nothing here decides by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Header {
    /// Traffic Class.
    pub traffic_class: u8,
    /// Payload Length in octets.
    pub payload_length: u16,
    /// Next Header.
    pub next_header: u8,
    /// Hop Limit.
    pub hop_limit: u8,
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
}

impl Ipv6Header {
    /// The header of a packet that carries `payload` octets: Traffic Class zero, Hop Limit 64. Where `payload` does not fit,
    /// Payload Length is 65,535.
    pub const fn new(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8, payload: usize) -> Self {
        Self {
            traffic_class: 0,
            payload_length: if payload > 0xffff { 0xffff } else { payload as u16 },
            next_header,
            hop_limit: DEFAULT_HOP_LIMIT,
            source,
            destination,
        }
    }

    /// Writes the header.
    #[inline(always)]
    pub fn write(&self, octets: &mut [u8; IPV6_HEADER]) {
        let front = (0x6000_0000 | u64::from(self.traffic_class) << 20) << 32
            | u64::from(self.payload_length) << 16
            | u64::from(self.next_header) << 8
            | u64::from(self.hop_limit);
        octets[0..8].copy_from_slice(&front.to_be_bytes());
        octets[8..24].copy_from_slice(&self.source.octets());
        octets[24..40].copy_from_slice(&self.destination.octets());
    }

    /// The header's octets.
    #[inline]
    pub fn octets(&self) -> [u8; IPV6_HEADER] {
        let mut octets = [0; IPV6_HEADER];
        self.write(&mut octets);
        octets
    }

    /// Reads the header at the start of `octets`.
    ///
    /// Fails when octets are missing or when the version is another one.
    #[inline]
    pub fn read(octets: &[u8]) -> Result<Self, HeaderError> {
        let header = octets.first_chunk::<IPV6_HEADER>().ok_or(HeaderError::Truncated)?;
        if header[0] >> 4 != 6 {
            return Err(HeaderError::WrongVersion);
        }
        let (addresses, _) = header[8..].as_chunks::<16>();
        let [source, destination] = *addresses else { return Err(HeaderError::Truncated) };
        Ok(Self {
            traffic_class: header[0] << 4 | header[1] >> 4,
            payload_length: u16::from_be_bytes([header[4], header[5]]),
            next_header: header[6],
            hop_limit: header[7],
            source: Ipv6Addr::from(source),
            destination: Ipv6Addr::from(destination),
        })
    }

    /// Reads the header of a packet that may be cut short, as those quoted in ICMP errors are: the header, and what is there
    /// behind it, padding included.
    ///
    /// Fails as [`Ipv6Header::read`] does.
    #[inline]
    pub fn split_quoted(octets: &[u8]) -> Result<(Self, &[u8]), HeaderError> {
        Ok((Self::read(octets)?, octets.get(IPV6_HEADER..).ok_or(HeaderError::Truncated)?))
    }

    /// Reads the header of a whole packet: the header, and the octets that it carries, extension headers among them. Octets behind
    /// Payload Length are padding.
    ///
    /// Fails as [`Ipv6Header::read`] does, and when the packet is cut short.
    #[inline]
    pub fn split(packet: &[u8]) -> Result<(Self, &[u8]), HeaderError> {
        let (header, behind) = Self::split_quoted(packet)?;
        Ok((header, behind.get(..usize::from(header.payload_length)).ok_or(HeaderError::Truncated)?))
    }
}

/// An IPv6 Fragment header as a value; reserved bits are written as zero and not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentHeader {
    /// Next Header.
    pub next_header: u8,
    /// Fragment offset in octets, a multiple of 8.
    pub offset: u16,
    /// M.
    pub more_fragments: bool,
    /// Identification.
    pub identification: u32,
}

impl FragmentHeader {
    /// Writes the header.
    #[inline(always)]
    pub fn write(&self, octets: &mut [u8; FRAGMENT_HEADER]) {
        let word = (self.offset & 0xfff8) | u16::from(self.more_fragments);
        let all = u64::from(self.next_header) << 56 | u64::from(word) << 32 | u64::from(self.identification);
        *octets = all.to_be_bytes();
    }

    /// The header's octets.
    #[inline]
    pub fn octets(&self) -> [u8; FRAGMENT_HEADER] {
        let mut octets = [0; FRAGMENT_HEADER];
        self.write(&mut octets);
        octets
    }

    /// Reads the header at the start of `octets`.
    ///
    /// Fails when octets are missing.
    #[inline]
    pub fn read(octets: &[u8]) -> Result<Self, HeaderError> {
        let header = octets.first_chunk::<FRAGMENT_HEADER>().ok_or(HeaderError::Truncated)?;
        let word = u16::from_be_bytes([header[2], header[3]]);
        Ok(Self {
            next_header: header[0],
            offset: word & 0xfff8,
            more_fragments: word & 1 != 0,
            identification: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol;
    use proptest::prelude::*;
    use std::vec::Vec;

    const HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    /// The first fragment of a UDP datagram of 2,000 octets, as Linux sent it: IPv6 header and Fragment header.
    const FRAGMENT: [u8; 48] = [
        0x60, 0x00, 0x00, 0x00, 0x05, 0xb0, 0x2c, 0x40, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x11, 0x00, 0x00, 0x01, 0x5c, 0x22, 0x0e, 0x4f,
    ];
    /// The second one's Fragment header.
    const SECOND: [u8; 8] = [0x11, 0x00, 0x05, 0xa8, 0x5c, 0x22, 0x0e, 0x4f];

    #[test]
    fn headers_that_linux_sent_are_read_and_written_alike() {
        let (header, behind) = Ipv6Header::split_quoted(&FRAGMENT).unwrap();
        assert_eq!(header, Ipv6Header::new(HOST, HOST, protocol::FRAGMENT, 1_456));
        assert_eq!(header.octets(), FRAGMENT[..40]);

        let first = FragmentHeader::read(behind).unwrap();
        let expected = FragmentHeader {
            next_header: protocol::UDP,
            offset: 0,
            more_fragments: true,
            identification: 0x5c22_0e4f,
        };
        assert_eq!(first, expected);
        assert_eq!(first.octets(), behind);
        let second = FragmentHeader { offset: 1_448, more_fragments: false, ..first };
        assert_eq!(FragmentHeader::read(&SECOND), Ok(second));
        assert_eq!(second.octets(), SECOND);
    }

    #[test]
    fn the_fields_are_where_rfc_8200_draws_them() {
        let octets = Ipv6Header {
            traffic_class: 0xb8,
            payload_length: 8,
            next_header: protocol::FRAGMENT,
            hop_limit: 63,
            source: Ipv6Addr::LOCALHOST,
            destination: Ipv6Addr::UNSPECIFIED,
        }
        .octets();
        assert_eq!(octets[..8], [0x6b, 0x80, 0, 0, 0, 8, 44, 63]);
        assert_eq!(octets[23], 1);
    }

    #[test]
    fn the_flow_label_is_not_read() {
        let mut labelled = FRAGMENT;
        labelled[1..4].copy_from_slice(&[0x03, 0x45, 0xee]);
        assert_eq!(Ipv6Header::read(&labelled), Ipv6Header::read(&FRAGMENT));
    }

    #[test]
    fn a_header_cut_anywhere_is_truncated() {
        for length in 0..IPV6_HEADER {
            assert_eq!(Ipv6Header::read(&FRAGMENT[..length]), Err(HeaderError::Truncated), "{length}");
        }
        for length in 0..FRAGMENT_HEADER {
            assert_eq!(FragmentHeader::read(&SECOND[..length]), Err(HeaderError::Truncated), "{length}");
        }
    }

    #[test]
    fn a_packet_cut_anywhere_is_truncated_and_padding_is_not_part_of_it() {
        let mut packet = Ipv6Header::new(HOST, HOST, protocol::UDP, 4).octets().to_vec();
        packet.extend([1, 2, 3, 4]);
        for length in 0..packet.len() {
            assert_eq!(Ipv6Header::split(&packet[..length]), Err(HeaderError::Truncated), "{length}");
        }
        packet.extend([0; 6]);
        assert_eq!(Ipv6Header::split(&packet).map(|(_, payload)| payload), Ok(&[1, 2, 3, 4][..]));
    }

    #[test]
    fn another_version_is_refused() {
        let mut octets = FRAGMENT;
        octets[0] = 0x45;
        assert_eq!(Ipv6Header::read(&octets), Err(HeaderError::WrongVersion));
    }

    #[test]
    fn a_payload_that_does_not_fit_gives_the_longest_packet() {
        assert_eq!(Ipv6Header::new(HOST, HOST, 17, 65_536).payload_length, 65_535);
    }

    proptest! {
        #[test]
        fn a_value_written_is_the_value_read(
            (traffic_class, payload_length, next_header, hop_limit) in any::<(u8, u16, u8, u8)>(),
            (source, destination) in any::<(u128, u128)>(),
            (offset, more_fragments, identification) in any::<(u16, bool, u32)>(),
        ) {
            let (source, destination) = (source.into(), destination.into());
            let header = Ipv6Header { traffic_class, payload_length, next_header, hop_limit, source, destination };
            prop_assert_eq!(Ipv6Header::read(&header.octets()), Ok(header));
            let fragment = FragmentHeader { next_header, offset: offset & 0xfff8, more_fragments, identification };
            prop_assert_eq!(FragmentHeader::read(&fragment.octets()), Ok(fragment));
        }

        #[test]
        fn octets_of_any_kind_are_read_or_refused(octets in any::<Vec<u8>>()) {
            if let Ok((header, payload)) = Ipv6Header::split(&octets) {
                prop_assert_eq!(payload.len(), usize::from(header.payload_length));
            }
        }
    }
}
