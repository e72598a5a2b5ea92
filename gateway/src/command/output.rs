//! The output of a command.

use std::io::{self, Write};
use std::process::ExitCode;

/// Prints a line.
pub(super) fn say(what: &str) {
    // If the output is closed, no one can be notified.
    let _ = writeln!(io::stdout(), "{what}");
}

/// Prints what went wrong; the exit status.
pub(super) fn complain(what: &str, status: u8) -> ExitCode {
    // If the output is closed, no one can be notified.
    let _ = writeln!(io::stderr(), "{}", what.trim_end());
    ExitCode::from(status)
}
