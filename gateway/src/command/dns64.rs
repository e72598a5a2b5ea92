//! `sixway dns64`: what a running DNS64 keeps is forgotten.

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
    /// Forget the answers that are kept of a name and of all names below it, or of all names.
    Flush(FlushArguments),
}

#[derive(Debug, Args)]
pub(super) struct FlushArguments {
    /// The name.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    name: Option<String>,
    /// Forget everything.
    #[arg(long)]
    all: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The gateway's socket, if it is not the only one in /run/sixway.
    #[arg(long)]
    socket: Option<PathBuf>,
}

/// Does what is asked for.
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
        false => say(&format!("{} forgotten", plural(flushed.answers, "answer"))),
    }
    Ok(())
}
