//! `sixway ds-lite`: tells a running B4 which AFTR to use, as a hook of a DHCPv6 client does (RFC 6334).

use super::failure::Failure;
use super::output::say;
use super::run_directory::RUN_DIRECTORY;
use super::show::{failure, only_socket};
use crate::admin::Client;
use crate::config::AftrAt;
use crate::view::NewRemote;
use clap::Subcommand;
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(super) enum DsLiteCommand {
    /// Let a B4 use this AFTR until the gateway ends or reloads: for hooks of DHCPv6 clients, as the value of option 64 (AFTR-Name).
    Aftr {
        /// The AFTR: a DNS name, or an IPv6 address.
        aftr: String,
        /// The B4's name in the configuration.
        #[arg(long, default_value = "ds_lite")]
        name: String,
        /// The admin socket of the gateway; needed if several gateways run on this host.
        #[arg(long)]
        socket: Option<PathBuf>,
    },
}

/// Runs it.
pub(super) fn run(command: &DsLiteCommand) -> Result<(), Failure> {
    let DsLiteCommand::Aftr { aftr, name, socket } = command;
    // A hook has it as it was received: with the root's dot.
    let aftr = aftr.trim_end_matches('.');
    if AftrAt::parse(aftr).is_none() {
        return Err(Failure::Wrong(format!("{}: neither an IPv6 address nor a name", aftr.escape_debug())));
    }
    let client = match socket {
        Some(path) => Client::new(path),
        None => only_socket(Path::new(RUN_DIRECTORY)).map(|path| Client::new(&path))?,
    };
    let remote = NewRemote { tunnel: name.clone(), remote: aftr.to_owned() };
    client.post_json("/v1/remotes", &remote).map_err(failure)?;
    say(&format!("{name} uses the AFTR {aftr} until the gateway ends or reloads"));
    Ok(())
}
