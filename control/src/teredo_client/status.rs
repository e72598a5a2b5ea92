//! The status of a client, in words.

use super::action::ClientState;
use super::refused::Refused;
use super::why::Why;
use core::fmt;
use core::net::Ipv4Addr;
use core::time::Duration;
use sixway_wire::Endpoint4;

/// What a client is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing.
    Stopped,
    /// It asks its server.
    Qualifying,
    /// It asks the second address of its server.
    ComparingMappings,
    /// It has an address.
    Qualified,
    /// It waits until it tries again.
    Waiting,
}

impl Phase {
    /// In a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Qualifying => "qualifying",
            Self::ComparingMappings => "comparing mappings",
            Self::Qualified => "qualified",
            Self::Waiting => "waiting",
        }
    }
}

/// The kind of NAT that was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NatKind {
    /// Nothing is known.
    #[default]
    Unknown,
    /// There is no NAT: the mapped endpoint is the local one.
    Absent,
    /// Any endpoint can send to the mapped port.
    Cone,
    /// The mapped port is the same for all destinations; as far as is known, only endpoints that were sent to can send to it.
    Restricted,
    /// Mapped ports differ by destination.
    Symmetric,
}

impl NatKind {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Absent => "none",
            Self::Cone => "cone",
            Self::Restricted => "restricted or port-restricted cone",
            Self::Symmetric => "symmetric",
        }
    }
}

/// How the NAT chooses ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortChoice {
    /// Nothing is known.
    #[default]
    Unknown,
    /// The mapped port is the local one.
    Preserved,
    /// The next mapping had one of the next ports.
    Sequential,
    /// Any.
    Other,
}

impl PortChoice {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Preserved => "preserved",
            Self::Sequential => "sequential",
            Self::Other => "not predictable",
        }
    }
}

/// The status of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// What it does.
    pub phase: Phase,
    /// Why it has no address; `None`: it has one, or nothing has failed yet.
    pub why: Option<Why>,
    /// The address in use.
    pub in_use: Option<ClientState>,
    /// The server that it asks or uses.
    pub server: Option<Ipv4Addr>,
    /// The local end.
    pub local: Option<Endpoint4>,
    /// The kind of NAT.
    pub nat: NatKind,
    /// Its choice of ports.
    pub ports: PortChoice,
    /// Teredo Refresh Interval.
    pub interval: Duration,
    /// Since the last answer of the server.
    pub answered: Option<Duration>,
    /// Until the next attempt, if it waits.
    pub next: Option<Duration>,
    /// The server announced that the secret must be replaced (RFC 4380 §5.2.2).
    pub key_expires: bool,
    /// How often the mapped address or port changed.
    pub mapping_changes: u64,
    /// Answers with a changed mapping that a second one did not confirm.
    pub changes_unconfirmed: u64,
    /// Datagrams discarded.
    pub refused: u64,
    /// Why the last one was.
    pub last_refused: Option<Refused>,
}

impl Status {
    /// The mapped endpoint.
    pub fn mapped(&self) -> Option<Endpoint4> {
        self.in_use.map(|state| state.address.mapped())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.phase.word())?;
        if let Some(server) = self.server {
            write!(f, ", server {server}")?;
        }
        if let Some(state) = self.in_use {
            write!(f, ", {} mapped to {}", state.address.address(), state.address.mapped())?;
            write!(f, ", NAT {}, ports {}", self.nat.words(), self.ports.words())?;
        }
        if let Some(why) = self.why {
            write!(f, ": {why}")?;
        }
        match self.next {
            Some(next) => write!(f, "; next attempt in {} s", next.as_secs()),
            None => Ok(()),
        }
    }
}
