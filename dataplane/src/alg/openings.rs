//! Requests of an application-level gateway to the NAT.

use core::net::Ipv4Addr;
use sixway_wire::Endpoint4;

/// A mapping for a connection from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    /// The port of the inside host that has the control connection.
    pub(crate) port: u16,
    /// The remote host that may connect.
    pub(crate) remote: Ipv4Addr,
}

/// Creates mappings.
pub(crate) trait Openings {
    /// Creates a mapping, or keeps the existing one. Returns its outside endpoint; `None`: refused.
    fn open(&mut self, opening: Opening) -> Option<Endpoint4>;
}
