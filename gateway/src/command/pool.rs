//! `sixway pool`: drains, grows and shrinks the pools of a running gateway.

use super::failure::Failure;
use super::output::say;
use super::reload::wait;
use super::run_directory::RUN_DIRECTORY;
use super::show::{failure, only_socket};
use crate::admin::{Client, NamedPart};
use crate::view::Status;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(super) enum PoolCommand {
    /// Add addresses to a pool; sessions continue. The change lasts until the configuration file is reloaded: change the file, too.
    Add(Part),
    /// Remove drained addresses from a pool; sessions continue. The change lasts until the configuration file is reloaded.
    Remove(Part),
    /// Do not give addresses of a pool to more hosts; hosts with bindings there keep them. Use `draining` in the configuration for a permanent
    /// change.
    Drain(Part),
    /// Give addresses that are being drained to hosts again.
    Undrain(Part),
}

#[derive(Debug, Args)]
pub(super) struct Part {
    /// The pool's name.
    pool: String,
    /// The addresses: ADDRESS or PREFIX/LENGTH, IPv4.
    prefix: String,
    /// The admin socket of the gateway; needed if several gateways run on this host.
    #[arg(long)]
    socket: Option<PathBuf>,
}

impl Part {
    fn client(&self) -> Result<Client, Failure> {
        match &self.socket {
            Some(path) => Ok(Client::new(path)),
            None => only_socket(Path::new(RUN_DIRECTORY)).map(|path| Client::new(&path)),
        }
    }

    fn named(&self) -> Result<NamedPart, Failure> {
        let named = NamedPart { pool: self.pool.clone(), prefix: self.prefix.clone() };
        named.part().map_err(Failure::Wrong)?;
        Ok(named)
    }

    fn query(&self) -> [(&'static str, Option<String>); 2] {
        [("pool", Some(self.pool.clone())), ("prefix", Some(self.prefix.clone()))]
    }
}

/// Runs the command.
pub(super) fn run(command: &PoolCommand) -> Result<(), Failure> {
    let (PoolCommand::Add(part)
    | PoolCommand::Remove(part)
    | PoolCommand::Drain(part)
    | PoolCommand::Undrain(part)) = command;
    let (named, client) = (part.named()?, part.client()?);
    let Part { pool, prefix, .. } = part;
    match command {
        PoolCommand::Drain(_) => {
            client.post_json("/v1/pools/draining", &named).map_err(failure)?;
            say(&format!(
                "{prefix} of {pool} is being drained; sixway show pools shows its remaining bindings"
            ));
        }
        PoolCommand::Undrain(_) => {
            client.delete::<()>("/v1/pools/draining", &part.query()).map_err(failure)?;
            say(&format!("hosts get addresses of {prefix} in {pool} again"));
        }
        PoolCommand::Add(_) => {
            let before: Status = client.get("/v1/status", &[]).map_err(failure)?;
            client.post_json("/v1/pools/addresses", &named).map_err(failure)?;
            in_force(client, &before)?;
            say(&format!(
                "{prefix} is in {pool} until the configuration file is reloaded: add it to the file, too"
            ));
        }
        PoolCommand::Remove(_) => {
            let before: Status = client.get("/v1/status", &[]).map_err(failure)?;
            client.delete::<()>("/v1/pools/addresses", &part.query()).map_err(failure)?;
            in_force(client, &before)?;
            say(&format!(
                "{prefix} is not in {pool} until the configuration file is reloaded: remove it from the file, too"
            ));
        }
    }
    Ok(())
}

/// Waits until the gateway answers again, with the new list of addresses.
fn in_force(client: Client, before: &Status) -> Result<(), Failure> {
    let after = wait(&[client], before)?;
    let rolled_back = after.reload.filter(|reload| reload.state == "rolled back");
    let why = rolled_back.map(|reload| reload.reason.unwrap_or_else(|| "no reason is known".into()));
    why.map_or(Ok(()), |why| Err(Failure::Failed(format!("rolled back to the previous addresses: {why}"))))
}
