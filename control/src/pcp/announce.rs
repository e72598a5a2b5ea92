//! The times of the server's announcements (RFC 6887 §14.1.3, RFC 6886 §3.2.1).

use super::mapping::AskedAt;
use core::net::SocketAddr;
use core::time::Duration;
use sixway_dataplane::Instant;

/// Maximum number of announcements.
const TIMES: u32 = 10;
/// The interval after the first; each is twice the previous one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The destination of an unsolicited message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announced {
    /// 224.0.0.1, port 5350, on each inside link.
    Everyone4,
    /// ff02::1, port 5350, on each inside link.
    Everyone6,
    /// The client of a mapping, from the address that received its request; `None`: from each inside link.
    Client(SocketAddr, Option<AskedAt>),
}

/// An unsolicited message, from the server's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The destination.
    pub to: Announced,
    /// The payload of UDP.
    pub octets: Vec<u8>,
}

/// The announcements of one loss of state.
#[derive(Clone, Debug, Default)]
pub(super) struct Schedule {
    next: Option<Instant>,
    last: Option<Instant>,
    sent: u32,
}

impl Schedule {
    /// Begins, or begins again: immediately, but never sooner than a pause after the last one.
    pub(super) fn begin(&mut self, now: Instant) {
        let earliest = self.last.map_or(now, |last| last + FIRST_PAUSE);
        (self.next, self.sent) = (Some(earliest.max(now)), 0);
    }

    /// When the next one is due.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.next
    }

    /// Whether one is due; then it counts as sent.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        if self.next.is_none_or(|next| next > now) {
            return false;
        }
        self.next = (self.sent + 1 < TIMES).then(|| now + FIRST_PAUSE * (1 << self.sent.min(TIMES)));
        (self.last, self.sent) = (Some(now), self.sent + 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_announcements_with_pauses_that_double() {
        let mut schedule = Schedule::default();
        schedule.begin(Instant::from_secs(10));
        let mut times = Vec::new();
        while let Some(due) = schedule.due() {
            assert!(!schedule.take(Instant(due.0 - 1)));
            assert!(schedule.take(due));
            times.push(due);
        }
        let pauses: Vec<_> = times.windows(2).map(|pair| pair[1].since(pair[0]).as_millis()).collect();
        assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000]);
    }

    #[test]
    fn losses_that_follow_each_other_do_not_cause_a_flood() {
        let (mut schedule, mut sent) = (Schedule::default(), 0);
        for millisecond in 0..1_000 {
            let now = Instant(millisecond * 1_000_000);
            schedule.begin(now);
            sent += u32::from(schedule.take(now));
        }
        assert!(sent <= 4, "{sent} announcements in a second");
    }
}
