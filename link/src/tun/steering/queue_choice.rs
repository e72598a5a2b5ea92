//! Which worker's queue a packet belongs into: what the program computes, in Rust.

use core::net::Ipv4Addr;
use sixway_dataplane::nat::Spread;
use sixway_wire::{Prefix4, protocol};

/// 2^64 divided by the golden ratio: spreads what differs in few bits.
pub(super) const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Maximum number of prefixes of either side: the program compares each of them.
const MOST_PREFIXES: usize = 64;

/// Which worker a packet is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steering {
    /// Ports in a block; at least 1.
    pub ports_per_block: u16,
    /// How many workers, and queues; at least 1.
    pub workers: u8,
    /// How subscribers are spread over the workers.
    pub spread: Spread,
    /// The same of IPv4 subscribers.
    pub spread4: Spread,
    /// IPv4 sources that are subscribers.
    pub inside4: Vec<Prefix4>,
    /// IPv4 destinations whose ports are those of blocks; `None`: all.
    pub pools: Option<Vec<Prefix4>>,
}

impl Steering {
    /// By IPv6 source, and by IPv4 destination port, whatever the address.
    pub const fn by_ports(ports_per_block: u16, workers: u8, spread: Spread) -> Self {
        Self { ports_per_block, workers, spread, spread4: spread, inside4: Vec::new(), pools: None }
    }

    /// By IPv4 source, too, where that is inside, and by port only if the destination is in a pool. Too many prefixes are left out: then more
    /// packets are handed over.
    #[must_use]
    pub fn with_addresses(self, spread4: Spread, inside4: Vec<Prefix4>, pools: Vec<Prefix4>) -> Self {
        let has_room = |list: &Vec<Prefix4>| list.len() <= MOST_PREFIXES;
        let inside4 = Some(inside4).filter(has_room).unwrap_or_default();
        Self { spread4, inside4, pools: Some(pools).filter(has_room), ..self }
    }

    /// Blocks that the ports are cut into.
    pub fn blocks(&self) -> u32 {
        u32::from(u16::MAX / self.ports_per_block.max(1)) + 1
    }

    /// The owner of a block until it moves: blocks are dealt out in stripes.
    pub fn first_owner(&self, block: u32) -> u8 {
        (block % u32::from(self.workers.max(1))) as u8
    }

    /// The worker that the program chooses for a packet as long as no block has moved: the same in Rust.
    pub fn worker(&self, packet: &[u8]) -> u8 {
        self.worker_by(packet, |block| self.first_owner(block))
    }

    /// The same where blocks have these owners.
    pub fn worker_by(&self, packet: &[u8], owner: impl Fn(u32) -> u8) -> u8 {
        match packet.first().map(|octet| octet >> 4) {
            Some(4) => self.worker4(packet, owner),
            Some(6) => self.worker_of_source(packet),
            _ => None,
        }
        .unwrap_or(0)
    }

    /// Of an IPv4 packet. `None`: it ends too early.
    fn worker4(&self, packet: &[u8], owner: impl Fn(u32) -> u8) -> Option<u8> {
        let address = |at| chunk::<4>(packet, at).map(Ipv4Addr::from);
        let is_in = |list: &[Prefix4], address| list.iter().any(|prefix| prefix.contains(address));
        let fragment = u16::from_be_bytes(chunk::<2>(packet, 6)?);
        if fragment & 0x3fff == 0 {
            if !self.inside4.is_empty() && is_in(&self.inside4, address(12)?) {
                let place = u128::from(address(12)?.to_bits()) << 96;
                return Some(self.spread4.worker(place, self.workers.max(1)));
            }
            let goes_by_port = match &self.pools {
                Some(pools) => is_in(pools, address(16)?),
                None => true,
            };
            if goes_by_port && let Some(port) = outside_port(packet)? {
                return Some(owner(u32::from(port / self.ports_per_block.max(1))));
            }
        }
        Some(share(u64::from_be_bytes(chunk::<8>(packet, 12)?), self.workers.max(1).into()))
    }

    /// By the prefix of an IPv6 source; `None`: the packet ends before it does.
    fn worker_of_source(&self, packet: &[u8]) -> Option<u8> {
        let words = self.spread.words().into_iter().filter(|(mask, _)| *mask != 0).count();
        let prefix = packet.get(8..8 + 4 * words)?;
        let mut source = [0; 16];
        source[..prefix.len()].copy_from_slice(prefix);
        Some(self.spread.worker(u128::from_be_bytes(source), self.workers.max(1)))
    }
}

/// Spreads `bits` over the workers.
const fn share(bits: u64, workers: u64) -> u8 {
    (((bits.wrapping_mul(SPREAD) >> 32) * workers) >> 32) as u8
}

/// The destination port of an IPv4 packet that is not a fragment, or the identifier of an ICMP echo message. `None`: the packet ends before
/// it; `Some(None)`: it has none.
fn outside_port(packet: &[u8]) -> Option<Option<u16>> {
    let number = |at| chunk::<2>(packet, at).map(|octets| Some(u16::from_be_bytes(octets)));
    let at = usize::from(packet[0] & 0x0f) * 4;
    match *packet.get(9)? {
        protocol::TCP | protocol::UDP | protocol::UDP_LITE | protocol::DCCP | protocol::SCTP => {
            number(at + 2)
        }
        protocol::ICMPV4 if matches!(packet.get(at)?, 0 | 8) => number(at + 4),
        _ => Some(None),
    }
}

fn chunk<const N: usize>(packet: &[u8], at: usize) -> Option<[u8; N]> {
    packet.get(at..)?.first_chunk().copied()
}
