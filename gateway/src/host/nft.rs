//! The program `nft`: text in, text out, bounded in time and size.

use super::program;
use std::fmt;
use std::io;
use std::process::Command;
use std::time::Duration;

/// Longer than this a ruleset of some hundred thousand elements does not take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why nft did not do it.
#[derive(Debug)]
pub enum NftError {
    /// It is not installed.
    Missing,
    /// It did not run, or did not finish.
    Io(io::Error),
    /// It refused: its words.
    Refused(String),
}

impl fmt::Display for NftError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("nft not found; install the package nftables"),
            Self::Io(error) => write!(f, "nft: {error}"),
            Self::Refused(what) => write!(f, "nft: {what}"),
        }
    }
}

impl std::error::Error for NftError {}

/// Has nft do what the text says: all of it or nothing.
///
/// # Errors
/// nft is missing or failed; nothing was changed.
pub fn execute(text: &str) -> Result<(), NftError> {
    run(&["-f", "-"], text).map(drop)
}

/// All tables, chains and rules, as JSON.
pub(super) fn ruleset() -> Result<serde_json::Value, NftError> {
    let text = run(&["-j", "list", "ruleset"], "")?;
    serde_json::from_str(&text).map_err(|error| NftError::Io(error.into()))
}

/// A chain's rules with their handles, as text. The chain: family, table, name.
pub(super) fn chain(chain: &str) -> Result<String, NftError> {
    let arguments: Vec<&str> = ["-a", "list", "chain"].into_iter().chain(chain.split(' ')).collect();
    run(&arguments, "")
}

/// A table of the family inet, as text: its rules, and not what their counters count.
///
/// # Errors
/// nft is missing or failed: [`NftError::Refused`] if there is no such table.
pub fn table(name: &str) -> Result<String, NftError> {
    run(&["-s", "list", "table", "inet", name], "")
}

fn run(arguments: &[&str], input: &str) -> Result<String, NftError> {
    let ended = program::run(Command::new("nft").args(arguments), input.as_bytes(), PATIENCE);
    let ended = ended.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => NftError::Missing,
        _ => NftError::Io(error),
    })?;
    match ended.succeeded {
        true => Ok(ended.said),
        false => Err(NftError::Refused(ended.reason().to_owned())),
    }
}
