//! Which ICMP errors lower a path MTU. It needs no engine, and is used to pass the errors to the right worker.

use super::build_context::tunnel_states;
use super::config::{EngineConfig, TunnelConfig};
use super::tunnel_addresses::{TunnelAddresses, TunnelAt};
use crate::instant::Instant;
use crate::mechanism::table::Mechanisms;
use crate::tunnel::TunnelPolicy;
use crate::tunnel::path_mtu::{Learnt, PathMtus};
use crate::tunnel::relayed_error::Says;
use core::net::Ipv4Addr;

/// The judge of ICMP errors from the paths of tunnels.
pub struct PathErrorJudge {
    mechanisms: Mechanisms,
    ends: TunnelAddresses,
    policies: Vec<TunnelPolicy>,
    /// MTU of the first link of every path, in octets.
    mtu4: u16,
    seed: u64,
}

impl PathErrorJudge {
    /// For these tunnels.
    pub fn new(config: &EngineConfig) -> Self {
        let seed = config.seed[1];
        let (mechanisms, tunnels) = tunnel_states(config);
        let tunnels: Vec<(TunnelAt, Ipv4Addr)> = tunnels;
        let ends = TunnelAddresses::new(tunnels.into_iter(), &mechanisms, seed);
        let policies = config.tunnels.iter().map(TunnelConfig::tunnel_policy).collect();
        Self { mechanisms, ends, policies, mtu4: config.limits.mtu4, seed }
    }

    /// The remote end of a tunnel whose path MTU is below that of its first link, if a whole ICMPv4 error says so and is plausible:
    /// it quotes what the tunnel sends, whose packets are not fragmented at will, and the MTU is one that a link can have (RFC 1191 §3).
    pub fn narrow(&self, octets: &[u8]) -> Option<Ipv4Addr> {
        let (error, number) = self.ends.error_in(octets)?;
        let through = self.ends.sent_what_is_quoted(&error, number, &self.mechanisms)?;
        let Says::TooBig(told) = error.says else { return None };
        self.policies.get(usize::from(through.policy.0)).filter(|policy| policy.learns())?;
        let remote = error.outer_destination;
        // On a fresh table, so that the same error is accepted again.
        let learnt =
            PathMtus::new(1, self.seed).learn(remote, told, error.outer_length, self.mtu4, Instant(0));
        matches!(learnt, Learnt::Mtu(_)).then_some(remote)
    }
}
