//! An estimate of an allocation's real size.

/// What malloc takes for this many octets: eight more, in steps of 16, and at least 32.
pub(crate) const fn allocated(octets: usize) -> usize {
    match octets {
        0 => 0,
        1..=24 => 32,
        _ => (octets + 8).next_multiple_of(16),
    }
}
