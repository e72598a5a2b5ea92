//! The context for reading the section.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use crate::fault::Report;
use crate::host::HostFacts;

use super::prefixes::Translators;

/// The context for reading a DNS64.
pub(crate) struct Dns64Context<'r> {
    pub host: &'r HostFacts,
    /// `gateway.name`.
    pub gateway: &'r str,
    /// `gateway.metrics`.
    pub metrics: Option<SocketAddr>,
    /// The gateway's own addresses, which the host's stack does not have.
    pub own: Vec<IpAddr>,
    pub translators: &'r Translators,
    pub read_file: &'r mut dyn FnMut(&Path) -> io::Result<String>,
    pub report: &'r mut Report,
}
