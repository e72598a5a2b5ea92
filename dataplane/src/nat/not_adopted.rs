//! Why a session of another process does not become one here.

use core::fmt;

/// Why a session of another process is not carried on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAdopted {
    /// There is no such translator.
    NoTranslator,
    /// A fast path does not carry this protocol, or a session in this state waits for what the other process has.
    NotCarried,
    /// Another worker owns one of its endpoints.
    OtherWorker,
    /// An address is not one of a host that this translator serves.
    AddressRefused,
    /// The outside address is not one of the pool's, or the port is not one that is given, or it belongs to another.
    PortNotGiven,
    /// One of the endpoints has another binding.
    EndpointInUse,
    /// There is such a session.
    SessionExists,
    /// A table is full.
    TableFull,
    /// Its subscriber has as many bindings as it may have.
    SubscriberLimit,
    /// Its lifetime is over.
    Expired,
}

impl fmt::Display for NotAdopted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTranslator => "there is no such translator",
            Self::NotCarried => "such a session cannot be carried on",
            Self::OtherWorker => "its endpoints belong to different workers, or to another one",
            Self::AddressRefused => "an address is refused by the configuration",
            Self::PortNotGiven => "the outside endpoint is not the pool's to give, or belongs to another",
            Self::EndpointInUse => "one of its endpoints has another binding",
            Self::SessionExists => "there is such a session",
            Self::TableFull => "a table is full",
            Self::SubscriberLimit => "its subscriber has as many bindings as it may have",
            Self::Expired => "its lifetime is over",
        })
    }
}

impl core::error::Error for NotAdopted {}
