//! The state files of a directory: running gateways, and the state of those that crashed.

use super::contents::{read, read_of};
use super::error::RecordError;
use super::leftovers::Leftovers;
use super::listing::states;
use super::lock::{is_ending, lock, turn};
use super::state_file::Record;
use crate::host::namespace;
use std::fs::{self, File};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The gateways that have programs and maps pinned, as their state files say, and where.
pub fn pinned(directory: &Path) -> Vec<(String, PathBuf)> {
    let of = |path: PathBuf| {
        let pins = read(&File::open(&path).ok()?).ok()?.persistent?.pins;
        let name = path.file_stem()?.to_str()?.to_owned();
        (!pins.as_os_str().is_empty()).then_some((name, pins))
    };
    states(directory).into_iter().filter_map(of).collect()
}

/// A gateway that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunningGateway {
    /// Its process, if it says so.
    pub process: Option<u32>,
    /// Its admin API's socket, if it says so.
    pub socket: Option<PathBuf>,
}

/// The gateway `name`, if it runs. One that is ending, as after a SIGKILL, does not.
pub fn running(directory: &Path, name: &str) -> Option<RunningGateway> {
    let path = directory.join(format!("{name}.state"));
    let file = File::open(&path).ok()?;
    match lock(&path, name) {
        Err(RecordError::Taken { process, .. }) if !process.is_some_and(is_ending) => {
            Some(RunningGateway { process, socket: read(&file).unwrap_or_default().socket })
        }
        Ok(_) | Err(_) => None,
    }
}

/// The addresses that the gateway `name` has added to interfaces that are not its own, as far as its state file says. One is written
/// there before it is added.
pub fn added_addresses(directory: &Path, name: &str) -> Vec<(String, IpAddr)> {
    let file = File::open(directory.join(format!("{name}.state")));
    let contents = file.and_then(|file| read(&file)).unwrap_or_default();
    contents.addresses.into_iter().map(|added| (added.interface, added.address)).collect()
}

/// Puts back what gateways in `directory` left that no longer run. For each state file its name, and what was done or
/// why not.
pub fn leftovers(directory: &Path) -> Vec<(String, Result<Leftovers, RecordError>)> {
    leftovers_among(directory, namespace::may_exist)
}

/// The same, told whether a network namespace may still be there.
pub(super) fn leftovers_among(
    directory: &Path,
    may_exist: fn(&str) -> bool,
) -> Vec<(String, Result<Leftovers, RecordError>)> {
    let mut done = Vec::new();
    for path in states(directory) {
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        if !path.exists() {
            // It held settings alone, which were restored with those of one before.
            continue;
        }
        done.push((name.to_owned(), clear(directory, &path, name, may_exist)));
    }
    done
}

/// Puts back what the gateway `name` left behind, which does not run any more.
///
/// # Errors
/// As for [`leftovers`].
pub fn clear_up(directory: &Path, name: &str) -> Result<Leftovers, RecordError> {
    clear(directory, &directory.join(format!("{name}.state")), name, namespace::may_exist)
}

fn clear(
    directory: &Path,
    path: &Path,
    name: &str,
    may_exist: fn(&str) -> bool,
) -> Result<Leftovers, RecordError> {
    let _turn = turn(directory);
    let left = read_of(path, &*lock(path, name)?)?;
    let elsewhere = !left.namespace.is_empty() && left.namespace != namespace::own();
    // What is the kernel's vanishes with its namespace.
    if elsewhere && left.is_of_namespace() && may_exist(&left.namespace) {
        return Err(RecordError::Elsewhere(name.into()));
    }
    let (record, left) = Record::take_in_turn(directory, name, None)?;
    let guards = record.end_in_turn();
    // Data for a reload that continues; this one does not.
    for extension in ["previous", "handover-kept"] {
        let _ = fs::remove_file(path.with_extension(extension));
    }
    Ok(Leftovers { programs: guards.programs, table: guards.table, ..left })
}
