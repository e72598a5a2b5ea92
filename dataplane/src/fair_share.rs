//! Fair shares of an overloaded engine, by sender.
//!
//! The queue in front of an engine is shared by all senders. When more packets arrive than the engine can process, the queue becomes long: the packets
//! of all senders wait, and the kernel drops packets of all. So when the queue has not been empty for some time, packets of senders above their
//! max-min fair share are dropped, as many as necessary to empty the queue. Other senders lose nothing, and their packets wait little.
//!
//! A filter in front of the queue drops them, if the kernel has one ([`SenderTable`]): that costs the engine nothing. Else the engine drops them
//! before it processes them, which takes a fraction of the time.
//!
//! Each sender has a token bucket, here as a level: packets raise it, an interval lowers it by the quota, and at the limit packets are dropped.
//! The quota is the same for all. It follows from what the engine can process and from the length of the queue, by two rules: as much is admitted as
//! is processed, less a part of the packets that wait; and the queue becomes empty regularly (as in CoDel, RFC 8289 §3.2).
//!
//! A sender is an IPv4 address or an IPv6 prefix, of one realm. Senders are counted in buckets by a keyed hash, which changes: two senders share a
//! bucket for at most [`ROTATION`] intervals. Who has a thousand addresses has all buckets, and everybody's share is small.

mod control;
mod senders;
#[cfg(test)]
mod tests;

use crate::frame::Realm;
use crate::instant::Instant;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use control::Control;
use core::fmt;
use core::net::IpAddr;
use core::sync::atomic::Ordering;
use core::time::Duration;
use senders::OwnTable;

pub use control::INTERVAL;
pub use senders::{BUCKET_BITS, BUCKETS, Bucket, FilterRule, PACKET, SenderHash, SenderTable, sender_bits};

/// A queue that has not been empty for this long is a standing queue.
const STANDING: Duration = Duration::from_millis(100);
/// The same with a filter in front of the queue: dropping costs nothing, and begins only after some intervals in which packets are counted.
const STANDING_WITH_FILTER: Duration = Duration::from_millis(20);
/// Intervals in which packets are only counted, before the last of them.
const FIRST: u32 = 2;
/// Intervals after which the hash changes, so that other senders share a bucket.
const ROTATION: u32 = 128;
/// Intervals without a drop after which overload is over.
const CALM: u32 = 20;
/// Intervals after which a filter that has seen none of the packets that the engine received is not used any more: it is not in front of
/// this queue. Those that waited before it was told take less.
const BLIND: u32 = 300;
/// A sender may use the quotas of this many intervals at any time.
const DEPTH: u32 = 2;
/// A sender may send this many packets at any time, however small the quota is.
const BURST: u32 = 4 * PACKET;

/// Levels of senders, and their limit. Times are arguments.
pub struct FairShares {
    /// The bits of an IPv6 address that identify a sender.
    mask: u128,
    seed: u64,
    /// One at least. Levels of packets that the engine judges are in the first.
    tables: Vec<Box<dyn SenderTable>>,
    /// Whether each queue has a filter.
    has_filters: bool,
    state: State,
    /// Packets that filters have dropped and that the engine has not been told of.
    dropped: u64,
}

#[derive(Debug)]
enum State {
    /// The queue becomes empty regularly.
    Calm {
        /// The first batch after the queue was empty, and the packets since.
        busy: Option<(Instant, u64)>,
    },
    /// There is a standing queue.
    Overloaded(Box<Overload>),
}

#[derive(Debug)]
struct Overload {
    rule: FilterRule,
    began: Instant,
    /// Whether filters drop packets.
    in_front: bool,
    /// What buckets and filters had counted at the end of the last interval.
    offered: Vec<u32>,
    dropped: Vec<u64>,
    /// Packets of this interval that were admitted, and that the engine refused.
    processed: u64,
    refused: u64,
    /// Those of them that the engine judged.
    judged: u64,
    was_empty: bool,
    control: Control,
    /// Intervals since the last drop, since the hash changed, since the beginning, and since the filters saw a packet.
    calm: u32,
    age: u32,
    intervals: u32,
    blind: u32,
}

impl FairShares {
    /// Shares of senders that are IPv4 addresses or IPv6 prefixes of this many bits.
    pub fn new(bits: u8, seed: u64) -> Self {
        let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
        let tables: Vec<Box<dyn SenderTable>> = vec![Box::new(OwnTable::new())];
        let state = State::Calm { busy: None };
        Self { mask, seed, tables, has_filters: false, state, dropped: 0 }
    }

