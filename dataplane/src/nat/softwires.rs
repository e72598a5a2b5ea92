//! The softwires of a NAT (RFC 6333 §6.6): their remote ends, by number and by address.
//!
//! ```text
//!     2001:db8:b4::1   ⇄   SoftwireId(7)      24 octets, 9 in the index at most
//! ```
//!
//! A softwire has a number as long as a host behind it has bindings; so what a session says of its softwire is always true. It keeps the number until
//! [`Softwires::forget_left`], since the packet with which its last binding ends may make the next one. The table is bounded: a new one is refused
//! when it is full, and so is more than [`MOST_OF_SUBSCRIBER`] of one subscriber, whose addresses are as many as it likes.

use super::growing_index::GrowingIndex;
use super::inside_key::address_words;
use super::keyed::{Purpose, TupleHash};
use super::slab::Slab;
use core::net::Ipv6Addr;

/// Softwires that a subscriber has at the same time, at most.
pub const MOST_OF_SUBSCRIBER: u16 = 16;

/// Bits of a softwire's number.
pub(super) const NUMBER_BITS: u32 = 30;

/// Number of a softwire (RFC 6333 §6.6): one of many tunnels, one for each subscriber. It survives decapsulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SoftwireId(pub u32);

/// A softwire.
#[derive(Clone, Copy, Debug)]
struct Row {
    remote: Ipv6Addr,
    /// Hosts behind it that have bindings.
    hosts: u32,
    /// Which of the local ends its packets came to.
    local: u8,
    /// Whether the slot holds one.
    is_used: bool,
    /// Whether it is among those that the last host has left.
    is_left: bool,
}

const _: () = assert!(size_of::<Row>() <= 24);

/// The table.
#[derive(Clone, Debug)]
pub struct Softwires {
    rows: Slab<Row>,
    by_remote: GrowingIndex,
    hash: TupleHash,
    /// Those that the last host has left, each once; one of them may have hosts again.
    left: Vec<u32>,
}

/// What is looked up in steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sought {
    tag: u32,
    touched: u64,
}

impl Default for Softwires {
    /// A table without room.
    fn default() -> Self {
        Self::new(0, [0; 2])
    }
}

impl Softwires {
    /// A table of at most `most` softwires.
    pub fn new(most: u32, seed: [u64; 2]) -> Self {
        Self {
            rows: Slab::new(most.min(1 << NUMBER_BITS)),
            by_remote: GrowingIndex::new(most),
            hash: TupleHash::new(seed, Purpose::Softwires),
            left: Vec::new(),
        }
    }

    fn tag(&self, remote: Ipv6Addr) -> u32 {
        let [a, b] = address_words(remote);
        self.hash.pair(a, b)
    }

    /// Step one of a lookup: the index entry of this remote end.
    #[inline(always)]
    pub fn touch(&self, remote: Ipv6Addr) -> Sought {
        let tag = self.tag(remote);
        Sought { tag, touched: self.by_remote.touch(tag) }
    }

    /// Step two: the softwire's line.
    #[inline(always)]
    pub fn candidate(&self, sought: Sought, remote: Ipv6Addr) -> Option<SoftwireId> {
        let id = SoftwireId(self.by_remote.candidate(sought.tag, sought.touched)?);
        if self.is(id, remote) { Some(id) } else { self.find(remote) }
    }

    /// Whether the softwire with this number has this remote end.
    #[inline(always)]
    pub fn is(&self, id: SoftwireId, remote: Ipv6Addr) -> bool {
        self.rows.get(id.0).is_some_and(|row| row.remote == remote && row.is_used)
    }

    /// The softwire with this remote end.
    pub fn find(&self, remote: Ipv6Addr) -> Option<SoftwireId> {
        self.by_remote.find(self.tag(remote), |slot| self.rows[slot].remote == remote).map(SoftwireId)
    }

    /// The same, or a new one if there is room. It is to be forgotten again if no host of it gets a binding.
    pub fn intern(&mut self, remote: Ipv6Addr) -> Option<SoftwireId> {
        if let Some(known) = self.find(remote) {
            return Some(known);
        }
        if self.rows.is_full() {
            self.forget_left();
        }
        let slot = self.rows.insert(Row { remote, hosts: 0, local: 0, is_used: true, is_left: false })?;
        self.by_remote.insert(self.tag(remote), slot);
        Some(SoftwireId(slot))
    }

    /// Forgets a softwire that never had hosts.
    pub fn forget_unused(&mut self, id: SoftwireId) {
        if self.rows.get(id.0).is_some_and(|row| !row.is_left) {
            self.forget_empty(id);
        }
    }

    /// Removes softwires whose last host has left and that have no new host. To be called while no packet is being decided.
    pub fn forget_left(&mut self) {
        while let Some(slot) = self.left.pop() {
            self.rows[slot].is_left = false;
            self.forget_empty(SoftwireId(slot));
        }
    }

    fn forget_empty(&mut self, id: SoftwireId) {
        let Some(row) = self.rows.get(id.0).filter(|row| row.is_used && row.hosts == 0) else { return };
        self.by_remote.remove(self.tag(row.remote), id.0);
        self.rows[id.0].is_used = false;
        self.rows.release(id.0);
    }

    /// The remote end.
    #[inline(always)]
    pub fn remote(&self, id: SoftwireId) -> Option<Ipv6Addr> {
        self.ends(id).map(|(remote, _)| remote)
    }

