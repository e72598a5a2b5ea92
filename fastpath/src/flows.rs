//! The flow table: sessions of stateful translators that the programs forward, in memory shared with them.
//!
//! ```text
//!     hash of a half ─▶ two buckets of four entries, a cache line each
//!
//!     FREE ─claim─▶ BUSY ─write─▶ ARMED ─quiet point─▶ ACTIVE ─remove─▶ RESTING ─two seconds─▶ free again
//!                     └─ a SYN from inside ─▶ HALF OPEN (of the half to the outside: BUSY) ─remove─▶ RESTING
//! ```
//!
//! The worker that changes an entry's word from FREE (or RESTING long enough) to BUSY owns it, so several workers may arm flows at the same
//! time without a lock. The programs write only their own fields: counters, the time of the last packet, the next hop, an armed entry's mark.

use crate::control::Control;
use crate::half_open_share::HalfOpenShare;
use crate::hash::{Keys, hash, slots, words};
use crate::layout::{
    BUCKET, Bucket, Config, FLOW_ACTIVE, FLOW_ARMED, FLOW_BUSY, FLOW_FREE, FLOW_HALF_OPEN, FLOW_RESTING,
    Flow, KIND_NAT44, KIND_NAT64, TO_INSIDE, TO_OUTSIDE, TRANSLATORS, flow_state, flow_word,
};
use crate::memory::{Mapping, SharedFlow};
use crate::slots::Slots;
use crate::ticks;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::nat::NatProtocol;
use sixway_dataplane::offload::{FlowHandle, OffloadedFlow};
use sixway_dataplane::translate::address::Rfc6052;
use sixway_wire::Prefix6;
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::{Arc, RwLock};

/// Ticks for which a removed entry is not reused: 2 s, much longer than a program that found it can run.
const REST: u32 = 1_908;

/// The word of a half-open flow's half to the outside: the programs never find it.
pub(crate) const AWAITS_ANSWER: u32 = flow_word(FLOW_BUSY, 1);

/// The bits of a word below its state.
const LOW: u32 = 0xff_ffff;

/// The flow table, shared by all workers of a gateway and adopted by the next process.
#[derive(Debug)]
pub struct FlowTable {
    memory: Mapping,
    /// Slot of the half to the inside, by that of the half to the outside.
    partners: Mapping,
    control: Arc<Control>,
    keys: Keys,
    buckets: u32,
    capacity: u32,
    /// Flows in it, without those that are half-open.
    used: AtomicU32,
    half_open: HalfOpenShare,
    incarnation: AtomicU32,
    translators: RwLock<[Option<(Identity, Translation)>; TRANSLATORS]>,
}

/// What a stateful translator does to addresses.
#[derive(Clone, Copy, Debug)]
enum Translation {
    /// NAT64: remote addresses are embedded in this prefix.
    Nat64(Rfc6052),
    /// NAT44: an inside host goes by its IPv4-mapped address.
    Nat44,
}

impl FlowTable {
    /// Buckets for this many flows: three entries for each; it uses two of them.
    pub const fn buckets_for(capacity: u32) -> u32 {
        let entries = (capacity as u64 * 3).div_ceil(BUCKET as u64);
        if entries == 0 {
            1
        } else if entries > u32::MAX as u64 / BUCKET as u64 {
            u32::MAX / BUCKET as u32
        } else {
            entries as u32
        }
    }

    /// The table of a pinned map with the number of buckets in `control`. It counts as empty until its flows are adopted.
    ///
    /// # Errors
    /// The kernel does not map it.
    pub fn of_map(map: BorrowedFd<'_>, control: Arc<Control>, capacity: u32) -> io::Result<Self> {
        let octets = control.buckets() as usize * size_of::<Bucket>();
        Self::new(Mapping::of_map(map, octets)?, control, capacity)
    }

    /// A table of this process alone, for tests and benchmarks: no program sees it. Enabled.
    ///
    /// # Errors
    /// The kernel gives no memory.
    pub fn anonymous(capacity: u32) -> io::Result<Self> {
        let buckets = Self::buckets_for(capacity);
        let control = Arc::new(Control::anonymous(buckets)?);
        control.enable(true);
        control.allow_half_open(true);
        Self::new(Mapping::anonymous(buckets as usize * size_of::<Bucket>())?, control, capacity)
    }

