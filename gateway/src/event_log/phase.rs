//! Whether something begins, ends or continues.

/// Beginning or end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Created,
    Deleted,
    /// It was there before this process.
    Continues,
}
