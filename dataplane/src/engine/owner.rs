//! The owner of a packet: which mechanism and which worker.

use super::Engine;
use super::pair_ends::is_tunnel_packet;
use super::slot::Slot;
use super::tunnel_addresses::TunnelAt;
use crate::classify::{Owner, TunnelAddress, ownership};
use crate::drop_reason::DropReason;
use crate::frame::Frame;
use crate::kind::Kind;
use crate::mechanism::contract::Mechanism;
use crate::mechanism::table::{Row, with_row_ref};
use crate::parse::{Addresses, Packet, Transport};
use crate::rewrite::decap;
use crate::source_check;
use crate::tunnel::decision::Arrived;
use crate::verdict::{MechanismId, WorkerId};
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::protocol::IPV6;

impl Engine {
    /// The other worker that owns the packet's state, if it is another's.
    pub(super) fn elsewhere(&self, frame: &Frame, packet: &Packet, owner: Owner) -> Option<WorkerId> {
        if self.workers == 1 {
            return None;
        }
        let worker = match owner {
            Owner::Gateway => return None,
            // Any worker will do, but fragments have to meet.
            Owner::TunnelAddress(_) => match ownership::of_fragments(packet, self.workers) {
                Some(worker) => worker,
                None => self.worker_of_softwire_error(frame, packet)?,
            },
            Owner::Mechanism(id) => {
                let of = with_row_ref!(self.mechanisms, id.kind, row => row.worker_of(id.index, frame, packet, self.workers));
                match of {
                    Some(worker) => worker,
                    None => self.worker_of_outer(id, packet)?,
                }
            }
        };
        (worker != self.config.worker).then_some(worker)
    }

    /// The worker of the NAT that translates the outer header which a tunnel puts in front of a packet: that is one hop.
    fn worker_of_outer(&self, id: MechanismId, packet: &Packet) -> Option<WorkerId> {
        if !self.translates_tunnels {
            return None;
        }
        let (nat, remote) =
            with_row_ref!(self.mechanisms, id.kind, row => row.all[usize::from(id.index)].outer_nat(packet))?;
        with_row_ref!(self.mechanisms, nat.kind, row => row.all[usize::from(nat.index)].worker_of_remote(remote))
    }

