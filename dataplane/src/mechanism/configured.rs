//! Configured tunnels (RFC 4213): IPv6 in IPv4 between two endpoints.
//!
//! ```text
//!     2001:db8:1::/48 ─── 192.0.2.9 ════ IPv4 ════ 198.51.100.7 ─── 2001:db8:7::/48
//!                          local                     remote           prefixes
//! ```
//!
//! The configuration alone says where the remote end is. Packets do not: a spoofed source would move the tunnel.

use super::contract::{self, Build, BuildContext, Claims};
use super::six_in_four::Tunnel;
use crate::drop_reason::DropReason;
use crate::kind::Kind;
use crate::parse::Packet;
use crate::source_check::is_martian4;
use crate::tunnel::TunnelPolicy;
use crate::tunnel::decision::Arrived;
use crate::tunnel::neighbour_discovery::Discovery;
use crate::tunnel::outer_nat::OuterNat;
use crate::verdict::PolicyId;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use sixway_wire::Prefix6;

/// Configuration of one configured tunnel.
#[derive(Clone, Debug)]
pub struct ConfiguredConfig {
    /// This end.
    pub local: Ipv4Addr,
    /// The remote end; `None` until its name is resolved.
    pub remote: Option<Ipv4Addr>,
    /// Prefixes behind the remote end, routed into the tunnel.
    pub prefixes: Vec<Prefix6>,
    /// Only inner sources within `prefixes` are accepted (RFC 4213 §3.6: strict ingress filtering).
    pub strict_sources: bool,
    /// Options of the tunnel.
    pub policy: TunnelPolicy,
}

/// Why a configured tunnel is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfiguredFault {
    /// Both ends have the same address.
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
    /// Checks the configuration.
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
    nat: Option<OuterNat>,
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
            nat: None,
        }
    }

    /// RFC 4213 §3.6: the outer source is the remote end, the inner source is behind it.
    #[inline(always)]
    fn check_source(&self, arrived: Arrived) -> Result<(), DropReason> {
        if self.remote != Some(arrived.from) {
            return Err(DropReason::NoTunnel);
        }
        if !self.strict_sources || self.is_behind_remote_end(arrived.source) {
            Ok(())
        } else {
            Err(DropReason::SourceNotInTunnel)
        }
    }

    #[inline(always)]
    fn is_behind_remote_end(&self, address: Ipv6Addr) -> bool {
        self.prefixes.iter().any(|prefix| prefix.contains(address))
    }
}

impl contract::Configured for ConfiguredConfig {
    fn claims(&self) -> Claims {
        Claims { destinations6: self.prefixes.clone(), ..Claims::default() }
    }

    fn tunnel_policy(&self) -> TunnelPolicy {
        self.policy
    }

    fn local(&self) -> Option<Ipv4Addr> {
        Some(self.local)
    }

    fn relays(&self) -> Vec<IpAddr> {
        self.remote.filter(|_| self.leads_everywhere()).into_iter().map(IpAddr::V4).collect()
    }
}

impl Build for ConfiguredConfig {
    type State = Configured;
    type Fault = Infallible;

    fn build(&self, policy: PolicyId, context: &BuildContext) -> Result<Configured, Infallible> {
        let nat = context.outer_nat(self.local);
        Ok(Configured { nat, ..Configured::new(self, policy) })
    }
}

impl Tunnel for Configured {
    const KIND: Kind = Kind::Configured;

    #[inline(always)]
    fn policy(&self) -> PolicyId {
        self.policy
    }

    #[inline(always)]
    fn nat(&self) -> Option<&OuterNat> {
        self.nat.as_ref()
    }

    #[inline(always)]
    fn ends(&self, _packet: &Packet) -> Result<(Ipv4Addr, Ipv4Addr), DropReason> {
        Ok((self.local, self.remote.ok_or(DropReason::NoRemote)?))
    }

    #[inline(always)]
    fn check(&self, arrived: Arrived) -> Result<(), DropReason> {
        self.check_source(arrived)
    }

    /// Between the two ends (RFC 4213 §3.8).
    fn is_discovery(&self, arrived: Arrived, inner: &Packet) -> Result<bool, DropReason> {
        Ok(self.remote == Some(arrived.from) && Discovery::of(inner).is_some() && arrived.is_link_local())
    }

    fn remote(&self) -> Option<Ipv4Addr> {
        self.remote
    }

    #[inline(always)]
    fn claims(&self, arrived: Arrived) -> bool {
        self.check_source(arrived).is_ok()
    }

    fn may_come_from(&self, outer: Ipv4Addr) -> bool {
        self.remote == Some(outer)
    }

    fn sent(&self, _source: Ipv6Addr, destination: Ipv6Addr, outer: Ipv4Addr) -> bool {
        self.remote == Some(outer) && self.is_behind_remote_end(destination)
    }
}
