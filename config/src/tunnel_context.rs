//! The context for reading the section of a tunnel.

use crate::claims::Claims;
use crate::fault::Report;
use crate::host::HostFacts;

/// The context for reading a tunnel.
pub(crate) struct TunnelContext<'r> {
    pub index: usize,
    /// That of the device.
    pub mtu: Option<u16>,
    pub host: &'r HostFacts,
    pub claims: &'r mut Claims,
    pub report: &'r mut Report,
}
