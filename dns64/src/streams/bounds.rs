//! Limits for clients over TCP, TLS and HTTPS: connections, time, octets.

use std::time::Duration;

/// The longest query that is read, in octets. A name, an OPT record and generous padding (RFC 8467) fit; who sends more is cut.
pub const LONGEST_QUERY: usize = 4_096;

/// Maximum octets of answers waiting to be written to one connection; no further query is read until they are written.
pub const OUTBOUND: usize = 65_536;

/// Bounds of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections in all.
    pub connections: usize,
    /// Connections of one address.
    pub per_address: usize,
    /// Connections of one /64; IPv4 addresses have [`per_address`](Self::per_address) only.
    pub per_subnet: usize,
    /// Queries of one connection that wait for their answers, and streams of an HTTP/2 connection (RFC 9113 §6.5.2: no fewer than 100). Beyond it
    /// nothing is read.
    pub in_flight: usize,
    /// TLS must be agreed on within this time.
    pub handshake: Duration,
    /// A connection without a whole query is closed after this time (RFC 7766 §6.2.3) …
    pub idle: Duration,
    /// … and after this one while more than three quarters of all connections are taken.
    pub idle_when_crowded: Duration,
    /// A client must take an answer within this time.
    pub write: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 1_024,
            per_address: 32,
            per_subnet: 512,
            in_flight: 100,
            handshake: Duration::from_secs(5),
            idle: Duration::from_secs(30),
            idle_when_crowded: Duration::from_secs(3),
            write: Duration::from_secs(5),
        }
    }
}
