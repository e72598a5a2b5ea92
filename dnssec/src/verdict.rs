//! What a validation comes to.

use crate::lookup::Lookup;
use crate::security::Security;

/// What a validation came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The answer's: that of its worst link.
    pub security: Security,
    /// Why it is not secure, as an INFO-CODE of RFC 8914 §4.
    pub extended_error: Option<u16>,
    /// A secure answer's records, and its proofs, hold no longer than this, in seconds from now: the original TTLs of its signatures and their
    /// ends (RFC 4035 §5.3.3).
    pub ttl_bound: Option<u32>,
    /// The records that were not believed, or were not to be had, if they are not the answer itself: asking for them elsewhere may help.
    pub blamed: Option<Lookup>,
    /// Signatures that were checked for it: they are what a validation costs.
    pub checks: u16,
}
