//! Packets that wait for a peer's answer: at most four for each peer, and for each sender a share of the units that are left.

use super::shares::OWN;
use crate::drop_reason::DropReason;
use crate::effects::HeldPacket;
use crate::frame::Frame;
use alloc::vec::Vec;
use foldhash::fast::FixedState;
use std::collections::HashMap;

/// Packets for one peer.
const OF_A_PEER: usize = 4;
/// Units of all packets together.
const MOST: u32 = 1_024;
/// Octets of a unit.
const UNIT: usize = 1_500;
/// A sender may have this part of the units that are left, and this many in any case.
const SHARE: u32 = 8;
const LEAST: u32 = 4;

/// The packets, by peer.
#[derive(Debug)]
pub(super) struct Waiting {
    packets: HashMap<u32, Vec<HeldPacket>, FixedState>,
    of_creator: HashMap<u16, u32, FixedState>,
    units: u32,
    number: u32,
}

fn units(octets: usize) -> u32 {
    octets.div_ceil(UNIT) as u32
}

impl Waiting {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            packets: HashMap::with_hasher(FixedState::with_seed(seed)),
            of_creator: HashMap::with_hasher(FixedState::with_seed(seed)),
            units: 0,
            number: 0,
        }
    }

    /// Packets that wait.
    pub(super) const fn len(&self) -> u32 {
        self.number
    }

    /// Octets of memory.
    pub(super) fn memory_used(&self) -> usize {
        self.units as usize * UNIT
    }

    /// Stores a packet for a peer.
    pub(super) fn hold(&mut self, peer: u32, creator: u16, frame: &Frame) -> Result<(), DropReason> {
        let needed = units(frame.len());
        let left = MOST.saturating_sub(self.units);
        let has = self.of_creator.get(&creator).copied().unwrap_or_default();
        let share = (left / SHARE).max(LEAST);
        let of_peer = self.packets.get(&peer).map_or(0, Vec::len);
        // A first packet may be longer than the share, but not much.
        let is_first = has == 0 && needed <= LEAST;
        let is_over = creator != OWN && !is_first && has + needed > share;
        if of_peer >= OF_A_PEER || needed > left || is_over {
            return Err(DropReason::TeredoWaitingFull);
        }
        self.packets.entry(peer).or_default().push(HeldPacket::of(frame));
        *self.of_creator.entry(creator).or_default() += needed;
        self.units += needed;
        self.number += 1;
        Ok(())
    }

    /// The packets for a peer, in the order in which they came; there are none afterwards.
    pub(super) fn take(&mut self, peer: u32, creator: u16) -> Vec<HeldPacket> {
        let packets = self.packets.remove(&peer).unwrap_or_default();
        let freed: u32 = packets.iter().map(|packet| units(packet.octets.len())).sum();
        self.units -= freed;
        self.number -= packets.len() as u32;
        if let Some(has) = self.of_creator.get_mut(&creator) {
            *has -= freed;
            if *has == 0 {
                self.of_creator.remove(&creator);
            }
        }
        packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_four_places_and_a_sender_a_share_of_what_is_left() {
        let mut waiting = Waiting::new(1);
        let frame = Frame::holding(&[0x60; 1_280]);
        let held = |waiting: &mut Waiting, creator: u16, peers: core::ops::Range<u32>| {
            peers
                .flat_map(|peer| [peer; 6])
                .filter(|peer| waiting.hold(*peer, creator, &frame).is_ok())
                .count()
        };
        assert_eq!(held(&mut waiting, 1, 0..1), 4);
        assert_eq!(
            held(&mut waiting, 2, 1_000..3_000),
            113,
            "of 1,020 units an eighth, and less as they are used"
        );
        let others = (3..40).map(|creator| {
            held(&mut waiting, creator, u32::from(creator) * 10_000..u32::from(creator) * 10_000 + 1)
        });
        assert!(others.into_iter().all(|count| count == 4), "who holds little is not hurt");
        (0..1).for_each(|peer| drop(waiting.take(peer, 1)));
        (1_000..3_000).for_each(|peer| drop(waiting.take(peer, 2)));
        for creator in 3..40 {
            waiting.take(u32::from(creator) * 10_000, creator);
        }
        assert_eq!((waiting.units, waiting.len(), waiting.of_creator.len()), (0, 0, 0));
    }

    #[test]
    fn a_gso_packet_counts_as_many_units_as_it_has_octets_for() {
        let mut waiting = Waiting::new(1);
        let frame = Frame::holding(&vec![0x60; 60_000]);
        let accepted = (0..1_000).filter(|peer| waiting.hold(*peer, *peer as u16, &frame).is_ok()).count();
        assert_eq!(accepted, 18, "40 units are an eighth of the 320 that are left at least");
        let small = Frame::holding(&[0x60; 1_280]);
        assert!(waiting.hold(2_000, 2_000, &small).is_ok());
    }
}
