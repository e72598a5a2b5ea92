//! From an IPv6 address to its host's record: an open-addressed hash table of eight octets a slot, at most half full, with
//! backward shifts instead of tombstones, so that lookups stay short however long it runs.

use super::hosts::{HostId, Hosts};
use core::hash::Hasher as _;
use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;

/// The table. Its size is fixed; its memory is used as far as it is touched.
pub(super) struct HostIndex {
    /// The upper half is the hash, the lower half the host's id plus one; zero is an empty slot.
    slots: Vec<u64>,
    /// A hash shifted right by this many bits is its home slot.
    shift: u32,
    per_hasher: u64,
    shared: SharedSeed,
}

impl HostIndex {
    /// A table for at most `hosts` hosts, whose addresses cannot be chosen to collide by who does not know the seed.
    pub(super) fn new(hosts: u32, seed: [u64; 2]) -> Self {
        let slots = (u64::from(hosts) * 2).next_power_of_two().max(4);
        Self {
            slots: vec![0; slots as usize],
            shift: 32 - slots.trailing_zeros(),
            per_hasher: seed[0],
            shared: SharedSeed::from_u64(seed[1]),
        }
    }

    #[inline]
    fn hash(&self, host: u128) -> u32 {
        let mut hasher = FoldHasher::with_seed(self.per_hasher, &self.shared);
        hasher.write_u128(host);
        (hasher.finish() >> 32) as u32
    }

    #[inline]
    fn home(&self, hash: u32) -> usize {
        (hash >> self.shift) as usize
    }

    /// The host with this address.
    #[inline]
    pub(super) fn find(&self, host: u128, hosts: &Hosts) -> Option<HostId> {
        let hash = self.hash(host);
        let mask = self.slots.len() - 1;
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if (slot >> 32) as u32 == hash {
                let id = slot as u32 - 1;
                if hosts.address6(id) == host {
                    return Some(id);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a host that is not in the table.
    pub(super) fn insert(&mut self, host: u128, id: HostId) {
        let hash = self.hash(host);
        let mask = self.slots.len() - 1;
        let mut at = self.home(hash);
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = u64::from(hash) << 32 | u64::from(id + 1);
    }

    /// Removes a host that is in the table.
    pub(super) fn remove(&mut self, host: u128, id: HostId) {
        let hash = self.hash(host);
        let sought = u64::from(hash) << 32 | u64::from(id + 1);
        let mask = self.slots.len() - 1;
        let mut hole = self.home(hash);
        while self.slots[hole] != sought {
            if self.slots[hole] == 0 {
                return;
            }
            hole = (hole + 1) & mask;
        }
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            let distance_from_home = at.wrapping_sub(self.home((slot >> 32) as u32)) & mask;
            if distance_from_home >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = 0;
    }

    /// Octets of memory, when all of it has been touched.
    pub(super) fn memory(&self) -> usize {
        self.slots.capacity() * 8
    }
}
