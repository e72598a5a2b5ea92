//! How much work one answer may cause. Without such bounds a zone made for it keeps a validator busy for minutes (KeyTrap, CVE-2023-50387;
//! NSEC3's, CVE-2023-50868).

use super::fault::Fault;

/// Keys of one zone.
pub(super) const KEYS: usize = 32;
/// Keys of one zone with the same tag and algorithm.
pub(super) const KEYS_OF_A_TAG: usize = 4;
/// DS records of one delegation.
pub(super) const DIGESTS: usize = 16;
/// Links of a chain of CNAME and DNAME records, and what is at its end.
pub const MOST_LINKS: usize = 17;
/// What is kept of delegations: names, of some 200 octets each.
pub(super) const CUTS: usize = 16_384;
/// RFC 9276 §3.2: zones with more iterations count as unsigned.
pub(super) const ITERATIONS: u16 = 100;

/// What is left of the work that a validation may cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Work {
    /// Signatures checked, of this message and of all that are looked up for it.
    checks: u16,
    /// Checks that failed: an honest zone causes next to none.
    failures: u16,
    /// NSEC3 hashes, each of up to [`ITERATIONS`].
    hashes: u16,
    /// DS and DNSKEY records looked up.
    lookups: u16,
}

impl Default for Work {
    fn default() -> Self {
        Self { checks: 160, failures: 16, hashes: 256, lookups: 80 }
    }
}

/// Takes one, if there is one.
fn take(left: &mut u16) -> Result<(), Fault> {
    *left = left.checked_sub(1).ok_or(Fault::Exhausted)?;
    Ok(())
}

impl Work {
    /// A signature is going to be checked.
    pub(super) fn check(&mut self) -> Result<(), Fault> {
        if self.failures == 0 {
            return Err(Fault::Exhausted);
        }
        take(&mut self.checks)
    }

    /// Signatures checked so far.
    pub(super) fn checked(&self) -> u16 {
        Self::default().checks - self.checks
    }

    /// It was wrong.
    pub(super) fn failed(&mut self) -> Result<(), Fault> {
        take(&mut self.failures)
    }

    /// A name is going to be hashed.
    pub(super) fn hash(&mut self) -> Result<(), Fault> {
        take(&mut self.hashes)
    }

    /// Something is going to be looked up.
    pub(super) fn lookup(&mut self) -> Result<(), Fault> {
        take(&mut self.lookups)
    }
}
