//! Inputs and outputs of a [`Resolver`](super::Resolver): queries, answers, exchanges with upstreams, validations.

pub use sixway_dnssec::Security;

use super::outcome::Outcome;
use super::shares::Payer;
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
    /// The gateway itself, for its validator: neither access nor rate is checked.
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

impl<T> Asker<T> {
    /// The payer of what it asks; IPv6 addresses with as many first bits in common are one subscriber's. `proven`: a stream or a cookie
    /// shows that the address is not forged.
    #[must_use]
    pub fn payer(&self, prefix_length: u8, proven: bool) -> Payer {
        match self.transport {
            Transport::Udp | Transport::Tcp | Transport::Tls | Transport::Https => {
                Payer::of(self.address, prefix_length, proven)
            }
            Transport::Inside => Payer::OWN,
        }
    }
}

/// The outcome of a query.
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
    /// The payer of it.
    pub payer: Payer,
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
    /// It could not be sent for lack of room here: descriptors, or places of a queue.
    NoRoom,
}
