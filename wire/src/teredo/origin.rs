//! The origin indication (RFC 4380 §5.1.1), which a server puts in front of what it forwards:
//!
//! ```text
//! |  0x00  |  0x00  |  Origin port   |
//! |       Origin IPv4 address        |     the bits of both are inverted
//! ```

use crate::{Endpoint4, HeaderError};
use core::net::Ipv4Addr;

/// Octets of an origin indication.
pub const ORIGIN_INDICATION: usize = 8;

/// From where a server received a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(pub Endpoint4);

impl Origin {
    /// Its octets.
    pub const fn octets(self) -> [u8; ORIGIN_INDICATION] {
        let [high, low] = (!self.0.port).to_be_bytes();
        let [a, b, c, d] = (!self.0.address.to_bits()).to_be_bytes();
        [0, 0, high, low, a, b, c, d]
    }

    /// Reads one at the start of `octets`; `None`: something else stands there. Fails when octets are missing.
    pub fn read(octets: &[u8]) -> Result<Option<Self>, HeaderError> {
        match *octets {
            [0, 0, high, low, a, b, c, d, ..] => {
                let address = Ipv4Addr::from_bits(!u32::from_be_bytes([a, b, c, d]));
                Ok(Some(Self(Endpoint4::new(address, !u16::from_be_bytes([high, low])))))
            }
            [0, 0, ..] => Err(HeaderError::Truncated),
            [..] => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_4380_is_read_and_written() {
        let origin = Origin(Endpoint4::new(Ipv4Addr::new(1, 2, 3, 4), 337));
        let octets = [0, 0, 0xfe, 0xae, 0xfe, 0xfd, 0xfc, 0xfb];
        assert_eq!(origin.octets(), octets);
        assert_eq!(Origin::read(&octets), Ok(Some(origin)));
        for length in 2..octets.len() {
            assert_eq!(Origin::read(&octets[..length]), Err(HeaderError::Truncated));
        }
        assert_eq!(Origin::read(&[0, 1, 0, 0, 0, 0, 0, 0]), Ok(None));
        assert_eq!(Origin::read(&[0x60; 8]), Ok(None));
    }
}