    fn new(memory: Mapping, control: Arc<Control>, capacity: u32) -> io::Result<Self> {
        let (keys, buckets) = (control.keys(), control.buckets());
        Ok(Self {
            memory,
            partners: Mapping::anonymous(buckets as usize * BUCKET * size_of::<AtomicU32>())?,
            control,
            keys,
            buckets,
            capacity,
            used: AtomicU32::new(0),
            half_open: HalfOpenShare::of(capacity, REST),
            // Differs from the previous process's.
            incarnation: AtomicU32::new(ticks::now()),
            translators: RwLock::default(),
        })
    }

    /// Sets the stateful translators of a configuration and retires entries in slots whose owner changed.
    pub fn set_translators(&self, config: &Config) {
        self.expect_translators(config);
        self.begin_slots();
    }

    /// Sets them for [`Self::adopt`]: the table still holds flows of the previous process, with its slots.
    pub fn expect_translators(&self, config: &Config) {
        let translators = std::array::from_fn(|slot| {
            let translator = &config.translators[slot];
            let prefix = Prefix6::holding(Ipv6Addr::from(translator.prefix), translator.length);
            let translation = match translator.kind {
                KIND_NAT64 => Translation::Nat64(Rfc6052::new(prefix, true).ok()?),
                KIND_NAT44 => Translation::Nat44,
                _ => return None,
            };
            Some((Identity::from_number(translator.identity)?, translation))
        });
        *self.translators.write().unwrap_or_else(std::sync::PoisonError::into_inner) = translators;
    }

    /// Switches to the new slot owners, after retiring flows in slots whose owner changed.
    pub(crate) fn begin_slots(&self) {
        let (before, now) = (self.control.slots(), self.slots_to_be());
        if before == now {
            return;
        }
        let is_other = |slot: u8| before.owner(slot) != now.owner(slot);
        for slot in 0..self.slots() {
            let half = self.read(slot);
            if matches!(flow_state(half.word), FLOW_ARMED | FLOW_ACTIVE | FLOW_HALF_OPEN)
                && is_other(half.mechanism)
            {
                self.rest(slot);
            }
        }
        self.control.set_slots(&now);
    }

    /// The new owners of the slots.
    pub(crate) fn slots_to_be(&self) -> Slots {
        let translators = self.translators.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let owners = translators.iter().enumerate();
        owners.filter_map(|(slot, it)| it.map(|(identity, _)| (slot, identity))).collect()
    }

    /// The slot owners that flows in the table refer to.
    pub(crate) fn owners(&self) -> Slots {
        self.control.slots()
    }

    /// The most flows.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Flows in it, without those that are half-open.
    pub fn used(&self) -> u32 {
        self.used.load(Relaxed)
    }

    /// Writes both halves of a flow, armed. `None`: the fast path is disabled, the table or both buckets are full, or the flow cannot be
    /// offloaded (a mechanism without a prefix).
    pub fn arm(&self, flow: &OffloadedFlow) -> Option<FlowHandle> {
        if !self.control.is_enabled() {
            return None;
        }
        let halves = self.halves(flow)?;
        if self.used.fetch_add(1, Relaxed) >= self.capacity {
            self.used.fetch_sub(1, Relaxed);
            return None;
        }
        let armed = flow_word(FLOW_ARMED, 0);
        let handle = self.place(&halves, [armed; 2], ticks::now());
        if handle.is_none() {
            self.used.fetch_sub(1, Relaxed);
        }
        handle
    }

    /// Writes both halves of a TCP flow; the programs see the one to the inside, half-open. `None`: as with [`Self::arm`], or too many are
    /// half-open.
    pub fn half_open(&self, flow: &OffloadedFlow) -> Option<FlowHandle> {
        if !self.control.has_half_open() {
            return None;
        }
        let now = ticks::now();
        if !self.half_open.begin(now) {
            return None;
        }
        let word = flow_word(FLOW_HALF_OPEN, self.incarnation.fetch_add(1, Relaxed));
        let handle = self.halves(flow).and_then(|halves| self.place(&halves, [AWAITS_ANSWER, word], now));
        if handle.is_none() {
            self.half_open.end();
        }
        handle
    }

