//! How much the engine does at once.

/// A packet passes at most so many mechanisms (hairpins included).
pub const MAX_PASSES: usize = 3;
/// Entries of a table that one tick ends or moves at most.
pub(super) const EXPIRED_AT_ONCE: usize = 64;
/// Packets whose look-ups are overlapped, and that may be joined; a bit of a word for each.
pub(super) const STRIDE: usize = 64;
