//! What `sixway show` takes.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What `sixway show` takes.
#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// What to look at; nothing: the gateway in a few lines.
    pub(super) kind: Option<ShowKind>,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(super) json: bool,
    /// Only with this inside endpoint: ADDRESS, PREFIX/LENGTH or [ADDRESS]:PORT.
    #[arg(long)]
    pub(super) inside: Option<String>,
    /// Only with this outside endpoint: ADDRESS, PREFIX/LENGTH or ADDRESS:PORT.
    #[arg(long)]
    pub(super) outside: Option<String>,
    /// Only with this remote endpoint: ADDRESS, PREFIX/LENGTH or ADDRESS:PORT.
    #[arg(long)]
    pub(super) remote: Option<String>,
    /// Only with this port or ICMP identifier on any side.
    #[arg(long)]
    pub(super) port: Option<u16>,
    /// Only of this protocol: tcp, udp or icmp.
    #[arg(long)]
    pub(super) protocol: Option<String>,
    /// At most so many rows.
    #[arg(long, default_value_t = 1_000)]
    pub(super) limit: usize,
    /// The gateway's socket, if it is not the only one in /run/sixway.
    #[arg(long)]
    pub(super) socket: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ShowKind {
    /// Inside endpoints and the outside endpoints they have.
    Bindings,
    /// Who talks to whom.
    Sessions,
    /// Every counter.
    Counters,
    /// Why packets were dropped.
    Drops,
    /// 6rd domains and the prefixes that are delegated in them.
    SixRd,
    /// What hosts on the links are told.
    RouterAdvertisements,
    /// The DNS64: its upstreams, what became of queries, what is kept.
    Dns64,
    /// What the kernel carries on by itself, and what it leaves to the engine.
    Fastpath,
    /// The configuration in force.
    Config,
}
