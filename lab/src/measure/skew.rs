//! How far the clocks of two machines differ, as NTP finds it (RFC 5905 §8): a question and its answer, each with the times of sending and arrival. Round
//! trips never need it; times one way between machines do.

use std::time::Duration;

/// Times of one exchange, in nanoseconds: of the question by the clocks of who asks and who answers, and of the answer by those of who answers and who
/// asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The question left, by the clock of this machine.
    pub asked: i64,
    /// It came, by the other clock.
    pub heard: i64,
    /// The answer left, by the other clock.
    pub answered: i64,
    /// It came, by the clock of this machine.
    pub came: i64,
}

/// How far the other clock is ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// Nanoseconds that the other clock is ahead.
    pub ahead: i64,
    /// It may be this much more or less: half the round trip.
    pub within: Duration,
    /// When it was measured, by the clock of this machine.
    pub at: i64,
}

impl ClockOffset {
    /// Of the exchange with the shortest round trip, which waited least; `None` without one.
    pub fn of(exchanges: &[Exchange]) -> Option<Self> {
        let trip = |it: &Exchange| (it.came - it.asked) - (it.answered - it.heard);
        let best = exchanges.iter().filter(|it| trip(it) >= 0).min_by_key(|it| trip(it))?;
        let ahead = ((best.heard - best.asked) + (best.answered - best.came)) / 2;
        let within = Duration::from_nanos(trip(best).unsigned_abs().div_ceil(2));
        Some(Self { ahead, within, at: best.came })
    }

    /// How much faster the other clock runs, as a share: from this measurement to a later one. `None` if they are not apart.
    pub fn drift(&self, later: &Self) -> Option<f64> {
        let apart = later.at - self.at;
        (apart > 0).then(|| (later.ahead - self.ahead) as f64 / apart as f64)
    }
}

/// Exchanges with another clock, this many; `ask` does one.
///
/// # Errors
/// The other machine does not answer.
pub fn clock_offset(
    count: usize,
    mut ask: impl FnMut() -> crate::failure::Result<Exchange>,
) -> crate::failure::Result<ClockOffset> {
    let exchanges = (0..count).map(|_| ask()).collect::<crate::failure::Result<Vec<_>>>()?;
    let none = || crate::failure::Failure::Unexpected("no exchange with the other clock".to_owned());
    ClockOffset::of(&exchanges).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Random;

    /// A machine whose clock is ahead and runs faster, over a path that makes questions wait longer than answers.
    fn exchange(random: &mut Random, now: i64, (ahead, faster): (i64, f64)) -> Exchange {
        let other = |time: i64| time + ahead + (time as f64 * faster) as i64;
        let (there, back) =
            (50_000 + (random.exponential() * 4e5) as i64, 50_000 + (random.exponential() * 1e5) as i64);
        Exchange {
            asked: now,
            heard: other(now + there),
            answered: other(now + there + 9_000),
            came: now + there + 9_000 + back,
        }
    }

    #[test]
    fn the_offset_and_drift_of_another_clock_are_found() {
        let mut random = Random(3);
        for clock in [(0, 0.0), (7_000_000_000, 2e-5), (-123_456_789, -1e-5)] {
            let mut measure = |start: i64| {
                let mut now = start;
                clock_offset(30, || {
                    now += 1_000_000;
                    Ok(exchange(&mut random, now, clock))
                })
                .unwrap()
            };
            let (first, second) = (measure(0), measure(600_000_000_000));
            let error = (first.ahead - clock.0).unsigned_abs();
            assert!(error <= first.within.as_nanos() as u64 + 1_000, "{first:?}");
            assert!(first.within < Duration::from_micros(200));
            let drift = first.drift(&second).unwrap();
            assert!((drift - clock.1).abs() < 1e-6, "{drift}");
            assert_eq!(first.drift(&first), None);
        }
        assert_eq!(ClockOffset::of(&[]), None);
    }
}