    /// The owner of a packet that came from a link. `None`: it is for the host. A whole packet that came through a tunnel belongs to
    /// the tunnel, and the inner packet is parsed into the slot.
    #[inline(always)]
    pub(super) fn classify(&self, frame: &Frame, slot: &mut Slot) -> Result<Option<Owner>, DropReason> {
        let packet = &slot.packet;
        if let Err(reason) = source_check::check(packet) {
            return if source_check::is_host_control(packet) { Ok(None) } else { Err(reason) };
        }
        let owner = match packet.addresses {
            Addresses::V6 { destination, .. } if self.steering.is_end6(destination) => {
                if packet.segments_left_at != 0 {
                    return Err(DropReason::RoutingHeader);
                }
                let is_tunnelled = is_tunnel_packet(packet);
                return if is_tunnelled {
                    self.came_through(TunnelAddress::V6, frame, slot).map(Some)
                } else {
                    Ok(Some(Owner::Gateway))
                };
            }
            Addresses::V6 { destination, .. } => match self.steering.owner6(destination) {
                Some(Owner::Mechanism(id)) if !self.names6.is_empty() => {
                    Some(Owner::Mechanism(self.named_or_steered(destination, id)))
                }
                Some(owner) => Some(owner),
                None => self
                    .named6(destination)
                    .or_else(|| self.claimed_by_source(frame, packet))
                    .map(Owner::Mechanism),
            },
            Addresses::V4 { destination, .. }
                if !self.udp_ends.is_empty()
                    && let Some(tunnel) = self.udp_ends.at(packet, destination) =>
            {
                return self.came_in_udp(tunnel, frame, slot).map(Some);
            }
            Addresses::V4 { destination, .. }
                if !self.tunnel_addresses.is_empty()
                    && let Some(address) = self.tunnel_address(packet, destination) =>
            {
                return self.came_through(address, frame, slot).map(Some);
            }
            Addresses::V4 { destination, .. } if self.steering.is_own4(destination) => Some(Owner::Gateway),
            Addresses::V4 { destination, .. } if self.pair_ends.are_at4(destination) => Some(Owner::Gateway),
            Addresses::V4 { destination, .. } if self.inside4.is_empty() => {
                self.all4.or_else(|| self.named4(destination).or(self.rest4)).map(Owner::Mechanism)
            }
            Addresses::V4 { source, destination } => self
                .claimed_by_source4(frame, source, destination)
                .or_else(|| self.named4(destination).or(self.rest4))
                .map(Owner::Mechanism),
        };
        // The kernel decrements the hop limit of what it routes into a tunnel. Extension headers are
        // not changed.
        match owner {
            None => {}
            Some(Owner::Gateway | Owner::TunnelAddress(_)) => return Ok(owner),
            Some(Owner::Mechanism(id)) => {
                if !id.kind.is_routed() {
                    return Ok(owner);
                }
                if self.realms.may_have(id) && id.kind == Kind::Nat44 {
                    self.check_outside_of_realm(frame, packet, id)?;
                    slot.alone = true;
                }
                if id.kind.owns_sources() && !self.divided4.is_empty() {
                    return self.classify_by_port(frame, slot, id).map(Some);
                }
                if id.kind.owns_sources()
                    && let Addresses::V4 { source, .. } = packet.addresses
                    && frame.passes == 0
                    && self.steering.owner4(source) == Some(id)
                    // A pool may be at this host's own address, whose kernel makes errors. What they quote is checked.
                    && !matches!(packet.transport, Transport::IcmpError { .. })
                {
                    return Err(DropReason::SourceInPool);
                }
            }
        }
        check_forwarding(packet, frame.passes)?;
        match owner {
            Some(owner) => Ok(Some(owner)),
            None => Err(DropReason::NoMechanism),
        }
    }

    /// The tunnel address that a tunnel packet, or a whole ICMP error about one, came to. The outer TTL is not checked:
    /// the packet has arrived.
    #[inline]
    pub(super) fn tunnel_address(&self, packet: &Packet, destination: Ipv4Addr) -> Option<TunnelAddress> {
        let is_error = matches!(packet.transport, Transport::IcmpError { .. }) && packet.fragment.is_none();
        if packet.protocol != IPV6 && !is_error && !self.pair_ends.take_four_in_four(packet, destination) {
            return None;
        }
        self.tunnel_addresses.at(destination).map(TunnelAddress)
    }

    /// The tunnel that a packet came through; for a fragment or an ICMP error, whose tunnel is not known yet, the tunnel address.
    #[inline(always)]
    pub(super) fn came_through(
        &self,
        address: TunnelAddress,
        frame: &Frame,
        slot: &mut Slot,
    ) -> Result<Owner, DropReason> {
        let Slot { packet, inner, .. } = slot;
        if packet.fragment.is_some() || matches!(packet.transport, Transport::IcmpError { .. }) {
            return Ok(Owner::TunnelAddress(address));
        }
        if self.path.host.has_source(packet) {
            return Err(DropReason::TunnelLoop);
        }
        let inner = inner.place();
        decap::inner(frame, packet, inner)?;
        self.check_inner_source(inner.addresses)?;
        // Not by `Arrived::of`: addresses in a `Result` are written to memory in pieces and read as words, which stalls the CPU.
        let tunnel = match (packet.addresses, inner.addresses) {
            (Addresses::V4 { source: from, .. }, Addresses::V6 { source, destination }) => {
                let arrived = Arrived { from, source, destination };
                self.tunnel_addresses.came_through(address.0, arrived, &self.mechanisms)
            }
            (Addresses::V6 { source, destination }, Addresses::V4 { .. }) => {
                let tunnel = self.pair_ends.four_in_six(source, destination);
                tunnel.or_else(|| self.path.softwires.came_from_host(source, destination))
            }
            (outer, inside) => self.pair_ends.came_through(outer, inside),
        };
        Ok(Owner::Mechanism(tunnel.ok_or(DropReason::NoTunnel)?.id))
    }

