//! Query rates: counters of the last seconds, one sample each second.

use super::report::Report;
use sixway_control::dns64::Outcome;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The time over which rates are averaged, in seconds.
const WINDOW: Duration = Duration::from_secs(5);

/// Counters at a moment.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    queries: u64,
    cached: u64,
    outcomes: [u64; Outcome::ALL.len()],
}

/// Samples of the last seconds.
#[derive(Debug)]
pub struct Rates {
    samples: VecDeque<Sample>,
}

impl Rates {
    /// Starts from counters that are all zero.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        let zero = Sample { at: now, queries: 0, cached: 0, outcomes: [0; Outcome::ALL.len()] };
        Self { samples: VecDeque::from([zero]) }
    }

    /// Adds a sample; to be called each second.
    pub fn add(&mut self, now: Instant, report: &Report) {
        let counters = &report.counters;
        let (queries, cached, outcomes) = (counters.queries, counters.cached, counters.outcomes);
        self.samples.push_back(Sample { at: now, queries, cached, outcomes });
        while self.samples.len() > 2 && now.duration_since(self.samples[1].at) >= WINDOW {
            self.samples.pop_front();
        }
    }

    fn grown(&self, counter: impl Fn(&Sample) -> u64) -> (u64, f64) {
        let (Some(old), Some(new)) = (self.samples.front(), self.samples.back()) else { return (0, 0.0) };
        let grown = counter(new).saturating_sub(counter(old));
        (grown, new.at.duration_since(old.at).as_secs_f64())
    }

    fn rate(&self, counter: impl Fn(&Sample) -> u64) -> f64 {
        let (grown, seconds) = self.grown(counter);
        // In less than a second, a few queries would look like many.
        grown as f64 / seconds.max(1.0)
    }

    /// Queries a second.
    #[must_use]
    pub fn queries(&self) -> f64 {
        self.rate(|sample| sample.queries)
    }

    /// How often an outcome came in a second.
    #[must_use]
    pub fn outcome(&self, outcome: Outcome) -> f64 {
        self.rate(|sample| sample.outcomes[outcome as usize])
    }

    /// The part of all queries that was answered without waiting; `None`: there were none.
    #[must_use]
    pub fn cache_hit_ratio(&self) -> Option<f64> {
        let (queries, _) = self.grown(|sample| sample.queries);
        let (cached, _) = self.grown(|sample| sample.cached);
        (queries > 0).then(|| cached as f64 / queries as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_averaged_over_the_window() {
        let start = Instant::now();
        let mut rates = Rates::new(start);
        assert_eq!((rates.queries(), rates.cache_hit_ratio()), (0.0, None));
        for second in 1..=20 {
            let mut report = Report::default();
            (report.counters.queries, report.counters.cached) = (second * 100, second * 92);
            report.counters.outcomes[Outcome::Synthesised as usize] = second * 10;
            rates.add(start + Duration::from_secs(second), &report);
        }
        assert_eq!((rates.queries(), rates.cache_hit_ratio()), (100.0, Some(0.92)));
        assert_eq!((rates.outcome(Outcome::Synthesised), rates.outcome(Outcome::Bogus)), (10.0, 0.0));
        assert!(rates.samples.len() <= 7);
    }
}
