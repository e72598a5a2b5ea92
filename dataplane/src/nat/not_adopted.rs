//! Why a session of another process does not become one here.

use core::fmt;

/// Why a session of another process is not restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAdopted {
    /// Its translator does not exist.
    NoTranslator,
    /// The fast path does not offload this protocol, or a session in this state depends on data of the other process.
    NotCarried,
    /// Another worker owns one of its endpoints.
    OtherWorker,
    /// The translator does not serve one of the addresses.
    AddressRefused,
    /// The outside endpoint is not in the pool, or belongs to another binding.
    PortNotGiven,
    /// One of the endpoints has another binding.
    EndpointInUse,
    /// The session already exists.
    SessionExists,
    /// A table is full.
    TableFull,
    /// Its subscriber has reached the limit of bindings.
    SubscriberLimit,
    /// Its lifetime is over.
    Expired,
}

impl fmt::Display for NotAdopted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTranslator => "the translator does not exist",
            Self::NotCarried => "a session in this state cannot be restored",
            Self::OtherWorker => "its endpoints belong to different workers, or to another worker",
            Self::AddressRefused => "an address is refused by the configuration",
            Self::PortNotGiven => "the outside endpoint is not in the pool, or belongs to another binding",
            Self::EndpointInUse => "one of its endpoints has another binding",
            Self::SessionExists => "the session already exists",
            Self::TableFull => "a table is full",
            Self::SubscriberLimit => "its subscriber has reached the limit of bindings",
            Self::Expired => "its lifetime has expired",
        })
    }
}

impl core::error::Error for NotAdopted {}
