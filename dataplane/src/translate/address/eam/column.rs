//! One column of the table, made searchable: longest match by tuple-space search.
//!
//! For each prefix length that occurs there is a hash table of the prefixes of that length, and the lengths are tried
//! longest first; a table of host addresses costs one probe. In front of them is a bitmap that most addresses
//! without a mapping do not pass: usually the remote end of a conversation.

use core::hash::BuildHasher as _;
use core::net::{Ipv4Addr, Ipv6Addr};
use foldhash::fast::FixedState;
use sixway_wire::{Prefix4, Prefix6};

/// No attacker chooses the configured table, so its hash needs no secret.
const HASH: FixedState = FixedState::with_seed(0x0077_5700_6052);

/// Slots for every two entries: a load of two thirds.
const SLOTS_FOR_TWO: usize = 3;

/// A row of the table where a column finds it: both prefixes in 24 octets, so that a hit costs one cache miss.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    six: [u64; 2],
    four: u32,
    /// The row's index times 256, plus the length of the prefix that is not this column's key.
    meta: u32,
}

impl Slot {
    const EMPTY: Self = Self { six: [0; 2], four: 0, meta: u32::MAX };
    /// Most rows a table may have: an index takes 24 bits, and one value means an empty slot.
    pub(super) const MAX_ROWS: usize = (1 << 24) - 1;

    const fn is_empty(&self) -> bool {
        self.meta == u32::MAX
    }

    /// Index of the row in the configured table.
    pub(super) const fn row(&self) -> usize {
        (self.meta >> 8) as usize
    }

    /// The first address of the IPv6 prefix.
    #[inline]
    pub(super) const fn six(&self) -> u128 {
        (self.six[0] as u128) << 64 | self.six[1] as u128
    }

    /// The first address of the IPv4 prefix.
    #[inline]
    pub(super) const fn four(&self) -> u32 {
        self.four
    }

    /// Length of the prefix in the other column.
    #[inline]
    pub(super) const fn other_length(&self) -> u8 {
        self.meta as u8
    }
}

/// The differences of the two columns.
pub(super) trait Side {
    /// An address of this family as a number.
    type Bits: Copy + Eq;
    /// Bits of an address.
    const WIDTH: u8;
    /// Longest prefix that the filter tells apart.
    const FILTER_LENGTH: u8;

    fn mask(length: u8) -> Self::Bits;
    fn and(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    /// How many leading bits the two share.
    fn shared(a: Self::Bits, b: Self::Bits) -> u8;
    fn hash(bits: Self::Bits) -> u64;
    fn key(slot: &Slot) -> Self::Bits;
    fn length(row: (Prefix4, Prefix6)) -> u8;
    fn other_length(row: (Prefix4, Prefix6)) -> u8;
}

/// The column of IPv4 prefixes.
pub(super) struct Four;

impl Side for Four {
    type Bits = u32;
    const WIDTH: u8 = 32;
    const FILTER_LENGTH: u8 = 16;

    fn mask(length: u8) -> u32 {
        Prefix4::holding(Ipv4Addr::UNSPECIFIED, length).mask()
    }
    #[inline]
    fn and(a: u32, b: u32) -> u32 {
        a & b
    }
    fn shared(a: u32, b: u32) -> u8 {
        (a ^ b).leading_zeros() as u8
    }
    #[inline]
    fn hash(bits: u32) -> u64 {
        HASH.hash_one(bits)
    }
    #[inline]
    fn key(slot: &Slot) -> u32 {
        slot.four
    }
    fn length(row: (Prefix4, Prefix6)) -> u8 {
        row.0.length()
    }
    fn other_length(row: (Prefix4, Prefix6)) -> u8 {
        row.1.length()
    }
}

/// The column of IPv6 prefixes.
pub(super) struct Six;

impl Side for Six {
    type Bits = u128;
    const WIDTH: u8 = 128;
    const FILTER_LENGTH: u8 = 48;

    fn mask(length: u8) -> u128 {
        Prefix6::holding(Ipv6Addr::UNSPECIFIED, length).mask()
    }
    #[inline]
    fn and(a: u128, b: u128) -> u128 {
        a & b
    }
    fn shared(a: u128, b: u128) -> u8 {
        (a ^ b).leading_zeros() as u8
    }
    #[inline]
    fn hash(bits: u128) -> u64 {
        HASH.hash_one(bits)
    }
    #[inline]
    fn key(slot: &Slot) -> u128 {
        slot.six()
    }
    fn length(row: (Prefix4, Prefix6)) -> u8 {
        row.1.length()
    }
    fn other_length(row: (Prefix4, Prefix6)) -> u8 {
        row.0.length()
    }
}

/// The prefixes of one length: a stretch of the column's slots, probed linearly. It always has an empty slot.
struct Group<S: Side> {
    length: u8,
    mask: S::Bits,
    start: u32,
    slots: u32,
}

impl<S: Side> Group<S> {
    #[inline]
    fn home(&self, key: S::Bits) -> usize {
        ((u128::from(S::hash(key)) * u128::from(self.slots)) >> 64) as usize
    }
}

/// Recognises most addresses that no row holds without a lookup: by the bits that all prefixes of the column share, then by a bitmap of
/// what the first bits of every prefix hash to.
struct Filter<S: Side> {
    /// The first prefix of the column, and a mask of the leading bits that all others share with it.
    first: Option<S::Bits>,
    cover: S::Bits,
    cover_length: u8,
    mask: S::Bits,
    bits: Box<[u64; 1024]>,
}

impl<S: Side> Filter<S> {
    /// `shortest`: the length of the shortest prefix in the column; bits beyond it cannot be distinguished from an address.
    fn new(shortest: u8) -> Self {
        Self {
            first: None,
            cover: S::mask(shortest),
            cover_length: shortest,
            mask: S::mask(shortest.min(S::FILTER_LENGTH)),
            bits: Box::new([0; 1024]),
        }
    }

