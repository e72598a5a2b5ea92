//! Whose a packet is: which mechanism's, and which worker's.

use super::Engine;
use super::walk::{quoted_stateful, quoted_stateless};
use crate::classify::{Owner, source_check};
use crate::drop_reason::DropReason;
use crate::frame::Frame;
use crate::mechanism::siit::Siit;
use crate::parse::{Addresses, Packet, Transport};
use crate::verdict::WorkerId;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::protocol::IPV6;

impl Engine {
    /// The other worker that owns the packet's state, if it is another's.
    pub(super) fn elsewhere(&self, frame: &Frame, packet: &Packet, owner: Owner) -> Option<WorkerId> {
        if self.workers == 1 {
            return None;
        }
        let is_error = matches!(packet.transport, Transport::IcmpError { .. });
        let worker = match owner {
            // Any worker will do, but fragments have to meet.
            Owner::Endpoint(_) => match packet.fragment {
                Some(_) => crate::classify::ownership::of_fragments(packet, self.workers)?,
                None => return None,
            },
            Owner::Gateway | Owner::Tunnel(_) => return None,
            Owner::Nat64(index) => {
                let quoted = is_error.then(|| quoted_stateful(frame, packet).ok()).flatten();
                let ownership = self.nat64[usize::from(index)].ownership();
                crate::classify::ownership::worker_of(ownership, packet, quoted.as_ref(), self.workers)
            }
            Owner::Siit(index) => {
                let quoted = is_error.then(|| quoted_stateless(frame, packet).ok()).flatten();
                self.siit[usize::from(index)].worker_of(packet, quoted.as_ref())?
            }
        };
        (worker != self.worker).then_some(worker)
    }

    /// The owner of a packet that came from a link. `None`: it is the host's own business.
    #[inline(always)]
    pub(super) fn classify(&self, packet: &Packet, passes: u8) -> Result<Option<Owner>, DropReason> {
        if let Err(reason) = source_check::check(packet) {
            return if source_check::is_host_control(packet) { Ok(None) } else { Err(reason) };
        }
        let owner = match packet.addresses {
            Addresses::V6 { destination, .. } => match self.steering.owner6(destination) {
                Some(Owner::Tunnel(number)) => Some(self.named_or_tunnel(destination, number)),
                Some(owner) => Some(owner),
                None => self.named6(destination),
            },
            Addresses::V4 { destination, .. }
                if !self.tunnels.is_empty()
                    && let Some(endpoint) = self.endpoint(packet, destination) =>
            {
                return Ok(Some(endpoint));
            }
            Addresses::V4 { destination, .. } if self.steering.is_own4(destination) => Some(Owner::Gateway),
            Addresses::V4 { destination, .. } => {
                self.named4(destination).or(self.default_siit.map(Owner::Siit))
            }
        };
        // The kernel counts the hop of what it routes into a tunnel; its own packets have made none. Extension headers are
        // carried as they are.
        if let Some(Owner::Gateway | Owner::Tunnel(_)) = owner {
            return Ok(owner);
        }
        if let (Some(Owner::Nat64(index)), Addresses::V4 { source, .. }) = (owner, packet.addresses)
            && passes == 0
            && self.nat64[usize::from(index)].owns_outside(source)
        {
            return Err(DropReason::SourceInPool);
        }
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
        match owner {
            Some(owner) => Ok(Some(owner)),
            None => Err(DropReason::NoMechanism),
        }
    }

    /// The tunnels' end that a packet came to: an encapsulated one, or a whole ICMP error about one. The outer TTL is not judged,
    /// for the packet has arrived.
    #[inline]
    fn endpoint(&self, packet: &Packet, destination: Ipv4Addr) -> Option<Owner> {
        let is_error = matches!(packet.transport, Transport::IcmpError { .. }) && packet.fragment.is_none();
        if packet.protocol != IPV6 && !is_error {
            return None;
        }
        self.tunnels.endpoint(destination).map(Owner::Endpoint)
    }

    /// The owner of a pass's result. Only what names the destination owns it: a prefix that maps every IPv4 address
    /// does not.
    pub(super) fn owner_again(&self, packet: &Packet, before: Owner) -> Result<Owner, DropReason> {
        source_check::check(packet)?;
        let owner = match (packet.addresses, before) {
            // RFC 7757 §4.2.2: the translator itself turns the packet around.
            (Addresses::V4 { .. }, Owner::Siit(_)) => Some(before),
            (Addresses::V4 { destination, .. }, _) => {
                self.endpoint(packet, destination).or_else(|| self.named4(destination))
            }
            (Addresses::V6 { destination, .. }, _) => {
                self.steering.owner6(destination).filter(|owner| *owner != before)
            }
        };
        owner.ok_or(DropReason::NoMechanism)
    }

    /// The mechanism that names an IPv4 address: a pool, a table, an assignment.
    #[inline]
    pub(super) fn named4(&self, address: Ipv4Addr) -> Option<Owner> {
        if let Some(index) = self.nat64.iter().position(|nat64| nat64.owns_outside(address)) {
            return Some(Owner::Nat64(index as u8));
        }
        if self.siit.len() == 1 {
            // It is asked in any case, and says itself what it does not map.
            return Some(Owner::Siit(0));
        }
        self.siit.iter().position(|siit| siit.maps4(address)).map(|index| Owner::Siit(index as u8))
    }

    /// The translator whose table names an IPv6 address.
    pub(super) fn named6(&self, address: Ipv6Addr) -> Option<Owner> {
        self.siit.iter().position(|siit| siit.maps6(address)).map(|index| Owner::Siit(index as u8))
    }

    /// The owner of an address that is routed into a tunnel: the translator whose table names it, if it does so by a prefix as long.
    #[inline(never)]
    fn named_or_tunnel(&self, address: Ipv6Addr, number: u16) -> Owner {
        if self.siit.is_empty() {
            return Owner::Tunnel(number);
        }
        let tunnel = self.steering.length6(address);
        let names = |siit: &Siit| siit.mapping6(address).is_some_and(|length| length >= tunnel);
        self.siit.iter().position(names).map_or(Owner::Tunnel(number), |index| Owner::Siit(index as u8))
    }
}
