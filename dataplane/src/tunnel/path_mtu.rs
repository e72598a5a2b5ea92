//! The known data about the paths to tunnels' far ends (RFC 4213 §3.2.2, RFC 1191; RFC 8201): soft state, learnt from "fragmentation
//! needed" and Packet Too Big errors, forgotten after ten minutes, so that a better path is found again.
//!
//! It is a table of sets of four destinations, and a destination's set follows from its hash, which cannot be foreseen outside.
//! A destination is looked for in its set alone, what has expired there counts as absent, and a new one takes the place of an
//! expired one, or else of the one in the set that was learnt longest ago: so the table is bounded, and is never walked.

use crate::instant::Instant;
use crate::parse::IPV4_HEADER;
use core::hash::{BuildHasher, Hash};
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use foldhash::fast::FixedState;
use sixway_wire::IPV6_MIN_MTU;

/// RFC 1191 §6.3: how long an estimate holds before a larger packet is tried, 10 min.
pub const LIFETIME: Duration = Duration::from_secs(600);
/// RFC 1191 §3: an estimate is never below this, in octets.
pub const LEAST: u16 = 68;
/// RFC 1122 §3.3.3: the size that IPv4 hosts send without knowledge of the path. A tunnel with unfragmented packets accepts no smaller path
/// MTU: an attacker who forged an error could make it useless.
pub const LEAST_UNCUT: u16 = 576;
/// RFC 1191 §7.1, Table 7-1: the plateaus below the official maximum, largest first.
const PLATEAUS: [u16; 10] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508, 296, 68];
/// Destinations in a set.
const WAYS: usize = 4;

/// An address that a path leads to.
pub trait Destination: Copy + Eq + Hash {
    /// That of no path.
    const NONE: Self;
    /// An estimate is never below this, in octets.
    const LEAST: u16;

    /// The estimate after an error that tells no MTU, about a packet of `length` octets; 0: none.
    fn guess(length: u16) -> u16;
}

impl Destination for Ipv4Addr {
    const NONE: Self = Self::UNSPECIFIED;
    const LEAST: u16 = LEAST;

    fn guess(length: u16) -> u16 {
        plateau_below(length)
    }
}

/// RFC 8201 §4: nothing below the least MTU of an IPv6 link.
impl Destination for Ipv6Addr {
    const NONE: Self = Self::UNSPECIFIED;
    const LEAST: u16 = IPV6_MIN_MTU as u16;

    /// Every Packet Too Big tells an MTU (RFC 4443 §3.2).
    fn guess(_length: u16) -> u16 {
        0
    }
}

/// Largest packets that paths carry, by destination.
#[derive(Debug)]
pub struct PathMtus<A> {
    /// Reserved at the start, or when anything is learnt.
    sets: Box<[[Estimate<A>; WAYS]]>,
    /// How many there are then, a power of two.
    count: usize,
    hash: FixedState,
    /// Whether anything was ever learnt: most gateways never need to look.
    any: bool,
}

/// The known data about one destination.
#[derive(Clone, Copy, Debug)]
struct Estimate<A> {
    remote: A,
    mtu: u16,
    until: Instant,
}

/// What an error did to what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learnt {
    /// The path carries this much from now on; less than was thought, or the same for ten more minutes.
    Mtu(u16),
    /// Nothing: the MTU is below the minimum, or above the current estimate (RFC 1191 §3: no error ever raises an estimate).
    Refused,
}

/// The maximum size of a tunnel's next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelRoom {
    /// The largest inner packet, in octets; never less than 1,280.
    pub mtu: u16,
    /// Whether the outer header's DF is set. Not where the path carries less than 1,280 octets inside: then the outer packet is
    /// fragmented.
    pub dont_fragment: bool,
}

impl<A: Destination> PathMtus<A> {
    /// An empty table for at least `most` destinations (one set at the least); `seed` decides who shares a set.
    pub fn new(most: usize, seed: u64) -> Self {
        let sets = most.div_ceil(WAYS).max(1).next_power_of_two();
        Self { sets: Box::default(), count: sets, hash: FixedState::with_seed(seed), any: false }
    }

