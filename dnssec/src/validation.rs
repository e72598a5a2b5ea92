//! The number of a validation.

/// A validation under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Validation(pub u64);
