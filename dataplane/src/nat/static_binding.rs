//! Bindings that the administrator configures, and why one cannot be made.

use super::protocol::NatProtocol;
use super::sides::{Inside, Outside};
use core::fmt;
use core::net::Ipv6Addr;
use sixway_wire::{Endpoint4, Endpoint6};

/// A binding that the administrator configures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticBinding<I = Endpoint6> {
    /// Which BIB.
    pub protocol: NatProtocol,
    /// The remote end of the softwire that it is behind; `None` also where the inside endpoint says it.
    pub softwire: Option<Ipv6Addr>,
    /// The inside endpoint.
    pub inside: Inside<I>,
    /// The outside endpoint: an address of the pool, with any port.
    pub outside: Outside<Endpoint4>,
}

/// Why a static binding cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaticBindingError {
    /// The outside address is not one of the pool's.
    NotInPool,
    /// The inside endpoint has another binding in this BIB.
    InsideInUse,
    /// The outside endpoint has another binding in this BIB.
    OutsideInUse,
    /// The table of bindings is full.
    TableFull,
    /// The inside address is not one that the translator serves.
    NotInside,
    /// The inside endpoint is of the other family.
    OtherFamily,
    /// The table of softwires is full.
    SoftwireTableFull,
}

impl fmt::Display for StaticBindingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotInPool => "the outside address is not in the pool",
            Self::InsideInUse => "the inside address and port already have another binding",
            Self::OutsideInUse => "the outside address and port already have another binding",
            Self::TableFull => "the table of bindings is full",
            Self::NotInside => "the inside address is not in the prefixes of `inside`",
            Self::OtherFamily => "the inside address is of the other address family",
            Self::SoftwireTableFull => "the table of softwires is full",
        })
    }
}

impl core::error::Error for StaticBindingError {}