    /// Whether a flow is half-open.
    pub fn is_half_open(&self, handle: FlowHandle) -> bool {
        let [out, _] = self.halves_of(handle);
        self.entry(out).word.load(Acquire) == AWAITS_ANSWER
    }

    fn place(&self, halves: &[Flow; 2], words: [u32; 2], now: u32) -> Option<FlowHandle> {
        let out = self.claim(&halves[0], now)?;
        let Some(into) = self.claim(&halves[1], now) else {
            self.entry(out).word.store(FLOW_FREE, Release);
            return None;
        };
        self.write(out, (&halves[0], words[0]), now);
        self.write(into, (&halves[1], words[1]), now);
        self.join(out, into);
        u32::try_from(out).ok().map(FlowHandle)
    }

    /// Makes a half active if `mark` is what its last packet left. Whether it is active now.
    pub fn activate(&self, slot: usize, mark: u32) -> bool {
        let word = &self.entry(slot).word;
        let active = flow_word(FLOW_ACTIVE, self.incarnation.fetch_add(1, Relaxed));
        match word.compare_exchange(flow_word(FLOW_ARMED, mark), active, AcqRel, Acquire) {
            Ok(_) => true,
            Err(found) => flow_state(found) == FLOW_ACTIVE,
        }
    }

    /// Takes the mark away that a half has, if it is armed.
    pub fn rearm(&self, slot: usize) {
        let unmarked = |word| (flow_state(word) == FLOW_ARMED).then_some(flow_word(FLOW_ARMED, 0));
        // Otherwise it is active already, or removed.
        let _ = self.entry(slot).word.fetch_update(AcqRel, Acquire, unmarked);
    }

    /// Makes a half active, whatever it was marked with. Whether it was armed.
    pub fn force(&self, slot: usize) -> bool {
        let active = flow_word(FLOW_ACTIVE, self.incarnation.fetch_add(1, Relaxed));
        let armed = |word| (flow_state(word) == FLOW_ARMED).then_some(active);
        // Otherwise it is active already, or removed.
        self.entry(slot).word.fetch_update(AcqRel, Acquire, armed).is_ok()
    }

    /// Takes both halves out; returns them as they were, that to the outside first.
    pub fn remove(&self, handle: FlowHandle) -> [Flow; 2] {
        let slots @ [out, into] = self.halves_of(handle);
        let resting = flow_word(FLOW_RESTING, ticks::now());
        self.entry(into).word.store(resting, Release);
        if self.is_half_open(handle) {
            let halves = slots.map(|slot| self.read(slot));
            self.half_open.end();
            // The programs never saw it.
            self.entry(out).word.store(FLOW_FREE, Release);
            return halves;
        }
        self.entry(out).word.store(resting, Release);
        self.used.fetch_sub(1, Relaxed);
        slots.map(|slot| self.read(slot))
    }

    /// Retires a half: programs ignore it, and its entry may be reused after [`REST`].
    pub(crate) fn rest(&self, slot: usize) {
        self.entry(slot).word.store(flow_word(FLOW_RESTING, ticks::now()), Release);
    }

    /// Sets the time of the last packet of both halves to this tick, unless it is later.
    pub fn touch(&self, handle: FlowHandle, tick: u32) {
        for slot in self.halves_of(handle) {
            let last = &self.entry(slot).last;
            let found = last.load(Relaxed);
            if ticks::since(tick, found) > 0 {
                // Its next hop may be outdated, so it is looked up again.
                self.entry(slot).ingress.store(0, Relaxed);
                // Where it fails a program has just written a later one.
                let _ = last.compare_exchange(found, tick, Relaxed, Relaxed);
            }
        }
    }

    /// Slots of both halves.
    pub fn halves_of(&self, handle: FlowHandle) -> [usize; 2] {
        let out = handle.0 as usize;
        [out, self.partners.elements::<AtomicU32>()[out].load(Acquire) as usize]
    }

