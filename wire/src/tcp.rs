//! TCP's fixed header (RFC 9293 §3.1):
//!
//! ```text
//!  0               1               2               3
//! |          Source Port          |        Destination Port       |
//! |                        Sequence Number                        |
//! |                     Acknowledgment Number                     |
//! |  Data |       |C|E|U|A|P|R|S|F|                               |
//! | Offset| Rsrvd |W|C|R|C|S|S|Y|I|            Window             |
//! |       |       |R|E|G|K|H|T|N|N|                               |
//! |           Checksum            |         Urgent Pointer        |
//! |                    Options (0 to 40 octets)                   |
//! ```

use crate::HeaderError;
use crate::checksum::{Sum, pseudo4, pseudo6};
use crate::protocol::TCP;
use core::net::{Ipv4Addr, Ipv6Addr};

/// Octets of the header without options.
pub const TCP_HEADER: usize = 20;

/// TCP's FIN flag.
pub const FIN: u8 = 0x01;
/// TCP's SYN flag.
pub const SYN: u8 = 0x02;
/// TCP's RST flag.
pub const RST: u8 = 0x04;
/// TCP's PSH flag.
pub const PSH: u8 = 0x08;
/// TCP's ACK flag.
pub const ACK: u8 = 0x10;
/// TCP's URG flag.
pub const URG: u8 = 0x20;
/// TCP's ECE flag (RFC 3168 §6.1).
pub const ECE: u8 = 0x40;
/// TCP's CWR flag (RFC 3168 §6.1).
pub const CWR: u8 = 0x80;

/// A TCP header without options, as a value; reserved bits are written as zero and not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpHeader {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Sequence Number.
    pub sequence: u32,
    /// Acknowledgment Number.
    pub acknowledgment: u32,
    /// Data Offset: 32-bit words of the header with its options, 5 to 15.
    pub data_offset: u8,
    /// The flags octet: CWR ECE URG ACK PSH RST SYN FIN.
    pub flags: u8,
    /// Window.
    pub window: u16,
    /// Checksum.
    pub checksum: u16,
    /// Urgent Pointer.
    pub urgent: u16,
}

impl TcpHeader {
    /// A header between these ports with these flags, without options: every other field is zero.
    pub const fn new(source: u16, destination: u16, flags: u8) -> Self {
        Self {
            source,
            destination,
            sequence: 0,
            acknowledgment: 0,
            data_offset: (TCP_HEADER / 4) as u8,
            flags,
            window: 0,
            checksum: 0,
            urgent: 0,
        }
    }

    /// The same with its checksum, between these IPv4 addresses and in front of `rest`: options and data.
    #[must_use]
    pub fn with_checksum4(self, source: Ipv4Addr, destination: Ipv4Addr, rest: &[u8]) -> Self {
        let length = TCP_HEADER.saturating_add(rest.len()) as u32;
        self.with_checksum(pseudo4(source, destination, TCP, length), rest)
    }

    /// The same with its checksum, between these IPv6 addresses and in front of `rest`: options and data.
    #[must_use]
    pub fn with_checksum6(self, source: Ipv6Addr, destination: Ipv6Addr, rest: &[u8]) -> Self {
        let length = TCP_HEADER.saturating_add(rest.len()) as u32;
        self.with_checksum(pseudo6(source, destination, TCP, length), rest)
    }

    fn with_checksum(self, pseudo: Sum, rest: &[u8]) -> Self {
        let bare = Self { checksum: 0, ..self };
        Self { checksum: pseudo.bytes(&bare.octets()).bytes(rest).checksum(), ..self }
    }

    /// Writes the header.
    #[inline(always)]
    pub fn write(&self, octets: &mut [u8; TCP_HEADER]) {
        let ports = u32::from(self.source) << 16 | u32::from(self.destination);
        let front = u64::from(ports) << 32 | u64::from(self.sequence);
        let middle = u64::from(self.acknowledgment) << 32
            | u64::from(self.data_offset & 15) << 28
            | u64::from(self.flags) << 16
            | u64::from(self.window);
        let back = u32::from(self.checksum) << 16 | u32::from(self.urgent);
        octets[0..8].copy_from_slice(&front.to_be_bytes());
        octets[8..16].copy_from_slice(&middle.to_be_bytes());
        octets[16..20].copy_from_slice(&back.to_be_bytes());
    }

    /// The header's octets.
    #[inline]
    pub fn octets(&self) -> [u8; TCP_HEADER] {
        let mut octets = [0; TCP_HEADER];
        self.write(&mut octets);
        octets
    }

