//! A tunnel between two known ends: what may enter it, and what may come out of it (RFC 2473, RFC 2003, RFC 6333).

use super::decision::refuse_bare_ipv4;
use super::ends::Pair;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::parse::Packet;
use crate::source_check::{self, is_martian4, is_martian6};
use crate::verdict::{Decision, PolicyId};
use core::net::IpAddr;

/// A tunnel's ends, and the policy of its packets.
#[derive(Clone, Copy, Debug)]
pub struct PairTunnel {
    /// This end.
    pub local: IpAddr,
    /// The remote end, if it is known.
    pub remote: Option<IpAddr>,
    /// Options of the tunnel.
    pub policy: PolicyId,
}

impl PairTunnel {
    /// A packet that is routed into the tunnel.
    ///
    /// # Errors
    /// The remote end is not known, or the packet is one of the tunnel's own.
    #[inline(always)]
    pub fn enter(&self, packet: &Packet, effects: &mut Effects) -> Result<Decision, DropReason> {
        let ends = Pair::of(packet.addresses);
        let destination = self.remote.ok_or(DropReason::NoRemote)?;
        let tunnel = Pair { source: self.local, destination };
        let outer = tunnel.header().ok_or(DropReason::NoRemote)?;
        if ends == tunnel {
            return Err(DropReason::TunnelLoop); // RFC 2473 §4.1.2
        }
        if ends.source.is_ipv4() && Some(ends.source) == self.remote {
            return Err(DropReason::TunnelLoop); // RFC 2003 §3.2
        }
        let outer = effects.outer(outer);
        Ok(Decision::encap(outer, self.policy))
    }

    /// A packet that came through the tunnel: its inner addresses.
    ///
    /// # Errors
    /// It came from another end, or has addresses that no host may have.
    #[inline(always)]
    pub fn leave(&self, outer: &Packet, inner: &Packet) -> Result<Pair, DropReason> {
        source_check::check(inner)?;
        if self.remote != Some(Pair::of(outer.addresses).source) {
            return Err(DropReason::NoTunnel);
        }
        let inside = Pair::of(inner.addresses);
        // ICMP errors too, which a translator would let pass.
        if matches!(inside.source, IpAddr::V4(source) if is_martian4(source)) {
            return Err(DropReason::MartianSource);
        }
        if let (IpAddr::V6(source), IpAddr::V6(destination)) = (inside.source, inside.destination) {
            refuse_bare_ipv4(source, destination)?;
        }
        Ok(inside)
    }
}

/// A remote end, if it is one that a host can have, and of the family of the local end.
pub fn usable_remote(local: IpAddr, remote: Option<IpAddr>) -> Option<IpAddr> {
    remote.filter(|remote| match remote {
        IpAddr::V4(remote) => local.is_ipv4() && !is_martian4(*remote),
        IpAddr::V6(remote) => local.is_ipv6() && !is_martian6(*remote),
    })
}