    /// What comes through a tunnel has neither this gateway's own source nor one of its translator.
    #[inline(always)]
    pub(super) fn check_inner_source(&self, addresses: Addresses) -> Result<(), DropReason> {
        let is_own = match addresses {
            Addresses::V4 { source, .. } => self.config.own4 == Some(source),
            Addresses::V6 { source, .. } => self.own6 == Some(source),
        };
        if is_own || !self.config.nat64.is_empty() && self.is_translated(addresses) {
            return Err(DropReason::SourceNotInTunnel);
        }
        Ok(())
    }

    /// Whether inside hosts, and a packet filter that accepts the translator's packets, would take a packet with this source for a translated one.
    #[inline(never)]
    fn is_translated(&self, addresses: Addresses) -> bool {
        let Addresses::V6 { source, .. } = addresses else { return false };
        self.config.nat64.iter().any(|nat64| nat64.prefix.prefix().contains(source))
    }

    /// Fragments of tunnel packets are held only if they come from where a tunnel's packets may come from.
    pub(super) fn check_fragment(&self, packet: &Packet, address: TunnelAddress) -> Result<(), DropReason> {
        if self.path.host.has_source(packet) {
            return Err(DropReason::TunnelLoop);
        }
        let may = match packet.addresses {
            Addresses::V4 { source, .. } if packet.protocol == IPV6 => {
                self.tunnel_addresses.may_come_from(address.0, source, &self.mechanisms)
            }
            outer if self.pair_ends.may_come(outer) => true,
            outer => {
                let TunnelAt { id, .. } =
                    self.path.softwires.came_through(outer).ok_or(DropReason::NoTunnel)?;
                return with_row_ref!(self.mechanisms, id.kind, row => row.may_hold(id.index, packet));
            }
        };
        if may { Ok(()) } else { Err(DropReason::NoTunnel) }
    }

    /// The owner of the result of a pass. A prefix that maps every IPv4 address
    /// does not own it.
    pub(super) fn owner_again(
        &self,
        frame: &Frame,
        packet: &Packet,
        before: MechanismId,
    ) -> Result<Owner, DropReason> {
        source_check::check(packet)?;
        let turns = with_row_ref!(self.mechanisms, before.kind, row => row.turns_around());
        let owner = match packet.addresses {
            // RFC 7757 §4.2.2, RFC 6296 §4.3: the translator itself hairpins the packet.
            Addresses::V4 { .. } if turns => Some(Owner::Mechanism(before)),
            Addresses::V4 { destination, .. } => match self.tunnel_address(packet, destination) {
                Some(address) => Some(Owner::TunnelAddress(address)),
                None => {
                    self.named4(destination).map(|id| Owner::Mechanism(self.owner_by_port(frame, packet, id)))
                }
            },
            Addresses::V6 { destination, .. } if self.steering.is_end6(destination) => {
                Some(Owner::TunnelAddress(TunnelAddress::V6))
            }
            Addresses::V6 { destination, .. } => {
                self.steering.owner6(destination).filter(|owner| turns || *owner != Owner::Mechanism(before))
            }
        };
        owner.ok_or(DropReason::NoMechanism)
    }

    /// The mechanism that owns an IPv4 destination: a pool's, a tunnel's, or one that a table or an assignment names; or the one that is asked in any case,
    /// and says itself what it does not map.
    #[inline(always)]
    pub(super) fn named4(&self, address: Ipv4Addr) -> Option<MechanismId> {
        match self.steering.owner4(address) {
            None if self.names4.is_empty() => self.sure4,
            None => self.named_by_table4(address).or(self.sure4),
            // What a table names is not behind a tunnel.
            Some(id) if !id.kind.is_routed() && !self.names4.is_empty() => {
                Some(self.named_by_table4(address).unwrap_or(id))
            }
            owner => owner,
        }
    }

