//! Leases of IPv4 addresses over IPv6 (RFC 7040, RFC 7341): those of concentrators, and those of this host.

mod awaited_leases;
mod book;
mod concentrator;
mod disk;
mod file;
mod file_state;
mod finished;
mod hosts;
mod kea;
mod known_servers;
mod names;
mod query_sockets;
mod refused;
mod trouble;

pub(super) use book::LeaseBook;
pub(super) use file_state::LeaseFiles;
pub(super) use hosts::{LeaseHosts, kept_leases};
pub(super) use names::HostNames;
pub(super) use refused::outcomes;
pub(super) use trouble::LeaseTrouble;