    /// A half as it is, whosever it is.
    pub fn read(&self, slot: usize) -> Flow {
        let entry = self.entry(slot);
        let mut inside = [0; 16];
        inside[..8].copy_from_slice(&entry.inside[0].load(Relaxed).to_ne_bytes());
        inside[8..].copy_from_slice(&entry.inside[1].load(Relaxed).to_ne_bytes());
        Flow {
            word: entry.word.load(Acquire),
            next_hop: entry.next_hop.load(Relaxed),
            packets: entry.packets.load(Relaxed),
            octets: entry.octets.load(Relaxed),
            inside,
            last: entry.last.load(Relaxed),
            outside: entry.outside.load(Relaxed),
            remote: entry.remote.load(Relaxed),
            outside_port: entry.outside_port.load(Relaxed),
            remote_port: entry.remote_port.load(Relaxed),
            inside_port: entry.inside_port.load(Relaxed),
            protocol: entry.protocol.load(Relaxed),
            direction: entry.direction.load(Relaxed),
            mechanism: entry.mechanism.load(Relaxed),
            ingress: entry.ingress.load(Relaxed),
            delta: entry.delta.load(Relaxed),
        }
    }

    /// A flow's halves, as they are written; `None`: it cannot be offloaded.
    pub(crate) fn halves(&self, flow: &OffloadedFlow) -> Option<[Flow; 2]> {
        let translators = self.translators.try_read().ok()?;
        let mut owners = translators.iter().zip(0..);
        let (translation, slot) = owners.find_map(|(it, slot)| {
            it.filter(|(identity, _)| *identity == flow.mechanism).map(|(_, it)| (it, slot))
        })?;
        let inside = flow.inside.0.address.octets();
        let out = Flow {
            inside,
            outside: u32::from_ne_bytes(flow.outside.0.address.octets()),
            remote: u32::from_ne_bytes(flow.remote.address.octets()),
            outside_port: flow.outside.0.port.to_be(),
            remote_port: flow.remote.port.to_be(),
            inside_port: flow.inside.0.port.to_be(),
            protocol: match flow.protocol {
                NatProtocol::Tcp => 6,
                NatProtocol::Udp => 17,
                NatProtocol::Icmp => 1,
            },
            direction: TO_OUTSIDE,
            mechanism: slot,
            ..Flow::zero()
        };
        let before = match translation {
            Translation::Nat64(prefix) => {
                sum6(&inside) + sum6(&prefix.embed_any(flow.remote.address).octets())
            }
            Translation::Nat44 => {
                let inside = flow.inside.0.address.to_ipv4_mapped()?;
                u64::from(u32::from_ne_bytes(inside.octets())) + u64::from(out.remote)
            }
        };
        let after = u64::from(out.outside) + u64::from(out.remote);
        let into = Flow { direction: TO_INSIDE, delta: difference(after, before), ..out };
        Some([Flow { delta: difference(before, after), ..out }, into])
    }

    /// Makes a free entry where this half may lie ours: the very first, which the programs look at first; else one of the bucket
    /// that has more of them, so that a full table refuses one flow in ninety, not one in thirty.
    fn claim(&self, half: &Flow, now: u32) -> Option<usize> {
        let mut places = [0; 2 * BUCKET];
        places
            .iter_mut()
            .zip(slots(hash(&self.keys, half), self.buckets))
            .for_each(|(place, slot)| *place = slot);
        let (near, far) = places.split_at(BUCKET);
        let free =
            |bucket: &[usize]| bucket.iter().filter(|slot| self.is_free(**slot, now).is_some()).count();
        let (one, other) = match self.is_free(near[0], now) {
            None if free(far) > free(near) => (far, near),
            _ => (near, far),
        };
        one.iter().chain(other).copied().find(|slot| self.take(*slot, now))
    }

    /// The word of an entry that may be taken.
    fn is_free(&self, slot: usize, now: u32) -> Option<u32> {
        let word = self.entry(slot).word.load(Acquire);
        let rested = flow_state(word) == FLOW_RESTING && now.wrapping_sub(word) & LOW >= REST;
        (rested || flow_state(word) == FLOW_FREE).then_some(word)
    }

    fn take(&self, slot: usize, now: u32) -> bool {
        let ours = flow_word(FLOW_BUSY, 0);
        self.is_free(slot, now)
            .is_some_and(|found| self.entry(slot).word.compare_exchange(found, ours, AcqRel, Relaxed).is_ok())
    }

