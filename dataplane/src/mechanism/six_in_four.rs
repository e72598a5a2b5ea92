//! The common part of all tunnels of IPv6 in IPv4 (RFC 4213 §3). Each implements the rules of its own RFC by [`Tunnel`].

use super::contract::{Arrival, Mechanism};
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::instant::Instant;
use crate::kind::Kind;
use crate::parse::Addresses;
use crate::parse::Packet;
use crate::source_check;
use crate::tunnel::decision::Arrived;
use crate::tunnel::outer_nat::OuterNat;
use crate::verdict::{Decision, MechanismId, Next, Outer, PolicyId};
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::protocol::ICMPV6;

/// What a tunnel's own RFC says; the rest is the same for all of them.
pub(crate) trait Tunnel {
    /// Its kind.
    const KIND: Kind;

    /// The policy of its packets.
    fn policy(&self) -> PolicyId;

    /// The local end, and the remote end for a packet that is routed into the tunnel.
    fn ends(&self, packet: &Packet) -> Result<(Ipv4Addr, Ipv4Addr), DropReason>;

    /// Whether the tunnel accepts what arrived.
    fn check(&self, arrived: Arrived) -> Result<(), DropReason>;

    /// Whether a packet that came through the tunnel is neighbour discovery, which control answers. Not where the link is not used for it (RFC
    /// 3056 §3.1, RFC 5969 §9).
    fn is_discovery(&self, _arrived: Arrived, _inner: &Packet) -> Result<bool, DropReason> {
        Ok(false)
    }

    /// The only outer source of its packets, if it has one.
    fn remote(&self) -> Option<Ipv4Addr> {
        None
    }

    /// The NAT44 that translates what it sends. Not if its prefix embeds the local end, which the remote end compares with the outer source.
    #[inline(always)]
    fn nat(&self) -> Option<&OuterNat> {
        None
    }

    /// Whether a packet is its own, when several tunnels end at one address.
    fn claims(&self, arrived: Arrived) -> bool;

    /// Whether its packets may have this outer source: for fragments, which contain nothing else to check.
    fn may_come_from(&self, outer: Ipv4Addr) -> bool;

    /// Whether it sends packets between these inner addresses to that outer destination.
    fn sent(&self, source: Ipv6Addr, destination: Ipv6Addr, outer: Ipv4Addr) -> bool;

    /// A packet that came through the tunnel.
    #[inline(always)]
    fn leave(&self, outer: &Packet, inner: &Packet) -> Result<Decision, DropReason> {
        let arrived = Arrived::of(outer, inner)?;
        if let Err(reason) = source_check::check(inner) {
            // Addresses of the link alone: neighbour discovery has them, and nothing else.
            let is_discovery = self.is_discovery(arrived, inner)?;
            return if is_discovery { Ok(Decision::keep(Next::Control)) } else { Err(reason) };
        }
        self.check(arrived.sane()?)?;
        if inner.protocol == ICMPV6 && self.is_discovery(arrived, inner)? {
            return Ok(Decision::keep(Next::Control));
        }
        Ok(Decision::decap(self.policy()))
    }
}

impl<T: Tunnel> Mechanism for T {
    const KIND: Kind = T::KIND;
    const COUNTS_HOP: bool = false;
    type Probe = ();
    const NO_PROBE: () = ();

    #[inline(always)]
    fn decide(
        &mut self,
        arrival: &Arrival<'_>,
        (): &(),
        _now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        if let Some(inner) = arrival.inner {
            return self.leave(arrival.packet, inner);
        }
        let (source, destination) = self.ends(arrival.packet)?;
        let outer = effects.outer(Outer::V4 { source, destination });
        let next = self.nat().map_or(Next::Leave, |nat| nat.next(destination));
        Ok(Decision { next, ..Decision::encap(outer, self.policy()) })
    }

    fn outer_nat(&self, packet: &Packet) -> Option<(MechanismId, Ipv4Addr)> {
        let nat = self.nat().filter(|_| matches!(packet.addresses, Addresses::V6 { .. }))?;
        let (_, destination) = self.ends(packet).ok()?;
        nat.covers(destination).then_some((nat.nat, destination))
    }

    fn remote(&self) -> Option<Ipv4Addr> {
        Tunnel::remote(self)
    }

    #[inline(always)]
    fn claims(&self, arrived: Arrived) -> bool {
        Tunnel::claims(self, arrived)
    }

    fn may_come_from(&self, outer: Ipv4Addr) -> bool {
        Tunnel::may_come_from(self, outer)
    }

    fn sent(&self, source: Ipv6Addr, destination: Ipv6Addr, outer: Ipv4Addr) -> bool {
        Tunnel::sent(self, source, destination, outer)
    }
}
