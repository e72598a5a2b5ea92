//! Where tunnels end: the IPv4 addresses of this host, and the tunnel that a packet to one of them belongs to.

use super::EngineConfig;
use crate::mechanism::contract::Mechanism as _;
use crate::mechanism::table::{Mechanisms, with_row_ref};
use crate::parse::{Addresses, Packet};
use crate::tunnel::address::{Domain, OwnAddresses};
use crate::tunnel::decision::Arrived;
use crate::verdict::{MechanismId, PolicyId};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use foldhash::fast::FixedState;
use sixway_wire::Prefix4;
use sixway_wire::protocol::{IPV4, IPV6};
use std::collections::HashMap;

/// This host's addresses, as tunnels see them: its IPv4 addresses, their images at a NAT or in a 6rd domain,
/// and its IPv6 addresses.
pub(super) fn own_addresses(config: &EngineConfig, own6: Option<Ipv6Addr>) -> OwnAddresses {
    let (mut all, mut domains): (Vec<Ipv4Addr>, Vec<Domain>) = (config.host4.clone(), Vec::new());
    for one in config.all() {
        all.extend(one.local());
        all.extend(one.stands_for());
        domains.extend(one.domain());
    }
    OwnAddresses::new(all, domains, config.host6.iter().copied().chain(own6).collect())
}

/// The addresses of this host.
#[derive(Debug, Default)]
pub(super) struct HostAddresses {
    /// Ascending.
    addresses: Vec<Ipv4Addr>,
    /// One bit for each value of their last six bits: most other addresses need no search.
    last_bits: u64,
    /// Outside addresses that its tunnels may have at a NAT44 of ours.
    outside: Vec<Prefix4>,
    /// Of IPv6, ascending.
    addresses6: Vec<Ipv6Addr>,
    /// One bit for each value of [`bit6`]: most other addresses need no search.
    bits6: u64,
}

impl HostAddresses {
    /// The host's addresses, and those at which its tunnels end.
    pub(super) fn new(config: &EngineConfig, own6: Option<Ipv6Addr>) -> Self {
        let mut addresses: Vec<Ipv4Addr> = config.host4.clone();
        addresses.extend(config.all().filter_map(|one| one.local()));
        let mut addresses6: Vec<Ipv6Addr> = config.host6.iter().copied().chain(own6).collect();
        for ends in config.all().filter_map(|one| one.ends()) {
            match ends.local {
                IpAddr::V4(address) => addresses.push(address),
                IpAddr::V6(address) => addresses6.push(address),
            }
        }
        addresses6.extend(config.all().filter_map(|one| one.concentrator()).flat_map(|ends| ends.locals));
        addresses6.sort_unstable();
        let bits6 = addresses6.iter().fold(0, |bits, address| bits | bit6(*address));
        addresses.sort_unstable();
        addresses.dedup();
        let last_bits = addresses.iter().fold(0, |bits, address| bits | 1 << (address.to_bits() % 64));
        let nats = config.nat44.iter().filter(|nat44| nat44.translate_own_tunnels);
        let outside = nats.flat_map(|nat44| nat44.pool.addresses.iter().copied()).collect();
        Self { addresses, last_bits, outside, addresses6, bits6 }
    }

    /// Whether the address is this host's: a tunnel packet to it would loop, and one from it is spoofed
    /// (RFC 6324).
    #[inline(always)]
    pub(super) fn has4(&self, address: Ipv4Addr) -> bool {
        self.last_bits >> (address.to_bits() % 64) & 1 == 1 && self.addresses.binary_search(&address).is_ok()
    }

    /// The same of an IPv6 address.
    #[inline(always)]
    pub(super) fn has6(&self, address: Ipv6Addr) -> bool {
        self.bits6 & bit6(address) != 0 && self.is_among6(address)
    }

    #[inline(never)]
    fn is_among6(&self, address: Ipv6Addr) -> bool {
        self.addresses6.binary_search(&address).is_ok()
    }

    /// Whether the packet is an IPv4 tunnel packet of this host. Routed into a second tunnel it may loop for ever (RFC 2003
    /// §3.2), because IPv4 has no encapsulation limit.
    #[inline(always)]
    pub(super) fn encapsulated(&self, packet: &Packet) -> bool {
        matches!(packet.protocol, IPV4 | IPV6)
            && matches!(packet.addresses, Addresses::V4 { source, .. } if self.has4(source) || self.is_outside(source))
    }

    /// Whether it may be the outside address of a tunnel of this host.
    fn is_outside(&self, address: Ipv4Addr) -> bool {
        self.outside.iter().any(|prefix| prefix.contains(address))
    }

    /// Whether the source of a packet is this host's.
    #[inline(always)]
    pub(super) fn has_source(&self, packet: &Packet) -> bool {
        match packet.addresses {
            Addresses::V4 { source, .. } => self.has4(source),
            Addresses::V6 { source, .. } => self.has6(source),
        }
    }
}

/// One of 64 bits, by all bits of an address.
#[inline(always)]
const fn bit6(address: Ipv6Addr) -> u64 {
    let bits = address.to_bits();
    let words = (bits >> 64) as u64 ^ (bits as u64).rotate_left(32);
    1 << (words.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58)
}

/// A tunnel of a local address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TunnelAt {
    pub(super) id: MechanismId,
    pub(super) policy: PolicyId,
}

