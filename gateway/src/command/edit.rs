//! `sixway binding`, `sixway session` and `sixway subscriber`: change the tables of a running gateway.

use super::failure::Failure;
use super::output::say;
use super::run_directory::RUN_DIRECTORY;
use super::show::{failure, only_socket};
use crate::admin::{Client, Named, Ranking};
use crate::show::plural;
use crate::view::Ended;
use clap::{Args, Subcommand};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(super) enum BindingCommand {
    /// Add a static binding until the gateway ends or reloads; use `static` in the configuration for a permanent one.
    Add {
        /// tcp, udp or icmp.
        protocol: String,
        /// The inside endpoint: [ADDRESS]:PORT.
        inside: String,
        /// The outside endpoint: ADDRESS:PORT.
        outside: String,
        /// The B4 that the inside host is behind, for an AFTR: its IPv6 address.
        #[arg(long, value_name = "ADDRESS")]
        softwire: Option<String>,
        #[command(flatten)]
        gateway: Socket,
    },
    /// End a binding and its sessions.
    Remove {
        /// tcp, udp or icmp.
        protocol: String,
        /// The outside endpoint: ADDRESS:PORT.
        outside: String,
        #[command(flatten)]
        gateway: Socket,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum SessionCommand {
    /// End a session.
    End {
        /// tcp, udp, icmp, gre, esp, ipv6 or ipip.
        protocol: String,
        /// The inside endpoint: [ADDRESS]:PORT; without ports, the address.
        inside: String,
        /// The remote endpoint: ADDRESS:PORT; for icmp the port is 0. Without ports, the address.
        remote: String,
        /// The translator: needed if several have inside hosts of that address.
        #[arg(long)]
        mechanism: Option<String>,
        /// The B4 that the inside host is behind, for an AFTR: its IPv6 address.
        #[arg(long, value_name = "ADDRESS")]
        softwire: Option<String>,
        #[command(flatten)]
        gateway: Socket,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum SubscriberCommand {
    /// End all dynamic bindings of a subscriber's hosts, with their sessions; static bindings stay. The next packets create new ones.
    End {
        /// The subscriber: ADDRESS or PREFIX/LENGTH.
        inside: String,
        /// The translator: needed if several have inside hosts of that address.
        #[arg(long)]
        mechanism: Option<String>,
        #[command(flatten)]
        gateway: Socket,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum LeaseCommand {
    /// End a lease immediately: the host has to request an address again.
    Release {
        /// The leased IPv4 address.
        address: Ipv4Addr,
        #[command(flatten)]
        gateway: Socket,
    },
}

#[derive(Debug, Args)]
pub(super) struct Socket {
    /// The admin socket of the gateway; needed if several gateways run on this host.
    #[arg(long)]
    socket: Option<PathBuf>,
}

impl Socket {
    fn client(&self) -> Result<Client, Failure> {
        match &self.socket {
            Some(path) => Ok(Client::new(path)),
            None => only_socket(Path::new(RUN_DIRECTORY)).map(|path| Client::new(&path)),
        }
    }
}

/// Runs `sixway binding`.
pub(super) fn binding(command: &BindingCommand) -> Result<(), Failure> {
    match command {
        BindingCommand::Add { protocol, inside, outside, softwire, gateway } => {
            let named = Named {
                protocol: protocol.clone(),
                inside: Some(inside.clone()),
                outside: Some(outside.clone()),
                softwire: softwire.clone(),
                ..Named::default()
            };
            named.binding().map_err(Failure::Wrong)?;
            gateway.client()?.post_json("/v1/bindings", &named).map_err(failure)?;
            say(&format!("{protocol} {outside} leads to {inside} until the gateway ends or reloads"));
        }
        BindingCommand::Remove { protocol, outside, gateway } => {
            let query = [("protocol", Some(protocol.clone())), ("outside", Some(outside.clone()))];
            gateway.client()?.delete::<()>("/v1/bindings", &query).map_err(failure)?;
            say(&format!("the binding of {protocol} {outside} and its sessions ended"));
        }
    }
    Ok(())
}

/// Runs `sixway session`.
pub(super) fn session(command: &SessionCommand) -> Result<(), Failure> {
    let SessionCommand::End { protocol, inside, remote, mechanism, softwire, gateway } = command;
    let query = [
        ("protocol", Some(protocol.clone())),
        ("inside", Some(inside.clone())),
        ("remote", Some(remote.clone())),
        ("mechanism", mechanism.clone()),
        ("softwire", softwire.clone()),
    ];
    gateway.client()?.delete::<()>("/v1/sessions", &query).map_err(failure)?;
    say(&format!("the session of {protocol} {inside} with {remote} ended"));
    Ok(())
}

/// Runs `sixway lease`.
pub(super) fn lease(command: &LeaseCommand) -> Result<(), Failure> {
    let LeaseCommand::Release { address, gateway } = command;
    let query = [("ipv4", Some(address.to_string()))];
    gateway.client()?.delete::<()>("/v1/leases", &query).map_err(failure)?;
    say(&format!("the lease of {address} ended"));
    Ok(())
}

/// Runs `sixway subscriber`.
pub(super) fn subscriber(command: &SubscriberCommand) -> Result<(), Failure> {
    let SubscriberCommand::End { inside, mechanism, gateway } = command;
    let ranking = Ranking { inside: Some(inside.clone()), ..Ranking::default() };
    ranking.prefix().map_err(|error| Failure::Wrong(error.to_string()))?;
    let query = [("inside", Some(inside.clone())), ("mechanism", mechanism.clone())];
    let ended: Ended = gateway.client()?.delete("/v1/subscribers", &query).map_err(failure)?;
    say(&format!("{} of {inside} ended", plural(ended.bindings, "binding")));
    Ok(())
}
