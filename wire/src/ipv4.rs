//! IPv4 (RFC 791 §3.1):
//!
//! ```text
//!  0               1               2               3
//! |Version|  IHL  |Type of Service|         Total Length          |
//! |        Identification         |0|D|M|   Fragment Offset       |
//! | Time to Live  |   Protocol    |        Header Checksum        |
//! |                        Source Address                         |
//! |                     Destination Address                       |
//! |                    Options (0 to 40 octets)                   |
//! ```

use crate::HeaderError;
use crate::checksum::{Sum, update};
use core::net::Ipv4Addr;

/// Octets of the header without options.
pub const IPV4_HEADER: usize = 20;
/// RFC 791 §3.1: IHL is at most 15, so that the options have at most ten 32-bit words.
const MOST_OPTION_WORDS: usize = 10;
/// RFC 1700: the default TTL.
const DEFAULT_TTL: u8 = 64;

/// An IPv4 header without options, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Header {
    /// TOS octet.
    pub tos: u8,
    /// Total Length in octets, this header included.
    pub length: u16,
    /// Identification.
    pub identification: u16,
    /// DF.
    pub dont_fragment: bool,
    /// MF.
    pub more_fragments: bool,
    /// Fragment offset in octets, a multiple of 8.
    pub offset: u16,
    /// TTL.
    pub ttl: u8,
    /// Protocol.
    pub protocol: u8,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
}

impl Ipv4Header {
    /// The header of an atomic datagram (RFC 6864 §4: DF set, not a fragment) that carries `payload` octets: TOS and identification
    /// zero, TTL 64. Where `payload` does not fit, Total Length is 65,535.
    pub const fn new(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload: usize) -> Self {
        let length = IPV4_HEADER.saturating_add(payload);
        Self {
            tos: 0,
            length: if length > 0xffff { 0xffff } else { length as u16 },
            identification: 0,
            dont_fragment: true,
            more_fragments: false,
            offset: 0,
            ttl: DEFAULT_TTL,
            protocol,
            source,
            destination,
        }
    }

    /// Writes the header, its checksum computed.
    #[inline(always)]
    pub fn write(&self, octets: &mut [u8; IPV4_HEADER]) {
        let flags =
            u16::from(self.dont_fragment) << 14 | u16::from(self.more_fragments) << 13 | self.offset >> 3;
        let first = 0x4500 | u16::from(self.tos);
        let hops = u16::from(self.ttl) << 8 | u16::from(self.protocol);
        let checksum = Sum::ZERO
            .word(first)
            .word(self.length)
            .word(self.identification)
            .word(flags)
            .word(hops)
            .ipv4(self.source)
            .ipv4(self.destination)
            .checksum();
        // Whole words, so that the copy into the packet does not wait for many small stores.
        let front = u64::from(first) << 48
            | u64::from(self.length) << 32
            | u64::from(self.identification) << 16
            | u64::from(flags);
        let middle = u64::from(hops) << 48 | u64::from(checksum) << 32 | u64::from(self.source.to_bits());
        octets[0..8].copy_from_slice(&front.to_be_bytes());
        octets[8..16].copy_from_slice(&middle.to_be_bytes());
        octets[16..20].copy_from_slice(&self.destination.octets());
    }

    /// Writes the header over `header`, whose options stay: the first 20 octets are followed by the options, padded to a multiple of
    /// 4 octets (RFC 791 §3.1). IHL is the length of all of it, and the checksum covers the options too. Total Length is
    /// written as it is in the value.
    ///
    /// Fails, with nothing written, with [`HeaderError::Truncated`] when `header` has fewer than 20 octets, and with
    /// [`HeaderError::OptionBeyondEnd`] when IHL cannot count it: more than 60 octets, or no multiple of 4.
    pub fn write_with_options(&self, header: &mut [u8]) -> Result<(), HeaderError> {
        let (front, options) = header.split_first_chunk_mut::<IPV4_HEADER>().ok_or(HeaderError::Truncated)?;
        let (words, odd) = options.as_chunks::<4>();
        if words.len() > MOST_OPTION_WORDS || !odd.is_empty() {
            return Err(HeaderError::OptionBeyondEnd);
        }
        self.write(front);
        let words = words.len() as u8;
        front[0] += words;
        let added = Sum::ZERO.bytes(&[words, 0]).bytes(options);
        let checksum = update(u16::from_be_bytes([front[10], front[11]]), Sum::ZERO, added);
        front[10..12].copy_from_slice(&checksum.to_be_bytes());
        Ok(())
    }

    /// The header's octets.
    #[inline]
    pub fn octets(&self) -> [u8; IPV4_HEADER] {
        let mut octets = [0; IPV4_HEADER];
        self.write(&mut octets);
        octets
    }

