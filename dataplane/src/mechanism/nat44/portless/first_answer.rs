//! The inside host that waits for the first answer of a remote host. An ESP packet with an unknown SPI may be for any inside host that
//! sends to the same remote host by the same outside address, so only one of them waits at a time:
//!
//! ```text
//!     sends ──▶ waits, alone for FIRST_ANSWER ──▶ answered ──▶ confirmed: it no longer waits
//!                        │                            │
//!                        └── another one may follow ──┘        unanswered: it may not wait again for REST
//! ```
//!
//! New packets of a host that waits do not prolong its time, so a host without answers blocks others only for a part of the time.

use super::tuple::Seen;
use crate::instant::Instant;
use alloc::collections::BTreeMap;
use arrayvec::ArrayVec;
use core::net::Ipv4Addr;
use core::time::Duration;

/// How long a host waits alone. An answer usually comes after one round trip.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// How long a host that got no answer, and had to make room for another one, may not wait again.
const REST: Duration = Duration::from_secs(30);

/// Hosts that may not wait again: the one that expires first is replaced.
const RESTING: usize = 8;

/// The host that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    inside: Ipv4Addr,
    slot: u32,
    since: Instant,
    /// Whether another host may follow at any time: an answer came, or it only waits as long as no other host does.
    yields: bool,
}

/// Those who share an outside address towards a remote host.
#[derive(Clone, Debug, Default)]
struct Queue {
    waiting: Option<Waiting>,
    /// Until when each may not wait again.
    resting: ArrayVec<(Ipv4Addr, Instant), RESTING>,
}

/// The hosts that wait. There are at most as many entries as sessions.
#[derive(Debug, Default)]
pub(super) struct FirstAnswers {
    queues: BTreeMap<Seen, Queue>,
}

impl FirstAnswers {
    /// Whether a host may wait from now on.
    pub(super) fn may_wait(&self, seen: Seen, inside: Ipv4Addr, now: Instant) -> bool {
        let Some(queue) = self.queues.get(&seen) else { return true };
        let is_resting = queue.resting.iter().any(|(host, until)| *host == inside && *until > now);
        let is_free = queue.waiting.is_none_or(|waiting| {
            waiting.inside == inside || waiting.yields || now.since(waiting.since) >= FIRST_ANSWER
        });
        is_free && !is_resting
    }

    /// A host that may wait does so with a new session.
    pub(super) fn wait(&mut self, seen: Seen, inside: Ipv4Addr, slot: u32, now: Instant) {
        let queue = self.queues.entry(seen).or_default();
        let before = queue.waiting.replace(Waiting { inside, slot, since: now, yields: false });
        let Some(before) = before.filter(|before| !before.yields) else { return };
        if before.inside != inside {
            queue.rests(before.inside, now);
        } else if let Some(waiting) = &mut queue.waiting {
            waiting.since = before.since;
        }
    }

    /// A session that is not confirmed sends: it waits again, as long as no other host does.
    pub(super) fn wait_again(&mut self, seen: Seen, inside: Ipv4Addr, slot: u32, now: Instant) {
        let queue = self.queues.entry(seen).or_default();
        queue.waiting.get_or_insert(Waiting { inside, slot, since: now, yields: true });
    }

    /// The session that an answer with an unknown id is for.
    pub(super) fn waiting(&self, seen: Seen) -> Option<u32> {
        self.queues.get(&seen)?.waiting.map(|waiting| waiting.slot)
    }

    /// A session got an answer.
    pub(super) fn answered(&mut self, seen: Seen, slot: u32) {
        if let Some(waiting) = self.queues.get_mut(&seen).and_then(|queue| queue.waiting.as_mut())
            && waiting.slot == slot
        {
            waiting.yields = true;
        }
    }

    /// A session no longer waits: its answers are confirmed, or it ends.
    pub(super) fn stop(&mut self, seen: Seen, slot: u32) {
        if let Some(queue) = self.queues.get_mut(&seen) {
            queue.waiting = queue.waiting.filter(|waiting| waiting.slot != slot);
        }
    }

    /// The last session that was seen so has ended.
    pub(super) fn forget(&mut self, seen: Seen) {
        self.queues.remove(&seen);
    }

    /// Whether anything is known of those who are seen so.
    #[cfg(test)]
    pub(super) fn knows(&self, seen: Seen) -> bool {
        self.queues.contains_key(&seen)
    }
}

impl Queue {
    fn rests(&mut self, host: Ipv4Addr, now: Instant) {
        self.resting.retain(|(other, until)| *other != host && *until > now);
        if self.resting.is_full() {
            self.resting.remove(0);
        }
        self.resting.push((host, now + REST));
    }
}

