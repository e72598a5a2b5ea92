//! Why a reply is rejected.

/// Why a reply is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Not a DNS response, or truncated without TC.
    Malformed,
    /// TC=1.
    Truncated,
    /// It answers another question.
    OtherQuestion,
    /// It is a referral (RFC 2308 §2.2).
    Referral,
    /// Its CNAME chain loops or is too long.
    EndlessChain,
    /// Its records contradict each other.
    Contradictory,
    /// With its names as they may be compressed here, it would be too large for a message.
    TooLarge,
}
