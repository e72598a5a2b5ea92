//! The kinds of answers.

/// The kind of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There are such records.
    Data,
    /// The name has no such records.
    NoData,
    /// The name at the chain's end does not exist.
    NameError,
    /// Another RCODE.
    Failure(u16),
    /// A chain, whose [target](super::Answer::target) must still be queried.
    Unfinished,
}
