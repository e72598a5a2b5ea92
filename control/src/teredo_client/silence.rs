//! Detects that this host sends and receives nothing: the NAT may have lost the mapping, or may have been replaced.

use core::time::Duration;
use sixway_dataplane::Instant;

/// How long nothing comes back before the server is asked.
pub const SILENCE: Duration = Duration::from_secs(5);

/// Since when nothing comes back. For a host that only sends, the server is asked once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Silence {
    /// The first packet without an answer, and the last one.
    sent: Option<(Instant, Instant)>,
    is_told: bool,
}

impl Silence {
    /// The packets that passed since the last call. Returns whether the server is to be asked.
    pub(super) fn observe(&mut self, sent: bool, received: bool, now: Instant) -> bool {
        if received {
            *self = Self::default();
            return false;
        }
        if !sent {
            return false;
        }
        // A host that has sent nothing for a while waits for no answer.
        let earlier = self.sent.filter(|(_, last)| now.since(*last) <= SILENCE);
        self.is_told &= earlier.is_some();
        let first = earlier.map_or(now, |(first, _)| first);
        self.sent = Some((first, now));
        let is_due = now.since(first) >= SILENCE && !self.is_told;
        self.is_told |= is_due;
        is_due
    }
}
