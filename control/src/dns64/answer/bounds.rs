//! What a reply is bounded by.

/// What a reply is bounded by, and how it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// It was asked for with DO=1: DNSSEC records are kept.
    pub dnssec_ok: bool,
    /// The longest TTL that is believed, in seconds.
    pub longest_ttl: u32,
    /// The longest that "no" is believed, in seconds.
    pub longest_negative_ttl: u32,
    /// How long a failure is kept, and a "no" without SOA record, in seconds (RFC 9520 §3.2: 1 s to 5 min).
    pub failure_ttl: u32,
}
