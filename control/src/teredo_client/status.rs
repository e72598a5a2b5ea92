//! What a client knows, in words.

use super::action::ClientState;
use super::refused::Refused;
use core::fmt;
use core::net::Ipv4Addr;
use core::time::Duration;
use sixway_wire::Endpoint4;

/// Why a client has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It has not been started.
    NotStarted,
    /// No server is configured.
    NoServer,
    /// This host has no IPv4 address to send from.
    NoLocalAddress,
    /// The host's IPv4 address changed, and with it everything.
    Moved,
    /// This host has IPv6 by other means (RFC 4380 §5.5).
    NativeIpv6,
    /// The server in use does not answer.
    NoAnswer(Ipv4Addr),
    /// The server's first address answers, and its second one does not.
    NoSecondAnswer(Ipv4Addr),
    /// None of several servers answers.
    Blocked(u16),
    /// What came in place of an answer was refused.
    BadAnswer(Refused),
    /// The NAT is symmetric, and RFC 6081 is off.
    Symmetric,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted => f.write_str("not started"),
            Self::NoServer => f.write_str("no server is configured"),
            Self::NoLocalAddress => f.write_str("this host has no IPv4 address"),
            Self::Moved => f.write_str("the IPv4 address of this host changed"),
            Self::NativeIpv6 => f.write_str("this host has native IPv6"),
            Self::NoAnswer(server) => write!(f, "no answer from server {server}"),
            Self::NoSecondAnswer(address) => {
                write!(f, "no answer from the server's second address {address}")
            }
            Self::Blocked(servers) => {
                write!(f, "no answer from any of {servers} servers: UDP to port 3544 is probably blocked")
            }
            Self::BadAnswer(refused) => write!(f, "the answer was refused: {refused}"),
            Self::Symmetric => f.write_str("the NAT is symmetric, and support for it is off"),
        }
    }
}

/// What a client does.
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
    /// Anybody reaches the mapped port.
    Cone,
    /// Mapped ports are the same for all destinations; only those reach them that were sent to, as far as is known.
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

/// What a client knows.
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
    /// Answers that told a changed mapping which a second one did not confirm.
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
        match self.why {
            Some(why) => write!(f, ": {why}"),
            None => Ok(()),
        }
    }
}
