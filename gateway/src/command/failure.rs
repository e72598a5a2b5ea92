//! How a command fails.

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// It failed: exit status 1.
    Failed(String),
    /// The request was wrong: exit status 2.
    Wrong(String),
}