    /// Writes an entry that is ours, its word last.
    fn write(&self, slot: usize, (half, word): (&Flow, u32), now: u32) {
        let entry = self.entry(slot);
        entry.next_hop.store(0, Relaxed);
        entry.packets.store(0, Relaxed);
        entry.octets.store(0, Relaxed);
        for (place, word) in entry.inside.iter().zip(words(&half.inside)) {
            place.store(word, Relaxed);
        }
        // Else the programs would take it for one that was idle for long.
        entry.last.store(now, Relaxed);
        entry.outside.store(half.outside, Relaxed);
        entry.remote.store(half.remote, Relaxed);
        entry.outside_port.store(half.outside_port, Relaxed);
        entry.remote_port.store(half.remote_port, Relaxed);
        entry.inside_port.store(half.inside_port, Relaxed);
        entry.protocol.store(half.protocol, Relaxed);
        entry.direction.store(half.direction, Relaxed);
        entry.mechanism.store(half.mechanism, Relaxed);
        entry.ingress.store(0, Relaxed);
        entry.delta.store(half.delta, Relaxed);
        entry.word.store(word, Release);
    }

    /// Remembers that two slots are one flow's halves.
    pub(crate) fn join(&self, out: usize, into: usize) {
        // Slots are fewer than 2^32.
        self.partners.elements::<AtomicU32>()[out].store(into as u32, Release);
    }

    pub(crate) fn entry(&self, slot: usize) -> &SharedFlow {
        &self.memory.elements()[slot]
    }

    /// Entries in it.
    pub(crate) fn slots(&self) -> usize {
        self.buckets as usize * BUCKET
    }

    /// The active half with what `half` is found by.
    pub(crate) fn find(&self, half: &Flow) -> Option<usize> {
        slots(hash(&self.keys, half), self.buckets).find(|slot| {
            flow_state(self.entry(*slot).word.load(Acquire)) == FLOW_ACTIVE
                && plain(&self.read(*slot)) == plain(half)
        })
    }

    pub(crate) fn set_used(&self, flows: u32) {
        self.used.store(flows, Relaxed);
    }
}

/// A half without what changes: its flow, and what is computed from it.
pub(crate) fn plain(half: &Flow) -> Flow {
    Flow { word: 0, next_hop: 0, packets: 0, octets: 0, last: 0, ingress: 0, ..*half }
}

/// One's complement sums are over the words of the header as this machine reads them.
fn sum6(address: &[u8; 16]) -> u64 {
    let (quads, _) = address.as_chunks::<4>();
    quads.iter().map(|quad| u64::from(u32::from_ne_bytes(*quad))).sum()
}

/// `fold` of `bpf/checksum.h`.
fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// What a change from `before` to `after` adds to a checksum's sum.
fn difference(before: u64, after: u64) -> u16 {
    fold(after + u64::from(!fold(before)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sixway_dataplane::nat::{Inside, Outside};
    use sixway_wire::{Endpoint4, Endpoint6};
    use std::net::Ipv4Addr;

    #[test]
    fn half_open_flows_are_refused_unless_the_programs_forward_them() {
        let table = FlowTable::anonymous(100).unwrap();
        let mut config = Config::zero();
        config.translators[0].kind = KIND_NAT44;
        config.translators[0].identity = Identity::of_nat44().number();
        table.set_translators(&config);
        let flow = |port| OffloadedFlow {
            mechanism: Identity::of_nat44(),
            protocol: NatProtocol::Tcp,
            inside: Inside(Endpoint6::new(Ipv4Addr::LOCALHOST.to_ipv6_mapped(), port)),
            outside: Outside(Endpoint4::new(Ipv4Addr::LOCALHOST, port)),
            remote: Endpoint4::new(Ipv4Addr::BROADCAST, 80),
        };
        table.control.allow_half_open(false);
        assert!(table.half_open(&flow(1)).is_none() && table.arm(&flow(1)).is_some());
        table.control.allow_half_open(true);
        assert!(table.half_open(&flow(2)).is_some());
        table.control.enable(false);
        assert!(table.half_open(&flow(3)).is_none());
        table.control.allow_half_open(true);
        assert!(!table.control.is_enabled() && table.half_open(&flow(3)).is_none());
        table.control.enable(true);
        assert!(table.half_open(&flow(3)).is_some());
    }
}
