//! The quota of senders: how much each may send in an interval.

use super::senders::PACKET;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

/// Interval between two computations of the quota.
pub const INTERVAL: Duration = Duration::from_millis(10);
/// Packets that wait are to be processed within this time, in addition to those that arrive.
const DRAIN: Duration = Duration::from_millis(50);
/// An interval counts as this part of an average.
const WEIGHT: u64 = 8;
/// The capacity grows by this part of it in an interval, if packets were dropped though the queue became empty.
const SLOWEST: u64 = 64;
const FASTEST: u64 = 8;
/// The unit of a weight.
const ONE: u64 = 1 << 10;
/// Steps of water filling: each but the last finds a sender that is below its share.
const STEPS: usize = 16;

/// What the engine can process, and how much waits.
#[derive(Debug)]
pub(super) struct Control {
    /// Packets that the engine can process in a second.
    capacity: u64,
    /// What waits in front of the engine, as far as it is known: what passed the filters and was not processed. In units of [`PACKET`], as what
    /// follows.
    backlog: u64,
    /// Averages of what arrived in an interval and of what could have been processed, [`WEIGHT`] times.
    arrived: u64,
    could: u64,
    in_front: bool,
    /// By what part the capacity grows that turned out to be too low: 1/64, and twice as much in each interval in which it still is.
    growth: u64,
    /// Without filters: the part of the capacity that is admitted, in [`ONE`]. To drop takes time as well, and how much is not known.
    part: u64,
    /// Averages of what each bucket's senders offered in an interval, [`Self::weight`] times.
    rates: Vec<u32>,
    /// What the averages are multiplied by, [`WEIGHT`] after many intervals, in [`ONE`].
    weight: u64,
}

/// What happened in an interval. Numbers are of packets.
#[derive(Debug)]
pub(super) struct Interval {
    pub lasted: Duration,
    /// What arrived.
    pub offered: u64,
    /// What was admitted by the engine, and what was refused by it.
    pub processed: u64,
    pub refused: u64,
    /// What was dropped, in front of the queue or by the engine.
    pub dropped: u64,
    pub was_empty: bool,
}

impl Control {
    pub(super) fn new(capacity: u64, buckets: usize, in_front: bool) -> Self {
        let rates = vec![0; buckets];
        Self {
            capacity,
            backlog: 0,
            arrived: 0,
            could: 0,
            in_front,
            growth: SLOWEST,
            part: ONE,
            rates,
            weight: 0,
        }
    }

    /// Adds what a bucket's senders offered in the interval of this length that [`Self::quota`] is called for next.
    pub(super) fn add(&mut self, bucket: usize, units: u32, lasted: Duration) {
        if let Some(rate) = self.rates.get_mut(bucket) {
            let units = u32::try_from(per_interval(units.into(), lasted)).unwrap_or(u32::MAX);
            *rate = (*rate - *rate / WEIGHT as u32).saturating_add(units);
        }
    }

    /// The senders are in other buckets from now on.
    pub(super) fn forget_senders(&mut self) {
        self.rates.fill(0);
        self.weight = 0;
    }

    /// The quota of the next interval, in units of [`PACKET`] in an [`INTERVAL`]; `None`: without limit. `may_drop`: whether enough intervals have
    /// been seen.
    pub(super) fn quota(&mut self, seen: &Interval, may_drop: bool) -> Option<u32> {
        self.measure(seen, may_drop);
        let could = units(self.capacity, INTERVAL);
        self.average(seen, could);
        self.wait(seen, could);
        // An engine that is busy all the time without a drop has exactly what it can process.
        if !may_drop || self.could / 8 * 7 >= self.arrived {
            return None;
        }
        let share = share(&self.rates, self.admitted(could) * self.weight / ONE);
        if share == u64::MAX {
            return None;
        }
        let quota = u128::from(share) * u128::from(ONE) / u128::from(self.weight.max(1));
        Some(u32::try_from(quota.max(1)).unwrap_or(u32::MAX))
    }

