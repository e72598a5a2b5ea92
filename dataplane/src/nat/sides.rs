//! The two sides of a NAT as types, so that a value of one side cannot be used on the other by mistake.

/// The inside: an endpoint or address of the translated hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Inside<T>(pub T);

/// The outside: an endpoint or address of the NAT's own pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Outside<T>(pub T);
