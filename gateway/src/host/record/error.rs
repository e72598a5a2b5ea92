//! Why a state file cannot be used.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a state file cannot be used.
#[derive(Debug)]
pub enum RecordError {
    /// Another process holds it: its process ID, if recorded.
    Taken {
        /// The gateway's name.
        name: String,
        /// The process.
        process: Option<u32>,
    },
    /// A file operation failed.
    Io(PathBuf, io::Error),
    /// It is not what a gateway wrote: why.
    Damaged(PathBuf, io::Error),
    /// It was written in another, existing network namespace: its settings can be restored only from inside.
    Elsewhere(String),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken { name, process } => {
                write!(f, "a gateway named {name} is already running")?;
                if let Some(process) = process {
                    write!(f, " (process {process})")?;
                }
                f.write_str("; stop it first, or set another `gateway.name`")
            }
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Damaged(path, error) => {
                let path = path.display();
                write!(
                    f,
                    "{path} is damaged ({error}): it records changes to this host that must be undone; repair it, or undo them yourself and remove it (mv {path} {path}.damaged)"
                )
            }
            Self::Elsewhere(name) => {
                write!(f, "{name} ran in another network namespace; run sixway cleanup there")
            }
        }
    }
}

impl std::error::Error for RecordError {}
