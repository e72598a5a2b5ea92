//! Limits for clients over TCP, TLS and HTTPS: connections, time, octets.

use std::time::Duration;

/// The longest query that is read, in octets. A name, an OPT record and generous padding (RFC 8467) fit; with a longer one the connection
/// is closed.
pub const LONGEST_QUERY: usize = 4_096;

/// Maximum octets of answers waiting to be written to one connection; no further query is read until they are written.
pub const OUTBOUND: usize = 65_536;

/// A connection is closed after this time without its first query, if it may be idle for longer.
pub const BEFORE_FIRST_QUERY: Duration = Duration::from_secs(10);

/// Bounds of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections in all.
    pub connections: usize,
    /// Connections of one subscriber; `None`: as many as are free.
    pub connections_per_client: Option<usize>,
    /// IPv6 addresses with this many first bits in common are one subscriber's.
    pub client_prefix_length: u8,
    /// Queries of one connection that wait for their answers, and streams of an HTTP/2 connection (RFC 9113 §6.5.2: no fewer than 100). Beyond it
    /// nothing is read.
    pub in_flight: usize,
    /// TLS must be agreed on within this time.
    pub handshake: Duration,
    /// A connection without a whole query is closed after this time (RFC 7766 §6.2.3); sooner if it [never had one](BEFORE_FIRST_QUERY).
    pub idle: Duration,
    /// A client must take an answer within this time.
    pub write: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 4_096,
            connections_per_client: None,
            client_prefix_length: 64,
            in_flight: 100,
            handshake: Duration::from_secs(5),
            idle: Duration::from_secs(30),
            write: Duration::from_secs(5),
        }
    }
}
