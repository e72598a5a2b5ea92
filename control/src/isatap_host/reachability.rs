//! Neighbour unreachability detection of one router (RFC 4861 §7.3). Its link-layer address is computed (RFC 5214 §7.1), so that there is
//! no INCOMPLETE.
//!
//! ```text
//!            traffic            5 s                  3 probes unanswered
//!  STALE ─────────────▶ DELAY ──────▶ PROBE ────────────────────────────▶ given up: another router, STALE
//!    ▲                    │             │ ▲ first advertisement, path error
//!    │ ReachableTime      ▼             ▼
//!    └──────────────── REACHABLE ◀── solicited advertisement, upper layer
//! ```

use core::time::Duration;
use sixway_dataplane::Instant;

/// RFC 4861 §10: DELAY_FIRST_PROBE_TIME, 5 s.
pub const DELAY_FIRST_PROBE_TIME: Duration = Duration::from_secs(5);
/// RFC 4861 §10: MAX_UNICAST_SOLICIT.
pub const MAX_UNICAST_SOLICIT: u8 = 3;

/// The reachability of a router (RFC 4861 §7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reachability {
    /// Unknown, and not probed.
    Stale,
    /// Nothing, and packets are sent: a probe follows at this time.
    Delay(Instant),
    /// Probes were sent; the next is due, or the router is given up, at this time.
    Probe {
        /// The number.
        sent: u8,
        /// When to continue.
        next: Instant,
    },
    /// It answered, which is good until this time.
    Reachable(Instant),
}

/// The actions to take at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    SendProbe,
    GiveUp,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Detection {
    state: Reachability,
    last_probe: Option<Instant>,
}

impl Detection {
    pub(super) const fn new() -> Self {
        Self { state: Reachability::Stale, last_probe: None }
    }

    /// The state, with an expired REACHABLE as STALE.
    pub(super) fn state(&self, now: Instant) -> Reachability {
        match self.state {
            Reachability::Reachable(until) if until <= now => Reachability::Stale,
            other => other,
        }
    }

    /// A packet was sent to the router.
    pub(super) fn used(&mut self, now: Instant) {
        if self.state(now) == Reachability::Stale {
            self.state = Reachability::Delay(now + DELAY_FIRST_PROBE_TIME);
        }
    }

    /// Probes immediately, but never more often than every `retrans` (§7.3.3).
    pub(super) fn probe(&mut self, now: Instant, retrans: Duration) {
        if !matches!(self.state, Reachability::Probe { .. }) {
            let next = self.last_probe.map_or(now, |last| now.max(last + retrans));
            self.state = Reachability::Probe { sent: 0, next };
        }
    }

    /// A confirmation came (§7.3.1).
    pub(super) fn confirmed(&mut self, until: Instant) {
        self.state = Reachability::Reachable(until);
    }

    pub(super) const fn due(&self) -> Option<Instant> {
        match self.state {
            Reachability::Stale | Reachability::Reachable(_) => None,
            Reachability::Delay(at) | Reachability::Probe { next: at, .. } => Some(at),
        }
    }

    /// The due actions at this moment.
    pub(super) fn step(&mut self, now: Instant, retrans: Duration) -> Step {
        if self.due().is_none_or(|due| due > now) {
            return Step::Nothing;
        }
        let sent = match self.state {
            Reachability::Probe { sent, .. } => sent,
            Reachability::Stale | Reachability::Reachable(_) | Reachability::Delay(_) => 0,
        };
        if sent == MAX_UNICAST_SOLICIT {
            self.state = Reachability::Stale;
            return Step::GiveUp;
        }
        self.state = Reachability::Probe { sent: sent + 1, next: now + retrans };
        self.last_probe = Some(now);
        Step::SendProbe
    }
}
