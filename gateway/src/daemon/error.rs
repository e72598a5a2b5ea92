//! Why a gateway did not start, or ended.

use crate::host::HostError;
use std::fmt;
use std::io;

/// Why a gateway did not start, or ended by itself. Everything was put back.
#[derive(Debug)]
pub enum RunError {
    /// The host cannot be set up.
    Host(HostError),
    /// Something else cannot be had: what, and what the kernel said.
    Io(String, io::Error),
    /// An engine cannot be made.
    Engine(String),
    /// A worker ended by itself.
    Worker(String),
    /// Tunnels cannot be what they are to be: a line each.
    Tunnels(String),
    /// The DNS64 cannot be had, or ended by itself.
    Dns64(String),
    /// The fast path is demanded and cannot be had.
    FastPath(String),
    /// Another process does not make way, or this one cannot become another.
    Takeover(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(error) => error.fmt(f),
            Self::Io(what, error) => write!(f, "{what}: {error}"),
            Self::Engine(what)
            | Self::Worker(what)
            | Self::Tunnels(what)
            | Self::Dns64(what)
            | Self::FastPath(what)
            | Self::Takeover(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for RunError {}
