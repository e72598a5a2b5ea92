//! What goes in and out of a [`Resolver`](super::Resolver): queries, answers, exchanges with upstreams, validations.

use super::outcome::Outcome;
use std::net::IpAddr;

/// How a query came, and so how its answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// UDP: an answer larger than the client takes is truncated (RFC 6891 §6.2.3).
    Udp,
    /// TCP (RFC 7766).
    Tcp,
    /// TLS (RFC 7858).
    Tls,
    /// HTTPS (RFC 8484).
    Https,
    /// The gateway itself, for its validator: neither access nor rate is judged.
    Inside,
}

/// The client of a query. The `ticket` is opaque; it is returned with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker<T> {
    /// The client's address; IPv4-mapped ones count as IPv4.
    pub address: IpAddr,
    /// How the query came.
    pub transport: Transport,
    /// What the caller needs to send the answer.
    pub ticket: T,
}

/// What became of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The answer has been written; it is this.
    Answered(Outcome),
    /// The answer comes by [`poll_answer`](super::Resolver::poll_answer).
    Waiting,
    /// There will be none: it was no query.
    Ignored,
}

/// A question put to an upstream, until its reply has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Exchange(pub u64);

/// How a question goes to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryTransport {
    /// A datagram from a port of its own (RFC 5452 §9.2).
    Datagram,
    /// The upstream's stream: TCP, TLS or HTTPS; TCP after a truncated reply of an upstream that is queried by UDP.
    Stream,
}

/// A question that is to be put to an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// To be named with the reply.
    pub exchange: Exchange,
    /// The place of the upstream in the settings.
    pub upstream: usize,
    /// How it goes.
    pub way: QueryTransport,
    /// The query, whole, without a stream's length field.
    pub message: Vec<u8>,
}

/// Why an exchange yields no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The upstream's host or network is unreachable, or its port is closed.
    Unreachable,
    /// The stream was closed.
    Closed,
    /// TLS could not be agreed on, or the certificate is not the upstream's.
    Untrusted,
    /// Not a DNS server: an HTTP error, or wrong framing.
    Malformed,
}

/// What is known of an answer's authenticity (RFC 4035 §4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Security {
    /// Not validated.
    #[default]
    Unchecked,
    /// Signed, with a chain from a trust anchor.
    Secure,
    /// Proven not to be signed, or under no trust anchor.
    Insecure,
    /// It should be signed and is not, or the signature is wrong.
    Bogus,
    /// It cannot be determined.
    Indeterminate,
}
