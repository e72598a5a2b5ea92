//! Real reassembly, as a stateful NAT64 needs it (RFC 6146 §3.4): fragments come in any order, and the packet leaves in one piece.
//!
//! Everything is bounded, and what is new is refused: a fragment for which there is no memory is dropped, and its packet with
//! it, for it cannot become complete; a packet beyond the table's or its source's number of packets is not started. A packet that
//! is lost keeps its place in the table, without its fragments, until its time is over. Packets that have waited longest
//! expire first, by order of arrival.

use super::held::{Held, Piece, Whole};
use crate::drop_reason::DropReason;
use crate::frame::Frame;
use crate::instant::Instant;
use crate::parse::{Addresses, Fragment, Packet};
use core::time::Duration;
use foldhash::quality::FixedState;
use std::collections::{BTreeMap, HashMap};

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

/// What became of a fragment.
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
    /// How many fragments that were held before are gone with it, for the same reason.
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

/// A source has at most this part of what is left, where sources share a table.
const PART_OF_LEFT: usize = 8;

/// Memory that a source may have as long as there is any left, where sources share a table: a packet or two.
const LITTLE: usize = 4_096;

/// Who sends the fragments of a table that subscribers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sharing {
    /// Where the addresses of the packet are valid: those inside a softwire may be in others, too.
    pub scope: u128,
    /// The subscriber.
    pub subscriber: u128,
}

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

    fn source(&self) -> Source {
        if let Some(Sharing { subscriber, .. }) = self.sharing {
            return Source(subscriber);
        }
        match self.addresses {
            Addresses::V4 { source, .. } => Source(source.to_ipv6_mapped().to_bits()),
            Addresses::V6 { source, .. } => Source(source.to_bits() >> 64 << 64),
        }
    }
}

/// The sender: an IPv4 address, or an IPv6 /64, because one host can use as many addresses of it as it likes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Source(u128);

/// What a source has in the table.
#[derive(Clone, Copy, Default)]
struct OfSource {
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
    sources: HashMap<Source, OfSource, FixedState>,
    by_arrival: BTreeMap<u64, Key>,
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
            sources: HashMap::with_hasher(FixedState::with_seed(!seed)),
            by_arrival: BTreeMap::new(),
            arrivals: 0,
            memory: 0,
            fragments: 0,
        }
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
    /// were held go with it: [`DropReason::BadFragment`], [`DropReason::FragmentOverlap`], [`DropReason::FragmentDuplicate`] or
    /// [`DropReason::FragmentMemory`]. Of what [`Admission::Whole`] is made, all but this one were held until then.
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
        let fits = self.memory + cost + PACKET_COST <= self.limits.memory
            && (sharing.is_none() || self.is_within_share(key.source(), cost));
        if !self.packets.contains_key(&key) {
            if !fits {
                return Err(alone(DropReason::FragmentMemory));
            }
            self.begin(key, most_of_source, now).map_err(alone)?;
        }
        let Some(entry) = self.packets.get_mut(&key) else {
            return Err(alone(DropReason::FragmentMemory));
        };
        let held = match &mut entry.state {
            State::Waiting(held) => held,
            State::Lost(reason) => return Err(alone(*reason)),
        };
        let inserted = if fits && held.len() < self.limits.fragments_per_packet {
            held.insert(piece)
        } else {
            Err(DropReason::FragmentMemory)
        };
        match inserted {
            Ok(()) => {}
            Err(DropReason::FragmentDuplicate) => return Err(alone(DropReason::FragmentDuplicate)),
            Err(reason) => return Err(Refused { reason, released: self.lose(key, reason) }),
        }
        self.memory += cost;
        self.sources.entry(key.source()).or_default().memory += cost;
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

    /// Whether a source may have a fragment of this cost, where subscribers share the table.
    fn is_within_share(&self, source: Source, cost: usize) -> bool {
        let has = self.sources.get(&source).map_or(0, |of_source| of_source.memory);
        let left = self.limits.memory.saturating_sub(self.memory);
        has + cost <= (left / PART_OF_LEFT).max(LITTLE)
    }

    /// Starts a packet, if the table and its source may have one more.
    fn begin(&mut self, key: Key, most_of_source: usize, now: Instant) -> Result<(), DropReason> {
        let of_source = self.sources.get(&key.source()).copied().unwrap_or_default();
        let left = self.limits.packets.saturating_sub(self.packets.len());
        let is_over_share = key.sharing.is_some() && of_source.packets > left / PART_OF_LEFT;
        if left == 0 || of_source.packets >= most_of_source || is_over_share {
            return Err(DropReason::FragmentMemory);
        }
        let arrival = self.arrivals;
        self.arrivals += 1;
        let deadline = now + self.limits.timeout;
        self.packets.insert(key, Entry { arrival, deadline, state: State::Waiting(Held::default()) });
        self.by_arrival.insert(arrival, key);
        let OfSource { packets, memory } = of_source;
        self.sources.insert(key.source(), OfSource { packets: packets + 1, memory: memory + PACKET_COST });
        self.memory += PACKET_COST;
        Ok(())
    }

    /// Drops a packet's fragments, how many it says, and remembers that it is lost.
    fn lose(&mut self, key: Key, reason: DropReason) -> u32 {
        let Some(entry) = self.packets.get_mut(&key) else {
            return 0;
        };
        match core::mem::replace(&mut entry.state, State::Lost(reason)) {
            State::Waiting(held) => {
                self.memory -= held.cost();
                if let Some(of_source) = self.sources.get_mut(&key.source()) {
                    of_source.memory -= held.cost();
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
        let source = key.source();
        match self.sources.get_mut(&source) {
            Some(of_source) if of_source.packets > 1 => {
                of_source.packets -= 1;
                of_source.memory -= memory;
            }
            Some(_) | None => {
                self.sources.remove(&source);
            }
        }
        Some(entry.state)
    }
}
