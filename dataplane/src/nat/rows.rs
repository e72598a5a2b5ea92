//! Bindings and sessions as rows, for display. Dumps are cursors: a call examines `slots` slots and says where to
//! continue, so that a table of a million sessions never holds the packets up.

use super::inside_key::InsideKey;
use super::protocol::NatProtocol;
use super::sides::{Inside, Outside};
use core::net::Ipv6Addr;
use core::time::Duration;
use sixway_wire::{Endpoint4, Endpoint6, Prefix4, Prefix6};

/// Which rows are wanted; what is `None` does not narrow them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection<N = Prefix6> {
    /// Only this protocol.
    pub protocol: Option<NatProtocol>,
    /// Only inside addresses in this prefix.
    pub inside: Option<N>,
    /// Only this inside port.
    pub inside_port: Option<u16>,
    /// Only outside addresses in this prefix.
    pub outside: Option<Prefix4>,
    /// Only this outside port.
    pub outside_port: Option<u16>,
    /// Only sessions whose remote address lies in this prefix.
    pub remote: Option<Prefix4>,
    /// Only sessions with this remote port.
    pub remote_port: Option<u16>,
}

impl<N> Default for Selection<N> {
    /// All rows.
    fn default() -> Self {
        Self {
            protocol: None,
            inside: None,
            inside_port: None,
            outside: None,
            outside_port: None,
            remote: None,
            remote_port: None,
        }
    }
}

impl<N: Copy> Selection<N> {
    pub(crate) fn holds<I: InsideKey<Network = N>>(
        &self,
        protocol: NatProtocol,
        (inside, names): (Option<Inside<I>>, &I::Names),
        outside: Outside<Endpoint4>,
    ) -> bool {
        self.protocol.is_none_or(|wanted| wanted == protocol)
            && self.inside.is_none_or(|wanted| inside.is_some_and(|i| i.0.is_in(wanted, names)))
            && self.inside_port.is_none_or(|wanted| inside.is_some_and(|i| wanted == i.0.port()))
            && self.outside.is_none_or(|wanted| wanted.contains(outside.0.address))
            && self.outside_port.is_none_or(|wanted| wanted == outside.0.port)
    }

    pub(crate) fn holds_remote(&self, remote: Endpoint4) -> bool {
        self.remote.is_none_or(|wanted| wanted.contains(remote.address))
            && self.remote_port.is_none_or(|wanted| wanted == remote.port)
    }
}

/// A session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionRow<I = Endpoint6> {
    /// Protocol.
    pub protocol: NatProtocol,
    /// The remote end of the softwire that the inside endpoint is behind.
    pub softwire: Option<Ipv6Addr>,
    /// Inside endpoint; `None`: an inbound SYN waits whose outside endpoint has no binding.
    pub inside: Option<Inside<I>>,
    /// Outside endpoint.
    pub outside: Outside<Endpoint4>,
    /// Remote endpoint; the port is 0 for ICMP.
    pub remote: Endpoint4,
    /// Name of the state.
    pub state: &'static str,
    /// Time since the last packet, to the second.
    pub idle: Duration,
    /// Time until the session ends if no packet comes. An established TCP session becomes transitory first, which counts.
    pub ends_in: Duration,
    /// Packets out, a GSO packet's segments each.
    pub packets_out: u64,
    /// Packets in.
    pub packets_in: u64,
    /// Octets out, IP headers included.
    pub octets_out: u64,
    /// Octets in.
    pub octets_in: u64,
    /// Whether the fast path has an entry for it. What went by there is in the figures above.
    pub offloaded: bool,
}

/// A binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindingRow<I = Endpoint6> {
    /// Protocol.
    pub protocol: NatProtocol,
    /// The remote end of the softwire that the inside endpoint is behind.
    pub softwire: Option<Ipv6Addr>,
    /// Inside endpoint.
    pub inside: Inside<I>,
    /// Outside endpoint.
    pub outside: Outside<Endpoint4>,
    /// Whether the administrator made it.
    pub is_static: bool,
    /// Whether it is kept by request of its host.
    pub is_explicit: bool,
    /// Its sessions.
    pub sessions: u32,
}

/// How full a NAT is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Live sessions.
    pub sessions: u32,
    /// Most sessions.
    pub max_sessions: u32,
    /// Live bindings.
    pub bindings: u32,
    /// Most bindings.
    pub max_bindings: u32,
    /// Addresses of the pool.
    pub addresses: u64,
    /// Ports of each address that this worker may give.
    pub ports: u32,
    /// Endpoints of the pool that are taken, by protocol ([`super::NatProtocol`]).
    pub taken: [u64; 3],
}
