//! Mechanisms that are left to the engine, and why.

use core::fmt;
use core::net::Ipv4Addr;
use sixway_dataplane::mechanism::table::Kind;

/// A mechanism, as it is counted: its place among those of its kind, or of all tunnels, in the order of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mechanism {
    /// A stateful translator.
    Nat64(usize),
    /// A stateless translator.
    Siit(usize),
    /// A tunnel.
    Tunnel(usize),
    /// One of another kind, for which the programs have no rules.
    Other(Kind),
}

/// UnofferedReason a mechanism is left to the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnofferedReason {
    /// Too many for the programs' arrays.
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many there is room for.
        room: usize,
    },
    /// Another tunnel that ends at the same address is left to the engine.
    SharesEnd(Ipv4Addr),
    /// Its hosts without a mapping have addresses of a dynamic pool; only they are left to the engine.
    DynamicPool,
    /// The programs have no rules for such a mechanism.
    EngineAlone,
    /// The programs do not know which IPv4 addresses are excluded.
    ExcludedAddresses,
    /// The kernel's routes do not follow from the destination alone.
    Routing(String),
    /// A NAT44 translates what the tunnel sends.
    Translated,
    /// Packets for this one may be another mechanism's, by where they go.
    OthersDestinations(Kind),
}

impl fmt::Display for UnofferedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { what, room } => write!(f, "too many {what}; the fast path has room for {room}"),
            Self::SharesEnd(address) => {
                write!(f, "another tunnel that ends at {address} is not in the fast path")
            }
            Self::DynamicPool => f.write_str(
                "the engine forwards hosts of its dynamic pool; the fast path forwards hosts with a mapping",
            ),
            Self::ExcludedAddresses => f.write_str("the fast path does not support exclude_ipv4 of SIIT"),
            Self::EngineAlone => f.write_str("the fast path does not support this mechanism"),
            Self::Translated => {
                f.write_str("nat44.translate_own_tunnels: its packets are translated by the engine")
            }
            Self::Routing(why) => f.write_str(why),
            Self::OthersDestinations(kind) => {
                write!(f, "packets may belong to {}, which the fast path does not support", kind.title())
            }
        }
    }
}

/// A mechanism that the fast path does not carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unoffered {
    /// Which one.
    pub mechanism: Mechanism,
    /// UnofferedReason.
    pub why: UnofferedReason,
}
