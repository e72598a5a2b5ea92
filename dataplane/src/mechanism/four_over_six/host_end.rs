//! A host's end of its tunnel to the concentrator, RFC 7040's customer edge (§5). If there is no lease, packets go to control, which requests one.

use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::instant::Instant;
use crate::parse::{Addresses, Packet};
use crate::tunnel::four_in_six::{came_from, came_out};
use crate::verdict::{Decision, Next, Outer, PolicyId};
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use sixway_wire::Prefix4;

/// Packets through the tunnel that go to control in [`PERIOD`] while there is no lease: one is enough, and their source may be forged.
const CALLS: u8 = 4;
/// The same for packets of this host, or of others behind it: as many can wait for the lease, and passing more would only cost control time.
const WAITING: u8 = 64;
const PERIOD: Duration = Duration::from_secs(1);

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
    /// Those that came through the tunnel.
    calls: Calls,
    /// Those that are to go through it.
    waiting: Calls,
}

/// Since when packets for control are counted, and how many there were.
#[derive(Debug, Default)]
struct Calls {
    since: Instant,
    count: u8,
}

impl Calls {
    /// Passes a packet to control, at most this many in [`PERIOD`].
    fn admit(&mut self, most: u8, now: Instant) -> Option<Decision> {
        if now.since(self.since) >= PERIOD {
            (self.since, self.count) = (now, 0);
        }
        (self.count < most).then(|| {
            self.count += 1;
            Decision::keep(Next::Control)
        })
    }
}

impl HostEnd {
    pub(super) fn new(config: &HostEndConfig, policy: PolicyId) -> Self {
        Self { config: config.clone(), policy, calls: Calls::default(), waiting: Calls::default() }
    }

    /// A packet of the host.
    #[inline(always)]
    pub(super) fn enter(
        &mut self,
        packet: &Packet,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        let &HostEndConfig { local, concentrator, lease, .. } = &self.config;
        let Addresses::V4 { source, .. } = packet.addresses else { return Err(DropReason::NoTunnel) };
        let Some(lease) = lease else {
            return self.waiting.admit(WAITING, now).ok_or(DropReason::LeaseWaitingFull);
        };
        if !lease.contains(source) {
            return Err(DropReason::SourceNotLeased);
        }
        let outer = effects.outer(Outer::V6 { source: local, destination: concentrator });
        Ok(Decision::encap(outer, self.policy))
    }

    /// A packet that came through the tunnel.
    #[inline(always)]
    pub(super) fn leave(
        &mut self,
        outer: &Packet,
        inner: &Packet,
        now: Instant,
    ) -> Result<Decision, DropReason> {
        let (source, destination) = came_out(inner)?;
        if !came_from(outer, self.config.concentrator) {
            return Err(DropReason::NoTunnel);
        }
        // Somebody looked up this host's name, and an address is reserved for it.
        let Some(lease) = self.config.lease else {
            return self.calls.admit(CALLS, now).ok_or(DropReason::NoTunnel);
        };
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
