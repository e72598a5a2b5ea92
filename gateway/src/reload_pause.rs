//! The pause between reloads that are caused by this host's addresses, prefixes and routes. A lease that flaps, or a router of the provider that
//! announces another prefix every second, would otherwise cause continuous reloads.
//!
//! ```text
//!     a change ▶ reload    a change ─ 5 s ▶ reload    a change ─ 10 s ▶ reload   …   5 min at most; after 10 min without a reload, no pause again
//! ```
//!
//! Changes during a pause take effect together at its end. A reload re-executes the process, so the pause is stored outside of it, in
//! seconds of the host's clock.

use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// The pause after the first reload: each is twice the previous one, …
const FIRST: u64 = 5;
/// … up to this.
const LONGEST: u64 = 300;
/// After this time without a reload, the next one is a first one.
const CALM: u64 = 600;

/// The time of the last reload, and the pause before the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReloadPause {
    /// Seconds since 1970.
    last: u64,
    pause: u64,
}

impl ReloadPause {
    /// How long a reload has to wait now.
    pub(crate) fn left(self) -> Duration {
        Duration::from_secs(self.left_at(seconds()))
    }

    /// The pause after a reload now.
    #[must_use]
    pub(crate) fn after_reload(self) -> Self {
        self.after_reload_at(seconds())
    }

    /// A clock that was set back ends the pause.
    fn left_at(self, now: u64) -> u64 {
        now.checked_sub(self.last).map_or(0, |passed| self.pause.saturating_sub(passed))
    }

    fn after_reload_at(self, now: u64) -> Self {
        let is_first = now.checked_sub(self.last).is_none_or(|passed| passed >= CALM);
        let pause = if is_first { FIRST } else { (self.pause * 2).clamp(FIRST, LONGEST) };
        Self { last: now, pause }
    }
}

fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map(|it| it.as_secs()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_764_200_000;

    #[test]
    fn a_first_change_does_not_wait_and_each_further_pause_is_twice_as_long_up_to_a_bound() {
        let (mut pause, mut now) = (ReloadPause::default(), NOW);
        let mut pauses = Vec::new();
        for _ in 0..9 {
            pauses.push(pause.left_at(now));
            now += pause.left_at(now);
            pause = pause.after_reload_at(now);
        }
        assert_eq!(pauses, [0, 5, 10, 20, 40, 80, 160, 300, 300]);
    }

    #[test]
    fn after_a_calm_time_a_change_is_a_first_one_again() {
        let once = ReloadPause::default().after_reload_at(NOW).after_reload_at(NOW + 5);
        assert_eq!((once.left_at(NOW + 5), once.left_at(NOW + 9), once.left_at(NOW + 15)), (10, 6, 0));
        assert_eq!(once.after_reload_at(NOW + 604).left_at(NOW + 604), 20);
        assert_eq!(once.after_reload_at(NOW + 605).left_at(NOW + 605), 5);
    }

    #[test]
    fn a_clock_that_is_set_back_delays_no_reload() {
        let once = ReloadPause::default().after_reload_at(NOW);
        assert_eq!((once.left_at(NOW - 86_400), once.after_reload_at(NOW - 86_400).pause), (0, FIRST));
    }

    #[test]
    fn it_is_the_same_for_the_next_process() {
        let once = ReloadPause::default().after_reload_at(NOW);
        let written = serde_json::to_string(&once).unwrap();
        assert_eq!(serde_json::from_str::<ReloadPause>(&written).unwrap(), once);
    }
}
