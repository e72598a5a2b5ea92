//! When multicast advertisements are sent (RFC 4861 §6.2.4, §6.2.6).

use crate::random::Random;
use core::time::Duration;
use sixway_dataplane::Instant;

/// RFC 4861 §10: MAX_INITIAL_RTR_ADVERT_INTERVAL, 16 s.
pub const MAX_INITIAL_RTR_ADVERT_INTERVAL: Duration = Duration::from_secs(16);
/// RFC 4861 §10: MAX_INITIAL_RTR_ADVERTISEMENTS.
pub const MAX_INITIAL_RTR_ADVERTISEMENTS: u8 = 3;
/// RFC 4861 §10: MIN_DELAY_BETWEEN_RAS, 3 s.
pub const MIN_DELAY_BETWEEN_RAS: Duration = Duration::from_secs(3);
/// RFC 4861 §10: MAX_RA_DELAY_TIME, 0.5 s.
pub const MAX_RA_DELAY_TIME: Duration = Duration::from_millis(500);

/// The timer of an advertising interface.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    min: Duration,
    max: Duration,
    /// When the next unsolicited advertisement is due.
    next: Instant,
    /// When the answer to a solicitation is due.
    solicited: Option<Instant>,
    last: Option<Instant>,
    /// Initial advertisements that have not been sent.
    initial: u8,
}

impl Schedule {
    /// The interface begins to advertise. The first advertisement is delayed a little, so that routers which start together do not
    /// stay together.
    pub(super) fn new((min, max): (Duration, Duration), now: Instant, random: &mut Random) -> Self {
        let next = now + random.upto(MAX_RA_DELAY_TIME);
        Self { min, max, next, solicited: None, last: None, initial: MAX_INITIAL_RTR_ADVERTISEMENTS }
    }

    /// What is advertised has changed: as when the interface began (§6.2.4).
    pub(super) fn restart(&mut self, (min, max): (Duration, Duration), now: Instant, random: &mut Random) {
        let fresh = Self::new((min, max), now, random);
        *self = Self { last: self.last, solicited: self.solicited, ..fresh };
    }

    /// When the next advertisement is due, solicited or not; never sooner than MIN_DELAY_BETWEEN_RAS after the last.
    pub(super) fn due(&self) -> Instant {
        let due = self.solicited.map_or(self.next, |solicited| solicited.min(self.next));
        self.last.map_or(due, |last| due.max(last + MIN_DELAY_BETWEEN_RAS))
    }

    /// When the next packet may follow, whatever is due.
    pub(super) fn allowed(&self) -> Instant {
        self.last.map_or(Instant::default(), |last| last + MIN_DELAY_BETWEEN_RAS)
    }

    /// A host solicits. If the next advertisement is due before the answer would be, it is the answer (§6.2.6).
    pub(super) fn solicit(&mut self, now: Instant, random: &mut Random) {
        let delay = random.upto(MAX_RA_DELAY_TIME);
        let at = now.max(self.allowed()) + delay;
        if at < self.due() {
            self.solicited = Some(at);
        }
    }

    /// A packet of an advertisement was sent that has more to follow.
    pub(super) fn part_sent(&mut self, now: Instant) {
        self.last = Some(now);
    }

    /// The advertisement was sent whole: the timer starts again (§6.2.4).
    pub(super) fn sent(&mut self, now: Instant, random: &mut Random) {
        self.initial = self.initial.saturating_sub(1);
        let interval = random.between(self.min, self.max);
        let interval =
            if self.initial > 0 { interval.min(MAX_INITIAL_RTR_ADVERT_INTERVAL) } else { interval };
        self.last = Some(now);
        self.solicited = None;
        self.next = now + interval;
    }
}
