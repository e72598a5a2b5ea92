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

/// Who asks. The `ticket` means nothing here; it is given back with the answer.
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
pub enum Way {
    /// A datagram from a port of its own (RFC 5452 §9.2).
    Datagram,
    /// The upstream's stream: TCP, TLS or HTTPS; TCP for an upstream that is asked by UDP, after a truncated reply.
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
    pub way: Way,
    /// The query, whole, without a stream's length field.
    pub message: Vec<u8>,
}

/// Why an exchange yields no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The upstream's host or network cannot be reached, or nobody listens there.
    Unreachable,
    /// The stream was closed.
    Closed,
    /// TLS could not be agreed on, or the certificate is not the upstream's.
    Untrusted,
    /// It is no DNS server: HTTP said so, or framing was wrong.
    Malformed,
}

/// What is known of an answer's authenticity (RFC 4035 §4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Security {
    /// Nobody has looked.
    #[default]
    Unchecked,
    /// Signed, with a chain from a trust anchor.
    Secure,
    /// Proven not to be signed, or under no trust anchor.
    Insecure,
    /// It ought to be signed and is not, or wrongly.
    Bogus,
    /// It cannot be told.
    Indeterminate,
}