    #[inline(never)]
    fn named_by_table4(&self, address: Ipv4Addr) -> Option<MechanismId> {
        let names = |id: &MechanismId| with_row_ref!(self.mechanisms, id.kind, row => row.all[usize::from(id.index)].names4(address));
        self.names4.iter().copied().find(names)
    }

    /// The mechanism that claims a packet by its IPv4 source, unless a tunnel leads to the destination. To a pool or a mapping of another
    /// mechanism, the source is translated before.
    #[inline(always)]
    fn claimed_by_source4(
        &self,
        frame: &Frame,
        source: Ipv4Addr,
        destination: Ipv4Addr,
    ) -> Option<MechanismId> {
        let id = self.inside4.owner(frame.ingress, source, destination)?;
        let is_behind_tunnel = self.steering.owner4(destination).is_some_and(|owner| !owner.kind.is_routed());
        (!is_behind_tunnel).then_some(id)
    }

    /// The mechanism whose table names an IPv6 address.
    fn named6(&self, address: Ipv6Addr) -> Option<MechanismId> {
        self.names6.iter().copied().find(|id| self.length6(*id, address).is_some())
    }

    /// The mechanism that claims a packet by its source, if no other one owns it.
    #[cold]
    #[inline(never)]
    fn claimed_by_source(&self, frame: &Frame, packet: &Packet) -> Option<MechanismId> {
        let Addresses::V6 { source, destination } = packet.addresses else { return None };
        let claims = self.inside6.iter().find(|(claim, _)| claim.claims(frame.ingress, source, destination));
        claims.map(|(_, id)| *id)
    }

    /// The owner of an address under a mechanism's prefix: the mechanism whose table names it, if it does so by a prefix as long, and the other
    /// is one that gives way to tables.
    #[inline(always)]
    fn named_or_steered(&self, address: Ipv6Addr, id: MechanismId) -> MechanismId {
        if !id.kind.is_routed() { self.named_or_tunnel(address, id) } else { id }
    }

    #[inline(never)]
    fn named_or_tunnel(&self, address: Ipv6Addr, tunnel: MechanismId) -> MechanismId {
        let length = self.steering.length6(address);
        let names = |id: &MechanismId| self.length6(*id, address).is_some_and(|named| named >= length);
        self.names6.iter().copied().find(names).unwrap_or(tunnel)
    }

    fn length6(&self, id: MechanismId, address: Ipv6Addr) -> Option<u8> {
        with_row_ref!(self.mechanisms, id.kind, row => row.all[usize::from(id.index)].names6(address))
    }
}

/// Refuses what only tunnels may forward.
#[inline(always)]
pub(super) const fn check_forwarding(packet: &Packet, passes: u8) -> Result<(), DropReason> {
    if passes == 0 && packet.hops <= 1 {
        return Err(DropReason::HopLimitExceeded);
    }
    if packet.source_route {
        return Err(DropReason::SourceRoute);
    }
    if packet.segments_left_at != 0 {
        return Err(DropReason::RoutingHeader);
    }
    if packet.extension_after_fragment {
        return Err(DropReason::ExtensionAfterFragment);
    }
    Ok(())
}

impl<M: Mechanism> Row<M> {
    const fn turns_around(&self) -> bool {
        M::TURNS_AROUND
    }

    /// Whether the only one of them is asked about every IPv4 destination that no mechanism names.
    pub(super) fn takes_rest(&self) -> bool {
        M::NAMES_REST && self.all.len() == 1
    }

    fn worker_of(&self, index: u16, frame: &Frame, packet: &Packet, workers: u8) -> Option<WorkerId> {
        if M::WHOLE && packet.fragment.is_some() {
            return ownership::of_fragments(packet, workers);
        }
        let quoted = M::QUOTES.read(frame, packet).ok().flatten();
        self.all[usize::from(index)].worker_of(packet, quoted.as_ref())
    }
}
