//! Real reassembly, as a stateful NAT64 needs it (RFC 6146 §3.4): fragments come in any order, and the packet leaves in one piece.
//!
//! Everything is bounded, and what is new is refused: a fragment for which there is no memory is dropped, and its packet with it, because
//! it cannot become complete; a packet beyond the table's or its source's number of packets is not started. A packet that is lost keeps
//! its place in the table, without its fragments, until its time is over. Packets that have waited longest expire first, by order of
//! arrival.
//!
//! Where sources may be forged ([`Reassembly::by_destination`]) what is new replaces what has waited longest: of the same source and
//! destination if they have their number of packets, of the same destination if that has its share, and of all if the table is full.
//! Fragments of one packet usually arrive together, so they are joined before a flood replaces the first of them.

use super::held::{Held, Piece, Whole};
use super::holders::{Holder, Holders, Sharing};
use crate::drop_reason::DropReason;
use crate::frame::Frame;
use crate::instant::Instant;
use crate::parse::{Addresses, Fragment, Packet};
use core::time::Duration;
use foldhash::quality::FixedState;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// RFC 6146 §4: FRAGMENT_MIN, the least time that fragments wait, 2 s.
pub const FRAGMENT_MIN: Duration = Duration::from_secs(2);

/// Memory for a packet in addition to its fragments.
const PACKET_COST: usize = 256;

/// Bounds on the fragments that wait for the rest of their packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentLimits {
    /// Memory in octets, all overhead included.
    pub memory: usize,
    /// Packets at a time.
    pub packets: usize,
    /// Packets at a time from one source: an IPv4 address, or an IPv6 /64.
    pub packets_per_source: usize,
    /// Fragments of one packet.
    pub fragments_per_packet: usize,
    /// How long a packet may take from its first fragment to arrive; at least [`FRAGMENT_MIN`].
    pub timeout: Duration,
}

impl Default for FragmentLimits {
    fn default() -> Self {
        Self {
            memory: 8 << 20,
            packets: 4_096,
            packets_per_source: 64,
            fragments_per_packet: 128,
            timeout: FRAGMENT_MIN,
        }
    }
}

/// The outcome of a fragment.
#[derive(Debug)]
pub enum Admission {
    /// It waits for the others.
    Held,
    /// It was the one that was missing.
    Whole(Whole),
}

/// A fragment that is dropped, possibly with the held fragments of its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub reason: DropReason,
    /// How many held fragments were dropped with it, for the same reason.
    pub released: u32,
}

/// Fragments whose reassembly timed out: to be counted as [`DropReason::FragmentTimeout`].
#[derive(Debug)]
pub struct Expired {
    /// How many were held.
    pub fragments: u32,
    /// The first fragment as it was received, if it came: what an ICMP Time Exceeded (RFC 792, RFC 4443 §3.3) is about.
    pub first: Option<Frame>,
}

/// Fragments that were held and made room for newer ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Displaced {
    /// Of a source that has its number of packets, or of a destination that has its share: [`DropReason::FragmentShare`].
    pub of_share: u32,
    /// Of all, because the table was full: [`DropReason::FragmentMemory`].
    pub of_table: u32,
}

/// A holder has at most this part of what is left, where holders share a table.
const PART_OF_LEFT: usize = 8;

/// Memory that a holder may have as long as there is any left, where holders share a table: a packet or two.
const LITTLE: usize = 4_096;

/// The same for a destination: the largest packet and more, since a destination that has less replaces others only if the table is full.
const LITTLE_OF_DESTINATION: usize = 1 << 17;

/// Packets that a destination may have in any case, where destinations share a table: a flood to thousands of others would leave it one at a time.
const FEW_OF_DESTINATION: usize = 16;

/// RFC 791 §3.2, RFC 8200 §4.5: which packet a fragment belongs to. In IPv6 the Next Header of later fragments says nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    addresses: Addresses,
    identification: u32,
    protocol: Option<u8>,
    /// Where and of whom, if subscribers share the table.
    sharing: Option<Sharing>,
}

impl Key {
    fn of(packet: &Packet, place: Fragment, sharing: Option<Sharing>) -> Self {
        let protocol = match packet.addresses {
            Addresses::V4 { .. } => Some(packet.protocol),
            Addresses::V6 { .. } => None,
        };
        Self { addresses: packet.addresses, identification: place.identification, protocol, sharing }
    }

