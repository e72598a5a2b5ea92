//! When the packets of an open loop are due. It does not depend on what happens to them.

use super::outcome::Gaps;
use super::random::Random;

/// The due times of packets, without an end.
#[derive(Clone, Debug)]
pub struct Schedule {
    start: u64,
    nanoseconds: f64,
    number: u64,
    drawn: Option<(Random, f64)>,
    /// From here on the gaps are twice as long (nanoseconds after the start).
    halved: f64,
}

impl Schedule {
    /// This many packets a second from `start` on (nanoseconds).
    pub fn new(start: u64, per_second: f64, gaps: Gaps) -> Self {
        let (drawn, halved) = match gaps {
            Gaps::Even => (None, f64::INFINITY),
            Gaps::Poisson(seed) => (Some((Random(seed), 0.0)), f64::INFINITY),
            Gaps::Halved(after) => (None, after.as_secs_f64() * 1e9),
        };
        Self { start, nanoseconds: 1e9 / per_second.max(1e-9), number: 0, drawn, halved }
    }
}

impl Iterator for Schedule {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let after = match &mut self.drawn {
            // By multiplication, so that no error adds up.
            None => {
                let even = self.number as f64 * self.nanoseconds;
                even + (even - self.halved).max(0.0)
            }
            Some((random, at)) => {
                *at += random.exponential() * self.nanoseconds;
                *at
            }
        };
        self.number += 1;
        Some(self.start + after as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_rate_is_kept_whatever_the_gaps() {
        let last = |gaps| Schedule::new(500, 30_000.0, gaps).nth(300_000).unwrap();
        assert_eq!(last(Gaps::Even), 500 + 10_000_000_000);
        let drawn = last(Gaps::Poisson(3)) as f64 / 1e10;
        assert!((drawn - 1.0).abs() < 0.01, "{drawn}");
        assert_eq!(last(Gaps::Poisson(3)), last(Gaps::Poisson(3)));
    }

    #[test]
    fn a_rate_is_halved_at_its_time() {
        let dues = Schedule::new(100, 1_000.0, Gaps::Halved(Duration::from_millis(3)));
        let dues: Vec<u64> = dues.take(6).map(|due| (due - 100) / 1_000_000).collect();
        assert_eq!(dues, [0, 1, 2, 3, 5, 7]);
    }
}
