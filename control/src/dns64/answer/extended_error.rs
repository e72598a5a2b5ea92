//! Extended DNS errors (RFC 8914).

/// What went wrong, in more detail than an RCODE (RFC 8914).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtendedError {
    /// INFO-CODE.
    pub code: u16,
    /// EXTRA-TEXT.
    pub text: Box<str>,
}
