//! `sixway dns64`: removes answers from the cache of a running DNS64.

use super::failure::Failure;
use super::output::say;
use super::run_directory::RUN_DIRECTORY;
use super::show::{failure, json, only_socket};
use crate::admin::Client;
use crate::show::plural;
use crate::view::Flushed;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(super) enum Dns64Command {
    /// Remove a name and all names below it from the cache, or everything with --all.
    Flush(FlushArguments),
}

#[derive(Debug, Args)]
pub(super) struct FlushArguments {
    /// The domain name.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    name: Option<String>,
    /// Remove all answers.
    #[arg(long)]
    all: bool,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
    /// The admin socket of the gateway; needed if several gateways run on this host.
    #[arg(long)]
    socket: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(command: &Dns64Command) -> Result<(), Failure> {
    let Dns64Command::Flush(arguments) = command;
    let socket = match &arguments.socket {
        Some(path) => path.clone(),
        None => only_socket(Path::new(RUN_DIRECTORY))?,
    };
    let query = [("name", arguments.name.clone()), ("all", arguments.all.then(|| "true".into()))];
    let flushed: Flushed = Client::new(&socket).delete("/v1/dns64/cache", &query).map_err(failure)?;
    match arguments.json {
        true => say(json(&flushed).trim_end()),
        false => say(&format!("{} removed from the cache", plural(flushed.answers, "answer"))),
    }
    Ok(())
}
