//! The NAT that the server controls (RFC 6887 §4), as the server knows it.

use super::filter::Filter;
use super::mapping::{Internal, Transport};
use super::result_code::ResultCode;
use core::net::{IpAddr, Ipv4Addr};
use sixway_wire::Endpoint4;

/// The external endpoint that a client suggests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Suggested {
    pub(super) address: Option<Ipv4Addr>,
    pub(super) port: u16,
}

/// A mapping that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The transport protocol.
    pub transport: Transport,
    /// The inside endpoint.
    pub internal: Internal,
    /// The external address that is preferred.
    pub address: Option<Ipv4Addr>,
    /// The external port that is preferred; 0: any.
    pub port: u16,
    /// Whether another external endpoint is refused.
    pub exactly: bool,
    /// Whether the external port of the same number of the other transport protocol is to be kept for the host (RFC 6886 §3.3). A new
    /// mapping gets a port whose companion no other host has.
    pub companion: bool,
    /// Remote hosts that may use it; empty: all.
    pub filters: &'a [Filter],
}

/// An outbound mapping that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedPeer {
    /// The transport protocol.
    pub transport: Transport,
    /// The inside endpoint.
    pub internal: Internal,
    /// The remote endpoint.
    pub remote: Endpoint4,
    /// The external address that is wanted.
    pub address: Option<Ipv4Addr>,
    /// The external port that is wanted; 0: any.
    pub port: u16,
}

/// The origin of an existing binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingKind {
    /// The administrator.
    Static,
    /// A request by PCP or NAT-PMP.
    Explicit,
    /// A packet from inside.
    Dynamic,
}

/// A binding that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Existing {
    /// The outside endpoint.
    pub external: Endpoint4,
    /// Its origin.
    pub kind: ExistingKind,
}

/// The outcome of a mapping that was wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The outside endpoint.
    pub external: Endpoint4,
    /// Whether the administrator made the binding: then it needs no renewal.
    pub is_static: bool,
    /// Seconds for which its sessions keep it, whatever lifetime the client requests.
    pub used_for: u32,
}

/// The outcome of a mapping that was released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// Seconds for which its sessions keep the binding if no packet comes; zero: it has ended.
    pub used_for: u32,
}

/// Why the NAT does not make a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The host is not one that the NAT serves.
    NotServed,
    /// The subscriber has as many as it may.
    SubscriberLimit,
    /// A table or the pool is full, or the NAT is busy.
    Full,
    /// The wanted external endpoint is not available.
    ExternalTaken,
    /// The NAT has no external address.
    NoExternal,
    /// No session may lead to this remote host.
    RemoteInvalid,
}

impl Refusal {
    /// What the client gets.
    pub(super) const fn result(self) -> ResultCode {
        match self {
            Self::NotServed => ResultCode::NotAuthorized,
            Self::SubscriberLimit => ResultCode::UserExQuota,
            Self::Full => ResultCode::NoResources,
            Self::ExternalTaken => ResultCode::CannotProvideExternal,
            Self::NoExternal => ResultCode::NetworkFailure,
            Self::RemoteInvalid => ResultCode::MalformedRequest,
        }
    }
}

/// A NAT44 or NAT64, or both.
pub trait ControlledNat {
    /// Whether a host is inside.
    fn serves(&self, host: IpAddr) -> bool;

    /// Makes a mapping, or changes the filters of the one that the inside endpoint has. A binding that exists keeps its outside endpoint.
    ///
    /// # Errors
    /// Why it is not made; then nothing has changed.
    fn open(&mut self, wanted: &Wanted<'_>) -> Result<Opened, Refusal>;

    /// Releases a mapping. Sessions keep its binding as they keep any other.
    fn close(&mut self, transport: Transport, internal: Internal) -> Closed;

    /// Ends the sessions of a host, and its bindings that no administrator made: the host no longer has this address.
    fn end_host(&mut self, host: IpAddr);

    /// The binding of an inside endpoint.
    fn find(&mut self, transport: Transport, internal: Internal) -> Option<Existing>;

    /// Whether the administrator made a binding of a host.
    fn has_static(&mut self, transport: Transport, host: IpAddr) -> bool;

    /// Makes an outbound mapping as a packet from inside would, or finds the one that exists. Returns the outside endpoint, and for how many seconds
    /// the mapping is kept.
    ///
    /// # Errors
    /// Why it is not made; then nothing has changed.
    fn peer(&mut self, wanted: &WantedPeer) -> Result<(Endpoint4, u32), Refusal>;

    /// The external address of a host: the one that it has, or would get.
    fn external_address(&mut self, host: IpAddr) -> Option<Ipv4Addr>;
}
