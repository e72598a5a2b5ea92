//! Why something does not validate.

/// Why something does not validate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It ought to be signed and is not, or wrongly; with an INFO-CODE of RFC 8914 §4.
    Bogus(u16),
    /// To tell would be more work than any honest answer causes.
    Exhausted,
    /// What is needed to tell could not be had.
    Unanswered,
}

/// INFO-CODEs of RFC 8914 §4.
pub(super) mod info {
    /// Unsupported DNSKEY Algorithm.
    pub(in super::super) const ALGORITHM: u16 = 1;
    /// Unsupported DS Digest Type.
    pub(in super::super) const DIGEST: u16 = 2;
    /// DNSSEC Bogus.
    pub(in super::super) const BOGUS: u16 = 6;
    /// Signature Expired.
    pub(in super::super) const EXPIRED: u16 = 7;
    /// Signature Not Yet Valid.
    pub(in super::super) const NOT_YET_VALID: u16 = 8;
    /// DNSKEY Missing.
    pub(in super::super) const DNSKEY_MISSING: u16 = 9;
    /// RRSIGs Missing.
    pub(in super::super) const RRSIGS_MISSING: u16 = 10;
    /// NSEC Missing.
    pub(in super::super) const NSEC_MISSING: u16 = 12;
    /// No Reachable Authority.
    pub(in super::super) const UNREACHABLE: u16 = 22;
    /// Unsupported NSEC3 Iterations Value.
    pub(in super::super) const ITERATIONS: u16 = 27;
}

impl Fault {
    /// Its INFO-CODE.
    pub(super) fn extended_error(self) -> u16 {
        match self {
            Self::Bogus(code) => code,
            Self::Exhausted => info::BOGUS,
            Self::Unanswered => info::UNREACHABLE,
        }
    }
}
