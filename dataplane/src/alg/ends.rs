//! The key of a control connection.

use sixway_wire::Endpoint4;

/// The two ends of a connection as they are outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ends {
    /// The outside endpoint of the client.
    pub(crate) outside: Endpoint4,
    /// The server.
    pub(crate) server: Endpoint4,
}
