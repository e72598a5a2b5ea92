//! Ends a conflict with another program: what it changes three times within a minute is no longer restored.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// This many changes within [`WINDOW`] are not an accident.
const CHANGES: usize = 3;
const WINDOW: Duration = Duration::from_secs(60);
/// Then it is tried again: the other program may have ended.
const LEFT_ALONE: Duration = Duration::from_secs(600);

/// The reaction to a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// Restore it.
    Restore,
    /// Report that it is left as it is from now on.
    GiveUp,
    /// It is left as it is.
    Leave,
}

#[derive(Debug, Default)]
struct History {
    changes: Vec<Instant>,
    left_until: Option<Instant>,
}

impl History {
    fn is_of_use(&self, now: Instant) -> bool {
        self.left_until.is_some_and(|until| now < until)
            || self.changes.last().is_some_and(|at| now.duration_since(*at) < WINDOW)
    }
}

/// The recent changes of each thing, by its name.
#[derive(Debug, Default)]
pub(super) struct Restraint {
    histories: BTreeMap<String, History>,
}

impl Restraint {
    /// A change of `what` was found.
    pub fn changed(&mut self, what: &str, now: Instant) -> Reaction {
        self.histories.retain(|name, history| name == what || history.is_of_use(now));
        let history = self.histories.entry(what.to_owned()).or_default();
        if history.left_until.is_some_and(|until| now < until) {
            return Reaction::Leave;
        }
        history.left_until = None;
        history.changes.retain(|at| now.duration_since(*at) < WINDOW);
        history.changes.push(now);
        if history.changes.len() < CHANGES {
            return Reaction::Restore;
        }
        history.changes.clear();
        history.left_until = Some(now + LEFT_ALONE);
        Reaction::GiveUp
    }

    /// `what` is as it should be. Whether it had been left alone.
    pub fn intact(&mut self, what: &str) -> bool {
        self.histories.get_mut(what).is_some_and(|history| history.left_until.take().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_change_within_a_minute_ends_it_for_ten_minutes() {
        let (mut restraint, start) = (Restraint::default(), Instant::now());
        let mut at = |seconds, what| restraint.changed(what, start + Duration::from_secs(seconds));
        assert_eq!(at(0, "a"), Reaction::Restore);
        assert_eq!(at(30, "a"), Reaction::Restore);
        assert_eq!(at(59, "b"), Reaction::Restore);
        assert_eq!(at(59, "a"), Reaction::GiveUp);
        assert_eq!(at(60, "a"), Reaction::Leave);
        assert_eq!(at(658, "a"), Reaction::Leave);
        assert_eq!(at(659, "a"), Reaction::Restore);
    }

    #[test]
    fn changes_that_are_far_apart_are_restored_each_time() {
        let (mut restraint, start) = (Restraint::default(), Instant::now());
        for minute in 0..20 {
            let now = start + Duration::from_secs(minute * 31);
            assert_eq!(restraint.changed("a", now), Reaction::Restore);
        }
    }

    #[test]
    fn what_was_changed_long_ago_is_forgotten() {
        let (mut restraint, start) = (Restraint::default(), Instant::now());
        for number in 0..1_000 {
            restraint.changed(&format!("sysctl {number}"), start);
        }
        restraint.changed("a", start + WINDOW);
        assert_eq!(restraint.histories.len(), 1);
    }

    #[test]
    fn what_is_right_again_is_watched_again() {
        let (mut restraint, now) = (Restraint::default(), Instant::now());
        assert!(!restraint.intact("a"));
        for _ in 0..3 {
            restraint.changed("a", now);
        }
        assert_eq!(restraint.changed("a", now), Reaction::Leave);
        assert!(restraint.intact("a"));
        assert!(!restraint.intact("a"));
        assert_eq!(restraint.changed("a", now), Reaction::Restore);
    }
}
