//! Identifies loaded programs.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A hash of everything that programs are made from: two programs with the same stamp can replace each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(pub u64);

impl Stamp {
    /// The stamp of programs that are made from these.
    pub fn of(sources: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        sources.hash(&mut hasher);
        Self(hasher.finish())
    }
}
