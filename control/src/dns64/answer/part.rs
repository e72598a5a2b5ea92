//! The parts of an answer.

/// A part of an answer, in the order in which it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// CNAME and DNAME records that lead from the question's name to the data's.
    Chain,
    /// The queried records.
    Data,
    /// Signatures of both.
    Signatures,
    /// SOA of a negative answer, NS of a positive one.
    Authority,
    /// NSEC and NSEC3 records, and the authority section's signatures.
    Proofs,
}

impl Part {
    /// All, in order.
    pub const ALL: [Self; 5] = [Self::Chain, Self::Data, Self::Signatures, Self::Authority, Self::Proofs];
}
