//! A host's end of its tunnel to the concentrator, RFC 7040's customer edge (§5). Packets that find no lease go to control, which takes one.

use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::parse::{Addresses, Packet};
use crate::tunnel::four_in_six::{came_from, came_out};
use crate::verdict::{Decision, Next, Outer, PolicyId};
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::Prefix4;

/// Configuration of a host's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEndConfig {
    /// The host's IPv6 address for the tunnel. Not one of an interface.
    pub local: Ipv6Addr,
    /// The concentrator's.
    pub concentrator: Ipv6Addr,
    /// IPv4 destinations that are reached through the tunnel.
    pub prefixes: Vec<Prefix4>,
    /// The leased address, or an assigned prefix; `None`: there is no lease.
    pub lease: Option<Prefix4>,
}

/// A host's end.
#[derive(Debug)]
pub struct HostEnd {
    config: HostEndConfig,
    policy: PolicyId,
}

impl HostEnd {
    pub(super) fn new(config: &HostEndConfig, policy: PolicyId) -> Self {
        Self { config: config.clone(), policy }
    }

    /// A packet of the host.
    #[inline(always)]
    pub(super) fn enter(&self, packet: &Packet, effects: &mut Effects) -> Result<Decision, DropReason> {
        let &HostEndConfig { local, concentrator, lease, .. } = &self.config;
        let Addresses::V4 { source, .. } = packet.addresses else { return Err(DropReason::NoTunnel) };
        let Some(lease) = lease else { return Ok(Decision::keep(Next::Control)) };
        if !lease.contains(source) {
            return Err(DropReason::SourceNotLeased);
        }
        let outer = effects.outer(Outer::V6 { source: local, destination: concentrator });
        Ok(Decision::encap(outer, self.policy))
    }

    /// A packet that came through the tunnel.
    #[inline(always)]
    pub(super) fn leave(&self, outer: &Packet, inner: &Packet) -> Result<Decision, DropReason> {
        let (source, destination) = came_out(inner)?;
        if !came_from(outer, self.config.concentrator) {
            return Err(DropReason::NoTunnel);
        }
        // Somebody looked up this host's name, and has been given an address that waits for it.
        let Some(lease) = self.config.lease else { return Ok(Decision::keep(Next::Control)) };
        if lease.contains(source) {
            return Err(DropReason::SourceNotInTunnel);
        }
        if !lease.contains(destination) {
            return Err(DropReason::DestinationNotInSite);
        }
        Ok(Decision::decap(self.policy))
    }

    /// Whether it sends packets to this destination through the tunnel.
    pub(super) fn carries_to(&self, destination: Ipv4Addr) -> bool {
        self.config.prefixes.iter().any(|prefix| prefix.contains(destination))
    }
}