    /// Reads the fixed header at the start of `octets`. The checksum is not verified.
    ///
    /// Fails when octets are missing, and when Data Offset is less than 5.
    #[inline]
    pub fn read(octets: &[u8]) -> Result<Self, HeaderError> {
        let header = octets.first_chunk::<TCP_HEADER>().ok_or(HeaderError::Truncated)?;
        if header[12] >> 4 < 5 {
            return Err(HeaderError::LengthTooSmall);
        }
        Ok(Self {
            source: u16::from_be_bytes([header[0], header[1]]),
            destination: u16::from_be_bytes([header[2], header[3]]),
            sequence: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
            acknowledgment: u32::from_be_bytes([header[8], header[9], header[10], header[11]]),
            data_offset: header[12] >> 4,
            flags: header[13],
            window: u16::from_be_bytes([header[14], header[15]]),
            checksum: u16::from_be_bytes([header[16], header[17]]),
            urgent: u16::from_be_bytes([header[18], header[19]]),
        })
    }

    /// Reads the header of a segment: the header, and the data behind its options.
    ///
    /// Fails as [`TcpHeader::read`] does, and when the options are not all there.
    #[inline]
    pub fn split(segment: &[u8]) -> Result<(Self, &[u8]), HeaderError> {
        let header = Self::read(segment)?;
        Ok((header, segment.get(usize::from(header.data_offset) * 4..).ok_or(HeaderError::Truncated)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// From 192.0.2.1 to 192.0.2.2, as Linux sent it; with MSS, SACK permitted, timestamps and window scale.
    const OVER_IPV4: [u8; 40] = [
        0x9c, 0x40, 0x1f, 0x90, 0x64, 0xef, 0x82, 0x70, 0x00, 0x00, 0x00, 0x00, 0xa0, 0x02, 0xfa, 0xf0, 0xca,
        0xfb, 0x00, 0x00, 0x02, 0x04, 0x05, 0xb4, 0x04, 0x02, 0x08, 0x0a, 0x33, 0x7c, 0x27, 0x60, 0x00, 0x00,
        0x00, 0x00, 0x01, 0x03, 0x03, 0x0a,
    ];
    /// From 2001:db8::1 to 2001:db8::2, as Linux sent it.
    const OVER_IPV6: [u8; 40] = [
        0x9c, 0x40, 0x1f, 0x90, 0x63, 0x06, 0xf8, 0xda, 0x00, 0x00, 0x00, 0x00, 0xa0, 0x02, 0xfd, 0x20, 0xff,
        0x31, 0x00, 0x00, 0x02, 0x04, 0x05, 0xa0, 0x04, 0x02, 0x08, 0x0a, 0xab, 0xa7, 0x2c, 0xf0, 0x00, 0x00,
        0x00, 0x00, 0x01, 0x03, 0x03, 0x0a,
    ];

    #[test]
    fn segments_that_linux_sent_are_read_and_written_alike() {
        let syn = TcpHeader { data_offset: 10, ..TcpHeader::new(40_000, 8_080, SYN) };
        let [here, there] = [1, 2].map(|host| Ipv4Addr::new(192, 0, 2, host));
        let four = TcpHeader { sequence: 0x64ef_8270, window: 64_240, ..syn };
        let four = four.with_checksum4(here, there, &OVER_IPV4[20..]);
        assert_eq!(TcpHeader::split(&OVER_IPV4), Ok((four, &[][..])));
        assert_eq!(four.octets(), OVER_IPV4[..20]);
        let [here, there] = [1, 2].map(|host| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host));
        let six = TcpHeader { sequence: 0x6306_f8da, window: 64_800, ..syn };
        let six = six.with_checksum6(here, there, &OVER_IPV6[20..]);
        assert_eq!(TcpHeader::split(&OVER_IPV6), Ok((six, &[][..])));
        assert_eq!(six.octets(), OVER_IPV6[..20]);
    }

    #[test]
    fn a_segment_cut_anywhere_in_its_header_is_truncated() {
        for length in 0..OVER_IPV4.len() {
            assert_eq!(TcpHeader::split(&OVER_IPV4[..length]), Err(HeaderError::Truncated), "{length}");
        }
    }

    #[test]
    fn a_data_offset_less_than_the_header_is_refused() {
        let mut segment = OVER_IPV4;
        segment[12] = 0x40;
        assert_eq!(TcpHeader::read(&segment), Err(HeaderError::LengthTooSmall));
    }

    proptest! {
        #[test]
        fn a_value_written_is_the_value_read(
            (source, destination, sequence, acknowledgment) in any::<(u16, u16, u32, u32)>(),
            (flags, window, checksum, urgent) in any::<(u8, u16, u16, u16)>(),
            data_offset in 5_u8..16,
        ) {
            let header = TcpHeader {
                source, destination, sequence, acknowledgment, data_offset, flags, window, checksum, urgent,
            };
            prop_assert_eq!(TcpHeader::read(&header.octets()), Ok(header));
        }

        #[test]
        fn octets_of_any_kind_are_read_or_refused(octets in any::<Vec<u8>>()) {
            if let Ok((header, data)) = TcpHeader::split(&octets) {
                prop_assert_eq!(data.len() + usize::from(header.data_offset) * 4, octets.len());
            }
        }
    }
}
