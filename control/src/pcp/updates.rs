//! Unsolicited messages that wait to be sent: announcements, and mapping updates (RFC 6887 §14.2).

use super::announce::{Announced, Transmit};
use super::mapping::Mapping;
use super::mappings::Key;
use core::time::Duration;
use sixway_dataplane::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The pauses between the three mapping updates (§14.2).
const PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_millis(500)];

/// Messages to clients whose mappings have changed. Bounded by the number of mappings.
#[derive(Clone, Debug, Default)]
pub(super) struct Updates {
    due: BTreeSet<(Instant, Key)>,
    /// How many were sent, and when the next one is due.
    sent: BTreeMap<Key, (usize, Instant)>,
    /// Mappings that have ended, since their clients want no other external endpoint.
    lost: BTreeMap<Key, Mapping>,
    waiting: VecDeque<Transmit>,
}

impl Updates {
    pub(super) fn begin(&mut self, key: Key, now: Instant) {
        self.cancel(key);
        self.due.insert((now, key));
        self.sent.insert(key, (0, now));
    }

    /// The same for a mapping that has ended.
    pub(super) fn begin_lost(&mut self, mapping: Mapping, now: Instant) {
        let key = (mapping.transport, mapping.internal);
        self.begin(key, now);
        self.lost.insert(key, mapping);
    }

    /// The client has renewed the mapping.
    pub(super) fn cancel(&mut self, key: Key) {
        self.lost.remove(&key);
        if let Some((_, at)) = self.sent.remove(&key) {
            self.due.remove(&(at, key));
        }
    }

    pub(super) fn due(&self) -> Option<Instant> {
        if self.waiting.is_empty() { self.due.first().map(|(at, _)| *at) } else { Some(Instant::default()) }
    }

    /// A mapping whose client must be sent a message now, and the mapping itself if it has ended.
    pub(super) fn take(&mut self, now: Instant) -> Option<(Key, Option<Mapping>)> {
        let (at, key) = *self.due.first().filter(|(at, _)| *at <= now)?;
        self.due.remove(&(at, key));
        let sent = self.sent.get(&key).map_or(0, |(sent, _)| *sent);
        match PAUSES.get(sent) {
            Some(pause) => {
                self.due.insert((now + *pause, key));
                self.sent.insert(key, (sent + 1, now + *pause));
                Some((key, self.lost.get(&key).cloned()))
            }
            None => {
                self.sent.remove(&key);
                Some((key, self.lost.remove(&key)))
            }
        }
    }

    pub(super) fn push(&mut self, to: Announced, octets: Vec<u8>) {
        self.waiting.push_back(Transmit { to, octets });
    }

    pub(super) fn pop_message(&mut self) -> Option<Transmit> {
        self.waiting.pop_front()
    }
}
