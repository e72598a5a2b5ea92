//! Configured tunnels (RFC 4213): IPv6 in IPv4 between two fixed endpoints.

use crate::drop_reason::DropReason;
use crate::parse::{Addresses, Packet};
use crate::tunnel::TunnelPolicy;
use crate::verdict::{Action, Decision, Edit, Next, PolicyId, Repeat};
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::Prefix6;

/// Configuration of one configured tunnel.
#[derive(Clone, Debug)]
pub struct ConfiguredConfig {
    /// This end.
    pub local: Ipv4Addr,
    /// The other end.
    pub remote: Ipv4Addr,
    /// What is behind the other end.
    pub prefixes: Vec<Prefix6>,
    /// Options of the tunnel.
    pub policy: TunnelPolicy,
}

/// A configured tunnel.
pub struct Configured {
    local: Ipv4Addr,
    remote: Ipv4Addr,
    policy: PolicyId,
}

impl Configured {
    /// A tunnel whose packets follow the policy of this number.
    pub const fn new(config: &ConfiguredConfig, policy: PolicyId) -> Self {
        Self { local: config.local, remote: config.remote, policy }
    }

    /// This end.
    pub const fn local(&self) -> Ipv4Addr {
        self.local
    }

    /// The other end, which no other tunnel's packets come from.
    pub const fn remote(&self) -> Option<Ipv4Addr> {
        Some(self.remote)
    }

    /// Whether packets like this one may be the tunnel's. It is asked for outer sources that are nobody's exactly.
    pub const fn claims(&self, _outer: &Packet, _inner: &Packet) -> bool {
        false
    }

    /// What to do with an IPv6 packet that is routed into the tunnel.
    #[inline]
    pub const fn decide_out(&self, _packet: &Packet) -> Result<Decision, DropReason> {
        let edit = Edit::Encap4 { source: self.local, destination: self.remote };
        let action = Action { edit, policy: self.policy };
        Ok(Decision { action, quoted: None, repeat: Repeat::Rule, next: Next::Leave })
    }

    /// What to do with a packet that came through the tunnel.
    #[inline]
    pub fn decide_in(&self, outer: &Packet, _inner: &Packet) -> Result<Decision, DropReason> {
        let Addresses::V4 { source, .. } = outer.addresses else { return Err(DropReason::NoTunnel) };
        if source != self.remote {
            return Err(DropReason::NoTunnel); // RFC 4213 §3.6
        }
        let action = Action { edit: Edit::Decap, policy: self.policy };
        Ok(Decision { action, quoted: None, repeat: Repeat::Rule, next: Next::Leave })
    }

    /// Whether this tunnel sends packets between these inner addresses to that outer destination.
    pub fn sent(&self, _source: Ipv6Addr, _destination: Ipv6Addr, outer: Ipv4Addr) -> bool {
        outer == self.remote
    }
}