    /// Reads the header at the start of `octets`. The checksum is not verified. Options, and the reserved flag, are not part
    /// of the value.
    ///
    /// Fails when octets are missing, when the version is another one, or when IHL is less than 5.
    #[inline]
    pub fn read(octets: &[u8]) -> Result<Self, HeaderError> {
        let header = octets.first_chunk::<IPV4_HEADER>().ok_or(HeaderError::Truncated)?;
        if header[0] >> 4 != 4 {
            return Err(HeaderError::WrongVersion);
        }
        if header[0] & 15 < 5 {
            return Err(HeaderError::LengthTooSmall);
        }
        let flags = u16::from_be_bytes([header[6], header[7]]);
        Ok(Self {
            tos: header[1],
            length: u16::from_be_bytes([header[2], header[3]]),
            identification: u16::from_be_bytes([header[4], header[5]]),
            dont_fragment: flags & 0x4000 != 0,
            more_fragments: flags & 0x2000 != 0,
            offset: (flags & 0x1fff) << 3,
            ttl: header[8],
            protocol: header[9],
            source: Ipv4Addr::new(header[12], header[13], header[14], header[15]),
            destination: Ipv4Addr::new(header[16], header[17], header[18], header[19]),
        })
    }

    /// Reads the header of a packet that may be cut short, as those quoted in ICMP errors are: the header, and what is there
    /// behind it and its options, padding included.
    ///
    /// Fails as [`Ipv4Header::read`] does, and when the options are not all there.
    #[inline]
    pub fn split_quoted(octets: &[u8]) -> Result<(Self, &[u8]), HeaderError> {
        let header = Self::read(octets)?;
        let words = octets.first().map_or(0, |octet| octet & 15);
        Ok((header, octets.get(usize::from(words) * 4..).ok_or(HeaderError::Truncated)?))
    }

    /// Reads the header of a whole packet: the header, and the octets that it carries. Options are stepped over, octets
    /// behind Total Length are padding.
    ///
    /// Fails as [`Ipv4Header::read`] does, when Total Length is less than the header's own, and when the packet is cut short.
    #[inline]
    pub fn split(packet: &[u8]) -> Result<(Self, &[u8]), HeaderError> {
        let (header, behind) = Self::split_quoted(packet)?;
        let own = packet.len() - behind.len();
        let payload = usize::from(header.length).checked_sub(own).ok_or(HeaderError::LengthTooSmall)?;
        Ok((header, behind.get(..payload).ok_or(HeaderError::Truncated)?))
    }

    /// Whether this is a fragment of a larger packet.
    #[inline]
    pub const fn is_fragment(&self) -> bool {
        self.more_fragments || self.offset != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// The second fragment of a UDP datagram of 2,000 octets, as Linux sent it.
    const FRAGMENT: [u8; 20] = [
        0x45, 0x00, 0x02, 0x24, 0x98, 0x0c, 0x00, 0xb9, 0x40, 0x11, 0x5c, 0x01, 0xc0, 0x00, 0x02, 0x01, 0xc0,
        0x00, 0x02, 0x01,
    ];
    /// An ICMP error's header, as Linux sent it: TOS 0xc0.
    const OF_ERROR: [u8; 20] = [
        0x45, 0xc0, 0x00, 0x3e, 0x01, 0xee, 0x00, 0x00, 0x40, 0x01, 0xf4, 0x0e, 0xc0, 0x00, 0x02, 0x01, 0xc0,
        0x00, 0x02, 0x01,
    ];
    const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

    #[test]
    fn headers_that_linux_sent_are_read_and_written_alike() {
        let error = Ipv4Header {
            tos: 0xc0,
            identification: 0x01ee,
            dont_fragment: false,
            ..Ipv4Header::new(HOST, HOST, protocol::ICMPV4, 42)
        };
        assert_eq!(Ipv4Header::read(&OF_ERROR), Ok(error));
        assert_eq!(error.octets(), OF_ERROR);

        let fragment = Ipv4Header {
            identification: 0x980c,
            dont_fragment: false,
            offset: 1_480,
            ..Ipv4Header::new(HOST, HOST, protocol::UDP, 528)
        };
        assert_eq!(Ipv4Header::read(&FRAGMENT), Ok(fragment));
        assert_eq!(fragment.octets(), FRAGMENT);
        assert!(fragment.is_fragment() && !error.is_fragment());
    }

    #[test]
    fn the_checksum_makes_the_header_sum_to_all_ones() {
        let header = Ipv4Header {
            tos: 0xb8,
            length: 1_260,
            identification: 0xbeef,
            dont_fragment: false,
            more_fragments: true,
            offset: 1_480,
            ttl: 63,
            protocol: protocol::UDP,
            source: HOST,
            destination: Ipv4Addr::new(203, 0, 113, 255),
        };
        let octets = header.octets();
        assert_eq!(Sum::ZERO.bytes(&octets).fold(), 0xffff);
        assert_eq!(octets[..2], [0x45, 0xb8]);
        assert_eq!(octets[6..8], [0x20, 185]);
        assert_eq!(Ipv4Header::read(&octets), Ok(header));
    }

    #[test]
    fn a_header_cut_anywhere_is_truncated() {
        for length in 0..IPV4_HEADER {
            assert_eq!(Ipv4Header::read(&OF_ERROR[..length]), Err(HeaderError::Truncated), "{length}");
        }
    }

    #[test]
    fn a_packet_cut_anywhere_is_truncated_and_padding_is_not_part_of_it() {
        let mut packet = Ipv4Header::new(HOST, HOST, protocol::UDP, 12).octets().to_vec();
        packet[0] = 0x47; // two words of options
        packet.extend(1..=12);
        for length in 0..packet.len() {
            assert_eq!(Ipv4Header::split(&packet[..length]), Err(HeaderError::Truncated), "{length}");
            let quoted = Ipv4Header::split_quoted(&packet[..length]).map(|(_, behind)| behind);
            let expected = packet[..length].get(28..).ok_or(HeaderError::Truncated);
            assert_eq!(quoted, expected, "{length}");
        }
        packet.extend([0; 6]);
        let (header, payload) = Ipv4Header::split(&packet).unwrap();
        assert_eq!((header.length, payload), (32, &[9, 10, 11, 12][..]));
    }

    #[test]
    fn lengths_and_versions_that_cannot_be_are_refused() {
        let mut packet = OF_ERROR;
        packet[0] = 0x65;
        assert_eq!(Ipv4Header::read(&packet), Err(HeaderError::WrongVersion));
        packet[0] = 0x44;
        assert_eq!(Ipv4Header::read(&packet), Err(HeaderError::LengthTooSmall));
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&[0, 19]);
        assert_eq!(Ipv4Header::split(&packet), Err(HeaderError::LengthTooSmall));
    }

