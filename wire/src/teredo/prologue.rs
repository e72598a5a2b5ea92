//! What is in front of the IPv6 packet in a Teredo datagram: an authentication encapsulation, an origin indication, both in this order, or
//! nothing (RFC 4380 §5.1.1).

use super::authentication::Authentication;
use super::origin::{ORIGIN_INDICATION, Origin};
use crate::HeaderError;

/// The encapsulations in front of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prologue<'a> {
    /// Authentication.
    pub authentication: Option<Authentication<'a>>,
    /// Origin indication.
    pub origin: Option<Origin>,
}

impl<'a> Prologue<'a> {
    /// Reads them, and returns what follows.
    ///
    /// Fails when octets are missing. What follows may be anything: the caller parses it as an IPv6 packet.
    #[inline]
    pub fn split(octets: &'a [u8]) -> Result<(Self, &'a [u8]), HeaderError> {
        // Nearly every datagram is a packet alone.
        if octets.first() != Some(&0) {
            return Ok((Self::default(), octets));
        }
        let authentication = Authentication::read(octets)?;
        let skipped = authentication.as_ref().map_or(0, Authentication::len);
        let rest = octets.get(skipped..).ok_or(HeaderError::Truncated)?;
        let origin = Origin::read(rest)?;
        let skipped = if origin.is_some() { ORIGIN_INDICATION } else { 0 };
        let rest = rest.get(skipped..).ok_or(HeaderError::Truncated)?;
        Ok((Self { authentication, origin }, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endpoint4;
    use core::net::Ipv4Addr;
    use proptest::prelude::*;
    use std::vec::Vec;

    const ORIGIN: Origin = Origin(Endpoint4 { address: Ipv4Addr::new(192, 0, 2, 1), port: 40_000 });
    const AUTHENTICATION: Authentication<'_> =
        Authentication { client: b"c", value: &[7; 20], nonce: [9; 8], confirmation: 1 };

    fn octets(authentication: bool, origin: bool) -> Vec<u8> {
        let mut octets = Vec::new();
        if authentication {
            octets.resize(AUTHENTICATION.len(), 0);
            AUTHENTICATION.write(&mut octets).unwrap();
        }
        if origin {
            octets.extend(ORIGIN.octets());
        }
        octets.extend([0x60, 1, 2]);
        octets
    }

    #[test]
    fn each_of_the_four_forms_is_read() {
        for (authentication, origin) in [(false, false), (true, false), (false, true), (true, true)] {
            let octets = octets(authentication, origin);
            let (prologue, rest) = Prologue::split(&octets).unwrap();
            assert_eq!(prologue.authentication, authentication.then_some(AUTHENTICATION));
            assert_eq!(prologue.origin, origin.then_some(ORIGIN));
            assert_eq!(rest, [0x60, 1, 2]);
        }
    }

    #[test]
    fn an_origin_in_front_of_the_authentication_is_no_part_of_the_prologue() {
        let mut octets = ORIGIN.octets().to_vec();
        octets.extend(self::octets(true, false));
        let (prologue, rest) = Prologue::split(&octets).unwrap();
        assert_eq!((prologue.origin, prologue.authentication), (Some(ORIGIN), None));
        assert_eq!(rest[..2], [0, 1], "which is no IPv6 packet");
    }

    proptest! {
        #[test]
        fn octets_of_any_kind_are_split_or_refused(octets in any::<Vec<u8>>()) {
            if let Ok((_, rest)) = Prologue::split(&octets) {
                prop_assert!(octets.ends_with(rest));
            }
        }
    }
}
