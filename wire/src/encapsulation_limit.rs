//! The Tunnel Encapsulation Limit (RFC 2473 §4.1.1), an option of IPv6's Destination Options header (RFC 8200 §4.6). A tunnel's entry puts
//! it alone into such a header, behind the outer IPv6 header, padded to 8 octets:
//!
//! ```text
//!  0               1               2               3
//! |  Next Header  | Hdr Ext Len 0 | Option Type 4 | Opt Data Len 1|
//! | Tun Encap Lim |    PadN 1     | Opt Data Len 1|       0       |
//! ```

use crate::HeaderError;

/// Octets of a Destination Options header that holds the limit alone.
pub const ENCAPSULATION_LIMIT_HEADER: usize = 8;
/// RFC 2473 §4.1.1: Tunnel Encapsulation Limit.
const OPTION: u8 = 4;
/// RFC 8200 §4.2: one octet of padding, which has no length.
const PAD1: u8 = 0;
/// RFC 8200 §4.2: padding with a length.
const PADN: u8 = 1;

/// A Destination Options header with a Tunnel Encapsulation Limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncapsulationLimit {
    /// Next Header.
    pub next_header: u8,
    /// How many further headers may be put in front of the packet; 0: it may not enter another tunnel.
    pub limit: u8,
}

impl EncapsulationLimit {
    /// Writes the header.
    #[inline(always)]
    pub const fn write(&self, octets: &mut [u8; ENCAPSULATION_LIMIT_HEADER]) {
        *octets = self.octets();
    }

    /// The header's octets.
    #[inline]
    pub const fn octets(&self) -> [u8; ENCAPSULATION_LIMIT_HEADER] {
        [self.next_header, 0, OPTION, 1, self.limit, PADN, 1, 0]
    }

    /// Reads a Destination Options header at the start of `octets`; `None` if it does not hold the option.
    ///
    /// Fails when octets of the header are missing, and when an option before the limit runs beyond the header's end.
    pub fn read(octets: &[u8]) -> Result<Option<Self>, HeaderError> {
        let at = Self::limit_at(octets)?;
        let value = at.and_then(|at| Some((*octets.first()?, *octets.get(at)?)));
        Ok(value.map(|(next_header, limit)| Self { next_header, limit }))
    }

    /// Where the limit is, in octets from the start of the Destination Options header: what the Parameter Problem about a limit of zero
    /// points at (RFC 2473 §4.1.1 b).
    ///
    /// Fails as [`EncapsulationLimit::read`] does.
    pub fn limit_at(octets: &[u8]) -> Result<Option<usize>, HeaderError> {
        let [_, length, ..] = *octets else { return Err(HeaderError::Truncated) };
        let header = octets.get(..(usize::from(length) + 1) * 8).ok_or(HeaderError::Truncated)?;
        let mut at = 2;
        while let Some([kind, rest @ ..]) = header.get(at..) {
            if *kind == PAD1 {
                at += 1;
                continue;
            }
            let [length, data @ ..] = rest else { return Err(HeaderError::OptionBeyondEnd) };
            if data.len() < usize::from(*length) {
                return Err(HeaderError::OptionBeyondEnd);
            }
            if (*kind, *length) == (OPTION, 1) {
                return Ok(Some(at + 2));
            }
            at += 2 + usize::from(*length);
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// The figure of RFC 2473 §4.1.1 in a header in front of an IPv6 packet, limit 4, the way Linux's `ip6tnl` pads it.
    const FOUR: [u8; 8] = [41, 0, 4, 1, 4, 1, 1, 0];

    #[test]
    fn the_option_is_read_and_written_as_rfc_2473_draws_it() {
        let limit = EncapsulationLimit { next_header: protocol::IPV6, limit: 4 };
        assert_eq!(limit.octets(), FOUR);
        assert_eq!(EncapsulationLimit::read(&FOUR), Ok(Some(limit)));
        assert_eq!(EncapsulationLimit::limit_at(&FOUR), Ok(Some(4)));
    }

    #[test]
    fn the_option_is_found_behind_padding_and_other_options() {
        let header = [60, 1, 0, 1, 1, 9, 0x1e, 2, 7, 7, 4, 1, 3, 0, 0, 0];
        assert_eq!(
            EncapsulationLimit::read(&header),
            Ok(Some(EncapsulationLimit { next_header: 60, limit: 3 }))
        );
        assert_eq!(EncapsulationLimit::limit_at(&header), Ok(Some(12)));
    }

    #[test]
    fn a_header_without_the_option_has_no_limit() {
        assert_eq!(EncapsulationLimit::read(&[41, 0, 1, 4, 0, 0, 0, 0]), Ok(None));
        assert_eq!(EncapsulationLimit::read(&[41, 0, 0, 0, 0, 0, 0, 0]), Ok(None));
        assert_eq!(EncapsulationLimit::read(&[41, 0, 4, 2, 1, 1, 0, 0]), Ok(None), "its data are one octet");
    }

    #[test]
    fn a_header_cut_anywhere_is_truncated_and_options_end_in_their_header() {
        for length in 0..FOUR.len() {
            assert_eq!(EncapsulationLimit::read(&FOUR[..length]), Err(HeaderError::Truncated), "{length}");
        }
        for header in [[41, 0, 1, 5, 0, 0, 0, 0], [41, 0, 0, 0, 0, 0, 0, 4], [41, 0, 0, 0, 0, 0, 4, 1]] {
            assert_eq!(EncapsulationLimit::read(&header), Err(HeaderError::OptionBeyondEnd));
        }
    }

    proptest! {
        #[test]
        fn a_value_written_is_the_value_read((next_header, limit) in any::<(u8, u8)>()) {
            let value = EncapsulationLimit { next_header, limit };
            let mut octets = [0; 8];
            value.write(&mut octets);
            prop_assert_eq!(EncapsulationLimit::read(&octets), Ok(Some(value)));
        }

        #[test]
        fn octets_of_any_kind_are_read_or_refused(octets in any::<Vec<u8>>()) {
            if let Ok(Some(at)) = EncapsulationLimit::limit_at(&octets) {
                prop_assert_eq!(&octets[at - 2..at], [4, 1]);
            }
        }
    }
}
