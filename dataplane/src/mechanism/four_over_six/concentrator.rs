//! The concentrator, RFC 7040's border relay (§6): packets from IPv4 go to the host that has their destination; packets from a host are accepted if
//! their inner source is the host's.

use super::binding_table::{Binding, BindingProbe, BindingTable};
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::parse::{Addresses, Packet};
use crate::tunnel::four_in_six::{came_from, came_out};
use crate::verdict::{Decision, Outer, PolicyId};
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::Prefix4;

/// Configuration of a concentrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConcentratorConfig {
    /// Its IPv6 addresses, at which hosts' tunnels end; at most 256. Not those of an interface.
    pub addresses: Vec<Ipv6Addr>,
    /// IPv4 addresses that are leased or statically assigned to hosts.
    pub lent: Vec<Prefix4>,
    /// Maximum number of bindings.
    pub max_bindings: u32,
    /// Bits of the prefix that one client has.
    pub client_bits: u8,
    /// Bindings that always exist.
    pub bindings: Vec<Binding>,
}

/// A concentrator.
#[derive(Debug)]
pub struct Concentrator {
    addresses: Vec<Ipv6Addr>,
    pub(super) bindings: BindingTable,
    policy: PolicyId,
}

impl Concentrator {
    pub(super) fn new(config: &ConcentratorConfig, policy: PolicyId, seed: u64) -> Self {
        let mut bindings = BindingTable::new(config.max_bindings, seed);
        // `check` reports those that do not fit.
        let _refused: usize = config.bindings.iter().filter(|it| bindings.insert(**it).is_err()).count();
        Self { addresses: config.addresses.clone(), bindings, policy }
    }

    /// The lookup of a packet's destination, or of its inner source.
    #[inline(always)]
    pub(super) fn begin(&self, packet: &Packet, inner: Option<&Packet>) -> BindingProbe {
        match (packet.addresses, inner.map(|inner| inner.addresses)) {
            (_, Some(Addresses::V4 { source: address, .. }))
            | (Addresses::V4 { destination: address, .. }, None) => self.bindings.begin(address),
            (Addresses::V6 { .. }, None) | (_, Some(Addresses::V6 { .. })) => BindingProbe::NONE,
        }
    }

    /// A packet to an address that a host may have.
    #[inline(always)]
    pub(super) fn enter(
        &self,
        packet: &Packet,
        probe: &BindingProbe,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        let Addresses::V4 { destination, .. } = packet.addresses else { return Err(DropReason::NoTunnel) };
        let (host, local) = self.bindings.finish(probe, destination).ok_or(DropReason::NoLease)?;
        let local = self.addresses.get(usize::from(local)).or(self.addresses.first());
        let source = *local.ok_or(DropReason::NoLease)?;
        let outer = effects.outer(Outer::V6 { source, destination: host });
        Ok(Decision::encap(outer, self.policy))
    }

    /// A packet that came from a host.
    #[inline(always)]
    pub(super) fn leave(
        &self,
        outer: &Packet,
        inner: &Packet,
        probe: &BindingProbe,
    ) -> Result<Decision, DropReason> {
        let (source, _) = came_out(inner)?;
        // RFC 7040 §6: silently dropped.
        let (host, _) = self.bindings.finish(probe, source).ok_or(DropReason::SourceNotLeased)?;
        if !came_from(outer, host) {
            return Err(DropReason::SourceNotLeased);
        }
        Ok(Decision::decap(self.policy))
    }

    /// Whether a fragment may come from there: it contains nothing else to check.
    pub(super) fn may_hold(&self, packet: &Packet) -> Result<(), DropReason> {
        match packet.addresses {
            Addresses::V6 { source, .. } if self.bindings.has_host(source) => Ok(()),
            Addresses::V4 { .. } | Addresses::V6 { .. } => Err(DropReason::NoTunnel),
        }
    }

    /// Whether packets to this address go to that host.
    pub(super) fn sends(&self, destination: Ipv4Addr, host: Ipv6Addr) -> bool {
        self.bindings.lookup(destination).is_some_and(|(bound, _)| bound == host)
    }
}
