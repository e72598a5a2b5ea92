//! The known data about one key (RFC 5011 §4.2).

use super::dnskey::Dnskey;

/// A key's state. Times are Unix seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// AddPend: it waits, and is not trusted yet.
    Pending {
        /// When it was first seen.
        since: u64,
        /// The add hold-down time (§2.4.1), in seconds.
        wait: u64,
        /// The numbers of the keys that signed the RRset in which it was first seen (§2.2).
        by: Vec<u32>,
    },
    /// It is trusted.
    Valid,
    /// It is trusted, but not published.
    Missing {
        /// When it was first seen to be missing.
        since: u64,
    },
    /// It will never be trusted again.
    Revoked {
        /// When it was last published.
        since: u64,
    },
    /// As `Revoked`, and no longer published for a long time.
    Removed,
}

impl State {
    /// Its name in text.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::Valid => "valid",
            Self::Missing { .. } => "missing",
            Self::Revoked { .. } => "revoked",
            Self::Removed => "removed",
        }
    }

    /// When it began, as far as that matters.
    pub(super) const fn since(&self) -> Option<u64> {
        match self {
            Self::Pending { since, .. } | Self::Missing { since } | Self::Revoked { since } => Some(*since),
            Self::Valid | Self::Removed => None,
        }
    }

    /// Whether a key in this state is a trust anchor.
    pub(super) const fn is_believed(&self) -> bool {
        match self {
            Self::Valid | Self::Missing { .. } => true,
            Self::Pending { .. } | Self::Revoked { .. } | Self::Removed => false,
        }
    }

    /// Whether a key in this state can never be a trust anchor again.
    pub(super) const fn is_over(&self) -> bool {
        match self {
            Self::Revoked { .. } | Self::Removed => true,
            Self::Pending { .. } | Self::Valid | Self::Missing { .. } => false,
        }
    }
}

/// A key that is known at a trust point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownKey {
    /// Its number at the trust point; never given twice.
    pub(super) number: u32,
    /// The key, without the mark of a revocation.
    pub(super) key: Dnskey,
    /// The known data about it.
    pub(super) state: State,
    /// The operator wrote it, or its digest.
    pub(super) configured: bool,
}

impl KnownKey {
    /// The operator has configured it, too: it is trusted, unless it is revoked.
    pub(super) fn confirm(&mut self) {
        self.configured = true;
        if let State::Pending { .. } = self.state {
            self.state = State::Valid;
        }
    }
}
