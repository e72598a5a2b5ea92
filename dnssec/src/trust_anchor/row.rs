//! A key or a digest as it is shown.

/// A key or a digest, for `sixway show`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The trust point, as it is written.
    pub zone: String,
    /// The key's tag (RFC 4034 Appendix B).
    pub tag: u16,
    /// Its algorithm (RFC 4034 §2.1.3).
    pub algorithm: u8,
    /// `pending`, `valid`, `missing`, `revoked`, `removed`, or `unseen` for a digest whose key has not been seen.
    pub state: &'static str,
    /// When the state began, in Unix seconds, as far as that matters.
    pub since: Option<u64>,
    /// The operator wrote it, or the gateway has it built in.
    pub configured: bool,
}
