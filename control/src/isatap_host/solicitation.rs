//! When a potential router is solicited (RFC 4861 §6.3.7, RFC 5214 §8.3.4): up to three times in a row, then no more until TIMER(i), which
//! comes before what the router promised has run out; if it promises nothing, after a time that doubles.

use crate::random::Random;
use core::time::Duration;
use sixway_dataplane::Instant;

/// RFC 4861 §10: MAX_RTR_SOLICITATION_DELAY, 1 s.
pub const MAX_RTR_SOLICITATION_DELAY: Duration = Duration::from_secs(1);
/// RFC 4861 §10: RTR_SOLICITATION_INTERVAL, 4 s.
pub const RTR_SOLICITATION_INTERVAL: Duration = Duration::from_secs(4);
/// RFC 4861 §10: MAX_RTR_SOLICITATIONS.
pub const MAX_RTR_SOLICITATIONS: u8 = 3;
/// The longest time between events, however long a router is silent or its promises last.
pub const MAX_SOLICIT_INTERVAL: Duration = Duration::from_secs(3_600);

#[derive(Clone, Copy, Debug)]
pub(super) struct Solicitation {
    next: Instant,
    /// Solicitations sent in this event.
    sent: u8,
    /// Events in a row without an answer.
    unanswered: u32,
}

impl Solicitation {
    /// The first event, delayed a little.
    pub(super) fn new(now: Instant, random: &mut Random) -> Self {
        Self { next: now + random.upto(MAX_RTR_SOLICITATION_DELAY), sent: 0, unanswered: 0 }
    }

    pub(super) const fn due(&self) -> Instant {
        self.next
    }

    /// How many were sent in this event.
    pub(super) const fn sent_so_far(&self) -> u8 {
        self.sent
    }

    /// A solicitation was sent.
    pub(super) fn sent(&mut self, now: Instant, least: Duration, random: &mut Random) {
        self.sent += 1;
        if self.sent < MAX_RTR_SOLICITATIONS {
            self.next = now + RTR_SOLICITATION_INTERVAL;
            return;
        }
        self.sent = 0;
        let wait = least.saturating_mul(1 << self.unanswered.min(16)).min(MAX_SOLICIT_INTERVAL).max(least);
        self.unanswered += 1;
        self.next = now + wait + random.upto(wait / 10);
    }

    /// The router answered with this `lifetime`: the next event comes when half of it or a little more has passed, and
    /// never sooner than `least` (MinRouterSolicitInterval).
    pub(super) fn answered(
        &mut self,
        now: Instant,
        lifetime: Duration,
        least: Duration,
        random: &mut Random,
    ) {
        // RFC 4861 §6.3.7: one solicitation is sent even if an advertisement came before it.
        if self.sent == 0 && self.unanswered == 0 && self.next <= now + MAX_RTR_SOLICITATION_DELAY {
            return;
        }
        let wait = random.between(lifetime / 2, lifetime * 3 / 5).min(MAX_SOLICIT_INTERVAL).max(least);
        *self = Self { next: now + wait, sent: 0, unanswered: 0 };
    }
}
