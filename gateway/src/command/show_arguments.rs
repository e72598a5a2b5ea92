//! The arguments of `sixway show`.

use crate::admin::By;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// The arguments of `sixway show`.
#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// What to show; without it, a summary of the gateway.
    pub(super) kind: Option<ShowKind>,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(super) json: bool,
    /// Only rows with this inside endpoint: ADDRESS, PREFIX/LENGTH or [ADDRESS]:PORT.
    #[arg(long)]
    pub(super) inside: Option<String>,
    /// Only rows with this outside endpoint: ADDRESS, PREFIX/LENGTH or ADDRESS:PORT.
    #[arg(long)]
    pub(super) outside: Option<String>,
    /// Only sessions with this remote endpoint: ADDRESS, PREFIX/LENGTH or ADDRESS:PORT.
    #[arg(long)]
    pub(super) remote: Option<String>,
    /// Only rows with this port or ICMP identifier in any endpoint.
    #[arg(long)]
    pub(super) port: Option<u16>,
    /// Only rows of this protocol: tcp, udp, icmp, gre, esp, ipv6 or ipip.
    #[arg(long)]
    pub(super) protocol: Option<String>,
    /// Maximum number of rows.
    #[arg(long, default_value_t = 1_000)]
    pub(super) limit: usize,
    /// For `show subscribers`: maximum number of rows [default: 20].
    #[arg(long)]
    pub(super) top: Option<usize>,
    /// For `show subscribers`: order of the rows [default: ports].
    #[arg(long)]
    pub(super) by: Option<By>,
    /// The admin socket of the gateway; needed if several gateways run on this host.
    #[arg(long)]
    pub(super) socket: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ShowKind {
    /// Bindings of inside to outside endpoints.
    Bindings,
    /// Sessions: inside, outside and remote endpoints, state and lifetime.
    Sessions,
    /// Subscribers with the most ports, sessions or new sessions a second (--by, --top).
    Subscribers,
    /// All counters.
    Counters,
    /// Dropped packets by reason.
    Drops,
    /// Ports of the pools, used and free, by protocol and for the fullest worker.
    Pools,
    /// Leases of IPv4 addresses over IPv6: those of concentrators, and this host's own.
    Leases,
    /// Teredo's relays and their peers.
    Teredo,
    /// 6rd domains and delegated prefixes.
    SixRd,
    /// Router advertisements per link.
    RouterAdvertisements,
    /// The Teredo server: what it exposes, and datagrams by outcome.
    TeredoServer,
    /// The PCP server: mappings, and requests by result.
    Pcp,
    /// DNS64: upstreams, query outcomes, cache and counters.
    Dns64,
    /// The fast path: packets forwarded in the kernel, and those passed to the engine.
    Fastpath,
    /// The configuration in force, as a configuration file with every default; with --json, as JSON.
    Config,
}
