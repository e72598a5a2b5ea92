//! Fair shares of an overloaded engine, by sender.
//!
//! The queue in front of an engine is shared by all senders. When more packets arrive than the engine can process, the queue becomes long: the packets
//! of all senders wait, and the kernel drops packets of all. So an engine whose queue has not been empty for [`STANDING`] drops packets itself before
//! it processes them, which takes a fraction of the time: only packets of senders above their max-min fair share, and only as many as necessary
//! to empty the queue. Other senders lose nothing, and their packets wait little. The method is approximate fair dropping (R. Pan, L. Breslau, B.
//! Prabhakar, S. Shenker: Approximate fairness through differential dropping, 2003), with the target of CoDel (RFC 8289 §3.2): the queue becomes
//! empty regularly.
//!
//! A sender is an IPv4 address or an IPv6 prefix, of one realm. Senders are counted in buckets by a keyed hash, which changes: two senders share a
//! bucket for at most [`ROTATION`] intervals. What counts is a moving average: a sender gains nothing by sending in bursts, or in turn with another
//! address of its own. Who has a thousand addresses has all buckets, and all senders lose the same part, as in the kernel's queue.

use crate::frame::Realm;
use crate::instant::Instant;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::BuildHasher as _;
use core::net::IpAddr;
use core::time::Duration;
use foldhash::fast::FixedState;

/// A queue that has not been empty for this long is a standing queue.
const STANDING: Duration = Duration::from_millis(100);
/// Interval between two computations of the shares.
const INTERVAL: Duration = Duration::from_millis(10);
/// Buckets of senders.
const BUCKETS: usize = 1_024;
/// Intervals after which the hash changes, so that other senders share a bucket.
const ROTATION: u32 = 128;
/// Intervals without a drop after which overload is over.
const CALM: u32 = 20;
/// Steps of water filling: each but the last finds a sender that is below its share.
const STEPS: usize = 16;
/// The unit of a fraction: all packets are admitted.
const ALL: u32 = 1 << 16;
/// At least four fifths of the packets that the engine can process are still processed: dropping must not use all of the time.
const LEAST: (u64, u64) = (4, 5);
/// Units of a packet in an average: where there are more senders than packets to admit, a share is less than a packet.
const UNITS: u32 = 16;
/// An interval counts as this part of an average.
const WEIGHT: u32 = 8;

/// Rates of senders, and the part of each that is processed. Times are arguments.
#[derive(Debug)]
pub struct FairShares {
    /// The bits of an IPv6 address that identify a sender.
    mask: u128,
    seed: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The queue becomes empty regularly.
    Calm {
        /// The first batch after the queue was empty, and the packets since.
        busy: Option<(Instant, u64)>,
    },
    /// There is a standing queue.
    Overloaded(Overload),
}

#[derive(Debug)]
struct Overload {
    hash: FixedState,
    began: Instant,
    /// Packets of each bucket in this interval.
    seen: Vec<u32>,
    /// The average of each bucket, and of what the engine can process, in an interval: in units, [`WEIGHT`] times.
    rates: Vec<u32>,
    rate: u64,
    /// The part of each bucket's packets that is admitted, of [`ALL`], and what is left over from the last packets.
    admitted: Vec<(u32, u32)>,
    /// Packets of this interval, and those of them that were dropped.
    packets: u32,
    dropped: u32,
    /// The part of all packets to admit, of [`ALL`].
    part: u32,
    /// Packets that the engine can process in a second, as measured while none were dropped.
    capacity: u64,
    was_empty: bool,
    /// Intervals since the last drop, and since the hash changed.
    calm: u32,
    age: u32,
}

impl FairShares {
    /// Shares of senders that are IPv4 addresses or IPv6 prefixes of this many bits.
    pub fn new(bits: u8, seed: u64) -> Self {
        let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
        Self { mask, seed, state: State::Calm { busy: None } }
    }

    /// The queue is empty, or was so within the last turn of its reader.
    pub fn emptied(&mut self) {
        match &mut self.state {
            State::Calm { busy } => *busy = None,
            State::Overloaded(overload) => overload.was_empty = true,
        }
    }

    /// A batch with this number of packets arrived. Returns whether each of them has to be admitted.
    #[inline]
    pub fn batch(&mut self, packets: usize, now: Instant) -> bool {
        match &mut self.state {
            State::Calm { busy } => {
                let (since, count) = busy.get_or_insert((now, 0));
                if now.since(*since) < STANDING {
                    *count += packets as u64;
                    return false;
                }
                let capacity = per_second(*count, now.since(*since));
                self.seed = self.seed.wrapping_add(1);
                self.state = State::Overloaded(Overload::new(self.seed, capacity, now));
                true
            }
            State::Overloaded(overload) => {
                if now.since(overload.began) < INTERVAL {
                    return true;
                }
                let is_over = overload.end_interval(now, &mut self.seed);
                if is_over {
                    self.state = State::Calm { busy: None };
                }
                !is_over
            }
        }
    }