    #[inline]
    fn place(&self, bits: S::Bits) -> (usize, u64) {
        let hash = S::hash(S::and(bits, self.mask)) >> 48;
        ((hash >> 6) as usize & 1023, 1 << (hash & 63))
    }

    fn add(&mut self, bits: S::Bits) {
        let first = *self.first.get_or_insert(bits);
        self.cover_length = self.cover_length.min(S::shared(first, bits));
        self.cover = S::mask(self.cover_length);
        let (word, bit) = self.place(bits);
        self.bits[word] |= bit;
    }

    /// Whether the address begins as all prefixes of the column do.
    #[inline(always)]
    fn covers(&self, bits: S::Bits) -> bool {
        self.first.is_some_and(|first| S::and(bits, self.cover) == S::and(first, self.cover))
    }

    #[inline]
    fn may_hold(&self, bits: S::Bits) -> bool {
        let (word, bit) = self.place(bits);
        self.bits[word] & bit != 0
    }
}

/// The column.
pub(super) struct Column<S: Side> {
    groups: Vec<Group<S>>,
    slots: Vec<Slot>,
    filter: Filter<S>,
}

impl<S: Side> Column<S> {
    /// Makes room for the rows, at most [`Slot::MAX_ROWS`] of them; [`Self::insert`] puts them in.
    pub(super) fn for_rows(rows: &[(Prefix4, Prefix6)]) -> Self {
        let mut counts = [0usize; 129];
        for row in rows {
            counts[usize::from(S::length(*row))] += 1;
        }
        let mut groups = Vec::new();
        let mut start = 0;
        for length in (0..=S::WIDTH).rev() {
            let count = counts[usize::from(length)];
            if count > 0 {
                let slots = count * SLOTS_FOR_TWO / 2 + 1;
                groups.push(Group {
                    length,
                    mask: S::mask(length),
                    start: start as u32,
                    slots: slots as u32,
                });
                start += slots;
            }
        }
        let shortest = groups.last().map_or(0, |group: &Group<S>| group.length);
        Self { groups, slots: vec![Slot::EMPTY; start], filter: Filter::new(shortest) }
    }

    /// Puts a row in; gives its slot, or as an error the slot of the row with the same prefix that is there already.
    pub(super) fn insert(&mut self, index: usize, row: (Prefix4, Prefix6)) -> Result<usize, Slot> {
        let six = row.1.address().to_bits();
        let slot = Slot {
            six: [(six >> 64) as u64, six as u64],
            four: row.0.address().to_bits(),
            meta: (index as u32) << 8 | u32::from(S::other_length(row)),
        };
        let key = S::key(&slot);
        let mut at = None;
        for group in &self.groups {
            if group.length == S::length(row) {
                at = Some(match Self::find(&self.slots, group, key) {
                    Ok(there) => return Err(self.slots[there]),
                    Err(empty) => empty,
                });
            }
        }
        let at = at.unwrap_or(0);
        self.slots[at] = slot;
        self.filter.add(key);
        Ok(at)
    }

    /// The slot that holds the key, or as an error the empty one where it would be.
    #[inline]
    fn find(slots: &[Slot], group: &Group<S>, key: S::Bits) -> Result<usize, usize> {
        let end = (group.start + group.slots) as usize;
        let mut at = group.start as usize + group.home(key);
        loop {
            let slot = &slots[at];
            if slot.is_empty() {
                return Err(at);
            }
            if S::key(slot) == key {
                return Ok(at);
            }
            at += 1;
            if at == end {
                at = group.start as usize;
            }
        }
    }

    /// The row whose prefix is the longest that holds the address, and that prefix' length.
    #[inline(always)]
    pub(super) fn longest(&self, address: S::Bits) -> Option<(&Slot, u8)> {
        if !self.filter.covers(address) {
            return None;
        }
        if let [group] = self.groups.as_slice() {
            // A lookup costs no more than the bitmap would.
            let at = Self::find(&self.slots, group, S::and(address, group.mask)).ok()?;
            return Some((self.slots.get(at)?, group.length));
        }
        self.longest_below(address, u8::MAX)
    }

    /// As [`Self::longest`], among prefixes shorter than `limit` bits.
    #[inline]
    pub(super) fn longest_below(&self, address: S::Bits, limit: u8) -> Option<(&Slot, u8)> {
        if !self.filter.may_hold(address) {
            return None;
        }
        for group in &self.groups {
            if group.length < limit
                && let Ok(at) = Self::find(&self.slots, group, S::and(address, group.mask))
            {
                return Some((&self.slots[at], group.length));
            }
        }
        None
    }

    /// Loads the slot where the search will begin, and says something about it.
    #[inline]
    pub(super) fn warm(&self, address: S::Bits) -> u32 {
        match self.groups.first() {
            Some(group) if self.filter.may_hold(address) => {
                self.slots[group.start as usize + group.home(S::and(address, group.mask))].meta
            }
            Some(_) | None => 0,
        }
    }

    /// The row in a slot, with its index.
    pub(super) fn slot(&self, at: usize) -> &Slot {
        &self.slots[at]
    }

    /// Octets of memory.
    pub(super) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>() + self.groups.capacity() * size_of::<Group<S>>() + 8_192
    }

    /// The length of the prefixes that live at this slot.
    pub(super) fn length_at(&self, at: usize) -> u8 {
        let of_slot = |group: &&Group<S>| at < (group.start + group.slots) as usize;
        self.groups.iter().find(of_slot).map_or(0, |group| group.length)
    }
}
