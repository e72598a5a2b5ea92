//! What a gateway for an application asks the NAT for.

use core::net::Ipv4Addr;
use sixway_wire::Endpoint4;

/// A mapping for a connection from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    /// The port of the inside host that has the control connection.
    pub(crate) port: u16,
    /// Who may connect.
    pub(crate) remote: Ipv4Addr,
}

/// Who makes mappings.
pub(crate) trait Openings {
    /// Makes a mapping, or keeps the one that there is. Its outside endpoint; `None`: refused.
    fn open(&mut self, opening: Opening) -> Option<Endpoint4>;
}
