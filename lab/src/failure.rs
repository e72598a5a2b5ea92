//! The lab's errors, which tell the reader what to do next.

use crate::terminal::printable;
use std::{fmt, io};

/// Result of the lab's functions.
pub type Result<T> = std::result::Result<T, Failure>;

/// Why an experiment could not be made, or what it found wrong.
#[derive(Debug)]
pub enum Failure {
    /// The kernel refused a request: the request and the error.
    Io(String, io::Error),
    /// A program failed: its command line and its output.
    Program(String, String),
    /// A program is not installed; its name, and the Debian package that has it.
    Missing(&'static str, &'static str),
    /// A program did not end, or a thing did not happen, within its time.
    TimedOut(String),
    /// An unexpected result.
    Unexpected(String),
    /// Ctrl-C or SIGTERM.
    Interrupted,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Other programs and machines said some of it.
        f.write_str(&printable(&match self {
            Self::Io(what, error) => format!("{what}: {error}"),
            Self::Program(command, said) if said.is_empty() => {
                format!("`{command}` failed without output")
            }
            Self::Program(command, said) => format!("`{command}` failed: {said}"),
            Self::Missing(program, package) => {
                format!("{program} is not installed; apt-get install {package}, or: make deps")
            }
            Self::TimedOut(what) | Self::Unexpected(what) => what.clone(),
            Self::Interrupted => "interrupted".to_owned(),
        }))
    }
}

impl std::error::Error for Failure {}

/// Adds the request to an error of the kernel.
pub trait Asking<T> {
    /// Turns the error into a [`Failure::Io`] that names the request.
    fn asking(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Asking<T> for std::result::Result<T, E> {
    fn asking(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Failure::Io(what(), error.into()))
    }
}