    #[test]
    fn options_stay_and_are_counted_by_ihl_and_checksum() {
        let value = Ipv4Header::new(HOST, HOST, protocol::UDP, 20);
        let mut header = [0xff; 32];
        header[20..].copy_from_slice(&[1, 0x82, 3, 9, 7, 7, 4, 0, 0, 0, 0, 0]);
        let options = header;
        assert_eq!(value.write_with_options(&mut header), Ok(()));
        assert_eq!(header[20..], options[20..]);
        assert_eq!(header[0], 0x48);
        assert_eq!(Sum::ZERO.bytes(&header).fold(), 0xffff);
        assert_eq!(Ipv4Header::split_quoted(&header), Ok((value, &[][..])));
    }

    #[test]
    fn without_options_the_header_is_written_as_ever() {
        let value = Ipv4Header::new(HOST, HOST, protocol::UDP, 20);
        let mut header = [0xff; IPV4_HEADER];
        assert_eq!(value.write_with_options(&mut header), Ok(()));
        assert_eq!(header, value.octets());
    }

    #[test]
    fn options_that_ihl_cannot_count_are_refused_and_nothing_is_written() {
        let value = Ipv4Header::new(HOST, HOST, protocol::UDP, 20);
        for length in 0..80 {
            let mut header = std::vec![0xaa; length];
            let written = value.write_with_options(&mut header);
            let expected = match length {
                0..IPV4_HEADER => Err(HeaderError::Truncated),
                20..=60 if length % 4 == 0 => Ok(()),
                _ => Err(HeaderError::OptionBeyondEnd),
            };
            assert_eq!(written, expected, "{length}");
            assert_eq!(written.is_err(), header.iter().all(|octet| *octet == 0xaa), "{length}");
        }
    }

    #[test]
    fn a_payload_that_does_not_fit_gives_the_longest_packet() {
        assert_eq!(Ipv4Header::new(HOST, HOST, 17, 65_515).length, 65_535);
        assert_eq!(Ipv4Header::new(HOST, HOST, 17, usize::MAX).length, 65_535);
    }

    proptest! {
        #[test]
        fn a_value_written_is_the_value_read(
            (tos, length, identification, flags) in any::<(u8, u16, u16, u16)>(),
            (ttl, protocol, source, destination) in any::<(u8, u8, u32, u32)>(),
        ) {
            let header = Ipv4Header {
                tos,
                length,
                identification,
                dont_fragment: flags & 0x4000 != 0,
                more_fragments: flags & 0x2000 != 0,
                offset: flags << 3,
                ttl,
                protocol,
                source: source.into(),
                destination: destination.into(),
            };
            prop_assert_eq!(Ipv4Header::read(&header.octets()), Ok(header));
            prop_assert_eq!(Sum::ZERO.bytes(&header.octets()).fold(), 0xffff);
        }

        #[test]
        fn a_header_with_options_of_any_kind_sums_to_all_ones(
            (length, identification, options) in any::<(u16, u16, [u8; 40])>(),
            words in 0_usize..=10,
        ) {
            let plain = Ipv4Header::new(HOST, HOST, protocol::UDP, 0);
            let value = Ipv4Header { length, identification, ..plain };
            let mut header = [&[0; IPV4_HEADER][..], &options[..4 * words]].concat();
            prop_assert_eq!(value.write_with_options(&mut header), Ok(()));
            prop_assert_eq!(Sum::ZERO.bytes(&header).fold(), 0xffff);
            prop_assert_eq!(Ipv4Header::split_quoted(&header), Ok((value, &[][..])));
        }

        #[test]
        fn octets_of_any_kind_are_read_or_refused(octets in any::<Vec<u8>>()) {
            if let Ok((header, payload)) = Ipv4Header::split(&octets) {
                prop_assert!(payload.len() + IPV4_HEADER <= usize::from(header.length));
            }
        }
    }
}