    /// Reserves its memory now: a large table would delay the packets behind the first error.
    pub fn reserve(&mut self) {
        self.sets = vec![[Estimate::NOTHING; WAYS]; self.count].into_boxed_slice();
    }

    /// The largest packet that reaches `remote`, in octets, if anything is known.
    #[inline]
    pub fn lookup(&self, remote: A, now: Instant) -> Option<u16> {
        if !self.any {
            return None;
        }
        let known = self.sets[self.set(remote)].iter().find(|known| known.is_of(remote, now))?;
        Some(known.mtu)
    }

    /// A router says that a packet of `length` octets to `remote` did not fit a link of `told` octets. An old router reports 0: then
    /// the next plateau below `length` is taken (RFC 1191 §5). `first_hop` is the assumed MTU of an unknown path.
    pub fn learn(&mut self, remote: A, told: u16, length: u16, first_hop: u16, now: Instant) -> Learnt {
        let thought = self.lookup(remote, now);
        let mtu = if told == 0 { A::guess(length.min(thought.unwrap_or(first_hop))) } else { told };
        // A repeated error with the same number is news of ten more minutes.
        let is_news = thought.map_or(mtu < first_hop, |thought| mtu <= thought);
        if mtu < A::LEAST || !is_news {
            return Learnt::Refused;
        }
        if self.sets.is_empty() {
            self.reserve();
        }
        self.any = true;
        let set = self.set(remote);
        let estimate = Estimate { remote, mtu, until: now + LIFETIME };
        let ways = &mut self.sets[set];
        let at = ways.iter().position(|known| known.is_of(remote, now)).unwrap_or_else(|| oldest(ways));
        ways[at] = estimate;
        Learnt::Mtu(mtu)
    }

    /// The largest packet that a path to `remote` carries whose first link carries `first_hop` octets.
    #[inline]
    pub fn path(&self, remote: A, first_hop: u16, now: Instant) -> u16 {
        self.lookup(remote, now).map_or(first_hop, |known| known.min(first_hop))
    }

    fn set(&self, remote: A) -> usize {
        self.hash.hash_one(remote) as usize & (self.count - 1)
    }
}

impl PathMtus<Ipv4Addr> {
    /// What a tunnel to `remote` carries over a first link of `first_hop` octets (RFC 4213 §3.2.2).
    #[inline]
    pub fn room(&self, remote: Ipv4Addr, first_hop: u16, now: Instant) -> TunnelRoom {
        room(self.path(remote, first_hop, now))
    }
}

impl<A: Destination> Estimate<A> {
    const NOTHING: Self = Self { remote: A::NONE, mtu: 0, until: Instant(0) };

    fn is_of(&self, remote: A, now: Instant) -> bool {
        self.remote == remote && self.until > now
    }
}

/// RFC 4213 §3.2.2: the tunnel over a path of `path` octets.
#[inline]
pub const fn room(path: u16) -> TunnelRoom {
    let inner = path.saturating_sub(IPV4_HEADER as u16);
    if (inner as usize) < IPV6_MIN_MTU {
        TunnelRoom { mtu: IPV6_MIN_MTU as u16, dont_fragment: false }
    } else {
        TunnelRoom { mtu: inner, dont_fragment: true }
    }
}

/// The place of the estimate that ends first: an expired one if there is any, for all live equally long.
fn oldest<A>(ways: &[Estimate<A>; WAYS]) -> usize {
    (0..WAYS).min_by_key(|at| ways[*at].until).unwrap_or_default()
}

/// RFC 1191 §5: the greatest plateau that is less than the length of a packet that did not fit; 0 where there is none.
fn plateau_below(length: u16) -> u16 {
    PLATEAUS.into_iter().find(|plateau| *plateau < length).unwrap_or_default()
}

#[cfg(test)]
mod tests;
