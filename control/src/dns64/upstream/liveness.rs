//! Whether an upstream is alive.
//!
//! ```text
//!            3 silences in a row               three probes are silent
//!   Up ───────────────────────────▶ Suspected ────────────────────────▶ Down ──┐ probed after 1 s, 2 s, 4 s … 60 s
//!   ▲                                   │                                │  ▲───┘
//!   └──────────── any reply ────────────┴────────────────────────────────┘
//! ```
//!
//! A recursive upstream is silent about names whose own servers are dead: so silence is a suspicion only, and probes, which any server
//! answers immediately, decide; three of them, since a datagram may be lost.

use super::row::Health;
use crate::Instant;
use core::time::Duration;

/// The number of silences in a row that are suspicious.
const SUSPICIOUS: u8 = 3;

/// The number of probes that decide.
const DECISIVE: u8 = 3;

/// The first and the longest pause between probes of an upstream that is down.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
pub(super) struct Liveness {
    pub(super) health: Health,
    silences: u8,
    /// Probes in a row that were not answered.
    unanswered: u8,
    /// The last silence that counted.
    counted: Instant,
    /// The last reply.
    heard: Option<Instant>,
    /// When it became down.
    since: Instant,
    pause: Duration,
    /// When the next probe is due, of one that is down.
    pub(super) probe_due: Option<Instant>,
}

impl Liveness {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            health: Health::Up,
            silences: 0,
            unanswered: 0,
            counted: now,
            heard: None,
            since: now,
            pause: FIRST_PAUSE,
            probe_due: None,
        }
    }

    /// No reply to what was sent then; whether it is to be probed immediately. Many questions at the same time that are not answered are one
    /// silence: what was sent before the last one does not count again.
    pub(super) fn silent(&mut self, now: Instant, sent: Instant) -> bool {
        if sent < self.counted {
            return false;
        }
        self.counted = now;
        self.silences = self.silences.saturating_add(1);
        let suspicious = self.health == Health::Up && self.silences >= SUSPICIOUS;
        if suspicious {
            self.health = Health::Suspected;
        }
        suspicious
    }

    /// It has replied; how long it was down, if it was.
    pub(super) fn alive(&mut self, now: Instant) -> Option<Duration> {
        let was = core::mem::replace(&mut self.health, Health::Up);
        (self.silences, self.unanswered) = (0, 0);
        self.heard = Some(now);
        self.pause = FIRST_PAUSE;
        self.probe_due = None;
        (was == Health::Down).then(|| now - self.since)
    }

    /// Whether it has replied within a time.
    pub(super) fn was_heard_since(&self, now: Instant, time: Duration) -> bool {
        self.heard.is_some_and(|heard| now.since(heard) <= time)
    }

    /// A probe of that time was not answered; whether it is down from now on. `spread` moves the next probe, so that many do not keep in step.
    pub(super) fn probe_silent(&mut self, now: Instant, sent: Instant, spread: Duration) -> bool {
        if self.health == Health::Up || self.heard.is_some_and(|heard| heard > sent) {
            return false;
        }
        self.unanswered = self.unanswered.saturating_add(1);
        if self.unanswered < DECISIVE {
            self.probe_due = Some(now + spread);
            return false;
        }
        let falls = self.health == Health::Suspected;
        if falls {
            (self.health, self.since) = (Health::Down, now);
        }
        self.probe_due = Some(now + self.pause + spread);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        falls
    }

    /// A probe that could not be sent is put off.
    pub(super) fn put_off(&mut self, now: Instant) -> Instant {
        let due = now + FIRST_PAUSE;
        self.probe_due = Some(due);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silences_in_a_row_are_suspicious_and_a_silent_probe_decides() {
        let at = Instant::from_secs;
        let mut liveness = Liveness::new(at(0));
        assert!(!liveness.silent(at(1), at(0)));
        assert!(!liveness.silent(at(1), at(0)), "at the same time");
        assert!(!liveness.silent(at(2), at(1)));
        assert!(liveness.silent(at(3), at(2)));
        assert_eq!(liveness.health, Health::Suspected);
        assert!(!liveness.silent(at(4), at(3)), "the probe is on its way");
        assert!(!liveness.probe_silent(at(4), at(3), Duration::ZERO));
        assert!(!liveness.probe_silent(at(4), at(4), Duration::ZERO));
        assert_eq!((liveness.health, liveness.probe_due), (Health::Suspected, Some(at(4))));
        assert!(liveness.probe_silent(at(4), at(4), Duration::ZERO));
        assert_eq!((liveness.health, liveness.probe_due), (Health::Down, Some(at(5))));
        assert!(!liveness.probe_silent(at(5), at(5), Duration::ZERO));
        assert_eq!(liveness.probe_due, Some(at(7)));
        assert_eq!(liveness.alive(at(9)), Some(Duration::from_secs(5)));
        assert_eq!((liveness.health, liveness.probe_due), (Health::Up, None));
        assert_eq!(liveness.alive(at(9)), None);
    }

    #[test]
    fn a_reply_between_silences_begins_anew() {
        let at = Instant::from_secs;
        let mut liveness = Liveness::new(at(0));
        for second in 0..100 {
            assert!(!liveness.silent(at(second + 1), at(second)));
            if second % 2 == 1 {
                assert_eq!(liveness.alive(at(second + 1)), None);
            }
        }
    }

    #[test]
    fn pauses_between_probes_double_up_to_a_minute() {
        let mut liveness = Liveness::new(Instant(0));
        liveness.health = Health::Down;
        liveness.unanswered = DECISIVE;
        let pauses: Vec<_> = (0..8)
            .map(|_| {
                liveness.probe_silent(Instant(0), Instant(0), Duration::ZERO);
                liveness.probe_due.unwrap().as_secs()
            })
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    }
}
