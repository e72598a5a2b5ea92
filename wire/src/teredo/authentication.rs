//! The authentication encapsulation (RFC 4380 §5.1.1):
//!
//! ```text
//! |  0x00  |  0x01  |  ID-len  |  AU-len  |
//! |  Client identifier (ID-len octets)    |
//! |  Authentication value (AU-len octets) |
//! |  Nonce (8 octets)         |   Conf.   |
//! ```

use crate::HeaderError;

/// Octets of one without identifier and value.
const SHORTEST: usize = 13;

/// An authentication encapsulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authentication<'a> {
    /// The client identifier.
    pub client: &'a [u8],
    /// The authentication value (RFC 4380 §5.2.2).
    pub value: &'a [u8],
    /// What the client chose, and the server repeats.
    pub nonce: [u8; 8],
    /// Confirmation: 0 as long as the client's key is valid.
    pub confirmation: u8,
}

impl<'a> Authentication<'a> {
    /// Octets of it.
    pub const fn len(&self) -> usize {
        SHORTEST + self.client.len() + self.value.len()
    }

    /// Whether it contains nothing, which is never so.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Writes it at the start of `octets`, and returns how many octets it has; `None`: no room, or a field is longer than 255 octets.
    pub fn write(&self, octets: &mut [u8]) -> Option<usize> {
        let lengths = [u8::try_from(self.client.len()).ok()?, u8::try_from(self.value.len()).ok()?];
        let room = octets.get_mut(..self.len())?;
        let (head, rest) = room.split_at_mut_checked(4)?;
        head.copy_from_slice(&[0, 1, lengths[0], lengths[1]]);
        let (client, rest) = rest.split_at_mut_checked(self.client.len())?;
        client.copy_from_slice(self.client);
        let (value, rest) = rest.split_at_mut_checked(self.value.len())?;
        value.copy_from_slice(self.value);
        let (nonce, confirmation) = rest.split_at_mut_checked(8)?;
        nonce.copy_from_slice(&self.nonce);
        confirmation.copy_from_slice(&[self.confirmation]);
        Some(self.len())
    }

    /// Reads one at the start of `octets`; `None`: something else stands there. Fails when octets are missing.
    pub fn read(octets: &'a [u8]) -> Result<Option<Self>, HeaderError> {
        let [0, 1, rest @ ..] = octets else { return Ok(None) };
        let [client_length, value_length, rest @ ..] = rest else { return Err(HeaderError::Truncated) };
        let (client, rest) =
            rest.split_at_checked(usize::from(*client_length)).ok_or(HeaderError::Truncated)?;
        let (value, rest) =
            rest.split_at_checked(usize::from(*value_length)).ok_or(HeaderError::Truncated)?;
        let (nonce, rest) = rest.split_first_chunk::<8>().ok_or(HeaderError::Truncated)?;
        let [confirmation, ..] = *rest else { return Err(HeaderError::Truncated) };
        Ok(Some(Self { client, value, nonce: *nonce, confirmation }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn one_without_identifier_is_the_nonce_alone() {
        let octets = [0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0];
        let read =
            Authentication { client: &[], value: &[], nonce: [1, 2, 3, 4, 5, 6, 7, 8], confirmation: 0 };
        assert_eq!(Authentication::read(&octets), Ok(Some(read)));
        for length in 2..octets.len() {
            assert_eq!(Authentication::read(&octets[..length]), Err(HeaderError::Truncated));
        }
        assert_eq!(Authentication::read(&[0, 0]), Ok(None));
        assert_eq!(Authentication::read(&[]), Ok(None));
    }

    proptest! {
        #[test]
        fn a_value_written_is_the_value_read(
            client in proptest::collection::vec(any::<u8>(), 0..=255),
            value in proptest::collection::vec(any::<u8>(), 0..=255),
            nonce in any::<[u8; 8]>(),
            confirmation in any::<u8>(),
        ) {
            let written = Authentication { client: &client, value: &value, nonce, confirmation };
            let mut octets = [0; 13 + 510];
            let length = written.write(&mut octets).unwrap();
            prop_assert_eq!(length, written.len());
            prop_assert_eq!(Authentication::read(&octets[..length]), Ok(Some(written)));
            prop_assert_eq!(written.write(&mut octets[..length - 1]), None);
        }

        #[test]
        fn octets_of_any_kind_are_read_or_refused(octets in any::<Vec<u8>>()) {
            if let Ok(Some(read)) = Authentication::read(&octets) {
                prop_assert!(read.len() <= octets.len());
            }
        }
    }
}
