//! `sixway down`: ends a gateway that `sixway up` started, and restores the host if it was killed.

use super::failure::Failure;
use super::output::say;
use super::run_directory::RUN_DIRECTORY;
use super::up::NAME;
use crate::host::{self, RecordError};
use crate::site::Standing;
use clap::Args;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;
use std::time::{Duration, Instant};

/// A gateway sends final router advertisements, which takes up to 3.5 s, and ends its sessions.
const PATIENCE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(20);

/// The arguments of `sixway down`.
#[derive(Debug, Args)]
pub(super) struct DownArguments {
    /// The gateway's name.
    #[arg(long, default_value = NAME)]
    name: String,
}

/// Runs the command.
pub(super) fn run(arguments: &DownArguments) -> Result<(), Failure> {
    let (directory, name) = (Path::new(RUN_DIRECTORY), &arguments.name);
    let standing = Standing::of(directory, name);
    if !standing.configuration_file().exists() && host::running(directory, name).is_none() {
        let what = format!("{name} is not running, and nothing is left of it");
        return Err(Failure::Failed(format!("{what}; another one: sixway down --name NAME")));
    }
    if !host::has_capability(host::CAP_NET_ADMIN) {
        return Err(Failure::Failed("sixway down needs CAP_NET_ADMIN; run it as root".into()));
    }
    end(directory, name)?;
    // A process that ended in order has done this already.
    match host::clear_up(directory, name) {
        Ok(left) if left.is_empty() => {}
        Ok(left) => say(&format!("{name}: {left}")),
        Err(
            error @ (RecordError::Taken { .. }
            | RecordError::Elsewhere(_)
            | RecordError::Io(..)
            | RecordError::Damaged(..)),
        ) => {
            return Err(Failure::Failed(error.to_string()));
        }
    }
    let taken_back = standing.take_back().map_err(Failure::Failed)?;
    say(&format!("{name} has ended: {taken_back}"));
    Ok(())
}

/// Ends the process, if it runs, and waits for its end.
fn end(directory: &Path, name: &str) -> Result<(), Failure> {
    let Some(running) = host::running(directory, name) else { return Ok(()) };
    let process = running.process.and_then(|process| i32::try_from(process).ok()).map(Pid::from_raw);
    let Some(process) = process else {
        return Err(Failure::Failed(format!("{name} is running, and its process is unknown; try again")));
    };
    kill(process, Signal::SIGTERM)
        .map_err(|error| Failure::Failed(format!("{name} (process {process}) cannot be ended: {error}")))?;
    let begun = Instant::now();
    // Its lock is gone before the process is.
    while host::running(directory, name).is_some() || runs(process) {
        if begun.elapsed() > PATIENCE {
            return Err(Failure::Failed(format!("{name} (process {process}) does not end")));
        }
        std::thread::sleep(STEP);
    }
    Ok(())
}

/// Whether the process has not ended. A zombie has ended (proc(5): the state behind the name).
fn runs(process: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    let state = stat.ok().and_then(|stat| stat.rsplit_once(") ")?.1.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}
