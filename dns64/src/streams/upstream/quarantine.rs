//! IDs of questions that no client waits for any more. Replies to them may still arrive, so they are not reused for a while.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// How long an ID is not used.
const TIME: Duration = Duration::from_secs(10);

/// The IDs of one connection.
#[derive(Debug, Default)]
pub(super) struct Quarantine {
    ids: HashMap<u16, u64>,
    /// In the order of their ends, with the number of each entry. Those that have been answered stay here until their time.
    ends: VecDeque<(Instant, u16, u64)>,
    next: u64,
}

impl Quarantine {
    /// An ID is not to be used for a while.
    pub(super) fn add(&mut self, now: Instant, id: u16) {
        self.next += 1;
        self.ids.insert(id, self.next);
        self.ends.push_back((now + TIME, id, self.next));
    }

    /// Its reply has come. Returns whether it was here.
    pub(super) fn answered(&mut self, id: u16) -> bool {
        self.ids.remove(&id).is_some()
    }

    /// Whether the ID is not to be used.
    pub(super) fn holds(&self, id: u16) -> bool {
        self.ids.contains_key(&id)
    }

    /// Removes those that have expired.
    pub(super) fn pass(&mut self, now: Instant) {
        while let Some((end, id, number)) = self.ends.front().copied()
            && end <= now
        {
            self.ends.pop_front();
            if self.ids.get(&id) == Some(&number) {
                self.ids.remove(&id);
            }
        }
    }

    /// When the next one is to be forgotten.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.ends.front().map(|(end, ..)| *end)
    }

    /// Their number.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_free_after_its_time_or_its_reply() {
        let mut quarantine = Quarantine::default();
        let now = Instant::now();
        quarantine.add(now, 7);
        quarantine.add(now, 8);
        assert!(quarantine.answered(8) && !quarantine.answered(8));
        assert!(quarantine.holds(7) && !quarantine.holds(8));
        let later = now + TIME / 2;
        quarantine.add(later, 8);
        assert_eq!(quarantine.next_end(), Some(now + TIME));
        quarantine.pass(now + TIME);
        assert!(!quarantine.holds(7) && quarantine.holds(8), "the entry of before does not end it");
        quarantine.pass(later + TIME);
        assert_eq!((quarantine.len(), quarantine.ends.len(), quarantine.next_end()), (0, 0, None));
    }
}
