//! Runs programs, with the reason in words if they fail.

use crate::host;
use std::io;
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(15);

/// Runs a program to its end, with this input; what it printed.
///
/// # Errors
/// It is not installed, failed (its own words), or did not end.
pub(super) fn run(command: &mut Command, input: &[u8]) -> Result<String, String> {
    run_within(command, input, PATIENCE)
}

/// The same of a program that may take this long.
///
/// # Errors
/// As there.
pub(super) fn run_within(command: &mut Command, input: &[u8], patience: Duration) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match host::run_program(command, input, patience) {
        Ok(ended) if ended.succeeded => Ok(ended.said),
        Ok(ended) => Err(format!("{name}: {}", ended.reason())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(format!("{name} is not installed here")),
        Err(error) => Err(format!("{name}: {error}")),
    }
}
