//! Unpredictable seeds of hash tables.

use std::hash::{BuildHasher, RandomState};

/// A number that nobody outside can guess.
pub(crate) fn unpredictable() -> u64 {
    RandomState::new().hash_one(())
}
