//! Inbound SYNs that wait for a SYN from inside (RFC 6146 §3.5.2.2, CLOSED and V4 INIT).
//!
//! The store is small and bounded against floods: a SYN that finds no room is refused immediately. Of each packet only
//! is kept as an ICMP error quotes (RFC 1812 §4.3.2.3).

use super::slab::Slab;
use std::collections::VecDeque;

/// SYNs that are stored at a time.
pub const STORED_SYNS: u32 = 1_024;

/// Octets kept of each: what fits into an ICMPv4 error of 576 octets.
pub const STORED_OCTETS: usize = 548;

/// The store.
#[derive(Clone, Debug)]
pub(crate) struct StoredSyns {
    packets: Slab<Box<[u8]>>,
    /// Those whose time is up, to be answered.
    unanswered: VecDeque<Box<[u8]>>,
}

impl StoredSyns {
    /// An empty store for `most` packets.
    pub(super) fn new(most: u32) -> Self {
        Self { packets: Slab::new(most), unanswered: VecDeque::new() }
    }

    /// Whether no packet waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.packets.len() == 0
    }

    /// Whether there is no room left. Those to be answered count.
    pub(super) fn is_full(&self) -> bool {
        self.packets.is_full() || self.unanswered.len() >= STORED_SYNS as usize
    }

    /// Stores a packet; `None`: there is no room.
    pub(super) fn insert(&mut self, packet: &[u8]) -> Option<u32> {
        self.packets.insert(packet[..packet.len().min(STORED_OCTETS)].into())
    }

    /// Forgets a packet: a SYN from inside came (RFC 5382 REQ-4).
    pub(super) fn discard(&mut self, slot: u32) {
        if let Some(packet) = self.packets.get_mut(slot) {
            *packet = Box::default();
            self.packets.release(slot);
        }
    }

    /// A packet's time is up.
    pub(super) fn give_up(&mut self, slot: u32) {
        if let Some(packet) = self.packets.get_mut(slot) {
            self.unanswered.push_back(std::mem::take(packet));
            self.packets.release(slot);
        }
    }

    /// The next packet to be answered.
    pub(super) fn next_unanswered(&mut self) -> Option<Box<[u8]>> {
        self.unanswered.pop_front()
    }

    /// Memory in octets, at most.
    pub(super) fn memory(&self) -> usize {
        self.packets.memory() + (self.packets.len() as usize + self.unanswered.len()) * STORED_OCTETS
    }
}
