//! Errors for which a gateway did not start, or ended.

use crate::host::HostError;
use std::fmt;
use std::io;

/// Why a gateway did not start, or failed. The host was restored.
#[derive(Debug)]
pub enum RunError {
    /// Setting up the host failed.
    Host(HostError),
    /// A system call failed: what for, and the error.
    Io(String, io::Error),
    /// The configuration gives no engine.
    Engine(String),
    /// A worker failed.
    Worker(String),
    /// Tunnels could not be set up: a line for each reason.
    Tunnels(String),
    /// DNS64 did not start, or failed.
    Dns64(String),
    /// The Teredo server did not start, or failed.
    Teredo(String),
    /// The PCP server did not start, or failed.
    Pcp(String),
    /// The fast path is required by the configuration and did not start.
    FastPath(String),
    /// The event log cannot be opened.
    EventLog(String),
    /// Taking over from another process failed, or restarting this one.
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
            | Self::Teredo(what)
            | Self::Pcp(what)
            | Self::FastPath(what)
            | Self::EventLog(what)
            | Self::Takeover(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for RunError {}
