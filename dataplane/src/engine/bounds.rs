//! Limits of the work that the engine does at a time.

/// Maximum number of mechanisms that a packet passes, hairpins included.
pub const MAX_PASSES: usize = 3;
/// Maximum number of entries of a table that one tick ends or moves.
pub(super) const EXPIRED_AT_ONCE: usize = 64;
/// Packets whose lookups are overlapped, and that may be joined; a bit of a word for each.
pub(super) const STRIDE: usize = 64;
