//! `sixway fastpath`: removes the fast path of any gateway.

use super::failure::Failure;
use super::output::say;
use super::run_directory::RUN_DIRECTORY;
use crate::admin::Client;
use crate::host;
use clap::{Args, Subcommand};
use nix::unistd::geteuid;
use sixway_fastpath::layout::LAYOUT_VERSION;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The message for a gateway without a fast path.
const NOTHING: &str = "no fast path was found";

#[derive(Debug, Subcommand)]
pub(super) enum FastPathCommand {
    /// Remove programs, maps and links now, of all gateways or of one. A running gateway continues with its engine.
    Off(OffArguments),
    /// Print the version of the maps' layout. Used by a process before it re-executes itself.
    #[command(hide = true)]
    Layout,
}

#[derive(Debug, Args)]
pub(super) struct OffArguments {
    /// Only the fast path of this gateway.
    #[arg(long)]
    name: Option<String>,
    /// Where programs are pinned, if no state file of a gateway records it.
    #[arg(long, value_name = "DIRECTORY", default_value = "/run/sixway/bpf")]
    pin_path: PathBuf,
}

/// Runs the command.
pub(super) fn run(command: &FastPathCommand) -> Result<(), Failure> {
    match command {
        FastPathCommand::Off(arguments) => run_off(arguments),
        FastPathCommand::Layout => {
            say(&LAYOUT_VERSION.to_string());
            Ok(())
        }
    }
}

fn run_off(arguments: &OffArguments) -> Result<(), Failure> {
    let mut pinned: BTreeMap<String, PathBuf> = host::pinned(Path::new(RUN_DIRECTORY)).into_iter().collect();
    for name in sixway_fastpath::gateways(&arguments.pin_path).into_iter().chain(arguments.name.clone()) {
        pinned.entry(name).or_insert_with(|| arguments.pin_path.clone());
    }
    pinned.retain(|name, _| arguments.name.as_ref().is_none_or(|only| only == name));
    let (mut failed, mut nothing) = (Vec::new(), Vec::new());
    for (name, pin_path) in &pinned {
        match off(name, pin_path) {
            Ok(found) if found == NOTHING => nothing.push(name),
            Ok(what) => say(&format!("{name}: {what}")),
            Err(why) => failed.push(format!("{name}: {why}")),
        }
    }
    let found_nothing = pinned.len() == nothing.len();
    if !geteuid().is_root() && (found_nothing || !failed.is_empty()) {
        // Only root sees what is pinned, and where.
        failed.push("root is required: sudo sixway fastpath off".into());
        nothing.clear();
    }
    for name in nothing {
        say(&format!("{name}: {NOTHING}"));
    }
    if failed.is_empty() && pinned.is_empty() {
        say("no gateway on this host has a fast path");
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::Failed(failed.join("\n"))) }
}

fn off(name: &str, pin_path: &Path) -> Result<&'static str, String> {
    // A running gateway moves its sessions to the engine first. If it does not answer, continue: its engine has every session.
    let running = host::running(Path::new(RUN_DIRECTORY), name);
    let socket = running.as_ref().and_then(|running| running.socket.as_deref());
    let told = socket.and_then(|socket| Client::new(socket).delete::<bool>("/v1/fastpath", &[]).ok());
    let removed = sixway_fastpath::remove_all(pin_path, name).map_err(|error| error.to_string())?;
    if running.is_none() {
        // A running gateway needs it for addresses that it shares with the host.
        host::remove_table(name);
    }
    Ok(match (removed > 0 || told == Some(true), running.is_some()) {
        (true, true) => "the fast path was removed; the engine forwards all packets",
        (true, false) => {
            "the fast path was removed; nothing forwards packets now (run sixway cleanup to restore the rest)"
        }
        (false, _) => NOTHING,
    })
}
