//! When programs are replaced: immediately after a change, then with increasing delays while that fails.

use std::time::{Duration, Instant};

/// The wait after a first failure; it doubles with each one after it.
const FIRST: Duration = Duration::from_secs(1);
/// No wait is longer.
const LONGEST: Duration = Duration::from_secs(30);

/// When it is tried.
#[derive(Debug, Default)]
pub(super) struct RetryTimer {
    due: Option<Instant>,
    /// How long the next failure is waited after.
    pause: Option<Duration>,
    failing: bool,
}

impl RetryTimer {
    /// Requests other programs: tried immediately, whatever failed before.
    pub fn want(&mut self, now: Instant) {
        (self.due, self.pause) = (Some(now), None);
    }

    /// When to retry; `None`: not needed.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// It is being tried.
    pub fn begin(&mut self) {
        self.due = None;
    }

    /// It failed, and is tried again, unless a new request is pending already. Returns whether it had worked the last time.
    pub fn failed(&mut self, now: Instant) -> bool {
        let pause = self.pause.unwrap_or(FIRST);
        self.pause = Some((pause * 2).min(LONGEST));
        self.due.get_or_insert(now + pause);
        !std::mem::replace(&mut self.failing, true)
    }

    /// The state is as wanted. Returns whether it had failed the last time.
    pub fn worked(&mut self) -> bool {
        self.pause = None;
        std::mem::take(&mut self.failing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds between the tries of something that fails.
    fn pauses(turn: &mut RetryTimer, mut now: Instant) -> Vec<u64> {
        let try_again = |_| {
            turn.begin();
            turn.failed(now);
            let waited = turn.due().unwrap() - now;
            now += waited;
            waited.as_secs()
        };
        (0..7).map(try_again).collect()
    }

    #[test]
    fn what_fails_is_retried_at_growing_intervals_and_immediately_when_others_are_wanted() {
        let (mut turn, start) = (RetryTimer::default(), Instant::now());
        assert_eq!(turn.due(), None);
        turn.want(start);
        assert_eq!(turn.due(), Some(start));
        assert_eq!(pauses(&mut turn, start), [1, 2, 4, 8, 16, 30, 30]);
        turn.want(start);
        assert_eq!(turn.due(), Some(start));
        assert_eq!(pauses(&mut turn, start)[..2], [1, 2], "others were never tried");
    }

    #[test]
    fn what_is_wanted_while_another_is_tried_does_not_wait_for_its_failure() {
        let (mut turn, start) = (RetryTimer::default(), Instant::now());
        turn.want(start);
        turn.begin();
        turn.want(start);
        turn.failed(start);
        assert_eq!(turn.due(), Some(start));
    }

    #[test]
    fn the_first_failure_is_told_and_that_it_works_again() {
        let (mut turn, start) = (RetryTimer::default(), Instant::now());
        assert!(!turn.worked(), "it always has");
        assert_eq!([(); 3].map(|()| turn.failed(start)), [true, false, false]);
        turn.want(start);
        assert!(!turn.failed(start), "still failing");
        assert_eq!([(); 2].map(|()| turn.worked()), [true, false]);
        assert!(turn.failed(start));
    }
}