    /// Drops packets by these filters from now on, one in front of each queue of the engine.
    pub fn set_filters(&mut self, filters: Vec<Box<dyn SenderTable>>) {
        if !filters.is_empty() {
            (self.tables, self.has_filters) = (filters, true);
        }
    }

    /// The queue is empty, or was so within the last turn of its reader.
    pub fn emptied(&mut self) {
        match &mut self.state {
            State::Calm { busy } => *busy = None,
            State::Overloaded(overload) => overload.was_empty = true,
        }
    }

    /// A batch with this number of packets arrived. Returns whether each of them has to be admitted. `in_front`: whether filters may drop packets;
    /// not if the engine tells senders apart by more than the outer header.
    #[inline]
    pub fn batch(&mut self, packets: usize, now: Instant, in_front: bool) -> bool {
        let in_front = in_front && self.has_filters;
        if let State::Calm { busy } = &mut self.state {
            let (since, count) = busy.get_or_insert((now, 0));
            let lasted = now.since(*since);
            if lasted < if in_front { STANDING_WITH_FILTER } else { STANDING } {
                *count += packets as u64;
                return false;
            }
            let capacity = control::per_second(*count, lasted);
            self.begin(capacity, now, in_front);
            return true;
        }
        self.turn(now, in_front);
        self.is_overloaded()
    }

    /// Time passes: at the end of an interval the quota is computed. To be called between batches, and when nothing arrives.
    #[inline]
    pub fn turn(&mut self, now: Instant, in_front: bool) {
        if let State::Overloaded(overload) = &self.state
            && now.since(overload.began) >= INTERVAL
        {
            self.end_interval(now, in_front && self.has_filters);
        }
    }

    /// Whether there is a standing queue, or was one a short time ago.
    pub const fn is_overloaded(&self) -> bool {
        matches!(self.state, State::Overloaded(_))
    }

    /// Packets that filters have dropped since the last call.
    pub const fn take_dropped(&mut self) -> u64 {
        core::mem::replace(&mut self.dropped, 0)
    }

    /// Whether a packet from this address is processed; if not, it must be dropped. Realms may have the same addresses. `port`: if several
    /// senders share the address, else 0. `passed`: whether it passed a filter, if there is one.
    pub fn admits(&mut self, realm: Realm, (source, port): (IpAddr, u16), passed: bool) -> bool {
        let State::Overloaded(overload) = &mut self.state else { return true };
        let is_admitted = passed && overload.in_front || {
            overload.judged += 1;
            let bucket = overload.rule.hash.bucket(realm, sender_bits(source, self.mask), port);
            let buckets = self.tables.first().map_or(&[][..], |table| table.buckets());
            overload.rule.admits(buckets, bucket)
        };
        overload.processed += u64::from(is_admitted);
        overload.refused += u64::from(!is_admitted);
        is_admitted
    }

    #[cold]
    fn begin(&mut self, capacity: u64, now: Instant, in_front: bool) {
        self.seed = self.seed.wrapping_add(1);
        let rule = FilterRule { hash: SenderHash::new(self.seed), limit: u32::MAX };
        let offered = buckets(&self.tables).map(|bucket| bucket.offered.load(Ordering::Relaxed)).collect();
        let overload = Box::new(Overload {
            rule,
            began: now,
            in_front,
            offered,
            dropped: self.tables.iter().map(|table| table.dropped()).collect(),
            processed: 0,
            refused: 0,
            judged: 0,
            was_empty: false,
            control: Control::new(capacity, BUCKETS * self.tables.len(), in_front),
            calm: 0,
            age: 0,
            intervals: 0,
            blind: 0,
        });
        set_levels(&self.tables, 0);
        overload.tell(&mut self.tables);
        self.state = State::Overloaded(overload);
    }

    #[cold]
    fn end_interval(&mut self, now: Instant, in_front: bool) {
        let State::Overloaded(overload) = &mut self.state else { return };
        self.dropped += overload.end_interval(&mut self.tables, now, &mut self.seed);
        if overload.blind >= BLIND {
            self.has_filters = false;
        }
        // Without filters, or with them again, what is known of the queue is another thing.
        if overload.calm >= CALM || overload.in_front != (in_front && self.has_filters) {
            self.tables.iter_mut().for_each(|table| table.set(None));
            self.dropped += overload.dropped_in_front(&self.tables);
            self.state = State::Calm { busy: None };
        }
    }
}

