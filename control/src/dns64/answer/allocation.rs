//! What an allocator takes.

/// What malloc takes for so many octets: eight more, in steps of 16, and 32 at least.
pub(crate) const fn allocated(octets: usize) -> usize {
    match octets {
        0 => 0,
        1..=24 => 32,
        _ => (octets + 8).next_multiple_of(16),
    }
}
