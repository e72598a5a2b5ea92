//! The state of the lease files, as far as it needs the operator's attention.

/// The files of a concentrator, or of this host's lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseFiles {
    /// Whose they are.
    pub mechanism: String,
    /// The own file, and why it cannot be written.
    pub unwritten: Option<String>,
    /// Kea's file, and why it cannot be read.
    pub unread: Option<String>,
}

impl LeaseFiles {
    /// Files with which nothing is wrong.
    pub(super) fn of(mechanism: &str) -> Self {
        Self { mechanism: mechanism.into(), ..Self::default() }
    }

    /// Whose they are, and whether one of them fails.
    pub(in crate::daemon) fn into_failing(self) -> (String, bool) {
        (self.mechanism, self.unwritten.is_some() || self.unread.is_some())
    }
}
