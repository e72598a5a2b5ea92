//! New sessions and bindings a second: a limit, and a measure.

use super::timeouts::Clock;

const SECOND: u64 = 1_000_000_000;

/// Seconds of a measured interval.
const INTERVAL: u32 = 10;

/// A limit on events a second (the virtual scheduling algorithm of ITU-T I.371). As many as in one second may come together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateLimit {
    /// The time at which the next event would come if they came evenly, in nanoseconds.
    due: u64,
}

impl RateLimit {
    /// An event comes; whether it is within `limit` a second. Zero: there is none.
    pub(super) fn takes(&mut self, limit: u32, clock: Clock) -> bool {
        let Some(step) = SECOND.checked_div(u64::from(limit)) else { return true };
        let now = clock.now().0;
        let due = self.due.max(now);
        if due - now + step > SECOND {
            return false;
        }
        self.due = due + step;
        true
    }
}

/// How many events a second there were lately.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewRate {
    /// The second in which the present interval began.
    since: u32,
    now: u32,
    before: u32,
}

impl NewRate {
    /// Closes intervals that have ended.
    const fn at(self, second: u32) -> Self {
        let passed = second.saturating_sub(self.since);
        if passed < INTERVAL {
            return self;
        }
        let before = if passed < 2 * INTERVAL { self.now } else { 0 };
        Self { since: second - passed % INTERVAL, now: 0, before }
    }

    /// An event comes.
    pub(super) const fn count(&mut self, second: u32) {
        *self = self.at(second);
        self.now = self.now.saturating_add(1);
    }

    /// Events a second, rounded up, in this interval and the one before.
    pub(super) fn per_second(self, second: u32) -> u32 {
        let rate = self.at(second);
        let seconds = INTERVAL + second.saturating_sub(rate.since);
        rate.before.saturating_add(rate.now).div_ceil(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instant::Instant;

    #[test]
    fn a_limit_lets_a_seconds_worth_through_together_and_then_as_many_as_it_says() {
        let mut limit = RateLimit::default();
        let at = |milliseconds: u64| Clock::at(Instant(milliseconds * 1_000_000));
        let takes = |limit: &mut RateLimit, clock| (0..100).filter(|_| limit.takes(10, clock)).count();
        assert_eq!(takes(&mut limit, at(5_000)), 10);
        assert_eq!(takes(&mut limit, at(5_099)), 0);
        assert_eq!(takes(&mut limit, at(5_100)), 1);
        assert_eq!(takes(&mut limit, at(5_600)), 5);
        assert_eq!(takes(&mut limit, at(60_000)), 10, "and not more after a long time");
        assert!((0..100).all(|_| limit.takes(0, at(60_000))), "zero is no limit");
    }

    #[test]
    fn a_limit_of_more_than_a_thousand_million_is_none() {
        let mut limit = RateLimit::default();
        assert!((0..100).all(|_| limit.takes(u32::MAX, Clock::default())));
    }

    #[test]
    fn the_rate_is_that_of_the_last_ten_to_twenty_seconds() {
        let mut rate = NewRate::default();
        for second in 100..110 {
            (0..50).for_each(|_| rate.count(second));
        }
        assert_eq!((rate.per_second(109), rate.per_second(110)), (27, 50), "from half of an interval on");
        assert_eq!((rate.per_second(119), rate.per_second(120)), (27, 0));
        assert_eq!(rate.per_second(4_000_000), 0);
        rate.count(121);
        assert_eq!(rate.per_second(121), 1);
    }
}
