//! UDP (RFC 768):
//!
//! ```text
//!  0               1               2               3
//! |          Source Port          |        Destination Port       |
//! |            Length             |            Checksum           |
//! ```

use crate::HeaderError;
use crate::checksum::{Sum, pseudo4, pseudo6};
use crate::protocol::UDP;
use core::net::{Ipv4Addr, Ipv6Addr};

/// Octets of the header.
pub const UDP_HEADER: usize = 8;

/// A UDP header as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpHeader {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Length in octets, this header included.
    pub length: u16,
    /// Checksum; 0: no checksum.
    pub checksum: u16,
}

impl UdpHeader {
    /// The header of a datagram with `data` octets of data and without a checksum. Where they do not fit, Length is 65,535.
    pub const fn new(source: u16, destination: u16, data: usize) -> Self {
        let length = UDP_HEADER.saturating_add(data);
        Self {
            source,
            destination,
            length: if length > 0xffff { 0xffff } else { length as u16 },
            checksum: 0,
        }
    }

    /// The same with its checksum, between these IPv4 addresses and in front of `data`.
    #[must_use]
    pub fn with_checksum4(self, source: Ipv4Addr, destination: Ipv4Addr, data: &[u8]) -> Self {
        self.with_checksum(pseudo4(source, destination, UDP, self.length.into()), data)
    }

    /// The same with its checksum, between these IPv6 addresses and in front of `data`.
    #[must_use]
    pub fn with_checksum6(self, source: Ipv6Addr, destination: Ipv6Addr, data: &[u8]) -> Self {
        self.with_checksum(pseudo6(source, destination, UDP, self.length.into()), data)
    }

    fn with_checksum(self, pseudo: Sum, data: &[u8]) -> Self {
        let bare = Self { checksum: 0, ..self };
        Self { checksum: pseudo.bytes(&bare.octets()).bytes(data).checksum_nonzero(), ..self }
    }

    /// Writes the header.
    #[inline(always)]
    pub fn write(&self, octets: &mut [u8; UDP_HEADER]) {
        let all = u64::from(self.source) << 48
            | u64::from(self.destination) << 32
            | u64::from(self.length) << 16
            | u64::from(self.checksum);
        *octets = all.to_be_bytes();
    }

    /// The header's octets.
    #[inline]
    pub fn octets(&self) -> [u8; UDP_HEADER] {
        let mut octets = [0; UDP_HEADER];
        self.write(&mut octets);
        octets
    }

    /// Reads the header at the start of `octets`. The checksum is not verified.
    ///
    /// Fails when octets are missing, and when Length is less than the header's own.
    #[inline]
    pub fn read(octets: &[u8]) -> Result<Self, HeaderError> {
        let [a, b, c, d, e, f, g, h] = *octets.first_chunk::<UDP_HEADER>().ok_or(HeaderError::Truncated)?;
        let length = u16::from_be_bytes([e, f]);
        if usize::from(length) < UDP_HEADER {
            return Err(HeaderError::LengthTooSmall);
        }
        Ok(Self {
            source: u16::from_be_bytes([a, b]),
            destination: u16::from_be_bytes([c, d]),
            length,
            checksum: u16::from_be_bytes([g, h]),
        })
    }

    /// Reads the header of a whole datagram: the header, and its data. Octets behind Length are padding.
    ///
    /// Fails as [`UdpHeader::read`] does, and when the datagram is cut short.
    #[inline]
    pub fn split(datagram: &[u8]) -> Result<(Self, &[u8]), HeaderError> {
        let header = Self::read(datagram)?;
        Ok((header, datagram.get(UDP_HEADER..usize::from(header.length)).ok_or(HeaderError::Truncated)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// From 192.0.2.1 to 192.0.2.2, as Linux sent it.
    const OVER_IPV4: [u8; 13] =
        [0x0f, 0xa0, 0x00, 0x35, 0x00, 0x0d, 0x28, 0x29, 0x68, 0x65, 0x6c, 0x6c, 0x6f];
    /// From 2001:db8::1 to 2001:db8::2, as Linux sent it.
    const OVER_IPV6: [u8; 13] =
        [0x0f, 0xa0, 0x00, 0x35, 0x00, 0x0d, 0x50, 0xb8, 0x68, 0x65, 0x6c, 0x6c, 0x6f];

    #[test]
    fn datagrams_that_linux_sent_are_read_and_written_alike() {
        let plain = UdpHeader::new(4_000, 53, 5);
        let [here, there] = [1, 2].map(|host| Ipv4Addr::new(192, 0, 2, host));
        let four = plain.with_checksum4(here, there, b"hello");
        assert_eq!(UdpHeader::split(&OVER_IPV4), Ok((four, &b"hello"[..])));
        assert_eq!(four.octets(), OVER_IPV4[..8]);
        let [here, there] = [1, 2].map(|host| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host));
        let six = plain.with_checksum6(here, there, b"hello");
        assert_eq!(UdpHeader::split(&OVER_IPV6), Ok((six, &b"hello"[..])));
        assert_eq!(six.octets(), OVER_IPV6[..8]);
    }

    #[test]
    fn a_checksum_of_zero_is_written_as_all_ones() {
        let (here, there) = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);
        // Pseudo-header and header sum to 17 + 10 + 10; the data fill it up to 0xffff.
        let data = (0xffff_u16 - 37).to_be_bytes();
        assert_eq!(UdpHeader::new(0, 0, 2).with_checksum4(here, there, &data).checksum, 0xffff);
    }

    #[test]
    fn a_checksum_that_was_there_does_not_count() {
        let (here, there) = (Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST);
        let once = UdpHeader::new(1, 2, 4).with_checksum4(here, there, b"data");
        assert_eq!(once.with_checksum4(here, there, b"data"), once);
    }

    #[test]
    fn a_datagram_cut_anywhere_is_truncated_and_padding_is_not_part_of_it() {
        for length in 0..OVER_IPV4.len() {
            assert_eq!(UdpHeader::split(&OVER_IPV4[..length]), Err(HeaderError::Truncated), "{length}");
        }
        let padded = [&OVER_IPV4[..], &[0; 5]].concat();
        assert_eq!(UdpHeader::split(&padded).map(|(_, data)| data), Ok(&b"hello"[..]));
    }

    #[test]
    fn a_length_less_than_the_headers_is_refused() {
        let mut datagram = OVER_IPV4;
        datagram[5] = 7;
        assert_eq!(UdpHeader::read(&datagram), Err(HeaderError::LengthTooSmall));
    }

    #[test]
    fn data_that_do_not_fit_give_the_longest_datagram() {
        assert_eq!(UdpHeader::new(1, 2, 65_527).length, 65_535);
        assert_eq!(UdpHeader::new(1, 2, usize::MAX).length, 65_535);
    }

    proptest! {
        #[test]
        fn a_value_written_is_the_value_read(
            (source, destination, checksum) in any::<(u16, u16, u16)>(),
            length in 8_u16..,
        ) {
            let header = UdpHeader { source, destination, length, checksum };
            prop_assert_eq!(UdpHeader::read(&header.octets()), Ok(header));
        }

        #[test]
        fn octets_of_any_kind_are_read_or_refused(octets in any::<Vec<u8>>()) {
            if let Ok((header, data)) = UdpHeader::split(&octets) {
                prop_assert_eq!(data.len() + UDP_HEADER, usize::from(header.length));
            }
        }
    }
}