    /// Whether a packet from this address is processed; if not, it must be dropped. Realms may have the same addresses. `port`: if several
    /// senders share the address, else 0.
    pub fn admits(&mut self, realm: Realm, (source, port): (IpAddr, u16)) -> bool {
        let State::Overloaded(overload) = &mut self.state else { return true };
        overload.admits((realm.0, port, sender(source, self.mask)))
    }
}

/// The key of a sender.
fn sender(source: IpAddr, mask: u128) -> u128 {
    match source {
        IpAddr::V4(source) => source.to_ipv6_mapped().to_bits(),
        IpAddr::V6(source) => source.to_bits() & mask,
    }
}

impl Overload {
    fn new(seed: u64, capacity: u64, now: Instant) -> Self {
        Self {
            hash: FixedState::with_seed(seed),
            began: now,
            seen: vec![0; BUCKETS],
            rates: vec![0; BUCKETS],
            rate: 0,
            admitted: vec![(ALL, 0); BUCKETS],
            packets: 0,
            dropped: 0,
            part: ALL,
            capacity,
            was_empty: false,
            calm: 0,
            age: 0,
        }
    }

    fn admits(&mut self, sender: (u16, u16, u128)) -> bool {
        let bucket = self.hash.hash_one(sender) as usize % BUCKETS;
        let (Some(seen), Some((part, credit))) = (self.seen.get_mut(bucket), self.admitted.get_mut(bucket))
        else {
            return true;
        };
        *seen += 1;
        self.packets += 1;
        *credit += *part;
        if *credit >= ALL {
            *credit -= ALL;
            return true;
        }
        self.dropped += 1;
        false
    }

    /// Computes the shares of the next interval from the averages. Returns whether overload has ended.
    #[cold]
    fn end_interval(&mut self, now: Instant, seed: &mut u64) -> bool {
        let lasted = now.since(self.began);
        self.calm = if self.dropped == 0 && self.was_empty { self.calm + 1 } else { 0 };
        // Nothing came for a long time: the queue was empty.
        if self.calm >= CALM || lasted >= STANDING && self.was_empty {
            return true;
        }
        let total = self.average(lasted);
        let part = if self.was_empty { self.part + ALL / 64 } else { self.part - self.part / 16 };
        self.part = part.clamp(self.least(lasted, total), ALL);
        let share = share(&self.rates, total * u64::from(self.part) / u64::from(ALL));
        for (rate, (part, _)) in self.rates.iter().zip(&mut self.admitted) {
            let is_below = u64::from(*rate) <= share;
            *part = if is_below { ALL } else { (share * u64::from(ALL) / u64::from(*rate)) as u32 };
        }
        self.age += 1;
        if self.age >= ROTATION {
            *seed = seed.wrapping_add(1);
            (self.hash, self.age, self.rate) = (FixedState::with_seed(*seed), 0, 0);
            self.admitted.fill((ALL, 0));
            self.rates.fill(0);
        }
        (self.began, self.packets, self.dropped, self.was_empty) = (now, 0, 0, false);
        false
    }

    /// The minimum part of packets that is still admitted: all, if they are on average less than what can be processed.
    fn least(&self, lasted: Duration, total: u64) -> u32 {
        // An engine that is busy all the time without a drop has exactly what it can process.
        if self.rate / 8 * 7 >= total {
            return ALL;
        }
        let could = u128::from(self.capacity) * lasted.as_nanos() / 1_000_000_000;
        let least = could * u128::from(LEAST.0) / u128::from(LEAST.1);
        let part = least * u128::from(ALL) / u128::from(self.packets.max(1));
        u32::try_from(part).unwrap_or(ALL).min(ALL)
    }

    /// Adds this interval to the averages. Returns their sum.
    fn average(&mut self, lasted: Duration) -> u64 {
        // It was busy all the time, with packets that may take longer than those before.
        if !self.was_empty && self.dropped == 0 {
            self.capacity = self.capacity.midpoint(per_second(self.packets.into(), lasted));
        }
        let could = u128::from(self.capacity) * lasted.as_nanos() * u128::from(UNITS) / 1_000_000_000;
        self.rate -= self.rate / u64::from(WEIGHT);
        self.rate += u64::try_from(could).unwrap_or(u64::MAX >> 8);
        let mut total = 0;
        for (rate, seen) in self.rates.iter_mut().zip(&mut self.seen) {
            *rate = (*rate - *rate / WEIGHT).saturating_add(seen.saturating_mul(UNITS));
            total += u64::from(*rate);
            *seen = 0;
        }
        total
    }
}

/// The max-min fair share: the most of a sender that may pass if `admitted` of all may.
fn share(rates: &[u32], admitted: u64) -> u64 {
    let mut share = 0;
    for _ in 0..STEPS {
        let (mut below, mut above) = (0_u64, 0_u64);
        for rate in rates.iter().map(|rate| u64::from(*rate)).filter(|rate| *rate > 0) {
            if rate <= share { below += rate } else { above += 1 }
        }
        let Some(next) = admitted.saturating_sub(below).checked_div(above) else { return u64::MAX };
        if next <= share {
            break;
        }
        share = next;
    }
    share
}

fn per_second(packets: u64, time: Duration) -> u64 {
    let nanoseconds = time.as_nanos().max(1);
    u64::try_from(u128::from(packets) * 1_000_000_000 / nanoseconds).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