/// The buckets of all tables.
fn buckets(tables: &[Box<dyn SenderTable>]) -> impl Iterator<Item = &Bucket> {
    tables.iter().flat_map(|table| table.buckets())
}

fn set_levels(tables: &[Box<dyn SenderTable>], to: u32) {
    buckets(tables).for_each(|bucket| bucket.level.store(to, Ordering::Relaxed));
}

impl Overload {
    fn tell(&self, tables: &mut [Box<dyn SenderTable>]) {
        if self.in_front {
            tables.iter_mut().for_each(|table| table.set(Some(&self.rule)));
        }
    }

    /// Computes the quota of the next interval from what was offered in this one. Returns the filters' drops.
    fn end_interval(&mut self, tables: &mut [Box<dyn SenderTable>], now: Instant, seed: &mut u64) -> u64 {
        let lasted = now.since(self.began);
        let in_front = self.dropped_in_front(tables);
        let dropped = in_front + self.refused;
        let mut offered = 0;
        for (bucket, (before, place)) in buckets(tables).zip(self.offered.iter_mut().zip(0..)) {
            let counted = bucket.offered.load(Ordering::Relaxed);
            let units = counted.wrapping_sub(core::mem::replace(before, counted));
            self.control.add(place, units, lasted);
            offered += u64::from(units);
        }
        let offered = offered.div_ceil(PACKET.into());
        self.calm = if dropped > 0 || !self.was_empty {
            0
        } else {
            // When nothing comes, intervals are longer.
            self.calm + u32::try_from(lasted.as_nanos() / INTERVAL.as_nanos()).unwrap_or(CALM).min(CALM)
        };
        let has_passed = self.processed + self.refused > self.judged;
        let is_blind = self.in_front && has_passed && offered == self.judged;
        self.blind = if is_blind { self.blind + 1 } else { 0 };
        let seen = control::Interval {
            lasted,
            offered,
            processed: self.processed,
            refused: self.refused,
            dropped,
            was_empty: self.was_empty,
        };
        let may_drop = !self.in_front || self.intervals >= FIRST;
        let quota = self.control.quota(&seen, may_drop);
        self.rule.limit = quota.map_or(u32::MAX, |quota| quota.saturating_mul(DEPTH).max(BURST));
        self.lower(tables, control::over(quota, lasted));
        self.age += 1;
        self.intervals = self.intervals.saturating_add(1);
        if self.age >= ROTATION {
            self.rotate(tables, quota, seed);
        }
        self.tell(tables);
        (self.processed, self.refused, self.judged) = (0, 0, 0);
        (self.began, self.was_empty) = (now, false);
        in_front
    }

    /// What the filters have dropped since the last call.
    fn dropped_in_front(&mut self, tables: &[Box<dyn SenderTable>]) -> u64 {
        let counted = tables.iter().map(|table| table.dropped());
        counted
            .zip(&mut self.dropped)
            .map(|(counted, before)| counted.wrapping_sub(core::mem::replace(before, counted)))
            .sum()
    }

    /// Lowers the levels by this much. What was sent without a limit, or with another one, is not counted against the sender.
    fn lower(&self, tables: &[Box<dyn SenderTable>], by: u32) {
        // The last packet may have passed just below the limit.
        let most = self.rule.limit.saturating_add(PACKET);
        for bucket in buckets(tables) {
            let level = bucket.level.load(Ordering::Relaxed);
            let left = level.min(most).saturating_sub(by);
            // Nobody else lowers it.
            bucket.level.fetch_sub(level - left, Ordering::Relaxed);
        }
    }

    /// Other senders share a bucket from now on. Each may use one quota in the next interval, as before.
    fn rotate(&mut self, tables: &[Box<dyn SenderTable>], quota: Option<u32>, seed: &mut u64) {
        *seed = seed.wrapping_add(1);
        (self.rule.hash, self.age) = (SenderHash::new(*seed), 0);
        self.control.forget_senders();
        match quota {
            Some(quota) if self.in_front && self.refused <= self.processed / 16 => {
                set_levels(tables, self.rule.limit.saturating_sub(quota))
            }
            // What can be processed is measured in an interval without drops.
            Some(_) | None => {
                self.rule.limit = u32::MAX;
                set_levels(tables, 0);
            }
        }
    }
}

impl fmt::Debug for FairShares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FairShares").field("state", &self.state).finish_non_exhaustive()
    }
}
