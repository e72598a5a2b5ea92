//! The servers that are compared.

use crate::failure::Failure;
use crate::programs;
use crate::sixway::sixway;

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// NLnet Labs' unbound.
    Unbound,
    /// ISC's BIND.
    Bind,
    /// PowerDNS's recursor.
    Recursor,
    /// Sixway.
    Sixway,
}

impl Server {
    /// All of them, Sixway last.
    pub const ALL: [Self; 4] = [Self::Unbound, Self::Bind, Self::Recursor, Self::Sixway];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unbound => "unbound",
            Self::Bind => "BIND",
            Self::Recursor => "pdns-recursor",
            Self::Sixway => "sixway",
        }
    }

    /// Its program.
    pub const fn program(self) -> &'static str {
        match self {
            Self::Unbound => "unbound",
            Self::Bind => "named",
            Self::Recursor => "pdns_recursor",
            Self::Sixway => "sixway",
        }
    }

    /// Why it cannot run here, if it cannot.
    pub fn cannot_run(self) -> Option<Failure> {
        let own = match self {
            Self::Sixway => sixway(),
            peer => programs::require(peer.program()),
        };
        own.and(programs::require("nsd")).and(programs::require("taskset")).err()
    }
}
