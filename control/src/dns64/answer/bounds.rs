//! Limits applied to a reply.

/// The limits applied to a reply, and how it was queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// It was queried with DO=1: DNSSEC records are kept.
    pub dnssec_ok: bool,
    /// Maximum TTL, in seconds.
    pub longest_ttl: u32,
    /// Maximum TTL of negative answers, in seconds.
    pub longest_negative_ttl: u32,
    /// How long failures, and negative answers without an SOA record, are kept, in seconds (RFC 9520 §3.2: 1 s to 5 min).
    pub failure_ttl: u32,
    /// Octets of the name of the zone that the upstream is responsible for, which the question's name ends with; 1: the root.
    pub zone: u8,
}
