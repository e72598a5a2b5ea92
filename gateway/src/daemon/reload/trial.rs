//! The trial of a new configuration. It is kept if the gateway still works: packets are still forwarded, and the DNS64 still has an
//! upstream that answers. If it must be confirmed, the confirmation must come in time.

use super::previous::{Before, Previous};
use std::time::{Duration, Instant};

/// How long a new configuration is observed.
const OBSERVED: Duration = Duration::from_secs(30);
/// With fewer packets a second, there may be none for a while, and the dropped ones may be a scan.
const BUSY: f64 = 10.0;
/// This number of drops is not a coincidence then.
const DROPS: u64 = 100;
/// This number of queries without an answer is not a coincidence either.
const QUERIES: u64 = 10;

/// A new configuration on trial.
#[derive(Clone, Copy, Debug)]
pub(in crate::daemon) struct Trial {
    began: Instant,
    before: Before,
    confirm: Option<Duration>,
    /// The packets that the fast path had carried when the trial began: its counters continue from one process to the next.
    carried: u64,
}

/// How the gateway is since the reload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::daemon) struct Health {
    /// Packets that passed the engines.
    pub passed: u64,
    /// Packets that the fast path carried since it was made.
    pub carried: u64,
    /// Packets that were dropped.
    pub dropped: u64,
    /// Queries to upstreams of the DNS64.
    pub queries: u64,
    /// An upstream answers.
    pub upstream_answers: bool,
}

/// How a trial ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::daemon) enum TrialEnd {
    /// The new configuration is kept.
    Kept,
    /// The previous one returns; why.
    RolledBack(&'static str),
}

impl Trial {
    /// Of a process that began at this time, when the fast path had carried this number of packets.
    pub fn of(previous: &Previous, began: Instant, carried: u64) -> Option<Self> {
        let (before, confirm) = (previous.before, previous.confirm());
        previous.is_on_trial().then_some(Self { began, before, confirm, carried })
    }

    /// Whether it must be confirmed.
    pub fn awaits_confirmation(&self) -> bool {
        self.confirm.is_some()
    }

    /// The seconds that are left to confirm it, at least one; `None`: no confirmation is needed.
    pub fn seconds_to_confirm(&self, now: Instant) -> Option<u64> {
        self.confirm.map(|_| self.until().saturating_duration_since(now).as_secs().max(1))
    }

    /// When it is judged.
    pub fn until(&self) -> Instant {
        self.began + self.confirm.unwrap_or(OBSERVED)
    }

    /// The judgement, when the time is over.
    pub fn judge(&self, health: Health) -> TrialEnd {
        if self.awaits_confirmation() {
            return TrialEnd::RolledBack("it was not confirmed in time");
        }
        let passed = health.passed + health.carried.saturating_sub(self.carried);
        if self.before.packets_per_second >= BUSY && passed == 0 && health.dropped >= DROPS {
            return TrialEnd::RolledBack("no packet passed since the reload: all were dropped");
        }
        if self.before.upstream_answered && !health.upstream_answers && health.queries >= QUERIES {
            return TrialEnd::RolledBack("no upstream of the DNS64 answers since the reload");
        }
        TrialEnd::Kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(before: Before, health: Health, confirm: Option<u64>) -> TrialEnd {
        let previous = Previous { before, confirm_seconds: confirm, ..Previous::default() };
        Trial::of(&previous, Instant::now(), 7).unwrap().judge(health)
    }

    #[test]
    fn what_worked_before_has_to_work_after() {
        let well = Before { packets_per_second: 10.0, upstream_answered: true };
        let health = |passed, dropped, upstream_answers| Health {
            passed,
            carried: 7,
            dropped,
            queries: 10,
            upstream_answers,
        };
        assert_eq!(judged(well, health(1, 9_999, true), None), TrialEnd::Kept);
        assert_eq!(judged(well, health(0, 99, true), None), TrialEnd::Kept, "almost nothing arrived");
        assert!(matches!(judged(well, health(0, 100, true), None), TrialEnd::RolledBack(_)));
        let carried = Health { carried: 8, ..health(0, 100, true) };
        assert_eq!(judged(well, carried, None), TrialEnd::Kept, "the fast path carries packets");
        assert!(matches!(judged(well, health(1, 0, false), None), TrialEnd::RolledBack(_)));
        let few = Health { queries: 9, ..health(1, 0, false) };
        assert_eq!(judged(well, few, None), TrialEnd::Kept, "almost nobody asked");
        // At night, what arrives may be a scan alone.
        let idle = Before { packets_per_second: 9.0, ..well };
        assert_eq!(judged(idle, health(0, 9_999, true), None), TrialEnd::Kept);
        // Functions that did not work before prove nothing.
        assert_eq!(judged(Before::default(), health(0, 999, false), None), TrialEnd::Kept);
        assert!(matches!(judged(well, health(1, 0, true), Some(60)), TrialEnd::RolledBack(_)));
        let previous = |confirm_seconds| Previous { confirm_seconds, ..Previous::default() };
        let left = |confirm, after| {
            let trial = Trial::of(&previous(confirm), Instant::now(), 0).unwrap();
            trial.seconds_to_confirm(trial.began + Duration::from_secs(after))
        };
        assert_eq!((left(Some(60), 50), left(Some(60), 61), left(None, 0)), (Some(10), Some(1), None));
        let back = Previous { rolled_back: Some("why".into()), ..Previous::default() };
        assert!(Trial::of(&back, Instant::now(), 0).is_none());
    }
}