#[cfg(test)]
mod tests {
    use super::super::protocol::PortlessProtocol;
    use super::*;

    const SEEN: Seen = Seen {
        outside: Ipv4Addr::new(192, 0, 2, 1),
        remote: Ipv4Addr::new(203, 0, 113, 1),
        protocol: PortlessProtocol::Esp,
    };

    const fn host(number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, number)
    }

    fn at(seconds: u64) -> Instant {
        Instant(0) + Duration::from_secs(seconds)
    }

    #[test]
    fn new_sessions_of_a_host_that_waits_do_not_prolong_its_time() {
        let mut hosts = FirstAnswers::default();
        for second in 0..10 {
            assert!(hosts.may_wait(SEEN, host(1), at(second)));
            assert!(second == 0 || !hosts.may_wait(SEEN, host(2), at(second)));
            hosts.wait(SEEN, host(1), second as u32, at(second));
        }
        assert!(hosts.may_wait(SEEN, host(2), at(10)));
        hosts.wait(SEEN, host(2), 100, at(10));
        assert_eq!(hosts.waiting(SEEN), Some(100));
        for second in 10..40 {
            assert!(!hosts.may_wait(SEEN, host(1), at(second)), "{second}: it had its time");
        }
        assert!(hosts.may_wait(SEEN, host(1), at(40)));
    }

    #[test]
    fn who_is_answered_does_not_rest_and_another_one_may_follow() {
        let mut hosts = FirstAnswers::default();
        hosts.wait(SEEN, host(1), 1, at(0));
        hosts.answered(SEEN, 9);
        assert!(!hosts.may_wait(SEEN, host(2), at(1)), "the answer was another session's");
        hosts.answered(SEEN, 1);
        assert!(hosts.may_wait(SEEN, host(2), at(1)));
        assert_eq!(hosts.waiting(SEEN), Some(1), "until another one comes, further answers are for it");
        hosts.wait(SEEN, host(2), 2, at(1));
        hosts.answered(SEEN, 2);
        assert!(hosts.may_wait(SEEN, host(1), at(2)));
        hosts.stop(SEEN, 1);
        assert_eq!(hosts.waiting(SEEN), Some(2));
        hosts.stop(SEEN, 2);
        assert_eq!(hosts.waiting(SEEN), None);
    }

    #[test]
    fn a_host_that_was_answered_has_its_time_again_with_its_next_session() {
        let mut hosts = FirstAnswers::default();
        hosts.wait(SEEN, host(1), 1, at(0));
        hosts.answered(SEEN, 1);
        hosts.wait(SEEN, host(1), 2, at(20));
        assert!(!hosts.may_wait(SEEN, host(2), at(29)));
        assert!(hosts.may_wait(SEEN, host(2), at(30)));
    }

    #[test]
    fn who_waits_again_makes_room_immediately() {
        let mut hosts = FirstAnswers::default();
        hosts.wait(SEEN, host(1), 1, at(0));
        hosts.wait_again(SEEN, host(2), 2, at(20));
        assert_eq!(hosts.waiting(SEEN), Some(1), "another one waits");
        hosts.stop(SEEN, 1);
        hosts.wait_again(SEEN, host(2), 2, at(20));
        assert_eq!(hosts.waiting(SEEN), Some(2));
        assert!(hosts.may_wait(SEEN, host(3), at(20)));
        hosts.wait(SEEN, host(3), 3, at(20));
        hosts.stop(SEEN, 3);
        assert!(hosts.may_wait(SEEN, host(2), at(20)), "it does not rest");
    }

    #[test]
    fn a_bounded_number_of_hosts_rests() {
        let mut hosts = FirstAnswers::default();
        for number in 0..=RESTING as u8 {
            hosts.wait(SEEN, host(number), number.into(), at(0));
        }
        let rest = |hosts: &FirstAnswers, second| {
            (0..=RESTING as u8)
                .filter(|number| {
                    !hosts.queues[&SEEN]
                        .resting
                        .iter()
                        .any(|(it, until)| *it == host(*number) && *until > at(second))
                })
                .count()
        };
        assert_eq!(rest(&hosts, 29), 1, "all but the one that waits");
        hosts.wait(SEEN, host(99), 99, at(1));
        assert_eq!(hosts.queues[&SEEN].resting.len(), RESTING);
        hosts.wait(SEEN, host(98), 98, at(40));
        assert_eq!(hosts.queues[&SEEN].resting.len(), 1, "those whose time is over are forgotten");
        hosts.forget(SEEN);
        assert!(hosts.queues.is_empty());
    }
}
