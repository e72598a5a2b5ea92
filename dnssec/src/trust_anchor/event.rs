//! Events of a trust anchor, for the log.

use crate::wire::Wire;
use domain::base::Name;
use std::fmt;

/// Something happened to a key of a trust point, or to all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The trust point.
    pub zone: Wire,
    /// The key's tag (RFC 4034 Appendix B), without the mark of a revocation; 0 where no single key is meant.
    pub tag: u16,
    /// What happened.
    pub change: Change,
}

/// What happens to a key (RFC 5011 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// NewKey: it has been seen for the first time, and waits.
    Pending,
    /// AddTime: it is trusted from now on.
    Accepted,
    /// KeyRem, before it was trusted: it is forgotten.
    Forgotten,
    /// All keys that had signed it are revoked (§2.2): it waits again.
    WaitsAnew,
    /// KeyRem: it is no longer published, and still trusted.
    Missing,
    /// KeyPres: it is published again.
    Returned,
    /// RevBit: it is no longer trusted.
    Revoked,
    /// RemTime: only its name is kept.
    Removed,
    /// §5: all keys of the trust point are revoked; nothing below it is secure by it.
    Deleted,
    /// No trusted key has signed the published keys.
    Unverified,
    /// No usable reply came.
    Unanswered,
    /// A new key was not noted: the table of the trust point's keys is full.
    TableFull,
}

impl Change {
    const fn text(self) -> &'static str {
        match self {
            Self::Pending => "is new; it will be trusted after 30 days",
            Self::Accepted => "has been published for 30 days; it is now trusted",
            Self::Forgotten => "was withdrawn before it was trusted",
            Self::WaitsAnew => "was signed by keys that are now revoked; its 30 days start again",
            Self::Missing => "is no longer published; it is still trusted",
            Self::Returned => "is published again",
            Self::Revoked => "is revoked; it is no longer trusted",
            Self::Removed => "was revoked and is removed",
            Self::Deleted => "all trust anchors are revoked; the zone is no longer validated",
            Self::Unverified => "the published keys are not signed by a trust anchor",
            Self::Unanswered => "the keys could not be fetched; the trust anchors may become outdated",
            Self::TableFull => "is new, but the trust point has too many keys; it is ignored",
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "zone {}: ", presentation(&self.zone))?;
        match self.change {
            Change::Deleted | Change::Unverified | Change::Unanswered => f.write_str(self.change.text()),
            Change::Pending
            | Change::Accepted
            | Change::Forgotten
            | Change::WaitsAnew
            | Change::Missing
            | Change::Returned
            | Change::Revoked
            | Change::Removed
            | Change::TableFull => write!(f, "key {} {}", self.tag, self.change.text()),
        }
    }
}

/// A name as it is written, with its last dot.
pub(super) fn presentation(name: &Wire) -> String {
    let read = Name::from_octets(&name.0[..]);
    read.map_or_else(|_| ".".to_owned(), |name| name.fmt_with_dot().to_string())
}
