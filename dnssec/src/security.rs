//! The known data about an answer's authenticity.

/// The known data about an answer's authenticity (RFC 4035 §4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Security {
    /// Not validated.
    #[default]
    Unchecked,
    /// Signed, with a chain from a trust anchor.
    Secure,
    /// Proven not to be signed, or under no trust anchor.
    Insecure,
    /// It should be signed and is not, or the signature is wrong.
    Bogus,
    /// It cannot be determined.
    Indeterminate,
}
