//! The result of a validation.

use crate::lookup::Lookup;
use crate::security::Security;

/// The result of a validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The answer's: that of its worst link.
    pub security: Security,
    /// Why it is not secure, as an INFO-CODE of RFC 8914 §4.
    pub extended_error: Option<u16>,
    /// A secure answer's records, and its proofs, hold no longer than this, in seconds from now: the original TTLs of its signatures and their
    /// ends (RFC 4035 §5.3.3).
    pub ttl_bound: Option<u32>,
    /// The records that were not valid, or not available, if they are not the answer itself: another upstream may have them.
    pub blamed: Option<Lookup>,
    /// Signatures that were checked for it: the cost of the validation.
    pub checks: u16,
}