    /// The holder that the packet is charged to.
    fn holders(&self, is_by_destination: bool) -> Holders {
        Holders::of(self.addresses, self.sharing, is_by_destination)
    }
}

/// The use of the table by a holder.
#[derive(Clone, Copy, Default)]
struct Charged {
    packets: usize,
    memory: usize,
}

/// A packet in the table.
struct Entry {
    /// Number in the order of arrival.
    arrival: u64,
    deadline: Instant,
    state: State,
}

enum State {
    /// Its fragments wait.
    Waiting(Held),
    /// It was dropped. Its further fragments are dropped for the same reason until its time is over (RFC 5722 §4).
    Lost(DropReason),
}

/// The packets that wait for their fragments.
pub struct Reassembly {
    limits: FragmentLimits,
    packets: HashMap<Key, Entry, FixedState>,
    charged: HashMap<Holder, Charged, FixedState>,
    by_arrival: BTreeMap<u64, Key>,
    /// The packets of each holder by arrival, if what is new replaces what is old.
    by_holder: Option<BTreeSet<(Holder, u64)>>,
    displaced: Displaced,
    arrivals: u64,
    memory: usize,
    fragments: usize,
}

impl Reassembly {
    /// Whether the table is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.by_arrival.is_empty()
    }

    /// An empty table. `seed` makes its hashes unpredictable.
    pub fn new(limits: FragmentLimits, seed: u64) -> Self {
        Self {
            limits: FragmentLimits { timeout: limits.timeout.max(FRAGMENT_MIN), ..limits },
            packets: HashMap::with_hasher(FixedState::with_seed(seed)),
            charged: HashMap::with_hasher(FixedState::with_seed(!seed)),
            by_arrival: BTreeMap::new(),
            by_holder: None,
            displaced: Displaced::default(),
            arrivals: 0,
            memory: 0,
            fragments: 0,
        }
    }

    /// An empty table for fragments whose sources may be forged. Destinations share it as subscribers share one of
    /// [`Reassembly::admit_shared`], the number of packets of a source is that of a source and a destination, and what is new replaces what is old.
    pub fn by_destination(limits: FragmentLimits, seed: u64) -> Self {
        Self { by_holder: Some(BTreeSet::new()), ..Self::new(limits, seed) }
    }

    /// The fragments that were displaced since this was asked last.
    pub const fn take_displaced(&mut self) -> Displaced {
        core::mem::replace(&mut self.displaced, Displaced { of_share: 0, of_table: 0 })
    }

    /// How many fragments wait.
    pub const fn fragments(&self) -> usize {
        self.fragments
    }

    /// Octets of memory in use.
    pub const fn memory(&self) -> usize {
        self.memory
    }

    /// Takes a copy of a fragment; `packet` is its parsed form. `Err` says that it is dropped, and how many of those that
    /// were held go with it: [`DropReason::BadFragment`], [`DropReason::FragmentOverlap`], [`DropReason::FragmentDuplicate`],
    /// [`DropReason::FragmentMemory`] or [`DropReason::FragmentShare`]. Of what [`Admission::Whole`] is made, all but this one were held until then.
    pub fn admit(&mut self, frame: &Frame, packet: &Packet, now: Instant) -> Result<Admission, Refused> {
        self.admit_up_to((self.limits.packets_per_source, None), frame, packet, now)
    }

    /// As [`Reassembly::admit`], where subscribers share the table: each has at most an eighth of what is left, in packets and in memory, but
    /// always a little (Choudhury and Hahne, 1998). So one that sends few fragments finds room, whatever the others do.
    pub fn admit_shared(
        &mut self,
        sharing: Sharing,
        frame: &Frame,
        packet: &Packet,
        now: Instant,
    ) -> Result<Admission, Refused> {
        self.admit_up_to((self.limits.packets_per_source, Some(sharing)), frame, packet, now)
    }

    /// As [`Reassembly::admit`], from the one source that all packets of a tunnel come from: it may have half of the table.
    pub fn admit_of_peer(
        &mut self,
        frame: &Frame,
        packet: &Packet,
        now: Instant,
    ) -> Result<Admission, Refused> {
        let most = self.limits.packets_per_source.max(self.limits.packets / 2);
        self.admit_up_to((most, None), frame, packet, now)
    }

    fn admit_up_to(
        &mut self,
        (most_of_source, sharing): (usize, Option<Sharing>),
        frame: &Frame,
        packet: &Packet,
        now: Instant,
    ) -> Result<Admission, Refused> {
        let alone = |reason| Refused { reason, released: 0 };
        let place = packet.fragment.ok_or(alone(DropReason::BadFragment))?;
        let piece = Piece::of(frame, packet, place).map_err(alone)?;
        let key = Key::of(packet, place, sharing);
        let cost = piece.cost();
        let holders = key.holders(self.by_holder.is_some());
        let is_new = match self.packets.get(&key).map(|entry| &entry.state) {
            Some(State::Lost(reason)) => return Err(alone(*reason)),
            Some(State::Waiting(_)) => false,
            None => true,
        };
        if self.by_holder.is_some() {
            self.displace(&key, holders, cost, is_new.then_some(most_of_source));
        }
        let fits = self.fits(&key, holders, cost);
        if is_new {
            fits.and_then(|()| self.begin(key, holders, most_of_source, now)).map_err(alone)?;
        }
        let Some(Entry { state: State::Waiting(held), .. }) = self.packets.get_mut(&key) else {
            return Err(alone(DropReason::FragmentMemory));
        };
        let has_most = held.len() >= self.limits.fragments_per_packet;
        let inserted = match fits {
            Ok(()) if has_most => Err(DropReason::FragmentMemory),
            Ok(()) => held.insert(piece),
            Err(reason) => Err(reason),
        };
        match inserted {
            Ok(()) => {}
            Err(DropReason::FragmentDuplicate) => return Err(alone(DropReason::FragmentDuplicate)),
            Err(reason) => return Err(Refused { reason, released: self.lose(key, reason) }),
        }
        self.memory += cost;
        holders.all().for_each(|holder| self.charged.entry(holder).or_default().memory += cost);
        self.fragments += 1;
        if !held.is_complete() {
            return Ok(Admission::Held);
        }
        match held.whole() {
            Ok(whole) => {
                self.forget(key);
                Ok(Admission::Whole(whole))
            }
            // The fragment at hand is one of those that are lost.
            Err(reason) => Err(Refused { reason, released: self.lose(key, reason).saturating_sub(1) }),
        }
    }

    /// Drops packets whose reassembly timed out, at most `budget` of them, the oldest first.
    pub fn expire(&mut self, now: Instant, budget: usize, mut gone: impl FnMut(Expired)) {
        for _ in 0..budget {
            let Some((_, &key)) = self.by_arrival.first_key_value() else {
                return;
            };
            if self.packets.get(&key).is_some_and(|entry| entry.deadline > now) {
                return;
            }
            match self.forget(key) {
                Some(State::Waiting(held)) => {
                    gone(Expired { fragments: held.len() as u32, first: held.first() });
                }
                Some(State::Lost(_)) | None => {}
            }
        }
    }

    /// Makes room for a fragment by removing packets that have waited longest, but never its own. `most_of_source`: of a packet that it begins.
    fn displace(&mut self, key: &Key, holders: Holders, cost: usize, most_of_source: Option<usize>) {
        loop {
            let has_most = |most| self.charged(holders.sender).packets >= most;
            let begins = most_of_source.is_some();
            let of = if most_of_source.is_some_and(has_most) {
                Some(holders.sender)
            } else if !self.is_within_share(key, holders, cost)
                || begins && self.is_over_packets(key, holders)
            {
                holders.destination
            } else if !self.has_room(cost) || begins && self.packets.len() >= self.limits.packets {
                None
            } else {
                return;
            };
            let Some(oldest) = self.oldest(of, key) else { return };
            let Some(State::Waiting(held)) = self.forget(oldest) else { continue };
            let count = held.len() as u32;
            match of {
                Some(_) => self.displaced.of_share += count,
                None => self.displaced.of_table += count,
            }
        }
    }

    /// The packet of a holder, or of all, that has waited longest, apart from one.
    fn oldest(&self, of: Option<Holder>, but: &Key) -> Option<Key> {
        let Some(holder) = of else {
            return self.by_arrival.values().find(|key| *key != but).copied();
        };
        let of_holder = self.by_holder.as_ref()?.range((holder, 0)..=(holder, u64::MAX));
        of_holder.filter_map(|(_, arrival)| self.by_arrival.get(arrival)).find(|key| *key != but).copied()
    }

    /// Whether there is memory for a fragment of this cost.
    const fn has_room(&self, cost: usize) -> bool {
        self.memory + cost + PACKET_COST <= self.limits.memory
    }

    /// Whether a fragment of this cost may be held.
    fn fits(&self, key: &Key, holders: Holders, cost: usize) -> Result<(), DropReason> {
        if !self.has_room(cost) {
            return Err(DropReason::FragmentMemory);
        }
        if self.is_within_share(key, holders, cost) { Ok(()) } else { Err(DropReason::FragmentShare) }
    }

    fn charged(&self, holder: Holder) -> Charged {
        self.charged.get(&holder).copied().unwrap_or_default()
    }

    /// Whether who shares the table with others may have a fragment of this cost.
    fn is_within_share(&self, key: &Key, holders: Holders, cost: usize) -> bool {
        let (holder, little) = match (holders.destination, key.sharing) {
            (Some(destination), _) => (destination, LITTLE_OF_DESTINATION),
            (None, Some(_)) => (holders.sender, LITTLE),
            (None, None) => return true,
        };
        let left = self.limits.memory.saturating_sub(self.memory);
        self.charged(holder).memory + cost <= (left / PART_OF_LEFT).max(little)
    }

    /// Whether who shares the table with others may begin no further packet.
    fn is_over_packets(&self, key: &Key, holders: Holders) -> bool {
        let (holder, few) = match (holders.destination, key.sharing) {
            (Some(destination), _) => (destination, FEW_OF_DESTINATION - 1),
            (None, Some(_)) => (holders.sender, 0),
            (None, None) => return false,
        };
        let left = self.limits.packets.saturating_sub(self.packets.len());
        self.charged(holder).packets > (left / PART_OF_LEFT).max(few)
    }

    /// Starts a packet, if the table and its holders may have one more.
    fn begin(
        &mut self,
        key: Key,
        holders: Holders,
        most_of_source: usize,
        now: Instant,
    ) -> Result<(), DropReason> {
        let is_full = self.packets.len() >= self.limits.packets;
        let has_most = self.charged(holders.sender).packets >= most_of_source;
        if has_most || self.is_over_packets(&key, holders) {
            return Err(DropReason::FragmentShare);
        }
        if is_full {
            return Err(DropReason::FragmentMemory);
        }
        let arrival = self.arrivals;
        self.arrivals += 1;
        let deadline = now + self.limits.timeout;
        self.packets.insert(key, Entry { arrival, deadline, state: State::Waiting(Held::default()) });
        self.by_arrival.insert(arrival, key);
        for holder in holders.all() {
            let charged = self.charged.entry(holder).or_default();
            *charged = Charged { packets: charged.packets + 1, memory: charged.memory + PACKET_COST };
        }
        if let Some(by_holder) = &mut self.by_holder {
            by_holder.extend(holders.all().map(|holder| (holder, arrival)));
        }
        self.memory += PACKET_COST;
        Ok(())
    }

    /// Drops a packet's fragments, how many it says, and remembers that it is lost.
    fn lose(&mut self, key: Key, reason: DropReason) -> u32 {
        let holders = key.holders(self.by_holder.is_some());
        let Some(entry) = self.packets.get_mut(&key) else {
            return 0;
        };
        match core::mem::replace(&mut entry.state, State::Lost(reason)) {
            State::Waiting(held) => {
                self.memory -= held.cost();
                for holder in holders.all() {
                    self.charged.entry(holder).and_modify(|charged| charged.memory -= held.cost());
                }
                self.fragments -= held.len();
                held.len() as u32
            }
            State::Lost(_) => 0,
        }
    }

    /// Removes a packet from the table.
    fn forget(&mut self, key: Key) -> Option<State> {
        let entry = self.packets.remove(&key)?;
        self.by_arrival.remove(&entry.arrival);
        let mut memory = PACKET_COST;
        if let State::Waiting(held) = &entry.state {
            memory += held.cost();
            self.fragments -= held.len();
        }
        self.memory -= memory;
        for holder in key.holders(self.by_holder.is_some()).all() {
            if let Some(by_holder) = &mut self.by_holder {
                by_holder.remove(&(holder, entry.arrival));
            }
            match self.charged.get_mut(&holder) {
                Some(charged) if charged.packets > 1 => {
                    charged.packets -= 1;
                    charged.memory -= memory;
                }
                Some(_) | None => {
                    self.charged.remove(&holder);
                }
            }
        }
        Some(entry.state)
    }
}