    /// The remote end, and the number of the local one.
    #[inline(always)]
    pub fn ends(&self, id: SoftwireId) -> Option<(Ipv6Addr, u8)> {
        self.rows.get(id.0).filter(|row| row.is_used).map(|row| (row.remote, row.local))
    }

    /// Prefetches a softwire.
    #[inline(always)]
    pub fn touch_row(&self, id: SoftwireId) {
        core::hint::black_box(self.rows.get(id.0).map(|row| row.local));
    }

    /// Its packets come to this local end: what goes back comes from there.
    #[inline(always)]
    pub fn set_local(&mut self, id: SoftwireId, local: u8) {
        if let Some(row) = self.rows.get_mut(id.0).filter(|row| row.local != local) {
            row.local = local;
        }
    }

    /// Whether hosts behind it have bindings.
    pub fn has_hosts(&self, id: SoftwireId) -> bool {
        self.rows.get(id.0).is_some_and(|row| row.hosts > 0)
    }

    /// One more host has bindings; whether it is the first.
    pub(super) fn joined(&mut self, id: SoftwireId) -> bool {
        let Some(row) = self.rows.get_mut(id.0) else { return false };
        row.hosts += 1;
        row.hosts == 1
    }

    /// One host less has bindings; whether it was the last.
    pub(super) fn left(&mut self, id: SoftwireId) -> bool {
        let Some(row) = self.rows.get_mut(id.0) else { return false };
        row.hosts -= 1;
        let was_last = row.hosts == 0;
        if was_last && !row.is_left {
            row.is_left = true;
            self.left.push(id.0);
        }
        was_last
    }

    /// Their number.
    pub fn len(&self) -> u32 {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 0
    }

    /// How many there may be.
    pub const fn most(&self) -> u32 {
        self.rows.most()
    }

    /// Memory in octets of the softwires that there are: reserved room that is not touched takes none.
    pub fn memory_used(&self) -> usize {
        self.rows.slots() as usize * (size_of::<Row>() + size_of::<u32>())
            + self.by_remote.memory()
            + self.left.capacity() * size_of::<u32>()
    }

    /// Memory in octets, reserved room included.
    pub fn memory(&self) -> usize {
        self.rows.memory() + self.by_remote.memory() + self.left.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(n: u128) -> Ipv6Addr {
        Ipv6Addr::from_bits(0x2001_0db8 << 96 | n)
    }

    #[test]
    fn a_softwire_is_known_as_long_as_it_has_hosts_and_a_full_table_refuses() {
        let mut softwires = Softwires::new(2, [1, 2]);
        let [a, b] = [1, 2].map(|n| softwires.intern(remote(n)).unwrap());
        assert_eq!(softwires.intern(remote(1)), Some(a), "the same softwire");
        assert_eq!(softwires.intern(remote(3)), None, "the table is full");
        assert!(softwires.joined(a) && !softwires.joined(a));
        softwires.forget_unused(a);
        softwires.forget_unused(b);
        assert_eq!((softwires.len(), softwires.remote(a), softwires.remote(b)), (1, Some(remote(1)), None));
        assert!(!softwires.left(a) && softwires.left(a));
        softwires.forget_left();
        assert_eq!((softwires.len(), softwires.find(remote(1))), (0, None));
        assert!(softwires.intern(remote(3)).is_some(), "its place is free");
    }

    #[test]
    fn a_softwire_that_was_left_keeps_its_number_until_it_is_forgotten_or_the_table_is_full() {
        let mut softwires = Softwires::new(3, [1, 2]);
        let [a, b] = [1, 2].map(|n| softwires.intern(remote(n)).unwrap());
        assert!(softwires.joined(a) && softwires.joined(b));
        assert!(softwires.left(a));
        let c = softwires.intern(remote(3)).unwrap();
        assert!(c != a && softwires.is(a, remote(1)), "its number is not another's");
        // It has a host again, and loses that one, too.
        assert!(softwires.joined(a) && softwires.left(a));
        softwires.forget_unused(a);
        assert!(softwires.joined(a));
        softwires.forget_left();
        assert!(softwires.is(a, remote(1)), "it has a host");
        assert!(softwires.left(a) && softwires.joined(c));
        assert_eq!(softwires.intern(remote(4)), Some(a), "the table was full");
        assert_eq!((softwires.find(remote(1)), softwires.len()), (None, 3));
        softwires.joined(a);
        softwires.forget_left();
        assert_eq!(softwires.len(), 3, "who has the number was not left");
        assert_eq!(softwires.intern(remote(5)), None);
    }

    #[test]
    fn a_lookup_in_steps_finds_what_a_lookup_finds() {
        let mut softwires = Softwires::new(5_000, [1, 2]);
        (0..5_000).for_each(|n| {
            let id = softwires.intern(remote(n)).unwrap();
            softwires.joined(id);
        });
        for n in 0..6_000 {
            let sought = softwires.touch(remote(n));
            let found = softwires.candidate(sought, remote(n));
            assert_eq!(found, softwires.find(remote(n)));
            assert_eq!(found.and_then(|id| softwires.remote(id)), (n < 5_000).then(|| remote(n)));
        }
    }

    #[test]
    fn a_softwire_takes_at_most_64_octets() {
        let mut softwires = Softwires::new(100_000, [1, 2]);
        (0..100_000).for_each(|n| {
            softwires.intern(remote(n)).unwrap();
        });
        assert!(softwires.memory() <= 64 * 100_000, "{} octets", softwires.memory());
    }
}
