//! Configured tunnels (RFC 4213): IPv6 in IPv4 between two endpoints.
//!
//! ```text
//!     2001:db8:1::/48 ─── 192.0.2.9 ════ IPv4 ════ 198.51.100.7 ─── 2001:db8:7::/48
//!                          local                     remote           prefixes
//! ```
//!
//! Whoever configures the tunnel says where the other end is. Packets never do: one with a spoofed source would move the tunnel.

use crate::classify::source_check::is_martian4;
use crate::drop_reason::DropReason;
use crate::parse::Packet;
use crate::tunnel::TunnelPolicy;
use crate::tunnel::decision::{Arrived, decap, encap};
use crate::tunnel::neighbour_discovery::Discovery;
use crate::verdict::{Decision, PolicyId};
use alloc::vec::Vec;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::Prefix6;

/// Configuration of one configured tunnel.
#[derive(Clone, Debug)]
pub struct ConfiguredConfig {
    /// This end.
    pub local: Ipv4Addr,
    /// The other end; none while it is not known, because its name has not been resolved.
    pub remote: Option<Ipv4Addr>,
    /// What is behind the other end, and routed into the tunnel.
    pub prefixes: Vec<Prefix6>,
    /// Only inner sources within `prefixes` are taken (RFC 4213 §3.6: strict ingress filtering).
    pub strict_sources: bool,
    /// Options of the tunnel.
    pub policy: TunnelPolicy,
}

/// Why a configured tunnel cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfiguredFault {
    /// Both ends are one.
    EndsAreOne,
}

impl fmt::Display for ConfiguredFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndsAreOne => f.write_str("both ends of the tunnel have the same address"),
        }
    }
}

impl std::error::Error for ConfiguredFault {}

impl ConfiguredConfig {
    /// Whether it can be.
    pub fn check(&self) -> Result<(), ConfiguredFault> {
        if self.remote == Some(self.local) { Err(ConfiguredFault::EndsAreOne) } else { Ok(()) }
    }
}

/// A configured tunnel.
pub struct Configured {
    local: Ipv4Addr,
    remote: Option<Ipv4Addr>,
    prefixes: Vec<Prefix6>,
    strict_sources: bool,
    policy: PolicyId,
}

impl Configured {
    /// A tunnel whose packets follow the policy of this number.
    pub fn new(config: &ConfiguredConfig, policy: PolicyId) -> Self {
        Self {
            local: config.local,
            // A name may lead anywhere.
            remote: config.remote.filter(|remote| !is_martian4(*remote)),
            prefixes: config.prefixes.clone(),
            strict_sources: config.strict_sources,
            policy,
        }
    }

    /// This end.
    pub const fn local(&self) -> Ipv4Addr {
        self.local
    }

    /// The other end.
    pub const fn remote(&self) -> Option<Ipv4Addr> {
        self.remote
    }

    /// Whether a packet is the tunnel's, by its outer and its inner source.
    #[inline(always)]
    pub fn claims(&self, arrived: Arrived) -> bool {
        self.check_source(arrived).is_ok()
    }

    /// What to do with an IPv6 packet that is routed into the tunnel.
    #[inline(always)]
    pub fn decide_out(&self) -> Result<Decision, DropReason> {
        let remote = self.remote.ok_or(DropReason::NoRemote)?;
        Ok(encap(self.local, remote, self.policy))
    }

    /// What to do with a packet that came through the tunnel.
    #[inline(always)]
    pub fn decide_in(&self, arrived: Arrived) -> Result<Decision, DropReason> {
        self.check_source(arrived)?;
        Ok(decap(self.policy))
    }

    /// Whether a packet is neighbour discovery between the two ends (RFC 4213 §3.8), which control answers.
    pub fn is_discovery(&self, arrived: Arrived, inner: &Packet) -> bool {
        self.remote == Some(arrived.from) && Discovery::of(inner).is_some() && arrived.is_link_local()
    }

    /// Whether a packet between these inner addresses is sent to that outer destination.
    pub fn sent(&self, _source: Ipv6Addr, destination: Ipv6Addr, outer: Ipv4Addr) -> bool {
        self.remote == Some(outer) && self.is_behind_other_end(destination)
    }

    /// Whether the tunnel's packets may have this outer source: asked of fragments, which show no more.
    pub fn may_come_from(&self, outer: Ipv4Addr) -> bool {
        self.remote == Some(outer)
    }

    /// RFC 4213 §3.6: the outer source is the other end, the inner source is behind it.
    #[inline(always)]
    fn check_source(&self, arrived: Arrived) -> Result<(), DropReason> {
        if self.remote != Some(arrived.from) {
            return Err(DropReason::NoTunnel);
        }
        if !self.strict_sources || self.is_behind_other_end(arrived.source) {
            Ok(())
        } else {
            Err(DropReason::SourceNotInTunnel)
        }
    }

    #[inline(always)]
    fn is_behind_other_end(&self, address: Ipv6Addr) -> bool {
        self.prefixes.iter().any(|prefix| prefix.contains(address))
    }
}