    /// What the engine can process: as many packets as in an interval in which it was busy all the time, and processed all that it received.
    fn measure(&mut self, seen: &Interval, may_drop: bool) {
        // A longer one is one in which it had no processor.
        let counts = seen.lasted < INTERVAL * 2 && seen.refused <= seen.processed / 16;
        if !seen.was_empty && counts {
            let now = per_second(seen.processed + seen.refused / 4, seen.lasted);
            self.capacity = match self.in_front {
                // The first number may be of a time in which it had no processor.
                true if !may_drop => self.capacity.max(now),
                true => self.capacity - self.capacity / WEIGHT + now / WEIGHT,
                // There are few such intervals.
                false => self.capacity.midpoint(now),
            };
        }
        if !self.in_front || !seen.was_empty || seen.dropped == 0 {
            self.growth = SLOWEST;
            return;
        }
        self.capacity += self.capacity / self.growth;
        self.growth = (self.growth / 2).max(FASTEST);
    }

    fn average(&mut self, seen: &Interval, could: u64) {
        let arrived = per_interval(seen.offered * u64::from(PACKET), seen.lasted);
        self.arrived = self.arrived - self.arrived / WEIGHT + arrived;
        self.could = self.could - self.could / WEIGHT + could;
        self.weight = self.weight - self.weight / WEIGHT + ONE;
        let part = if seen.was_empty { self.part + ONE / 64 } else { self.part - self.part / 16 };
        self.part = part.clamp(ONE * 4 / 5, ONE);
    }

    /// How much waits.
    fn wait(&mut self, seen: &Interval, could: u64) {
        if seen.was_empty {
            self.backlog = 0;
            return;
        }
        let [came, went] =
            [seen.offered, seen.dropped + seen.processed].map(|packets| packets * u64::from(PACKET));
        let backlog = (self.backlog + came).saturating_sub(went);
        // Others may have waited before: more than nothing, as the queue was never empty.
        self.backlog = backlog.max(could).min(could * 20);
    }

    /// How much is to be admitted in an interval.
    fn admitted(&self, could: u64) -> u64 {
        if !self.in_front {
            return could * self.part / ONE;
        }
        let drains = u128::from(self.backlog) * INTERVAL.as_nanos() / DRAIN.as_nanos();
        could.saturating_sub(u64::try_from(drains).unwrap_or(u64::MAX)).max(could / 2)
    }
}

/// A quota of an [`INTERVAL`], in an interval of this length.
pub(super) fn over(quota: Option<u32>, lasted: Duration) -> u32 {
    quota.map_or(u32::MAX, |quota| {
        let scaled = u128::from(quota) * lasted.as_nanos() / INTERVAL.as_nanos();
        u32::try_from(scaled).unwrap_or(u32::MAX)
    })
}

/// What was in an interval of this length, in an [`INTERVAL`].
fn per_interval(units: u64, lasted: Duration) -> u64 {
    // Intervals are seldom longer, and this is done for each bucket.
    if lasted == INTERVAL || units == 0 {
        return units;
    }
    let scaled = u128::from(units) * INTERVAL.as_nanos() / lasted.as_nanos().max(1);
    u64::try_from(scaled).unwrap_or(u64::MAX >> 8)
}

/// The max-min fair share: the most of a sender that may pass if `admitted` of all may.
pub(super) fn share(rates: &[u32], admitted: u64) -> u64 {
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

pub(super) fn per_second(packets: u64, time: Duration) -> u64 {
    let nanoseconds = time.as_nanos().max(1);
    u64::try_from(u128::from(packets) * 1_000_000_000 / nanoseconds).unwrap_or(u64::MAX)
}

/// Packets at a rate a second, in a time, in units of [`PACKET`].
fn units(rate: u64, time: Duration) -> u64 {
    let units = u128::from(rate) * u128::from(PACKET) * time.as_nanos() / 1_000_000_000;
    u64::try_from(units).unwrap_or(u64::MAX >> 8)
}
