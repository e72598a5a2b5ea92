//! Unpredictable seeds of hash tables.

use std::hash::{BuildHasher, RandomState};

/// An unpredictable number.
pub(crate) fn unpredictable() -> u64 {
    RandomState::new().hash_one(())
}
