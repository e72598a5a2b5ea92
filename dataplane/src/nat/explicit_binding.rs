//! Bindings that inside hosts request (RFC 6887): a dynamic binding that is kept for them, with or without sessions, until it is released.
//!
//! It has the port, the limits and the quotas of any dynamic binding. A binding that packets made before becomes explicit as it is, and
//! continues as it was when it is released.

use super::protocol::NatProtocol;
use super::sides::{Inside, Outside};
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::{Endpoint4, Endpoint6, Prefix4};

/// Remote endpoints that may open sessions to an explicit binding from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteFilter {
    /// Their addresses.
    pub remote: Prefix4,
    /// Their port; 0: any.
    pub port: u16,
}

impl RemoteFilter {
    /// Whether a remote endpoint is one of them.
    pub fn admits(&self, remote: Endpoint4) -> bool {
        self.remote.contains(remote.address) && (self.port == 0 || self.port == remote.port)
    }
}

/// The outside endpoint that an inside host would like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WantedOutside {
    /// The address; `None`: the one that the host has.
    pub address: Option<Ipv4Addr>,
    /// The port; 0: any.
    pub port: u16,
    /// Whether no other endpoint will do.
    pub exactly: bool,
}

/// An explicit binding that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplicitBinding<I = Endpoint6> {
    /// Which BIB.
    pub protocol: NatProtocol,
    /// The remote end of the softwire that the host is behind.
    pub softwire: Option<Ipv6Addr>,
    /// The inside endpoint.
    pub inside: Inside<I>,
    /// Its outside endpoint, as far as that is wanted.
    pub wanted: WantedOutside,
    /// Remote hosts that may open sessions; empty: all.
    pub filters: Vec<RemoteFilter>,
}

/// The binding of an inside endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundEndpoint {
    /// The outside endpoint.
    pub outside: Outside<Endpoint4>,
    /// Whether the administrator made it.
    pub is_static: bool,
    /// Whether it is kept by request.
    pub is_explicit: bool,
    /// Seconds for which its sessions keep it if no packet comes.
    pub used_for: u32,
}

/// Why there is no binding as wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotBound {
    /// Another worker has the host's bindings.
    OtherWorker,
    /// The translator does not serve the host.
    NotInside,
    /// The subscriber has as many as it may.
    SubscriberLimit,
    /// A table or the pool is full.
    Full,
    /// The wanted outside endpoint is another's, or not one that this worker gives.
    OutsideInUse,
    /// No session may lead to this remote host.
    RemoteRefused,
}
