//! Why a reply is not believed.

/// Why a reply is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disbelieved {
    /// It is no DNS response, or cut off.
    Malformed,
    /// TC=1.
    Truncated,
    /// It answers another question.
    OtherQuestion,
    /// It sends us elsewhere (RFC 2308 §2.2).
    Referral,
    /// Its CNAME records lead in a circle, or on and on.
    EndlessChain,
    /// Its records contradict each other.
    Contradictory,
    /// With its names as they may be compressed here, it would be too large for a message.
    TooLarge,
}
