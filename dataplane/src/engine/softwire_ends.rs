//! Where softwires end, tunnels of IPv4 in IPv6 with many remote ends (RFC 6333, RFC 7040): the local addresses, and the prefixes of their remote ends.

use super::tunnel_addresses::TunnelAt;
use crate::fragment::Sharing;
use crate::kind::Kind;
use crate::parse::{Addresses, Packet};
use crate::source_check::is_martian6;
use crate::tunnel::ends::{Concentrator, Pair};
use crate::verdict::{Outer, PolicyId};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};

/// The ends of all softwires.
#[derive(Default)]
pub(super) struct SoftwireEnds {
    all: Vec<(Concentrator, TunnelAt)>,
    /// The first ones, often the only ones: they are compared without a search.
    first: Option<First>,
}

/// An address and a prefix of clients whose packets come there, as words.
struct First {
    local: u128,
    clients: (u128, u128),
    tunnel: TunnelAt,
}

/// The way back into a softwire.
#[derive(Clone, Copy)]
pub(super) struct Back {
    pub(super) outer: Outer,
    pub(super) policy: PolicyId,
    /// The subscriber's prefix, for limits.
    pub(super) subscriber: u128,
}

impl SoftwireEnds {
    /// Those of these mechanisms.
    pub(super) fn new(all: Vec<(Concentrator, TunnelAt)>) -> Self {
        let first = all.first().and_then(|(concentrator, tunnel)| {
            let (local, clients) = (concentrator.locals.first()?, concentrator.clients.first()?);
            let clients = (clients.address().to_bits(), clients.mask());
            Some(First { local: local.to_bits(), clients, tunnel: *tunnel })
        });
        Self { all, first }
    }

    /// Whether there are none.
    #[inline(always)]
    pub(super) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The addresses at which they end.
    pub(super) fn locals(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.all.iter().flat_map(|(concentrator, _)| concentrator.locals.iter().copied())
    }

    /// The mechanism whose client a packet comes from, by its outer addresses.
    fn of(&self, outer: Addresses) -> Option<&(Concentrator, TunnelAt)> {
        let Addresses::V6 { source, destination } = outer else { return None };
        let is_its = |(concentrator, _): &&(Concentrator, TunnelAt)| {
            concentrator.locals.iter().any(|local| local.to_bits() == destination.to_bits())
                && concentrator.clients.iter().any(|prefix| prefix.contains(source))
        };
        self.all.iter().find(is_its).filter(|_| !is_martian6(source))
    }

    /// The same of a packet whose addresses hosts may have.
    #[inline(always)]
    pub(super) fn came_from_host(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Option<TunnelAt> {
        let First { local, clients: (prefix, mask), tunnel } = self.first.as_ref()?;
        if *local == destination.to_bits() && source.to_bits() & mask == *prefix {
            return Some(*tunnel);
        }
        self.came_to_another(source, destination)
    }

    #[inline(never)]
    fn came_to_another(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Option<TunnelAt> {
        self.came_through(Addresses::V6 { source, destination })
    }

    /// The mechanism that a packet of IPv4 in IPv6 belongs to.
    pub(super) fn came_through(&self, outer: Addresses) -> Option<TunnelAt> {
        self.of(outer).map(|(_, tunnel)| *tunnel)
    }

    /// The client that sent these fragments; `None`: no client. `is_inner`: they are inside the softwire, where each has addresses of its
    /// own.
    pub(super) fn sharing(&self, outer: Addresses, is_inner: bool) -> Option<Sharing> {
        let (concentrator, _) = self.of(outer)?;
        let Addresses::V6 { source, .. } = outer else { return None };
        let scope = if is_inner { source.to_bits() } else { 0 };
        Some(Sharing { scope, subscriber: subscriber(concentrator, source) })
    }

    /// The mechanism that sent a packet with this outer header.
    pub(super) fn went_through(&self, Pair { source, destination }: Pair) -> Option<TunnelAt> {
        let (IpAddr::V6(source), IpAddr::V6(destination)) = (source, destination) else { return None };
        let came = Addresses::V6 { source: destination, destination: source };
        self.of(came).map(|(_, tunnel)| *tunnel)
    }

    /// The return path for a packet from an AFTR's softwire: other mechanisms send no answers there.
    pub(super) fn back(&self, outer: &Packet) -> Option<Back> {
        let Addresses::V6 { source, destination } = outer.addresses else { return None };
        let of = self.of(outer.addresses);
        let (concentrator, tunnel) = of.filter(|(_, tunnel)| tunnel.id.kind == Kind::DsLite)?;
        Some(Back {
            outer: Outer::V6 { source: destination, destination: source },
            policy: tunnel.policy,
            subscriber: subscriber(concentrator, source),
        })
    }
}

/// The prefix of a client's subscriber.
fn subscriber(concentrator: &Concentrator, client: Ipv6Addr) -> u128 {
    let bits = u32::from(concentrator.subscriber_bits.min(128));
    if bits == 0 { 0 } else { client.to_bits() >> (128 - bits) << (128 - bits) }
}
