//! Rate limit for work triggered by events: the first event runs immediately, later ones are coalesced into one run per span.

use std::time::{Duration, Instant};

/// When something is to be done.
#[derive(Debug)]
pub(super) struct Pace {
    span: Duration,
    last: Option<Instant>,
    due: Option<Instant>,
}

impl Pace {
    pub fn new(span: Duration) -> Self {
        Self { span, last: None, due: None }
    }

    /// It is wanted.
    pub fn want(&mut self, now: Instant) {
        let earliest = self.last.map_or(now, |last| (last + self.span).max(now));
        self.due.get_or_insert(earliest);
    }

    /// When it is to be done.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether it is to be done now; then it counts as done.
    pub fn take(&mut self, now: Instant) -> bool {
        let is_due = self.due.is_some_and(|due| due <= now);
        if is_due {
            (self.last, self.due) = (Some(now), None);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_done_immediately_and_a_flood_each_span() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut pace = Pace::new(Duration::from_millis(20));
        assert!(!pace.take(start));
        let mut done = Vec::new();
        for millisecond in 0..100 {
            pace.want(at(millisecond));
            if pace.take(at(millisecond)) {
                done.push(millisecond);
            }
        }
        assert_eq!(done, [0, 20, 40, 60, 80]);
        assert_eq!(pace.due(), Some(at(100)));
        assert!(pace.take(at(200)) && !pace.take(at(200)));
    }
}
