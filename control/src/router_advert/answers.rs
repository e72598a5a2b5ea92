//! Unicast answers to solicitations, each after a random delay of its own (RFC 4861 §6.2.6).

use super::schedule::MAX_RA_DELAY_TIME;
use crate::random::Random;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_dataplane::Instant;

/// Maximum pending answers, so that a flood of solicitations costs at most this many advertisements each half second. Further
/// solicitations are ignored; hosts repeat them.
pub const MAX_WAITING: usize = 256;

/// The host to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asker {
    pub(super) address: Ipv6Addr,
    pub(super) outer: Option<Ipv4Addr>,
}

/// Whether a solicitation was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Waits,
    Full,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Answers(Vec<(Instant, Asker)>);

impl Answers {
    /// Enters a solicitation; one answer serves all that the same host sends until then.
    pub(super) fn enter(&mut self, now: Instant, asker: Asker, random: &mut Random) -> Admission {
        if self.0.iter().any(|(_, waiting)| *waiting == asker) {
            return Admission::Waits;
        }
        if self.0.len() >= MAX_WAITING {
            return Admission::Full;
        }
        self.0.push((now + random.upto(MAX_RA_DELAY_TIME), asker));
        Admission::Waits
    }

    /// When the next answer is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.iter().map(|(due, _)| *due).min()
    }

    /// Takes out an answer that is due.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Asker> {
        let at = self.0.iter().position(|(due, _)| *due <= now)?;
        Some(self.0.swap_remove(at).1)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
