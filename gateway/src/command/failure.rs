//! Errors of a command.

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// Failure: exit status 1.
    Failed(String),
    /// Invalid request: exit status 2.
    Wrong(String),
}
