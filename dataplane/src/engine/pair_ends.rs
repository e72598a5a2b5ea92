//! Tunnels of IP in IP except IPv6 in IPv4, found by their two ends and the inner family.

use super::tunnel_addresses::TunnelAt;
use crate::parse::{Addresses, Packet, Transport};
use crate::tunnel::ends::{Pair, TunnelEnds};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use foldhash::fast::FixedState;
use sixway_wire::protocol::{IPV4, IPV6};
use std::collections::HashMap;

/// A tunnel's ends as this end writes them, and whether it carries IPv4.
type Key = (Pair, bool);

/// A tunnel of IPv4 in IPv6.
#[derive(Clone, Copy)]
struct FourInSix {
    local: u128,
    remote: u128,
    tunnel: TunnelAt,
}

/// All of these tunnels.
#[derive(Default)]
pub(super) struct PairEnds {
    tunnels: HashMap<Key, TunnelAt, FixedState>,
    /// One of them, often the only one: it is found without a hash.
    one: Option<(Key, TunnelAt)>,
    /// The same of IPv4 in IPv6, as words.
    four_in_six: Option<FourInSix>,
    locals4: Vec<Ipv4Addr>,
    locals6: Vec<Ipv6Addr>,
}

impl PairEnds {
    /// Those of these tunnels; of two with the same ends and the same family inside, the first.
    pub(super) fn new(tunnels: &[(TunnelEnds, TunnelAt)], seed: u64) -> Self {
        let mut made = Self { tunnels: HashMap::with_hasher(FixedState::with_seed(seed)), ..Self::default() };
        for (ends, tunnel) in tunnels {
            match ends.local {
                IpAddr::V4(local) if !made.locals4.contains(&local) => made.locals4.push(local),
                IpAddr::V6(local) if !made.locals6.contains(&local) => made.locals6.push(local),
                IpAddr::V4(_) | IpAddr::V6(_) => {}
            }
            let Some(destination) = ends.remote else { continue };
            for (is_v4, is_taken) in [(true, ends.takes_v4), (false, ends.takes_v6)] {
                if is_taken {
                    let key = (Pair { source: ends.local, destination }, is_v4);
                    made.tunnels.entry(key).or_insert(*tunnel);
                }
            }
        }
        made.one = made.tunnels.iter().next().map(|(key, tunnel)| (*key, *tunnel));
        let words = |(key, tunnel): (&Key, &TunnelAt)| match *key {
            (Pair { source: IpAddr::V6(local), destination: IpAddr::V6(remote) }, true) => {
                Some(FourInSix { local: local.to_bits(), remote: remote.to_bits(), tunnel: *tunnel })
            }
            _ => None,
        };
        made.four_in_six = made.tunnels.iter().find_map(words);
        made
    }

    /// The IPv4 addresses at which they end.
    pub(super) fn locals4(&self) -> &[Ipv4Addr] {
        &self.locals4
    }

    /// The IPv6 addresses at which they end.
    pub(super) fn locals6(&self) -> &[Ipv6Addr] {
        &self.locals6
    }

    /// Whether any of them ends at this IPv4 address.
    #[inline(always)]
    pub(super) fn are_at4(&self, address: Ipv4Addr) -> bool {
        !self.locals4.is_empty() && self.locals4.contains(&address)
    }

    /// Whether an IPv4 packet that came to `destination` is IPv4 in IPv4 of one of them, or a fragment of it.
    #[inline(always)]
    pub(super) fn take_four_in_four(&self, packet: &Packet, destination: Ipv4Addr) -> bool {
        packet.protocol == IPV4 && self.locals4.contains(&destination)
    }

    /// The tunnel that a packet came through; `outer` is as the remote end writes it.
    #[inline]
    pub(super) fn came_through(&self, outer: Addresses, inner: Addresses) -> Option<TunnelAt> {
        let Pair { source, destination } = Pair::of(outer);
        let is_v4 = matches!(inner, Addresses::V4 { .. });
        self.went_through(Pair { source: destination, destination: source }, is_v4)
    }

    /// The same of IPv4 that came in IPv6, from this source to this destination.
    #[inline(always)]
    pub(super) fn four_in_six(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Option<TunnelAt> {
        let FourInSix { local, remote, tunnel } = self.four_in_six?;
        if (local, remote) == (destination.to_bits(), source.to_bits()) {
            return Some(tunnel);
        }
        self.other_four_in_six(source, destination)
    }

    #[inline(never)]
    fn other_four_in_six(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Option<TunnelAt> {
        let pair = Pair { source: IpAddr::V6(destination), destination: IpAddr::V6(source) };
        self.went_through(pair, true)
    }

    /// The tunnel that packets go through; `outer` is as this end writes it.
    #[inline]
    pub(super) fn went_through(&self, outer: Pair, is_v4: bool) -> Option<TunnelAt> {
        match self.one {
            None => None,
            Some((key, tunnel)) if key == (outer, is_v4) => Some(tunnel),
            Some(_) => self.tunnels.get(&(outer, is_v4)).copied(),
        }
    }

    /// Whether packets of any of them may come with these outer addresses: for fragments, which contain nothing else to check.
    pub(super) fn may_come(&self, outer: Addresses) -> bool {
        let Pair { source, destination } = Pair::of(outer);
        let pair = Pair { source: destination, destination: source };
        [false, true].into_iter().any(|is_v4| self.went_through(pair, is_v4).is_some())
    }
}

/// Whether an IPv6 packet that came to a tunnel address is a tunnel's, a fragment of one, or an error about one.
pub(super) fn is_tunnel_packet(packet: &Packet) -> bool {
    matches!(packet.protocol, IPV4 | IPV6)
        || packet.fragment.is_some()
        || matches!(packet.transport, Transport::IcmpError { .. })
}
