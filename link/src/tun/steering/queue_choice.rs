//! Which worker's queue a packet belongs into: what the program computes, in Rust.

use sixway_dataplane::nat::Spread;
use sixway_wire::protocol;

/// 2^64 divided by the golden ratio: spreads what differs in few bits.
pub(super) const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Which worker a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steering {
    /// Ports in a block; at least 1.
    pub ports_per_block: u16,
    /// How many workers, and queues; at least 1.
    pub workers: u8,
    /// How subscribers are spread over the workers.
    pub spread: Spread,
}

impl Steering {
    /// Blocks that the ports are cut into.
    pub fn blocks(self) -> u32 {
        u32::from(u16::MAX / self.ports_per_block.max(1)) + 1
    }

    /// The owner of a block until it moves: blocks are dealt out in stripes.
    pub fn first_owner(self, block: u32) -> u8 {
        (block % u32::from(self.workers.max(1))) as u8
    }

    /// The worker that the program chooses for a packet as long as no block has moved: the same in Rust.
    pub fn worker(self, packet: &[u8]) -> u8 {
        self.worker_by(packet, |block| self.first_owner(block))
    }

    /// The same where blocks have these owners.
    pub fn worker_by(self, packet: &[u8], owner: impl Fn(u32) -> u8) -> u8 {
        let workers = u64::from(self.workers.max(1));
        match packet.first().map(|octet| octet >> 4) {
            Some(4) => match (outside_port(packet), chunk::<8>(packet, 12)) {
                (PortLookup::Port(port), _) => owner(u32::from(port / self.ports_per_block.max(1))),
                (PortLookup::NoPort, Some(addresses)) => share(u64::from_be_bytes(addresses), workers),
                (PortLookup::CutShort, _) | (PortLookup::NoPort, None) => 0,
            },
            Some(6) => self.worker_of_source(packet).unwrap_or(0),
            _ => 0,
        }
    }

    /// By the prefix of an IPv6 source; `None`: the packet ends before it does.
    fn worker_of_source(self, packet: &[u8]) -> Option<u8> {
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

/// What an IPv4 packet has for a destination port.
enum PortLookup {
    /// A port or the identifier of an ICMP echo message.
    Port(u16),
    /// A fragment, another ICMP message, another protocol.
    NoPort,
    /// The packet ends before it.
    CutShort,
}

fn outside_port(packet: &[u8]) -> PortLookup {
    let number = |at| {
        chunk::<2>(packet, at)
            .map_or(PortLookup::CutShort, |octets| PortLookup::Port(u16::from_be_bytes(octets)))
    };
    let at = usize::from(packet[0] & 0x0f) * 4;
    let Some([high, low, _, transport]) = chunk::<4>(packet, 6) else { return PortLookup::CutShort };
    if u16::from_be_bytes([high, low]) & 0x3fff != 0 {
        return PortLookup::NoPort;
    }
    match transport {
        protocol::TCP | protocol::UDP | protocol::UDP_LITE | protocol::DCCP | protocol::SCTP => {
            number(at + 2)
        }
        protocol::ICMPV4 => match packet.get(at) {
            Some(0 | 8) => number(at + 4),
            Some(_) => PortLookup::NoPort,
            None => PortLookup::CutShort,
        },
        _ => PortLookup::NoPort,
    }
}

fn chunk<const N: usize>(packet: &[u8], at: usize) -> Option<[u8; N]> {
    packet.get(at..)?.first_chunk().copied()
}
