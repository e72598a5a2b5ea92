//! What a proof comes to.

/// How well it is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::validator) enum Denied {
    /// Wholly.
    Surely,
    /// Except a delegation that is not signed: opt-out says nothing of it (RFC 5155 §9.2).
    OptOut,
    /// By NSEC3 records with more iterations than are computed: the same as unsigned (RFC 9276 §3.2).
    Iterations,
}

/// What a name is when it has no DS record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::validator) enum NoDs {
    /// A delegation to a zone that is not signed.
    Delegation,
    /// Perhaps such a delegation: opt-out.
    OptOut,
    /// See [`Denied::Iterations`].
    Iterations,
    /// A name within the zone.
    Name,
    /// Not a name of the zone; no name below it exists either.
    Nothing,
}