/// An IPv4 address of this host at which tunnels end.
struct LocalAddress {
    address: Ipv4Addr,
    /// Tunnels with one outer source.
    exact: HashMap<Ipv4Addr, TunnelAt, FixedState>,
    /// One of them, often the only one: it is found without a hash.
    one: Option<(Ipv4Addr, TunnelAt)>,
    /// The others, which are asked in the order of the configuration.
    rest: Vec<TunnelAt>,
}

impl LocalAddress {
    /// The tunnel with this remote end.
    #[inline(always)]
    fn exactly(&self, remote: Ipv4Addr) -> Option<TunnelAt> {
        match self.one {
            None => None,
            Some((one, tunnel)) if one == remote => Some(tunnel),
            Some(_) => self.exact.get(&remote).copied(),
        }
    }
}

/// All addresses at which tunnels end.
#[derive(Default)]
pub(super) struct TunnelAddresses(Vec<LocalAddress>);

impl TunnelAddresses {
    /// Those of these tunnels, each with the address at which it ends.
    pub(super) fn new(
        tunnels: impl Iterator<Item = (TunnelAt, Ipv4Addr)>,
        mechanisms: &Mechanisms,
        seed: u64,
    ) -> Self {
        let mut locals: Vec<LocalAddress> = Vec::new();
        for (tunnel, address) in tunnels {
            let at = locals.iter().position(|one| one.address == address).unwrap_or_else(|| {
                let exact = HashMap::with_hasher(FixedState::with_seed(seed));
                locals.push(LocalAddress { address, exact, one: None, rest: Vec::new() });
                locals.len() - 1
            });
            match remote(mechanisms, tunnel.id) {
                Some(remote) => {
                    locals[at].one = Some((remote, tunnel));
                    locals[at].exact.insert(remote, tunnel);
                }
                None => locals[at].rest.push(tunnel),
            }
        }
        Self(locals)
    }

    /// Adds an address at which other tunnels end.
    pub(super) fn add_address(&mut self, address: Ipv4Addr) {
        if self.at(address).is_none() {
            let exact = HashMap::default();
            self.0.push(LocalAddress { address, exact, one: None, rest: Vec::new() });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The addresses themselves.
    pub(super) fn all(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.0.iter().map(|one| one.address)
    }

    /// The number of a local address.
    #[inline(always)]
    pub(super) fn at(&self, address: Ipv4Addr) -> Option<u8> {
        self.0.iter().position(|one| one.address == address).map(|at| at as u8)
    }

    /// The tunnel that a packet which came to a local address belongs to: the one whose remote end is its outer source, or the
    /// first that claims it. What no tunnel claims goes to the likeliest one, so that the drop reason is specific.
    #[inline(always)]
    pub(super) fn came_through(
        &self,
        number: u8,
        arrived: Arrived,
        mechanisms: &Mechanisms,
    ) -> Option<TunnelAt> {
        let local = &self.0[usize::from(number)];
        let exact = local.exactly(arrived.from);
        match (exact, &local.rest[..]) {
            (Some(tunnel), []) => Some(tunnel),
            (None, [tunnel]) => Some(*tunnel),
            (_, rest) => {
                let mut tunnels = exact.into_iter().chain(rest.iter().copied());
                let claiming = tunnels.find(|tunnel| claims(mechanisms, tunnel.id, arrived));
                claiming.or(exact).or(rest.first().copied())
            }
        }
    }

    /// Whether packets of any tunnel that ends there may have this outer source.
    pub(super) fn may_come_from(&self, number: u8, outer: Ipv4Addr, mechanisms: &Mechanisms) -> bool {
        let local = &self.0[usize::from(number)];
        let may = |id: MechanismId| with_row_ref!(mechanisms, id.kind, row => row.all[usize::from(id.index)].may_come_from(outer));
        local.exactly(outer).is_some() || local.rest.iter().any(|tunnel| may(tunnel.id))
    }

    /// The tunnel of a local address that sends packets between these inner addresses to that outer destination.
    pub(super) fn went_through(
        &self,
        number: u8,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        outer: Ipv4Addr,
        mechanisms: &Mechanisms,
    ) -> Option<TunnelAt> {
        let local = &self.0[usize::from(number)];
        let exact = local.exactly(outer);
        let sent = |id: MechanismId| {
            with_row_ref!(mechanisms, id.kind,
                row => row.all[usize::from(id.index)].sent(source, destination, outer))
        };
        let mut tunnels = exact.into_iter().chain(local.rest.iter().copied());
        tunnels.find(|tunnel| sent(tunnel.id))
    }

    /// The tunnel of a local address with this only remote end.
    pub(super) fn only_to(&self, number: u8, remote: Ipv4Addr) -> Option<TunnelAt> {
        self.0[usize::from(number)].exactly(remote)
    }
}

fn remote(mechanisms: &Mechanisms, id: MechanismId) -> Option<Ipv4Addr> {
    with_row_ref!(mechanisms, id.kind, row => row.all[usize::from(id.index)].remote())
}

#[inline(always)]
fn claims(mechanisms: &Mechanisms, id: MechanismId, arrived: Arrived) -> bool {
    with_row_ref!(mechanisms, id.kind, row => row.all[usize::from(id.index)].claims(arrived))
}
