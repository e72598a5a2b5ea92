//! INFO-CODEs of extended DNS errors (RFC 8914 §4).

/// RFC 8914 §4.4: Stale Answer.
pub(super) const STALE_ANSWER: u16 = 3;
/// RFC 8914 §4.20: Stale NXDOMAIN Answer.
pub(super) const STALE_NXDOMAIN: u16 = 19;
/// RFC 8914 §4.1: Other.
pub(super) const OTHER: u16 = 0;
/// RFC 8914 §4.6: DNSSEC Indeterminate.
pub(super) const INDETERMINATE: u16 = 5;
/// RFC 8914 §4.7: DNSSEC Bogus.
pub(super) const BOGUS: u16 = 6;
/// RFC 8914 §4.19: Prohibited.
pub(super) const PROHIBITED: u16 = 18;
/// RFC 8914 §4.21: Not Authoritative, for a query without RD.
pub(super) const NOT_AUTHORITATIVE: u16 = 20;
/// RFC 8914 §4.22: Not Supported.
pub(super) const NOT_SUPPORTED: u16 = 21;
/// RFC 8914 §4.23: No Reachable Authority.
pub(super) const NO_REACHABLE_AUTHORITY: u16 = 22;
/// RFC 8914 §4.24: Network Error.
pub(super) const NETWORK_ERROR: u16 = 23;

/// What an upstream says of its answer, and what is then true of ours: Stale Answer, Forged Answer, Blocked, Censored, Filtered, Stale NXDOMAIN
/// Answer, Synthesized (RFC 8914 §4 and its registry). What it says of our query or of itself is not the client's.
pub(super) const PASSED_ON: [u16; 7] = [STALE_ANSWER, 4, 15, 16, 17, STALE_NXDOMAIN, 29];
