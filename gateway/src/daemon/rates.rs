//! Rates: the counters of the last seconds, one sample each second.

use crate::view::Rates;
use sixway_dataplane::{Counters, DropReason};
use sixway_fastpath::Counts;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The time over which rates are averaged, in seconds.
const WINDOW: Duration = Duration::from_secs(5);

/// Samples closer than this replace one another, so that many requests do not make many samples.
const CLOSE: Duration = Duration::from_millis(200);

/// Samples of the counters, all workers together.
#[derive(Debug)]
pub(super) struct History {
    samples: VecDeque<(Instant, Counters, Counts)>,
    last_grown: [Option<Instant>; DropReason::COUNT],
}

impl History {
    /// Starts from counters that are all zero.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            samples: VecDeque::from([(now, Counters::default(), Counts::default())]),
            last_grown: [None; DropReason::COUNT],
        }
    }

    /// Adds a sample: what the engines counted, and what the fast path did.
    pub(super) fn add(&mut self, now: Instant, counters: Counters, carried: Counts) {
        if let Some((_, before, _)) = self.samples.back() {
            let counts = counters.dropped.iter().zip(&before.dropped);
            for (grown, _) in self.last_grown.iter_mut().zip(counts).filter(|(_, (new, old))| new > old) {
                *grown = Some(now);
            }
        }
        let close = |at: &Instant| now.duration_since(*at) < CLOSE;
        if self.samples.len() > 1 && self.samples.back().is_some_and(|(at, ..)| close(at)) {
            self.samples.pop_back();
        }
        self.samples.push_back((now, counters, carried));
        while self.samples.len() > 2 && now.duration_since(self.samples[1].0) >= WINDOW {
            self.samples.pop_front();
        }
    }

    /// The time since drops for this reason last grew.
    pub(super) fn last_grown(&self, reason: DropReason, now: Instant) -> Option<Duration> {
        self.last_grown[reason as usize].map(|at| now.duration_since(at))
    }

    /// A counter at the last sample.
    pub(super) fn last(&self, counter: impl Fn(&Counters) -> u64) -> u64 {
        self.samples.back().map_or(0, |(_, counters, _)| counter(counters))
    }

    /// The growth of a counter in a second.
    pub(super) fn rate(&self, counter: impl Fn(&Counters) -> u64) -> f64 {
        self.growth(|(_, counters, _)| counter(counters))
    }

    /// The growth in a second of what the fast path counted.
    pub(super) fn carried(&self, counter: impl Fn(&Counts) -> u64) -> f64 {
        self.growth(|(_, _, carried)| counter(carried))
    }

    fn growth(&self, counter: impl Fn(&(Instant, Counters, Counts)) -> u64) -> f64 {
        let (Some(old), Some(new)) = (self.samples.front(), self.samples.back()) else { return 0.0 };
        let seconds = new.0.duration_since(old.0).as_secs_f64();
        if seconds <= 0.0 {
            return 0.0;
        }
        counter(new).saturating_sub(counter(old)) as f64 / seconds
    }

    /// The part of all packets that the fast path carried; `None`: there were none.
    pub(super) fn share(&self) -> Option<f64> {
        let (engine, carried) = (self.rate(|counters| counters.packets), self.carried(packets));
        (engine + carried > 0.0).then(|| carried / (engine + carried))
    }

    /// The rates that the status shows.
    pub(super) fn rates(&self) -> Rates {
        let top = DropReason::ALL
            .iter()
            .map(|reason| (self.rate(|counters| counters.dropped[*reason as usize]), reason))
            .filter(|(rate, _)| *rate > 0.0)
            .max_by(|(one, _), (other, _)| one.total_cmp(other));
        Rates {
            bits: 8.0 * (self.rate(|counters| counters.octets) + self.carried(octets)),
            packets: self.rate(|counters| counters.packets) + self.carried(packets),
            frames: self.rate(|counters| counters.received),
            drops: self.rate(Counters::dropped_total),
            top_reason: top.map(|(_, reason)| reason.name().into()),
        }
    }
}

/// Packets that the fast path carried.
pub(super) fn packets(counts: &Counts) -> u64 {
    counts.carried().map(|(_, out, back)| out.packets + back.packets).sum()
}

fn octets(counts: &Counts) -> u64 {
    counts.carried().map(|(_, out, back)| out.octets + back.octets).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_fast_path_carries_is_in_the_rates_and_has_its_share() {
        let start = Instant::now();
        let mut history = History::new(start);
        assert_eq!(history.share(), None);
        let mut carried = Counts::default();
        (carried.values[2].packets, carried.values[2].octets) = (900, 90_000);
        let engine = Counters { packets: 100, octets: 10_000, ..Counters::default() };
        history.add(start + Duration::from_secs(1), engine, carried);
        assert_eq!(history.share(), Some(0.9));
        let rates = history.rates();
        assert_eq!((rates.packets, rates.bits), (1_000.0, 800_000.0));
    }

    fn counters(received: u64, octets: u64, no_binding: u64) -> Counters {
        let mut counters = Counters { received, octets, ..Counters::default() };
        counters.dropped[DropReason::NoBinding as usize] = no_binding;
        counters
    }

    #[test]
    fn rates_are_averaged_over_the_window() {
        let start = Instant::now();
        let mut history = History::new(start);
        assert_eq!(history.rates(), Rates::default());
        for second in 1..=20 {
            history.add(
                start + Duration::from_secs(second),
                counters(second * 100, second * 1_000, 0),
                Counts::default(),
            );
        }
        let rates = history.rates();
        assert_eq!((rates.frames, rates.bits, rates.drops), (100.0, 8_000.0, 0.0));
        assert!(history.samples.len() <= 7);
        for request in 0..100 {
            history.add(
                start + Duration::from_millis(20_000 + request),
                counters(2_000, 20_000, 0),
                Counts::default(),
            );
        }
        assert!(history.samples.len() <= 8);
    }

    #[test]
    fn the_reason_with_the_most_drops_is_named_and_when_it_last_grew() {
        let start = Instant::now();
        let mut history = History::new(start);
        history.add(start + Duration::from_secs(1), counters(0, 0, 3), Counts::default());
        history.add(start + Duration::from_secs(3), counters(0, 0, 3), Counts::default());
        assert_eq!(history.rates().top_reason.as_deref(), Some("NoBinding"));
        let now = start + Duration::from_secs(4);
        assert_eq!(history.last_grown(DropReason::NoBinding, now), Some(Duration::from_secs(3)));
        assert_eq!(history.last_grown(DropReason::Igmp, now), None);
    }
}
